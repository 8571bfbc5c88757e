// rm: takes models away that a pull brought.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <iostream>

#include "commands.h"
#include "environment.h"
#include "hub/remove_model.h"
#include "pull_name.h"

namespace inferd {
namespace {

// The model behind a name, and how to remove it.
struct Removal {
  std::string name;
  std::string path;
  int64_t bytes = 0;  // of its files
  std::function<Result<int64_t>()> remove;
};

int64_t bytes_below(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code failure;
  if (fs::is_regular_file(path, failure)) return static_cast<int64_t>(fs::file_size(path, failure));
  int64_t bytes = 0;
  for (fs::recursive_directory_iterator at(path, failure), end; !failure && at != end;
       at.increment(failure)) {
    std::error_code none;
    if (at->is_regular_file(none)) bytes += static_cast<int64_t>(at->file_size(none));
  }
  return bytes;
}

Result<Removal> find(const std::string& name) {
  Removal removal{.name = name};
  if (is_hub_name(name)) {
    INFERD_TRY(const RepoName repo, parse_repo_name(name));
    INFERD_TRY(const HubSettings settings, hub_settings());
    INFERD_TRY(const CachedModel model, find_cached_model(settings.cache, repo));
    removal.path = model.path;
    removal.remove = [cache = settings.cache, repo, model] {
      return remove_cached_model(cache, repo, model);
    };
  } else {
    INFERD_TRY(const std::string folder, model_folder());
    INFERD_TRY(const ModelLocation location, locate_name(name));
    if (!location.present) return Error{.code = Code::hub_absent, .detail = name, .where = location.path};
    if (location.path != cat(folder, "/", location.name, ".gguf")) {
      return Error{
          .code = Code::arg_value,
          .detail = cat("got ", printable(name), ", allowed are the names that `inferd list` prints"),
          .where = location.path,
          .fix = "a file that no pull brought is yours to delete"};
    }
    removal.path = location.path;
    removal.remove = [folder, stored = location.name] { return remove_stored_model(folder, stored); };
  }
  removal.bytes = bytes_below(removal.path);
  return removal;
}

// Only an answer that begins with y counts.
Result<bool> confirmed(const Removal& removal) {
  if (::isatty(STDIN_FILENO) == 0) {
    return Error{.code = Code::arg_missing,
                 .detail = "nobody can be asked here",
                 .fix = cat("inferd rm -y ", removal.name)};
  }
  std::fputs(
      cat("remove ", removal.name, " (", human_bytes(removal.bytes), ", ", removal.path, ")? [y/N] ").c_str(),
      stderr);
  std::string answer;
  std::getline(std::cin, answer);
  return answer.starts_with('y') || answer.starts_with('Y');
}

}  // namespace

int rm_command(const Options& options) {
  std::vector<Removal> removals;  // every name is right before anything goes
  for (const std::string& name : options.arguments) {
    Result<Removal> removal = find(name);
    if (!removal.ok()) return report(removal.error());
    removals.push_back(std::move(removal).value());
  }
  Json::Array removed;
  int64_t total = 0;
  for (const Removal& removal : removals) {
    if (!options.yes) {
      const Result<bool> answer = confirmed(removal);
      if (!answer.ok()) return report(answer.error());
      if (!*answer) {
        std::fputs(cat(removal.name, " stays\n").c_str(), stderr);
        continue;
      }
    }
    const Result<int64_t> freed = removal.remove();
    if (!freed.ok()) return report(freed.error());
    total += *freed;
    removed.push_back(Json::Object{{"name", removal.name}, {"path", removal.path}, {"freed_bytes", *freed}});
    if (!options.json) {
      print(cat("removed ", removal.name, "  ", human_bytes(*freed), " (", with_commas(*freed),
                " bytes) freed\n"));
    }
  }
  if (options.json) {
    print_json(Json::Object{{"removed", std::move(removed)}, {"freed_bytes", total}});
  }
  return kExitOk;
}

}  // namespace inferd
