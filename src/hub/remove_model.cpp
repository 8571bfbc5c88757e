#include "hub/remove_model.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/mmap.h"
#include "base/strings.h"
#include "hub/file_lock.h"
#include "hub/sha256.h"

namespace inferd {
namespace {

namespace fs = std::filesystem;

Error remove_error(const std::error_code& failure, const std::string& path) {
  const bool missing = failure == std::errc::no_such_file_or_directory;
  return {
      .code = missing ? Code::io_not_found : Code::io_permission, .detail = failure.message(), .where = path};
}

Result<FileLock> lock_for_removal(const std::string& path, FileLock::After after, const std::string& model) {
  std::error_code ignored;  // acquire() says what is wrong with a folder that could not be made
  fs::create_directories(fs::path(path).parent_path(), ignored);
  return FileLock::acquire(path, after,
                           [&model]() -> Status { return Error{.code = Code::hub_busy, .detail = model}; });
}

Status remove_file(const std::string& path) {
  std::error_code failure;
  if (!fs::remove(path, failure)) {
    return remove_error(failure ? failure : std::make_error_code(std::errc::no_such_file_or_directory), path);
  }
  return {};
}

// Whether a link below `snapshots` leads to the blob of this name.
bool is_linked(const fs::path& snapshots, const std::string& blob_name) {
  std::error_code failure;
  for (fs::recursive_directory_iterator at(snapshots, failure), end; !failure && at != end;
       at.increment(failure)) {
    std::error_code none;
    if (at->is_symlink(none) && fs::read_symlink(at->path(), none).filename() == blob_name) return true;
  }
  return false;
}

}  // namespace

Result<int64_t> remove_stored_model(const std::string& folder, const std::string& name) {
  const std::string path = cat(folder, "/", name, ".gguf");
  std::error_code failure;
  const auto bytes = static_cast<int64_t>(fs::file_size(path, failure));
  if (failure) return remove_error(failure, path);
  INFERD_TRY(const FileLock lock,
             lock_for_removal(cat(folder, "/.", name, ".lock"), FileLock::After::remove, name));
  INFERD_TRY_STATUS(remove_file(path));
  return bytes;
}

Result<int64_t> remove_cached_model(const std::string& cache, const RepoName& name,
                                    const CachedModel& model) {
  const RepoCache repo(cache, name);
  std::vector<std::string> paths;
  if (model.safetensors) {
    INFERD_TRY(const std::vector<RepoFile> files, repo.snapshot_files(model.commit));
    for (const RepoFile& file : files) paths.push_back(repo.snapshot_path(model.commit, file.path));
  } else {
    paths.push_back(model.path);
  }
  int64_t freed = 0;
  for (const std::string& path : paths) {
    std::error_code failure;
    const auto bytes = static_cast<int64_t>(fs::file_size(path, failure));
    if (failure) return remove_error(failure, path);
    const std::string hash = fs::read_symlink(path, failure).filename().string();
    if (failure) {  // a copy, where somebody's file system has no links
      INFERD_TRY_STATUS(remove_file(path));
      freed += bytes;
      continue;
    }
    INFERD_TRY(const FileLock lock,
               lock_for_removal(repo.lock_path(hash), FileLock::After::keep, name.text()));
    // The link first: a blob without a link is only wasted space, a link without a blob a broken model.
    INFERD_TRY_STATUS(remove_file(path));
    if (is_linked(fs::path(repo.snapshot_folder(model.commit)).parent_path(), hash)) continue;
    INFERD_TRY_STATUS(remove_file(repo.blob_path(hash)));
    freed += bytes;
  }
  return freed;
}

Result<FileHash> hash_model_file(const std::string& path, const std::string& wanted) {
  FileHash hash{.kind = "sha256", .wanted = wanted};
  std::error_code not_a_link;
  const fs::path target = fs::read_symlink(path, not_a_link);
  if (wanted.empty() && !not_a_link && target.parent_path().filename() == "blobs")
    hash.wanted = target.filename().string();
  if (hash.wanted.size() == 40) {
    hash.kind = "git";
    INFERD_TRY(const MappedFile file, MappedFile::open(path));
    GitBlobHash git(static_cast<int64_t>(file.bytes().size()));
    git.update(file.bytes());
    hash.value = git.finish();
    return hash;
  }
  INFERD_TRY(hash.value, sha256_of_file(path));
  return hash;
}

}  // namespace inferd
