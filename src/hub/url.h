// http and https addresses: parsed, resolved against a redirect, compared by origin, and held against
// NO_PROXY. Pure functions (RFC 3986, the part that downloads need).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace inferd {

struct Url {
  bool tls = true;     // https, else http
  std::string host;    // lower case; an IPv6 address without its brackets
  int port = 443;      // 1 to 65535
  std::string target;  // path and query; begins with '/'

  std::string host_header() const;  // "huggingface.co", "127.0.0.1:8000", "[::1]:80"
  std::string origin() const;       // scheme and host_header()
  std::string text() const;         // the whole address
  std::string shown() const;        // without the query, which may hold a signature

  bool same_origin(const Url& other) const {
    return tls == other.tls && host == other.host && port == other.port;
  }
};

// Nothing for other schemes, user names, an empty host, a bad port, control characters and blanks, or more
// than 8 KiB. A fragment is dropped.
std::optional<Url> parse_url(std::string_view text);

// Where a Location header leads from `base`: a whole address, //host/..., /path or a relative path.
std::optional<Url> resolve_reference(const Url& base, std::string_view location);

// Everything but unreserved characters and '/' as %XX.
std::string percent_encoded_path(std::string_view path);

// NO_PROXY: names and addresses between commas; "*" is all, "example.org" and ".example.org" are that name
// and those below it, ":PORT" may follow.
bool bypasses_proxy(std::string_view no_proxy, const Url& url);

}  // namespace inferd
