// A small HTTP/1.1 client for servers on this machine: one request a connection, bodies as they come. It
// opens no socket to anything but a loopback address. Blocking; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace inferd {

// "http://127.0.0.1:8000" or "http://[::1]:8000".
struct LoopbackUrl {
  std::string address;
  int port = 0;

  // E-SRV-003 for anything else.
  static Result<LoopbackUrl> parse(std::string_view url);
  std::string text() const;
};

struct HttpCall {
  std::string method = "GET";
  std::string path = "/";
  std::string body;                                          // JSON; sent with POST
  std::vector<std::pair<std::string, std::string>> headers;  // further ones
  int64_t connect_timeout_ms = 2000;
  // Without a byte from the server for so long the call fails. A stream of ours has a comment every 15 s, and
  // a reply that does not stream comes in one piece.
  int64_t silence_timeout_ms = 60000;
  // Called while it waits, once `wake_fd` is readable: true ends the call with E-SYS-001.
  int wake_fd = -1;
  std::function<bool()> stop;
};

struct HttpAnswer {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;                                          // of a stream: empty

  std::string_view header(std::string_view name) const;  // empty when absent
};

// Pieces of a body with status 200; false: enough, the connection is closed.
using BodySink = std::function<bool(std::string_view piece)>;

// E-SRV-003 when there is no connection or what comes back is no whole HTTP answer; statuses are not looked
// at. Without a sink the body is collected, at most 64 MiB of it.
Result<HttpAnswer> http_call(const LoopbackUrl& url, const HttpCall& call, const BodySink& sink = {});

}  // namespace inferd
