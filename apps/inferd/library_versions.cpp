#include "library_versions.h"

#include <openssl/opensslv.h>
#include <zlib.h>

#include <boost/version.hpp>
#include <nlohmann/json_fwd.hpp>

#include "base/strings.h"

namespace inferd {

std::vector<LibraryVersion> library_versions() {
  return {
      {"boost", cat(BOOST_VERSION / 100000, ".", BOOST_VERSION / 100 % 1000, ".", BOOST_VERSION % 100)},
      {"nlohmann-json",
       cat(NLOHMANN_JSON_VERSION_MAJOR, ".", NLOHMANN_JSON_VERSION_MINOR, ".", NLOHMANN_JSON_VERSION_PATCH)},
      {"openssl", OPENSSL_VERSION_STR},
      {"zlib", ZLIB_VERSION},
  };
}

}  // namespace inferd
