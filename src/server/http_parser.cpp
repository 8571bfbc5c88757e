#include "server/http_parser.h"

#include <boost/beast/http/basic_parser.hpp>

#include "base/strings.h"

namespace inferd {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

Error malformed(std::string detail) {
  return {.code = Code::req_http, .detail = std::move(detail)};
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// "%2F" to "/"; false when a '%' is not followed by two hex digits or stands for a control character.
bool percent_decode(std::string_view text, std::string& out) {
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      out.push_back(text[at]);
      continue;
    }
    if (at + 2 >= text.size()) return false;
    const int high = hex_digit(text[at + 1]);
    const int low = hex_digit(text[at + 2]);
    if (high < 0 || low < 0 || high * 16 + low < 0x20 || high * 16 + low == 0x7f) return false;
    out.push_back(static_cast<char>(high * 16 + low));
    at += 2;
  }
  return true;
}

}  // namespace

// Beast calls the handlers; a refusal of ours is kept in `refusal_` while Beast gets some error.
class HttpParser::Impl final : public http::basic_parser<true> {
 public:
  explicit Impl(const HttpLimits& limits) : limits_(limits) {
    eager(true);
    body_limit(boost::none);  // ours: a body that is too large must not cost more than its header
    header_limit(static_cast<uint32_t>(limits.header_bytes));
  }

  Result<size_t> feed(std::string_view input) {
    if (phase_ == State::done || input.empty()) return size_t{0};
    error_code code;
    stop_after_header_ = phase_ == State::header;
    eager(!stop_after_header_);
    const size_t taken = put({input.data(), input.size()}, code);
    started_ = true;
    if (phase_ == State::header || stop_after_header_) {
      header_bytes_ += taken;
      if (header_bytes_ > limits_.header_bytes)
        return too_large(cat("more than ", limits_.header_bytes, " bytes"));
    }
    if (refusal_) return *refusal_;
    if (code == http::error::need_more) {
      // The parser wants a longer piece, of a header or of the line that begins a chunk.
      if (taken == 0 && input.size() >= limits_.header_bytes) {
        return too_large(cat("more than ", limits_.header_bytes, " bytes"));
      }
      return taken;
    }
    if (code == http::error::header_limit)
      return too_large(cat("more than ", limits_.header_bytes, " bytes"));
    if (code) return malformed(code.message());
    if (phase_ == State::header && is_header_done()) {
      if (Status checked = check_header(); !checked.ok()) return checked.error();
      phase_ = State::body;
    }
    if (phase_ == State::body && is_done()) phase_ = State::done;
    return taken;
  }

  State phase() const { return phase_; }
  bool started() const { return started_; }
  HttpRequest& request() { return request_; }
  bool expects_continue() const { return expects_continue_; }
  bool has_body() const { return has_body_; }
  bool http_1_0() const { return version_ == 10; }

 private:
  void on_request_impl(http::verb, beast::string_view method, beast::string_view target, int version,
                       error_code& code) override {
    request_.method = std::string(method);
    request_.target = std::string(target);
    version_ = version;
    if (target.size() > limits_.line_bytes) {
      refuse(too_large(cat("a request target of ", target.size(), " bytes, allowed is ", limits_.line_bytes)),
             code);
    }
  }

  void on_field_impl(http::field, beast::string_view name, beast::string_view value,
                     error_code& code) override {
    if (phase_ != State::header) return;  // trailers mean nothing here
    if (static_cast<int>(request_.headers.size()) >= limits_.header_count) {
      return refuse(too_large(cat("more than ", limits_.header_count, " header fields")), code);
    }
    if (name.size() + value.size() > limits_.line_bytes) {
      return refuse(too_large(cat("a header field of ", name.size() + value.size(), " bytes, allowed is ",
                                  limits_.line_bytes)),
                    code);
    }
    request_.headers.push_back(
        {to_lower_ascii(std::string_view(name.data(), name.size())), std::string(value)});
  }

  void on_body_impl_part(beast::string_view part, error_code& code) {
    if (static_cast<int64_t>(request_.body.size() + part.size()) > limits_.body_bytes)
      return refuse_body(code);
    request_.body.append(part.data(), part.size());
  }
  size_t on_body_impl(beast::string_view part, error_code& code) override {
    on_body_impl_part(part, code);
    return part.size();
  }
  size_t on_chunk_body_impl(uint64_t, beast::string_view part, error_code& code) override {
    on_body_impl_part(part, code);
    return part.size();
  }
  void on_chunk_header_impl(uint64_t size, beast::string_view, error_code& code) override {
    if (size > static_cast<uint64_t>(limits_.body_bytes) - request_.body.size()) refuse_body(code);
  }
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(boost::optional<uint64_t> const&, error_code&) override {}
  void on_finish_impl(error_code&) override {}
  void on_response_impl(int, beast::string_view, int, error_code&) override {}

  void refuse(Error error, error_code& code) {
    refusal_ = std::move(error);
    code = http::error::bad_value;
  }

  void refuse_body(error_code& code) {
    refuse(body_error(cat("more than ", limits_.body_bytes, " bytes")), code);
  }

  static Error body_error(std::string detail) {
    return {.code = Code::req_too_large, .detail = std::move(detail)};
  }
  static Error too_large(std::string detail) {
    return {.code = Code::req_headers, .detail = std::move(detail)};
  }

  // What the grammar allows and this server does not.
  Status check_header() {
    const int lengths = request_.count("content-length");
    if (const int codings = request_.count("transfer-encoding"); codings > 0) {
      if (lengths > 0) return malformed("both Content-Length and Transfer-Encoding");
      if (codings > 1 || to_lower_ascii(*request_.find("transfer-encoding")) != "chunked") {
        return Error{.code = Code::req_coding, .detail = "Transfer-Encoding must be chunked"};
      }
      if (version_ == 10) return malformed("Transfer-Encoding in HTTP/1.0");
      has_body_ = true;
    } else if (lengths > 1) {
      return malformed("more than one Content-Length");
    } else if (lengths == 1) {
      const uint64_t length = *content_length();
      if (length > static_cast<uint64_t>(limits_.body_bytes)) {
        return body_error(cat(length, " bytes, allowed is ", limits_.body_bytes));
      }
      has_body_ = length > 0;
    }
    const int hosts = request_.count("host");
    if (hosts > 1) return malformed("more than one Host");
    if (hosts == 0 && version_ == 11) return malformed("no Host header");
    if (const std::string* expect = request_.find("expect"); expect != nullptr && version_ == 11) {
      if (to_lower_ascii(*expect) != "100-continue") return Error{.code = Code::req_expect};
      expects_continue_ = has_body_;
    }
    return split_target();
  }

  Status split_target() {
    std::string_view target = request_.target;
    static constexpr std::string_view kScheme = "http://";
    if (to_lower_ascii(target.substr(0, kScheme.size())) == kScheme) {
      target.remove_prefix(kScheme.size());
      const size_t slash = target.find_first_of("/?");
      request_.authority = target.substr(0, slash);
      target.remove_prefix(slash == std::string_view::npos ? target.size() : slash);
      if (target.empty() || target.front() != '/') return malformed("a request target without a path");
    } else if (target.empty() || (target.front() != '/' && target != "*")) {
      return malformed("a request target that is no path");
    }
    if (!percent_decode(target.substr(0, target.find_first_of("?#")), request_.path)) {
      return malformed("a request target with a bad percent escape");
    }
    return {};
  }

  const HttpLimits limits_;
  State phase_ = State::header;
  HttpRequest request_;
  std::optional<Error> refusal_;
  size_t header_bytes_ = 0;
  int version_ = 11;
  bool started_ = false;
  bool stop_after_header_ = true;
  bool has_body_ = false;
  bool expects_continue_ = false;
};

HttpParser::HttpParser(const HttpLimits& limits) : impl_(std::make_unique<Impl>(limits)) {}
HttpParser::HttpParser(HttpParser&&) noexcept = default;
HttpParser& HttpParser::operator=(HttpParser&&) noexcept = default;
HttpParser::~HttpParser() = default;

Result<size_t> HttpParser::feed(std::string_view input) {
  return impl_->feed(input);
}
HttpParser::State HttpParser::state() const {
  return impl_->phase();
}
bool HttpParser::started() const {
  return impl_->started();
}
HttpRequest& HttpParser::request() {
  return impl_->request();
}
bool HttpParser::http_1_0() const {
  return impl_->http_1_0();
}
bool HttpParser::keep_alive() const {
  return impl_->keep_alive();
}
bool HttpParser::expects_continue() const {
  return impl_->expects_continue();
}
bool HttpParser::has_body() const {
  return impl_->has_body();
}

}  // namespace inferd
