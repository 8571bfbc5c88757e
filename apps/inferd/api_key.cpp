#include "api_key.h"

#include <sys/stat.h>

#include <algorithm>

#include "base/mmap.h"
#include "base/strings.h"

namespace inferd {
namespace {

constexpr size_t kShortestKey = 16;

}  // namespace

Result<std::string> read_api_key(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) == 0 && (info.st_mode & 077) != 0) {
    return Error{.code = Code::net_key_file,
                 .detail = "others may read it",
                 .where = path,
                 .fix = cat("chmod 600 ", path)};
  }
  INFERD_TRY(const MappedFile file, MappedFile::open(path));
  if (file.size() > 4096)
    return Error{.code = Code::net_key_file, .detail = "it is longer than 4096 bytes", .where = path};
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  const std::string key(trim(text));
  const bool plain = std::ranges::all_of(key, [](char c) { return c > 0x20 && c < 0x7f; });
  if (key.size() < kShortestKey || !plain) {
    return Error{.code = Code::net_key_file,
                 .detail = plain ? cat("the key has ", key.size(), " characters")
                                 : "the key has spaces or is no ASCII",
                 .where = path};
  }
  return key;
}

}  // namespace inferd
