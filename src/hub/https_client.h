// GET over HTTP/1.1 with TLS, proxy and redirects: what a download needs and no more. One connection a
// request; one thread. What the status means is the caller's business.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "hub/connection.h"
#include "hub/url.h"

namespace inferd {

struct HttpSettings {
  std::string ca_file;  // PEM roots; empty: the system's
  std::string
      https_proxy;       // http://[USER:PASSWORD@]HOST[:PORT]; empty: none. Used for https only, by CONNECT
  std::string no_proxy;  // see bypasses_proxy()
  int connect_timeout_ms = 10000;
  int header_timeout_ms = 30000;  // from the request to the end of the response's header
  int stall_timeout_ms = 12000;   // without a byte of the body
};

struct GetRequest {
  Url url;
  std::string token;     // sent to the url's own origin only, never after a redirect away from it
  int64_t offset = 0;    // > 0: Range from there on
  std::string if_range;  // with offset: a strong ETag, quotes included; empty: none
  std::string user_agent = "inferd";
};

// A response whose header has come.
class GetResponse {
 public:
  virtual ~GetResponse() = default;
  virtual int status() const = 0;
  virtual std::string_view header(std::string_view lower_case_name) const = 0;  // of the last response
  // The same, but of the first response of a chain of redirects that has such a field.
  virtual std::string_view first_header(std::string_view lower_case_name) const = 0;
  virtual std::optional<int64_t> content_length() const = 0;
  virtual const Url& url() const = 0;  // after the redirects
  // The next piece of the body, at most 64 KiB; empty at its end. E-HUB-010 when the connection breaks or
  // stalls.
  virtual Result<std::string> read() = 0;
};

class HttpsClient {
 public:
  // E-HUB-015 for a proxy that cannot be used. The roots are read at the first TLS connection.
  static Result<HttpsClient> create(HttpSettings settings, Patience patience);

  // Follows up to five redirects, never from https to http. E-HUB-010 the network (worth another try),
  // E-HUB-011 TLS, E-HUB-012 an unusable answer, E-SYS-001 stopped.
  Result<std::unique_ptr<GetResponse>> get(const GetRequest& request);

 private:
  HttpsClient(HttpSettings settings, Patience patience)
      : settings_(std::move(settings)), patience_(std::make_unique<Patience>(std::move(patience))) {}
  Result<std::unique_ptr<Connection>> connect(const Url& url);
  Status open_tunnel(Connection& connection, const Url& url);

  HttpSettings settings_;
  std::unique_ptr<const Patience> patience_;  // connections refer to it
  std::optional<Url> proxy_;
  std::string proxy_authorization_;  // the header line, or nothing
  std::optional<TlsRoots> roots_;
};

}  // namespace inferd
