#include "hub/https_client.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "hub/http_response.h"

namespace inferd {
namespace {

constexpr int kMostRedirects = 5;
constexpr size_t kPiece = size_t{64} << 10;

Error unusable(std::string detail, const Url& url) {
  return {.code = Code::hub_answer, .detail = std::move(detail), .where = url.shown()};
}

std::string base64(std::string_view text) {
  std::vector<unsigned char> out((text.size() + 2) / 3 * 4 + 1);
  const int size = ::EVP_EncodeBlock(out.data(), reinterpret_cast<const unsigned char*>(text.data()),
                                     static_cast<int>(text.size()));
  return {out.begin(), out.begin() + size};
}

std::optional<std::string> percent_decoded(std::string_view text) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      out.push_back(text[at]);
      continue;
    }
    const std::string digits = to_lower_ascii(text.substr(at + 1, 2));
    const size_t high = digits.size() == 2 ? kHex.find(digits[0]) : std::string_view::npos;
    const size_t low = digits.size() == 2 ? kHex.find(digits[1]) : std::string_view::npos;
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    out.push_back(static_cast<char>(high * 16 + low));
    at += 2;
  }
  return out;
}

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// Reads until the header is complete, within one time limit for all of it.
Status read_header(Connection& connection, HttpResponseParser& parser, int timeout_ms) {
  std::array<char, 16384> bytes;
  const int64_t end = monotonic_clock().now_ns() / 1000000 + timeout_ms;
  while (!parser.header_done()) {
    const int64_t left = end - monotonic_clock().now_ns() / 1000000;
    if (left <= 0)
      return Error{.code = Code::hub_network,
                   .detail = cat("no answer within ", human_seconds(timeout_ms / 1000.0))};
    INFERD_TRY(const size_t got, connection.read(bytes, static_cast<int>(left)));
    if (got == 0) {
      INFERD_TRY_STATUS(parser.feed_end());
      if (!parser.header_done())
        return Error{.code = Code::hub_network, .detail = "the connection was closed early"};
    }
    INFERD_TRY_STATUS(parser.feed({bytes.data(), got}));
  }
  return {};
}

class Response final : public GetResponse {
 public:
  Response(std::unique_ptr<Connection> connection, Url url, int stall_timeout_ms)
      : connection_(std::move(connection)),
        parser_(std::make_unique<HttpResponseParser>()),
        url_(std::move(url)),
        stall_timeout_ms_(stall_timeout_ms) {}

  Status begin(int timeout_ms) { return read_header(*connection_, *parser_, timeout_ms); }
  // The fields of the redirects before this response.
  void remember(std::vector<std::unique_ptr<HttpResponseParser>> earlier) { earlier_ = std::move(earlier); }
  std::unique_ptr<HttpResponseParser> release() { return std::move(parser_); }

  int status() const override { return parser_->status(); }
  std::string_view header(std::string_view name) const override { return parser_->header(name); }
  std::string_view first_header(std::string_view name) const override {
    for (const auto& parser : earlier_) {
      if (const std::string_view value = parser->header(name); !value.empty()) return value;
    }
    return parser_->header(name);
  }
  std::optional<int64_t> content_length() const override { return parser_->content_length(); }
  const Url& url() const override { return url_; }

  Result<std::string> read() override {
    for (;;) {
      std::string body = parser_->take_body();
      if (!body.empty() || parser_->done()) return body;
      std::array<char, kPiece> bytes;
      INFERD_TRY(const size_t got, connection_->read(bytes, stall_timeout_ms_));
      INFERD_TRY_STATUS(got == 0 ? parser_->feed_end() : parser_->feed({bytes.data(), got}));
    }
  }

 private:
  std::unique_ptr<Connection> connection_;
  std::unique_ptr<HttpResponseParser> parser_;
  std::vector<std::unique_ptr<HttpResponseParser>> earlier_;
  Url url_;
  int stall_timeout_ms_;
};

std::string request_text(const GetRequest& request, const Url& url, bool with_token) {
  std::string text = cat("GET ", url.target, " HTTP/1.1\r\nHost: ", url.host_header(),
                         "\r\nUser-Agent: ", request.user_agent,
                         "\r\nAccept: */*\r\nAccept-Encoding: identity\r\nConnection: close\r\n");
  if (with_token) text += cat("Authorization: Bearer ", request.token, "\r\n");
  if (request.offset > 0) {
    text += cat("Range: bytes=", request.offset, "-\r\n");
    if (!request.if_range.empty()) text += cat("If-Range: ", request.if_range, "\r\n");
  }
  return text + "\r\n";
}

}  // namespace

Result<HttpsClient> HttpsClient::create(HttpSettings settings, Patience patience) {
  HttpsClient client(std::move(settings), std::move(patience));
  const std::string& given = client.settings_.https_proxy;
  if (given.empty()) return client;
  // A proxy's address may hold a user name, which no other address of ours may.
  std::string address = given.find("://") == std::string::npos ? cat("http://", given) : given;
  const size_t begin = address.find("://") + 3;
  const size_t at = address.substr(0, address.find('/', begin)).rfind('@');
  if (at != std::string::npos && at >= begin) {
    const auto credentials = percent_decoded(std::string_view(address).substr(begin, at - begin));
    if (!credentials)
      return Error{.code = Code::hub_settings, .detail = "HTTPS_PROXY: bad user name or password"};
    client.proxy_authorization_ = cat("Proxy-Authorization: Basic ", base64(*credentials), "\r\n");
    address.erase(begin, at + 1 - begin);
  }
  client.proxy_ = parse_url(address);
  if (!client.proxy_ || client.proxy_->tls) {  // the credentials are not shown
    return Error{.code = Code::hub_settings,
                 .detail = cat("HTTPS_PROXY: got ", printable(address), ", allowed is http://HOST:PORT")};
  }
  return client;
}

Status HttpsClient::open_tunnel(Connection& connection, const Url& url) {
  const std::string peer =
      cat(url.host.find(':') == std::string::npos ? url.host : cat("[", url.host, "]"), ":", url.port);
  INFERD_TRY_STATUS(connection.write(
      cat("CONNECT ", peer, " HTTP/1.1\r\nHost: ", peer, "\r\n", proxy_authorization_, "\r\n"),
      settings_.connect_timeout_ms));
  HttpResponseParser answer(/*has_body=*/false);
  INFERD_TRY_STATUS(read_header(connection, answer, settings_.header_timeout_ms));
  if (answer.status() / 100 == 2) return {};
  Error error{.code = Code::hub_network,
              .detail = cat("the proxy ", proxy_->host_header(), " refused with status ", answer.status()),
              .fix = "check HTTPS_PROXY and NO_PROXY"};
  if (answer.status() / 100 == 4) error.code = Code::hub_settings;  // another try would be refused too
  return error;
}

Result<std::unique_ptr<Connection>> HttpsClient::connect(const Url& url) {
  const bool through_proxy = url.tls && proxy_ && !bypasses_proxy(settings_.no_proxy, url);
  const Url& peer = through_proxy ? *proxy_ : url;
  INFERD_TRY(std::unique_ptr<Connection> connection,
             Connection::open(peer.host, peer.port, settings_.connect_timeout_ms, *patience_));
  if (through_proxy) INFERD_TRY_STATUS(open_tunnel(*connection, url));
  if (url.tls) {
    if (!roots_) {
      INFERD_TRY(roots_, TlsRoots::load(settings_.ca_file));
    }
    INFERD_TRY_STATUS(connection->start_tls(url.host, *roots_, settings_.header_timeout_ms));
  }
  return connection;
}

Result<std::unique_ptr<GetResponse>> HttpsClient::get(const GetRequest& request) {
  Url url = request.url;
  bool with_token = !request.token.empty();
  std::vector<std::unique_ptr<HttpResponseParser>> earlier;
  for (int redirects = 0;; ++redirects) {
    INFERD_TRY(std::unique_ptr<Connection> connection, connect(url));
    INFERD_TRY_STATUS(connection->write(request_text(request, url, with_token), settings_.header_timeout_ms));
    auto response = std::make_unique<Response>(std::move(connection), url, settings_.stall_timeout_ms);
    INFERD_TRY_STATUS(response->begin(settings_.header_timeout_ms));
    if (!is_redirect(response->status())) {
      if (const std::string_view coding = response->header("content-encoding");
          !coding.empty() && coding != "identity") {
        return unusable(cat("content coding ", printable(coding), ", which was not asked for"), url);
      }
      response->remember(std::move(earlier));
      return std::unique_ptr<GetResponse>(std::move(response));
    }
    const std::string_view location = response->header("location");
    const auto next = resolve_reference(url, location);
    if (!next) return unusable(cat("a redirect to ", printable(location)), url);
    if (url.tls && !next->tls) return unusable(cat("a redirect from https to ", next->shown()), url);
    if (redirects == kMostRedirects) return unusable(cat("more than ", kMostRedirects, " redirects"), url);
    with_token = with_token && next->same_origin(request.url);
    url = *next;
    earlier.push_back(response->release());
  }
}

}  // namespace inferd
