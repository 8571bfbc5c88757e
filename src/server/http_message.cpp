#include "server/http_message.h"

#include <array>
#include <ctime>

#include "base/strings.h"
#include "engine/request.h"

namespace inferd {
namespace {

std::string_view error_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

void append_date(std::string& out) {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 40> text;
  // The C locale's names, which nothing in this program changes.
  out.append(text.data(), std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts));
}

}  // namespace

const std::string* HttpRequest::find(std::string_view name) const {
  for (const HttpHeader& header : headers) {
    if (header.name == name) return &header.value;
  }
  return nullptr;
}

int HttpRequest::count(std::string_view name) const {
  int found = 0;
  for (const HttpHeader& header : headers) found += header.name == name ? 1 : 0;
  return found;
}

HttpReply json_reply(const Json& value) {
  return {.body = to_json(value)};
}

std::string http_error_message(const Error& error) {
  const ErrorRow& row = error_row(error.code);
  const bool about_the_request = row.http_status < 500 || error.code == Code::engine_logits ||
                                 error.code == Code::req_coding || error.code == Code::net_busy;
  return about_the_request ? error.message() : std::string(row.text);
}

std::string error_json(const Error& error, std::string_view request_id) {
  const ErrorRow& row = error_row(error.code);
  std::string out = "{\"error\":{\"message\":";
  append_json_string(out, http_error_message(error));
  out += ",\"type\":";
  append_json_string(out, error_type(row.http_status));
  out += ",\"param\":";
  if (error.param.empty()) {
    out += "null";
  } else {
    append_json_string(out, error.param);
  }
  out += ",\"code\":";
  append_json_string(out, row.id);
  out += "},\"request_id\":";
  append_json_string(out, request_id);
  out += "}";
  return out;
}

HttpReply error_reply(const Error& error, std::string_view request_id) {
  HttpReply reply{.status = error_row(error.code).http_status, .body = error_json(error, request_id)};
  if (reply.status == 429 || reply.status == 503) reply.headers.push_back({"Retry-After", "1"});
  if (reply.status == 401) reply.headers.push_back({"WWW-Authenticate", "Bearer"});
  return reply;
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    default:
      return "Status";
  }
}

std::string reply_head(const ReplyHead& head, const std::vector<HttpHeader>& headers) {
  std::string out = cat("HTTP/1.1 ", head.status, " ", reason_phrase(head.status), "\r\nDate: ");
  append_date(out);
  out += cat("\r\nContent-Type: ", head.content_type, "\r\n");
  if (head.content_length >= 0) {
    out += cat("Content-Length: ", head.content_length, "\r\n");
  } else if (head.chunked) {
    out += "Transfer-Encoding: chunked\r\n";
  }
  out += cat("Connection: ", head.keep_alive ? "keep-alive" : "close", "\r\nX-Request-Id: ", head.request_id,
             "\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n");
  for (const HttpHeader& header : headers) out += cat(header.name, ": ", header.value, "\r\n");
  out += "\r\n";
  return out;
}

std::string random_hex() {
  static constexpr std::string_view kHex = "0123456789abcdef";
  uint64_t bits = random_seed();
  std::string digits(16, '0');
  for (char& digit : digits) {
    digit = kHex[bits & 15];
    bits >>= 4;
  }
  return digits;
}

std::string new_request_id() {
  return cat("req-", random_hex());
}

}  // namespace inferd
