// HTTP/1.x requests out of bytes as they come, for one connection (RFC 9112). Beast's parser reads the
// grammar; the limits and what is refused beyond the grammar are ours. Used by one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "server/http_message.h"

namespace inferd {

struct HttpLimits {
  size_t header_bytes = size_t{64} << 10;  // request line and all header fields
  size_t line_bytes = size_t{16} << 10;    // one of them
  int header_count = 100;
  int64_t body_bytes = int64_t{16} << 20;
};

class HttpParser {
 public:
  enum class State {
    header,  // the header is not complete
    body,    // header() is complete, the body is not
    done,    // all of it
  };

  explicit HttpParser(const HttpLimits& limits);
  HttpParser(HttpParser&&) noexcept;
  HttpParser& operator=(HttpParser&&) noexcept;
  ~HttpParser();

  // Reads from the front of `input`, which must begin with the bytes that earlier calls did not take, and
  // says how many it took. Stops once when the header is complete, so that a request can be refused before
  // its body is read; what follows a complete request is left alone. Errors: E-REQ-007, -013, -014, -017; the
  // connection is of no use after one.
  Result<size_t> feed(std::string_view input);

  State state() const;
  bool started() const;  // at least one byte was taken
  HttpRequest& request();
  // From the header on.
  bool http_1_0() const;
  bool keep_alive() const;
  bool expects_continue() const;  // the client waits for 100 before it sends the body
  bool has_body() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace inferd
