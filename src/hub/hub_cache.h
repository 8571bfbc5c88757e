// The Hugging Face hub's cache on disk, used in place: what huggingface_hub has fetched is found here, and
// the other way round.
//   models--OWNER--REPO/blobs/HASH             the bytes, by SHA-256 (large files) or git's SHA-1
//   models--OWNER--REPO/snapshots/COMMIT/PATH  a relative link to a blob
//   models--OWNER--REPO/refs/main              the commit that "main" was when it was fetched last
//   .locks/models--OWNER--REPO/HASH.lock       held while a blob is written
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "hub/repo_name.h"

namespace inferd {

class RepoCache {
 public:
  RepoCache(std::string cache, const RepoName& name);

  std::string blob_path(const std::string& hash) const;
  std::string lock_path(const std::string& key) const;
  std::string snapshot_folder(const std::string& commit) const;
  std::string snapshot_path(const std::string& commit, const std::string& path) const;

  // Makes the folders for blobs and locks. E-IO-001, -002, -004, -006.
  Status make_folders() const;
  // snapshots/COMMIT/PATH becomes a link to the blob; one that is there already is replaced when it leads
  // elsewhere.
  Status link(const std::string& commit, const std::string& path, const std::string& hash) const;
  // refs/main becomes `commit`.
  Status set_main(const std::string& commit) const;

  // The commit of refs/main; nothing when nothing was fetched. E-IO-002, -003.
  Result<std::optional<std::string>> main_commit() const;
  // The files of a snapshot that are here whole, by path.
  Result<std::vector<RepoFile>> snapshot_files(const std::string& commit) const;

 private:
  std::string cache_;
  std::string folder_name_;  // "models--OWNER--REPO"
  std::string folder_;
};

// What a name means among the files that are here, without any connection.
struct CachedModel {
  std::string commit;
  std::string path;  // of the model file; of a safetensors model its folder
  bool safetensors = false;
};

// E-HUB-005 when it is not here, E-MODEL-008 when what is here is split, E-IO-002 or -003 when the cache
// cannot be read.
Result<CachedModel> find_cached_model(const std::string& cache, const RepoName& name);

struct CachedFile {
  std::string name;  // "hf:OWNER/REPO/FILE"
  std::string path;
  int64_t bytes;
};

// The GGUF files of every repository's "main" in the cache, by name. A missing cache holds none.
Result<std::vector<CachedFile>> list_cached_models(const std::string& cache);

// What interrupted downloads and deleted files have left in a cache.
struct CacheRemains {
  int64_t partial_files = 0;  // blobs/HASH.incomplete, which the same pull goes on with
  int64_t partial_bytes = 0;
  std::vector<std::string> broken;  // "hf:OWNER/REPO" with a name in its "main" that leads nowhere
};

// Reads what can be read of every repository in the cache.
CacheRemains find_remains(const std::string& cache);

// 40 hexadecimal digits in lower case.
bool is_commit(std::string_view text);

}  // namespace inferd
