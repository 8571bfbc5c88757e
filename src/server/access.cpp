#include "server/access.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/strings.h"

namespace inferd {
namespace {

// Time depends on the lengths alone.
bool equal_in_constant_time(std::string_view given, std::string_view secret) {
  auto differences = static_cast<unsigned>(given.size() != secret.size());
  for (size_t i = 0; i < given.size(); ++i) {
    differences |= static_cast<unsigned char>(given[i]) ^
                   static_cast<unsigned>(static_cast<unsigned char>(secret[i % secret.size()]));
  }
  return differences == 0;
}

bool parses_as(int family, std::string_view host) {
  std::array<unsigned char, 16> address;
  return inet_pton(family, std::string(host).c_str(), address.data()) == 1;
}

}  // namespace

std::string host_of_authority(std::string_view authority) {
  std::string_view host = authority;
  std::string_view port;
  if (host.starts_with('[')) {
    const size_t end = host.find(']');
    if (end == std::string_view::npos) return {};
    port = host.substr(end + 1);
    host = host.substr(1, end - 1);
    if (!parses_as(AF_INET6, host)) return {};
  } else if (const size_t colon = host.find(':'); colon != std::string_view::npos) {
    port = host.substr(colon);
    host = host.substr(0, colon);
  }
  if (!port.empty() && (port.front() != ':' ||
                        !std::ranges::all_of(port.substr(1), [](char c) { return c >= '0' && c <= '9'; }))) {
    return {};
  }
  if (host.ends_with('.')) host.remove_suffix(1);
  return to_lower_ascii(host);
}

bool is_ip_address(std::string_view host) {
  return parses_as(AF_INET, host) || parses_as(AF_INET6, host);
}

bool is_loopback_name(std::string_view host) {
  if (host == "localhost" || host.ends_with(".localhost") || host == "::1") return true;
  return parses_as(AF_INET, host) && host.starts_with("127.");
}

Access::Access(std::string_view host, bool beyond_loopback, std::optional<std::string> api_key)
    : host_(to_lower_ascii(host)), beyond_loopback_(beyond_loopback), api_key_(std::move(api_key)) {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) == 0) machine_name_ = to_lower_ascii(name.data());
}

bool Access::allowed(std::string_view authority) const {
  if (beyond_loopback_ && api_key_) return true;
  const std::string host = host_of_authority(authority);
  if (host.empty()) return false;
  if (is_loopback_name(host) || host == host_) return true;
  return beyond_loopback_ && (is_ip_address(host) || host == machine_name_);
}

Status Access::check_origin(const HttpRequest& request) const {
  const auto refuse = [](std::string_view what, std::string_view got) {
    return Error{.code = Code::req_origin, .detail = cat(what, " is ", printable(got))};
  };
  if (const std::string* host = request.find("host"); host != nullptr && !allowed(*host))
    return refuse("Host", *host);
  if (!request.authority.empty() && !allowed(request.authority))
    return refuse("the request target's host", request.authority);
  if (const std::string* origin = request.find("origin")) {
    const size_t scheme = origin->find("://");
    if (scheme == std::string::npos || !allowed(std::string_view(*origin).substr(scheme + 3)))
      return refuse("Origin", *origin);
  }
  return {};
}

Status Access::check_key(const HttpRequest& request) const {
  if (!api_key_) return {};
  static constexpr std::string_view kScheme = "bearer ";
  const std::string* header = request.find("authorization");
  if (header == nullptr) return Error{.code = Code::req_auth};
  const std::string_view value = *header;
  if (to_lower_ascii(value.substr(0, kScheme.size())) != kScheme ||
      !equal_in_constant_time(trim(value.substr(std::min(value.size(), kScheme.size()))), *api_key_)) {
    return Error{.code = Code::req_auth};
  }
  return {};
}

}  // namespace inferd
