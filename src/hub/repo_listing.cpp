#include "hub/repo_listing.h"

#include <set>
#include <utility>

#include "base/json.h"
#include "base/strings.h"
#include "hub/hub_cache.h"
#include "hub/repo_name.h"
#include "hub/url.h"

namespace inferd {
namespace {

constexpr int64_t kLargestFile = int64_t{1} << 50;  // a claim beyond it would overflow sums

Error bad(std::string_view detail) {
  return {.code = Code::hub_answer, .detail = cat("the repository's listing: ", detail)};
}

bool is_hex(std::string_view text, size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

const std::string* string_field(const Json& object, std::string_view key) {
  const Json* value = object.find(key);
  return value != nullptr && value->is_string() ? &value->as_string() : nullptr;
}

Result<ListedFile> parse_file(const Json& sibling, const std::string& at) {
  const std::string* path = string_field(sibling, "rfilename");
  if (path == nullptr) return bad(cat(at, ".rfilename is no text"));
  if (!is_safe_repo_path(*path))
    return bad(cat(at, ".rfilename is ", printable(*path), ", which is no path inside a repository"));
  ListedFile file{.path = *path};
  const Json* size = sibling.find("size");
  const Json* lfs = sibling.find("lfs");
  if (lfs != nullptr && lfs->is_object()) {
    const std::string* sha256 = string_field(*lfs, "sha256");
    if (sha256 == nullptr) return bad(cat(at, ".lfs.sha256 is no text"));
    file.hash = *sha256;
    file.is_sha256 = true;
    if (const Json* lfs_size = lfs->find("size"); lfs_size != nullptr) size = lfs_size;
  } else {
    const std::string* blob = string_field(sibling, "blobId");
    if (blob == nullptr) return bad(cat(at, ".blobId is no text"));
    file.hash = *blob;
  }
  if (!is_hex(file.hash, file.is_sha256 ? 64 : 40))
    return bad(
        cat(at, ": the hash is ", printable(file.hash), ", not of ", file.is_sha256 ? 64 : 40, " digits"));
  if (size == nullptr || !size->is_integer() || size->as_integer() < 0 || size->as_integer() > kLargestFile)
    return bad(cat(at, ".size is no number of bytes"));
  file.bytes = size->as_integer();
  return file;
}

}  // namespace

std::string listing_target(std::string_view repo_id) {
  return cat("/api/models/", repo_id, "/revision/main?blobs=true");
}

std::string file_target(std::string_view repo_id, std::string_view commit, std::string_view path) {
  return cat("/", repo_id, "/resolve/", commit, "/", percent_encoded_path(path));
}

Result<RepoListing> parse_repo_listing(std::string_view json) {
  const Result<Json> parsed = parse_json(json, {.depth = 32});
  if (!parsed.ok()) return bad(parsed.error().detail);
  RepoListing listing;
  const std::string* commit = string_field(*parsed, "sha");
  if (commit == nullptr || !is_commit(*commit)) return bad("sha is no commit");
  listing.commit = *commit;
  const Json* siblings = parsed->find("siblings");
  if (siblings == nullptr || !siblings->is_array()) return bad("siblings is no array");
  std::set<std::string> paths;
  for (const Json& sibling : siblings->as_array()) {
    INFERD_TRY(ListedFile file, parse_file(sibling, cat("siblings[", listing.files.size(), "]")));
    if (!paths.insert(file.path).second)
      return bad(cat("two files have the path ", printable(file.path, 200)));
    listing.files.push_back(std::move(file));
  }
  return listing;
}

}  // namespace inferd
