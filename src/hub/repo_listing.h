// What the hub says about a repository: the commit that "main" is, and its files with sizes and hashes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace inferd {

struct ListedFile {
  std::string path;
  int64_t bytes = 0;
  std::string hash;        // of the bytes, and the blob's name in the cache
  bool is_sha256 = false;  // else git's SHA-1
};

struct RepoListing {
  std::string commit;
  std::vector<ListedFile> files;
};

// The path of the listing below the endpoint.
std::string listing_target(std::string_view repo_id);
// The path of a file's bytes below the endpoint.
std::string file_target(std::string_view repo_id, std::string_view commit, std::string_view path);

// The answer to listing_target(). E-HUB-012, naming the field, for anything that is not as it should be: a
// path that would leave the folder, a hash that is none, a size below zero, two files of one path.
Result<RepoListing> parse_repo_listing(std::string_view json);

}  // namespace inferd
