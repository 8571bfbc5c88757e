#include "hub/http_response.h"

#include <boost/beast/http/basic_parser.hpp>

#include "base/strings.h"

namespace inferd {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr size_t kHeaderBytes = size_t{64} << 10;

Error malformed(std::string_view detail) {
  return {.code = Code::hub_answer, .detail = cat("malformed HTTP response: ", detail)};
}

// One message. Beast calls the handlers.
class Message final : public http::basic_parser<false> {
 public:
  explicit Message(bool has_body) {
    body_limit(boost::none);  // whoever reads the body knows how much may come
    header_limit(static_cast<uint32_t>(kHeaderBytes));
    skip(!has_body);
    eager(true);
  }

  int status_code = 0;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;

 private:
  void on_response_impl(int status, beast::string_view, int, error_code&) override { status_code = status; }
  void on_field_impl(http::field, beast::string_view name, beast::string_view value, error_code&) override {
    headers.emplace_back(to_lower_ascii(std::string_view(name.data(), name.size())), std::string(value));
  }
  size_t on_body_impl(beast::string_view part, error_code&) override {
    body.append(part.data(), part.size());
    return part.size();
  }
  size_t on_chunk_body_impl(uint64_t, beast::string_view part, error_code&) override {
    body.append(part.data(), part.size());
    return part.size();
  }
  void on_chunk_header_impl(uint64_t, beast::string_view, error_code&) override {}
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(boost::optional<uint64_t> const&, error_code&) override {}
  void on_finish_impl(error_code&) override {}
  void on_request_impl(http::verb, beast::string_view, beast::string_view, int, error_code&) override {}
};

}  // namespace

class HttpResponseParser::Impl {
 public:
  explicit Impl(bool has_body) : has_body_(has_body) { begin(); }

  Status feed(std::string_view bytes) {
    input_ += bytes;
    while (!input_.empty() && !message_->is_done()) {
      error_code code;
      const size_t taken = message_->put({input_.data(), input_.size()}, code);
      input_.erase(0, taken);
      if (code == http::error::need_more) {
        // A chunk's header line is as short as a response's header is long.
        if (input_.size() > kHeaderBytes) return malformed("a line that does not end");
        return {};
      }
      if (code) return malformed(code.message());
      if (message_->is_done() && message_->status_code / 100 == 1) begin();
      if (taken == 0) return {};
    }
    return {};
  }

  Status feed_end() {
    if (message_->is_done()) return {};
    if (message_->got_some()) {
      error_code code;
      message_->put_eof(code);
      if (!code) return {};
    }
    return Error{.code = Code::hub_network, .detail = "the connection was closed early"};
  }

  Message& message() { return *message_; }

 private:
  void begin() { message_ = std::make_unique<Message>(has_body_); }

  const bool has_body_;
  std::unique_ptr<Message> message_;
  std::string input_;
};

HttpResponseParser::HttpResponseParser(bool has_body) : impl_(std::make_unique<Impl>(has_body)) {}
HttpResponseParser::~HttpResponseParser() = default;

Status HttpResponseParser::feed(std::string_view bytes) {
  return impl_->feed(bytes);
}
Status HttpResponseParser::feed_end() {
  return impl_->feed_end();
}
bool HttpResponseParser::header_done() const {
  return impl_->message().is_header_done();
}
bool HttpResponseParser::done() const {
  return impl_->message().is_done();
}
int HttpResponseParser::status() const {
  return impl_->message().status_code;
}

std::string_view HttpResponseParser::header(std::string_view lower_case_name) const {
  for (const auto& [name, value] : impl_->message().headers) {
    if (name == lower_case_name) return value;
  }
  return {};
}

std::optional<int64_t> HttpResponseParser::content_length() const {
  const auto length = impl_->message().content_length();
  if (!length || *length > INT64_MAX) return std::nullopt;
  return static_cast<int64_t>(*length);
}

std::string HttpResponseParser::take_body() {
  return std::exchange(impl_->message().body, {});
}

}  // namespace inferd
