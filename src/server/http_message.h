// A request as it arrived and a reply as it leaves, without sockets. Filled by the HTTP parser, read by the
// routes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/errors.h"
#include "base/json.h"

namespace inferd {

struct HttpHeader {
  std::string name;  // lower case in a request
  std::string value;
};

struct HttpRequest {
  std::string method;
  std::string target;     // as sent
  std::string path;       // percent-decoded, without the query
  std::string authority;  // of an absolute-form target ("http://host:port/…"); else empty
  std::vector<HttpHeader> headers;
  std::string body;
  std::string request_id;  // the client's X-Request-Id, or one of ours

  // The value of the first header of that name (lower case), or null.
  const std::string* find(std::string_view name) const;
  int count(std::string_view name) const;
};

struct HttpReply {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<HttpHeader> headers;  // beside those that every reply has
};

HttpReply json_reply(const Json& value);

// The OpenAI shape: {"error":{"message","type","param","code"},"request_id"}. What a 5xx says is the table's
// text alone, but for errors whose detail is about the request: causes inside the server stay in its log.
std::string error_json(const Error& error, std::string_view request_id);
HttpReply error_reply(const Error& error, std::string_view request_id);
// The text of such an error.
std::string http_error_message(const Error& error);

std::string_view reason_phrase(int status);

// Status line and headers of a reply, with the empty line. A negative `content_length`: the body's length is
// not known, so it comes in chunks, or ends with the connection (HTTP/1.0).
struct ReplyHead {
  int status = 200;
  std::string_view content_type;
  int64_t content_length = -1;
  bool chunked = false;
  bool keep_alive = true;
  std::string_view request_id;
};
std::string reply_head(const ReplyHead& head, const std::vector<HttpHeader>& headers);

// 16 hex digits from the operating system's generator.
std::string random_hex();
// "req-" and such digits.
std::string new_request_id();

}  // namespace inferd
