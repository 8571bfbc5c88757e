// The grammar of an HTTP/1.1 response, fed in pieces: Beast's parser behind a plain interface, so that its
// headers are compiled here only. Knows no socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace inferd {

class HttpResponseParser {
 public:
  // `has_body` false: the response to a CONNECT that was granted.
  explicit HttpResponseParser(bool has_body = true);
  ~HttpResponseParser();
  HttpResponseParser(const HttpResponseParser&) = delete;
  HttpResponseParser& operator=(const HttpResponseParser&) = delete;

  // Takes all of `bytes`; what comes after the response is ignored. E-HUB-012 when it is malformed or its
  // header is larger than 64 KiB. Interim responses (1xx) are skipped.
  Status feed(std::string_view bytes);
  // The connection has ended: E-HUB-010 unless the response may end like that and its header was complete.
  Status feed_end();

  bool header_done() const;
  bool done() const;  // the whole body has come
  // After header_done():
  int status() const;
  std::string_view header(std::string_view lower_case_name) const;  // empty: absent
  std::optional<int64_t> content_length() const;  // announced; nothing: chunked, or until the end
  // The part of the body that came since the last call.
  std::string take_body();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace inferd
