#include "hub/url.h"

#include <algorithm>

#include "base/strings.h"

namespace inferd {
namespace {

constexpr size_t kLongest = 8192;

bool is_plain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte > 0x20 && byte != 0x7f;
}

// "host", "host:port", "[v6]:port" into host and port; `port` stays when none is given.
bool parse_authority(std::string_view text, std::string& host, int& port) {
  std::string_view name = text;
  std::string_view after;
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string_view::npos) return false;
    name = text.substr(1, end - 1);
    after = text.substr(end + 1);
  } else if (const size_t colon = text.find(':'); colon != std::string_view::npos) {
    name = text.substr(0, colon);
    after = text.substr(colon);
  }
  if (name.empty() || name.size() > 253 || name.find_first_of("@/\\?#%\"<>") != std::string_view::npos)
    return false;
  if (!after.empty()) {
    const auto number = after.starts_with(':') ? parse_int(after.substr(1)) : std::nullopt;
    if (!number || *number < 1 || *number > 65535) return false;
    port = static_cast<int>(*number);
  }
  host = to_lower_ascii(name);
  return true;
}

}  // namespace

std::string Url::host_header() const {
  const std::string name = host.find(':') == std::string::npos ? host : cat("[", host, "]");
  return port == (tls ? 443 : 80) ? name : cat(name, ":", port);
}

std::string Url::origin() const {
  return cat(tls ? "https://" : "http://", host_header());
}

std::string Url::text() const {
  return origin() + target;
}

std::string Url::shown() const {
  return printable(origin() + target.substr(0, target.find('?')), 200);
}

std::optional<Url> parse_url(std::string_view text) {
  if (text.size() > kLongest || !std::ranges::all_of(text, is_plain)) return std::nullopt;
  Url url;
  const size_t colon = text.find("://");
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string scheme = to_lower_ascii(text.substr(0, colon));
  if (scheme != "http" && scheme != "https") return std::nullopt;
  url.tls = scheme == "https";
  url.port = url.tls ? 443 : 80;
  text = text.substr(colon + 3);
  text = text.substr(0, text.find('#'));
  const size_t end = std::min(text.find_first_of("/?"), text.size());
  if (!parse_authority(text.substr(0, end), url.host, url.port)) return std::nullopt;
  url.target = text.substr(end);
  if (!url.target.starts_with('/')) url.target.insert(0, "/");
  return url;
}

std::optional<Url> resolve_reference(const Url& base, std::string_view location) {
  const size_t scheme_end = location.find("://");
  if (scheme_end != std::string_view::npos && scheme_end < location.find_first_of("/?#"))
    return parse_url(location);
  if (location.starts_with("//")) return parse_url(cat(base.tls ? "https:" : "http:", location));
  if (location.starts_with('/')) return parse_url(cat(base.origin(), location));
  const std::string_view path = std::string_view(base.target).substr(0, base.target.find('?'));
  return parse_url(cat(base.origin(), path.substr(0, path.rfind('/') + 1), location));
}

std::string percent_encoded_path(std::string_view path) {
  static constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (letter || std::string_view("-._~/").find(c) != std::string_view::npos) {
      out.push_back(c);
    } else {
      out += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return out;
}

bool bypasses_proxy(std::string_view no_proxy, const Url& url) {
  for (const std::string_view part : split(no_proxy, ',')) {
    std::string_view entry = trim(part);
    if (entry == "*") return true;
    if (entry.starts_with('.')) entry.remove_prefix(1);
    std::string host;
    int port = url.port;
    const bool bare_v6 = std::ranges::count(entry, ':') > 1 && !entry.starts_with('[');
    if (bare_v6 ? !parse_authority(cat("[", entry, "]"), host, port) : !parse_authority(entry, host, port))
      continue;
    if (port != url.port) continue;
    if (url.host == host || url.host.ends_with("." + host)) return true;
  }
  return false;
}

}  // namespace inferd
