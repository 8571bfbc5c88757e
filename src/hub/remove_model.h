// Takes away what a pull brought, and checks that it is still what was brought.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "hub/hub_cache.h"

namespace inferd {

// The file NAME.gguf of the model folder; the bytes that became free. E-IO-001, -002; E-HUB-016 while another
// process fetches it.
Result<int64_t> remove_stored_model(const std::string& folder, const std::string& name);

// The model's links in its snapshot, and each blob that no other snapshot of the repository links to; the
// bytes that became free. Other files of the repository stay. Errors as above.
Result<int64_t> remove_cached_model(const std::string& cache, const RepoName& name, const CachedModel& model);

// What the bytes of a file are, against what they should be.
struct FileHash {
  std::string kind;    // "sha256", or "git" for the hub's small files
  std::string value;   // of the bytes on disk
  std::string wanted;  // empty when nobody has said
  bool ok() const { return wanted.empty() || wanted == value; }
};

// Reads the whole file. `wanted` empty: what the name of the blob says when the path is a link into the hub's
// cache. E-IO-001, -002, -003.
Result<FileHash> hash_model_file(const std::string& path, const std::string& wanted);

}  // namespace inferd
