#include "hub/pull.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/strings.h"
#include "hub/atomic_file.h"
#include "hub/file_lock.h"
#include "hub/hub_cache.h"
#include "hub/hub_client.h"
#include "hub/partial_file.h"
#include "hub/repo_listing.h"
#include "hub/sha256.h"

namespace inferd {
namespace {

constexpr size_t kLargestListing = size_t{4} << 20;

// Bytes of the file of that name; -1: there is none.
Result<int64_t> bytes_at(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) == 0) return static_cast<int64_t>(info.st_size);
  if (errno == ENOENT || errno == ENOTDIR) return int64_t{-1};
  return write_error(errno, path);
}

// `"abc"` and `W/"abc"` to `abc`.
std::string_view bare_etag(std::string_view etag) {
  if (etag.starts_with("W/")) etag.remove_prefix(2);
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') etag = etag.substr(1, etag.size() - 2);
  return etag;
}

// Whether "bytes 100-199/200" is what was asked for.
bool is_range(std::string_view text, int64_t offset, int64_t bytes) {
  return text == cat("bytes ", offset, "-", bytes - 1, "/", bytes) ||
         text == cat("bytes ", offset, "-", bytes - 1, "/*");
}

// For the bar, which has numbers to show too.
std::string short_title(const RepoName& name) {
  constexpr size_t kMost = 24;
  std::string text = name.file.empty() ? cat(name.repo, name.quant.empty() ? "" : ":", name.quant)
                                       : name.file.substr(name.file.rfind('/') + 1);
  if (text.size() <= kMost) return text;
  text.resize(kMost - 2);
  return text + "..";
}

class Pull {
 public:
  Pull(const RepoName& name, const PullOptions& options)
      : name_(name),
        title_(name.text()),
        bar_title_(short_title(name)),
        options_(options),
        cache_(options.hub.cache, name) {
    patience_.cancel = options.cancel;
    patience_.tick = [this] { report(); };
  }
  Pull(const Pull&) = delete;
  Pull& operator=(const Pull&) = delete;

  Result<PulledModel> run() {
    Result<PulledModel> pulled = work();
    if (pulled.ok() || pulled.error().code != Code::interrupted) return pulled;
    const bool some = total_ > 0;
    return Error{
        .code = Code::interrupted,
        .detail = cat("the pull of ", title_, " was stopped",
                      some ? cat("; ", human_bytes(shown_), " of ", human_bytes(total_), " are here") : ""),
        .fix = "run the same command again: it goes on from there"};
  }

 private:
  Result<PulledModel> work() {
    meter_.emplace(monotonic_clock(), "list", bar_title_, 0);
    INFERD_TRY(HubClient client, HubClient::create(options_.hub, name_, patience_));
    INFERD_TRY(const RepoListing listing, list(client));
    INFERD_TRY(const std::vector<ListedFile> wanted, choose(listing));
    INFERD_TRY_STATUS(cache_.make_folders());
    INFERD_TRY_STATUS(check_space(wanted));
    meter_.emplace(monotonic_clock(), "pull", bar_title_, total_);
    for (const ListedFile& file : wanted) INFERD_TRY_STATUS(fetch(client, listing.commit, file));
    PulledModel pulled{.commit = listing.commit, .safetensors = safetensors_, .fetched_bytes = fetched_};
    for (const ListedFile& file : wanted) {
      INFERD_TRY_STATUS(cache_.link(listing.commit, file.path, file.hash));
      pulled.files.push_back({cache_.snapshot_path(listing.commit, file.path), file.bytes, file.hash});
    }
    INFERD_TRY_STATUS(cache_.set_main(listing.commit));
    pulled.path = safetensors_ ? cache_.snapshot_folder(listing.commit) : pulled.files.front().path;
    return pulled;
  }

  void report() {
    if (!options_.progress || !meter_) return;
    const ProgressEvent event = meter_->update(done_);
    shown_ = event.done;
    options_.progress(event);
  }

  void note(const std::string& text) const {
    if (options_.note) options_.note(text);
  }

  Result<RepoListing> list(HubClient& client) {
    Attempts attempts(options_.attempts, options_.backoff_ms, options_.note);
    std::string text;
    while (auto trouble = client.get_text(listing_target(name_.id()), kLargestListing, text)) {
      INFERD_TRY_STATUS(attempts.next(*std::move(trouble), false, patience_));
    }
    return parse_repo_listing(text);
  }

  Result<std::vector<ListedFile>> choose(const RepoListing& listing) {
    std::vector<RepoFile> files;
    for (const ListedFile& file : listing.files) files.push_back({file.path, file.bytes});
    Result<ModelFiles> chosen = choose_model_files(name_.quant, name_.file, files);
    if (!chosen.ok()) {
      Error error = std::move(chosen).error();
      if (error.where.empty()) error.where = title_;
      return error;
    }
    safetensors_ = chosen->safetensors;
    std::vector<ListedFile> wanted;
    for (const ListedFile& file : listing.files) {
      if (std::ranges::find(chosen->paths, file.path) != chosen->paths.end()) wanted.push_back(file);
    }
    return wanted;
  }

  // Adds up what is to come, and holds it against what is free.
  Status check_space(const std::vector<ListedFile>& wanted) {
    int64_t needed = 0;
    for (const ListedFile& file : wanted) {
      INFERD_TRY(const int64_t here, bytes_at(cache_.blob_path(file.hash)));
      if (here == file.bytes) continue;
      INFERD_TRY(const int64_t part, bytes_at(cache_.blob_path(file.hash) + ".incomplete"));
      total_ += file.bytes;
      needed += file.bytes - (part > 0 && part <= file.bytes ? part : 0);
    }
    struct statvfs info{};
    const std::string folder = cache_.blob_path("");
    if (::statvfs(folder.c_str(), &info) != 0) return write_error(errno, folder);
    const auto free_bytes = static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize);
    if (needed <= free_bytes) return {};
    return Error{
        .code = Code::io_disk_full,
        .detail = cat(title_, " needs ", human_bytes(needed), ", ", human_bytes(free_bytes), " is free"),
        .where = folder,
        .fix = "free space, or set HF_HUB_CACHE to a folder on another disk"};
  }

  // The file under its final name. On an error what came stays as a part.
  Status fetch(HubClient& client, const std::string& commit, const ListedFile& file) {
    const std::string blob = cache_.blob_path(file.hash);
    INFERD_TRY(int64_t here, bytes_at(blob));
    if (here == file.bytes) return {};
    INFERD_TRY(const FileLock lock, wait_for_lock(file));
    INFERD_TRY(here, bytes_at(blob));
    if (here == file.bytes) {  // whoever had the lock has fetched it
      done_ += file.bytes;
      meter_->resume(done_);
      return {};
    }
    // A blob of another size was cut short, by whatever: its bytes are a part like any other.
    if (here >= 0 && ::rename(blob.c_str(), (blob + ".incomplete").c_str()) != 0)
      return write_error(errno, blob);
    INFERD_TRY(const std::unique_ptr<PartialFile> part,
               PartialFile::open(blob, file.bytes, [&file]() -> Digest {
                 if (file.is_sha256) return Sha256();
                 return GitBlobHash(file.bytes);
               }));
    INFERD_TRY_STATUS(fetch_part(client, commit, file, *part));
    return part->commit();
  }

  Result<FileLock> wait_for_lock(const ListedFile& file) {
    ProgressMeter waiting(monotonic_clock(), "wait", bar_title_, 0);
    return FileLock::acquire(cache_.lock_path(file.hash), FileLock::After::keep, [&]() -> Status {
      if (options_.cancel != nullptr && options_.cancel->load()) return Error{.code = Code::interrupted};
      if (options_.progress) options_.progress(waiting.update(0));
      return {};
    });
  }

  // Until all bytes are here and have the right hash.
  Status fetch_part(HubClient& client, const std::string& commit, const ListedFile& file, PartialFile& part) {
    file_begin_ = done_;
    INFERD_TRY_STATUS(part.read_back([&](int64_t bytes) -> Status {
      if (options_.cancel != nullptr && options_.cancel->load()) return Error{.code = Code::interrupted};
      done_ += bytes;
      meter_->resume(done_);
      report();
      return {};
    }));
    bool resumed = part.size() > 0;
    int64_t most = part.size();  // that was ever here: progress is what goes beyond
    Attempts attempts(options_.attempts, options_.backoff_ms, options_.note);
    for (;;) {
      while (part.missing() > 0) {
        auto trouble = transfer(client, commit, file, part, resumed);
        const bool progressed = part.size() > most;
        most = std::max(most, part.size());
        if (trouble) INFERD_TRY_STATUS(attempts.next(*std::move(trouble), progressed, patience_));
      }
      const std::string hash = part.finish_digest();
      if (hash == file.hash) return {};
      if (!resumed) {
        INFERD_TRY_STATUS(part.discard());
        return Error{
            .code = Code::hub_hash,
            .detail = cat(printable(file.path, 200), " came with ", hash, ", the hub says ", file.hash),
            .where = title_};
      }
      note(cat("the part of ", printable(file.path, 200),
               " that was here has other bytes, fetching it again"));
      INFERD_TRY_STATUS(part.restart());
      resumed = false;
    }
  }

  // One request. `resumed` becomes false when the file begins anew.
  std::optional<Trouble> transfer(HubClient& client, const std::string& commit, const ListedFile& file,
                                  PartialFile& part, bool& resumed) {
    std::unique_ptr<GetResponse> response;
    if (auto trouble =
            client.get(file_target(name_.id(), commit, file.path), part.size(), part.etag(), response))
      return trouble;
    if (auto trouble = check_response(*response, file, part, resumed)) return trouble;
    if (Status kept = part.set_etag(std::string(response->header("etag"))); !kept.ok())
      return trouble_of(std::move(kept).error());
    for (;;) {
      Result<std::string> piece = response->read();
      if (!piece.ok()) return trouble_of(std::move(piece).error());
      if (piece->empty()) break;
      if (static_cast<int64_t>(piece->size()) > part.missing()) {
        return trouble_of(unusable(*response, cat("more bytes than the ", with_commas(file.bytes), " of ",
                                                  printable(file.path, 200))));
      }
      if (Status written = part.write(std::as_bytes(std::span(*piece))); !written.ok()) {
        Error error = std::move(written).error();
        if (error.code == Code::io_disk_full)
          error.fix = "free space, then run the same command again: it goes on";
        return trouble_of(std::move(error));
      }
      fetched_ += static_cast<int64_t>(piece->size());
      done_ = file_begin_ + part.size();
      report();
    }
    if (part.missing() == 0) return std::nullopt;
    return trouble_of({.code = Code::hub_network,
                       .detail = cat("the connection ended after ", with_commas(part.size()), " of ",
                                     with_commas(file.bytes), " bytes"),
                       .where = response->url().shown()});
  }

  // Whether the body is what is missing; begins anew when it is the whole file again.
  std::optional<Trouble> check_response(const GetResponse& response, const ListedFile& file,
                                        PartialFile& part, bool& resumed) {
    const auto begin_anew = [&](std::string_view why) -> std::optional<Trouble> {
      note(cat(why, ", fetching ", printable(file.path, 200), " from its beginning"));
      resumed = false;
      if (Status restarted = part.restart(); !restarted.ok()) return trouble_of(std::move(restarted).error());
      return std::nullopt;
    };
    const std::string_view linked = bare_etag(response.first_header("x-linked-etag"));
    if (!linked.empty() && file.is_sha256 && linked != file.hash) {
      return trouble_of({.code = Code::hub_hash,
                         .detail = cat(printable(file.path, 200), " is ", printable(linked, 70),
                                       " on the server, the listing says ", file.hash),
                         .where = title_});
    }
    if (response.status() == 416) {
      if (part.size() == 0)
        return trouble_of(unusable(response, "status 416 to a request for the whole file"));
      if (auto trouble = begin_anew("the server has no such part")) return trouble;
      return Trouble{.error = unusable(response, "status 416"), .may_pass = true};
    }
    if (response.status() == 206) {
      const std::string_view range = response.header("content-range");
      if (part.size() == 0 || !is_range(range, part.size(), file.bytes)) {
        Error error = unusable(response, cat("the part ", printable(range), " instead of the one from byte ",
                                             part.size(), " of ", file.bytes));
        if (part.size() == 0) return trouble_of(std::move(error));
        if (auto trouble = begin_anew("the server sent another part")) return trouble;
        return Trouble{.error = std::move(error), .may_pass = true};
      }
    } else if (part.size() > 0) {
      if (auto trouble = begin_anew("the file changed on the server, or it gives no parts")) return trouble;
    }
    const std::optional<int64_t> length = response.content_length();
    if (length && *length != part.missing()) {
      return trouble_of(unusable(response, cat(with_commas(*length), " bytes for ", printable(file.path, 200),
                                               ", ", with_commas(part.missing()), " are missing")));
    }
    return std::nullopt;
  }

  static Error unusable(const GetResponse& response, std::string detail) {
    return {.code = Code::hub_answer, .detail = std::move(detail), .where = response.url().shown()};
  }

  const RepoName& name_;
  const std::string title_;
  const std::string bar_title_;
  const PullOptions& options_;
  const RepoCache cache_;
  Patience patience_;
  std::optional<ProgressMeter> meter_;
  bool safetensors_ = false;
  int64_t total_ = 0;       // bytes of all files that are not here whole
  int64_t done_ = 0;        // of them here
  int64_t file_begin_ = 0;  // `done_` when the current file began
  int64_t shown_ = 0;       // the last `done` that was reported
  int64_t fetched_ = 0;
};

// What is here already, for a caller that may not connect.
Result<PulledModel> find_offline(const RepoName& name, const HubSettings& settings) {
  Result<CachedModel> found = find_cached_model(settings.cache, name);
  if (!found.ok()) {
    if (found.error().code != Code::hub_absent) return std::move(found).error();
    return Error{.code = Code::hub_offline, .detail = found.error().detail, .where = found.error().where};
  }
  PulledModel model{.path = found->path, .commit = found->commit, .safetensors = found->safetensors};
  const RepoCache cache(settings.cache, name);
  INFERD_TRY(const std::vector<RepoFile> files, cache.snapshot_files(found->commit));
  for (const RepoFile& file : files) {
    const std::string path = cache.snapshot_path(found->commit, file.path);
    if (!found->safetensors && path != found->path) continue;
    std::error_code no_link;
    const std::filesystem::path blob = std::filesystem::read_symlink(path, no_link);
    model.files.push_back({path, file.bytes, no_link ? std::string() : blob.filename().string()});
  }
  return model;
}

}  // namespace

Result<PulledModel> pull_model(const RepoName& name, const PullOptions& options) {
  if (options.hub.offline) return find_offline(name, options.hub);
  return Pull(name, options).run();
}

}  // namespace inferd
