// Who may call: the API key, and the names by which a browser may have found this server. A page that lures a
// browser here under another name (DNS rebinding) or from another site is refused by the Host and Origin it
// must send.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/http_message.h"

namespace inferd {

class Access {
 public:
  // `host`: what the server was told to listen on. `beyond_loopback`: others than this machine can connect.
  Access(std::string_view host, bool beyond_loopback, std::optional<std::string> api_key);

  // E-REQ-012: a Host, an Origin or an absolute request target that is not this server's.
  //   On loopback: localhost, names under .localhost, loopback addresses. Beyond it without a key: also
  //   `host`, this machine's name, and every address that is written in digits, since rebinding needs a name.
  //   Beyond it with a key: anything, because a page that does not know the key gets nothing.
  Status check_origin(const HttpRequest& request) const;

  // E-REQ-011 unless the request carries the key, compared in constant time, or no key is set.
  Status check_key(const HttpRequest& request) const;

 private:
  bool allowed(std::string_view authority) const;

  const std::string host_;
  const bool beyond_loopback_;
  const std::optional<std::string> api_key_;
  std::string machine_name_;
};

// "[::1]:8000" to "::1", "LocalHost.:80" to "localhost"; empty when it is no host with an optional port.
std::string host_of_authority(std::string_view authority);
// Addresses in digits, IPv6 without brackets.
bool is_ip_address(std::string_view host);
bool is_loopback_name(std::string_view host);  // an address or a name

}  // namespace inferd
