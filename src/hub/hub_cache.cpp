#include "hub/hub_cache.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "base/mmap.h"
#include "base/strings.h"
#include "hub/atomic_file.h"
#include "hub/file_lock.h"

namespace inferd {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFolderPrefix = "models--";

Status make_folder(const std::string& path) {
  std::error_code failure;
  fs::create_directories(path, failure);
  if (failure) return write_error(failure.value(), path);
  return {};
}

Error read_error(const std::error_code& failure, const std::string& path) {
  const bool denied = failure == std::errc::permission_denied;
  return {.code = denied ? Code::io_permission : Code::io_read, .detail = failure.message(), .where = path};
}

bool is_missing(const std::error_code& failure) {
  return failure == std::errc::no_such_file_or_directory || failure == std::errc::not_a_directory;
}

}  // namespace

bool is_commit(std::string_view text) {
  return text.size() == 40 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

RepoCache::RepoCache(std::string cache, const RepoName& name)
    : cache_(std::move(cache)),
      folder_name_(cat(kFolderPrefix, name.owner, "--", name.repo)),
      folder_(cat(cache_, "/", folder_name_)) {}

std::string RepoCache::blob_path(const std::string& hash) const {
  return cat(folder_, "/blobs/", hash);
}
std::string RepoCache::lock_path(const std::string& key) const {
  return cat(cache_, "/.locks/", folder_name_, "/", key, ".lock");
}
std::string RepoCache::snapshot_folder(const std::string& commit) const {
  return cat(folder_, "/snapshots/", commit);
}
std::string RepoCache::snapshot_path(const std::string& commit, const std::string& path) const {
  return cat(snapshot_folder(commit), "/", path);
}

Status RepoCache::make_folders() const {
  INFERD_TRY_STATUS(make_folder(cat(folder_, "/blobs")));
  INFERD_TRY_STATUS(make_folder(cat(folder_, "/refs")));
  return make_folder(cat(cache_, "/.locks/", folder_name_));
}

Status RepoCache::link(const std::string& commit, const std::string& path, const std::string& hash) const {
  const std::string from = snapshot_path(commit, path);
  std::string target = "../../";
  for (const char c : path) {
    if (c == '/') target += "../";
  }
  target += cat("blobs/", hash);
  std::error_code failure;
  if (fs::read_symlink(from, failure) == target) return {};
  const std::string folder = fs::path(from).parent_path().string();
  INFERD_TRY_STATUS(make_folder(folder));
  // Made elsewhere and renamed, so that the name never leads nowhere; the lock keeps others from the new
  // name.
  INFERD_TRY(const FileLock lock,
             FileLock::acquire(lock_path("links"), FileLock::After::keep, [] { return Status(); }));
  const std::string made = cat(folder_, "/link.new");
  ::unlink(made.c_str());  // a killed process may have left it; another reason shows at symlink()
  // From the snapshot's folder the target is seen, wherever the link is made.
  if (::symlink(target.c_str(), made.c_str()) != 0) return write_error(errno, made);
  if (::rename(made.c_str(), from.c_str()) != 0) return write_error(errno, from);
  return flush_folder(folder);
}

Status RepoCache::set_main(const std::string& commit) const {
  INFERD_TRY(const std::optional<std::string> before, main_commit());
  if (before == commit) return {};
  INFERD_TRY(const FileLock lock,
             FileLock::acquire(lock_path("links"), FileLock::After::keep, [] { return Status(); }));
  const std::string made = cat(folder_, "/main.new");
  ::unlink(made.c_str());  // as above
  INFERD_TRY(AtomicFile file, AtomicFile::create(made, cat(folder_, "/refs/main")));
  INFERD_TRY_STATUS(file.write(std::as_bytes(std::span(commit))));
  return file.commit();
}

Result<std::optional<std::string>> RepoCache::main_commit() const {
  const Result<MappedFile> file = MappedFile::open(cat(folder_, "/refs/main"));
  if (!file.ok()) {
    if (file.error().code == Code::io_not_found) return std::optional<std::string>();
    return file.error();
  }
  const std::string_view text(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  // A file that holds something else was cut short by a full disk or is somebody's: as good as none.
  if (!is_commit(trim(text))) return std::optional<std::string>();
  return std::optional(std::string(trim(text)));
}

Result<std::vector<RepoFile>> RepoCache::snapshot_files(const std::string& commit) const {
  const std::string folder = snapshot_folder(commit);
  std::vector<RepoFile> files;
  std::error_code failure;
  for (fs::recursive_directory_iterator at(folder, failure), end; !failure && at != end;
       at.increment(failure)) {
    std::error_code dangling;  // a link whose blob was deleted, or is not whole yet: the file is not here
    if (!at->is_regular_file(dangling)) continue;
    const auto bytes = static_cast<int64_t>(at->file_size(dangling));
    if (!dangling) files.push_back({at->path().lexically_relative(folder).string(), bytes});
  }
  if (failure && !is_missing(failure)) return read_error(failure, folder);
  std::ranges::sort(files, {}, &RepoFile::path);
  return files;
}

Result<CachedModel> find_cached_model(const std::string& cache, const RepoName& name) {
  const RepoCache repo(cache, name);
  Error absent{
      .code = Code::hub_absent, .detail = name.text(), .fix = cat("`inferd pull ", name.text(), "`")};
  INFERD_TRY(const std::optional<std::string> commit, repo.main_commit());
  if (!commit) return absent;
  INFERD_TRY(const std::vector<RepoFile> files, repo.snapshot_files(*commit));
  absent.where = repo.snapshot_folder(*commit);
  const bool has_model = std::ranges::any_of(files, [](const RepoFile& file) {
    return file.path.ends_with(".gguf") || file.path.ends_with(".safetensors");
  });
  if (!has_model) return absent;
  Result<ModelFiles> chosen = choose_model_files(name.quant, name.file, files);
  if (!chosen.ok()) {
    if (chosen.error().code != Code::hub_choice) return std::move(chosen).error();
    absent.detail += cat("; of its repository ", chosen.error().detail);
    return absent;
  }
  return CachedModel{.commit = *commit,
                     .path = chosen->safetensors ? repo.snapshot_folder(*commit)
                                                 : repo.snapshot_path(*commit, chosen->paths.front()),
                     .safetensors = chosen->safetensors};
}

namespace {

// The repositories of a cache, by name. A missing cache has none. E-IO-002, -003.
Result<std::vector<RepoName>> list_repositories(const std::string& cache) {
  std::vector<RepoName> found;
  std::error_code failure;
  for (fs::directory_iterator at(cache, failure), end; !failure && at != end; at.increment(failure)) {
    const std::string folder = at->path().filename().string();
    if (!folder.starts_with(kFolderPrefix)) continue;
    const std::string id = folder.substr(kFolderPrefix.size());
    const size_t divider = id.find("--");  // neither part may hold one
    if (divider == std::string::npos) continue;
    Result<RepoName> name = parse_repo_name(cat("hf:", id.substr(0, divider), "/", id.substr(divider + 2)));
    if (name.ok()) found.push_back(std::move(name).value());  // else nothing that a name of ours could mean
  }
  if (failure && !is_missing(failure)) return read_error(failure, cache);
  std::ranges::sort(found, {}, &RepoName::text);
  return found;
}

}  // namespace

Result<std::vector<CachedFile>> list_cached_models(const std::string& cache) {
  INFERD_TRY(const std::vector<RepoName> names, list_repositories(cache));
  std::vector<CachedFile> found;
  for (const RepoName& name : names) {
    const RepoCache repo(cache, name);
    const auto commit = repo.main_commit();
    if (!commit.ok() || !*commit) continue;
    const auto files = repo.snapshot_files(**commit);
    if (!files.ok()) continue;
    for (const RepoFile& file : *files) {
      if (file.path.ends_with(".gguf"))
        found.push_back(
            {cat(name.text(), "/", file.path), repo.snapshot_path(**commit, file.path), file.bytes});
    }
  }
  std::ranges::sort(found, {}, &CachedFile::name);
  return found;
}

CacheRemains find_remains(const std::string& cache) {
  CacheRemains remains;
  const Result<std::vector<RepoName>> names = list_repositories(cache);
  if (!names.ok()) return remains;
  for (const RepoName& name : *names) {
    const RepoCache repo(cache, name);
    std::error_code failure;
    for (fs::directory_iterator at(fs::path(repo.blob_path("x")).parent_path(), failure), end;
         !failure && at != end; at.increment(failure)) {
      if (at->path().extension() != ".incomplete") continue;
      std::error_code gone;
      const auto bytes = at->file_size(gone);
      if (gone) continue;
      ++remains.partial_files;
      remains.partial_bytes += static_cast<int64_t>(bytes);
    }
    const auto commit = repo.main_commit();
    if (!commit.ok() || !*commit) continue;
    bool dangling = false;
    for (fs::recursive_directory_iterator at(repo.snapshot_folder(**commit), failure), end;
         !failure && at != end; at.increment(failure)) {
      std::error_code absent;
      dangling |= at->is_symlink(absent) && !fs::exists(at->path(), absent);
    }
    if (dangling) remains.broken.push_back(name.text());
  }
  return remains;
}

}  // namespace inferd
