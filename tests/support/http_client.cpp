#include "support/http_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/strings.h"

namespace inferd::test {
namespace {

using Time = std::chrono::steady_clock::time_point;

int milliseconds_left(Time end) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::max<int64_t>(0, left));
}

}  // namespace

std::string HttpResponse::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

Json HttpResponse::json() const {
  Result<Json> parsed = parse_json(body);
  INFERD_CHECK(parsed.ok(), "status ", status, ", no JSON: ", body);
  return std::move(parsed).value();
}

std::vector<std::string> HttpResponse::events() const {
  std::vector<std::string> out;
  for (size_t at = 0; at < body.size();) {
    const size_t end = body.find("\n\n", at);
    if (end == std::string::npos) break;
    const std::string_view frame = std::string_view(body).substr(at, end - at);
    if (frame.starts_with("data: ")) out.emplace_back(frame.substr(6));
    at = end + 2;
  }
  return out;
}

HttpClient::HttpClient(int port, int receive_buffer) {
  socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  INFERD_CHECK(socket_ >= 0, "socket");
  if (receive_buffer > 0)
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  const int on = 1;
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) close();
}

bool HttpClient::send(std::string_view bytes) {
  while (!bytes.empty() && socket_ >= 0) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return socket_ >= 0;
}

// Waits for more bytes; false at the end of the stream or of the time.
bool HttpClient::fill(Time end) {
  if (ended_ || socket_ < 0) return false;
  pollfd waiting{.fd = socket_, .events = POLLIN, .revents = 0};
  if (::poll(&waiting, 1, milliseconds_left(end)) <= 0) return false;
  std::array<char, 65536> bytes;
  const ssize_t size = ::recv(socket_, bytes.data(), bytes.size(), 0);
  if (size <= 0) {
    ended_ = true;
    return false;
  }
  buffer_.append(bytes.data(), static_cast<size_t>(size));
  return true;
}

std::string HttpClient::receive(std::chrono::milliseconds timeout) {
  if (buffer_.empty()) fill(std::chrono::steady_clock::now() + timeout);
  return std::exchange(buffer_, {});
}

HttpResponse HttpClient::read_response(std::chrono::milliseconds timeout, bool head) {
  const Time end = std::chrono::steady_clock::now() + timeout;
  HttpResponse response;
  size_t header_end = 0;
  while ((header_end = buffer_.find("\r\n\r\n")) == std::string::npos) {
    if (!fill(end)) return response;
  }
  const std::string header = buffer_.substr(0, header_end);
  buffer_.erase(0, header_end + 4);
  for (const std::string_view line : split(header, '\n')) {
    const std::string_view text = trim(line);
    if (response.status == 0) {
      INFERD_CHECK(text.starts_with("HTTP/1.1 "), "status line ", text);
      response.status = static_cast<int>(parse_int(text.substr(9, 3)).value_or(-1));
    } else if (const size_t colon = text.find(':'); colon != std::string_view::npos) {
      response.headers.emplace_back(to_lower_ascii(text.substr(0, colon)), trim(text.substr(colon + 1)));
    }
  }
  if (head || response.status / 100 == 1) {
    response.complete = true;
  } else if (response.header("transfer-encoding") == "chunked") {
    for (;;) {
      size_t line_end = 0;
      while ((line_end = buffer_.find("\r\n")) == std::string::npos) {
        if (!fill(end)) return response;
      }
      size_t size = 0;
      const auto parsed = std::from_chars(buffer_.data(), buffer_.data() + line_end, size, 16);
      INFERD_CHECK(parsed.ec == std::errc(), "chunk size ", buffer_.substr(0, line_end));
      while (buffer_.size() < line_end + 2 + size + 2) {
        if (!fill(end)) {
          response.body += buffer_.substr(std::min(buffer_.size(), line_end + 2));
          return response;
        }
      }
      INFERD_CHECK(buffer_.compare(line_end + 2 + size, 2, "\r\n") == 0, "a chunk has no end");
      response.body += buffer_.substr(line_end + 2, size);
      buffer_.erase(0, line_end + 2 + size + 2);
      if (size == 0) break;
    }
    response.complete = true;
  } else if (const std::string length = response.header("content-length"); !length.empty()) {
    const auto size = static_cast<size_t>(parse_int(length).value());
    while (buffer_.size() < size) {
      if (!fill(end)) break;
    }
    response.complete = buffer_.size() >= size;
    response.body = buffer_.substr(0, size);
    buffer_.erase(0, size);
  } else {
    while (fill(end)) {
    }
    response.complete = ended_;
    response.body = std::exchange(buffer_, {});
  }
  return response;
}

bool HttpClient::wait_closed(std::chrono::milliseconds timeout) {
  const Time end = std::chrono::steady_clock::now() + timeout;
  while (fill(end)) buffer_.clear();
  return ended_;
}

void HttpClient::shut_down_sending() {
  ::shutdown(socket_, SHUT_WR);
}

void HttpClient::close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

void HttpClient::reset() {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  close();
}

std::string request_text(std::string_view method, std::string_view path, std::string_view body,
                         const Headers& headers) {
  std::string text = cat(method, " ", path, " HTTP/1.1\r\n");
  bool has_host = false;
  for (const auto& [name, value] : headers) {
    text += cat(name, ": ", value, "\r\n");
    has_host = has_host || to_lower_ascii(name) == "host";
  }
  if (!has_host) text += "Host: 127.0.0.1\r\n";
  if (!body.empty() || method == "POST")
    text += cat("Content-Type: application/json\r\nContent-Length: ", body.size(), "\r\n");
  text += "\r\n";
  text += body;
  return text;
}

HttpResponse http(int port, std::string_view method, std::string_view path, std::string_view body,
                  const Headers& headers) {
  HttpClient client(port);
  client.send(request_text(method, path, body, headers));
  return client.read_response(std::chrono::seconds(60), method == "HEAD");
}

HttpResponse get(int port, std::string_view path, const Headers& headers) {
  return http(port, "GET", path, "", headers);
}

HttpResponse post(int port, std::string_view path, std::string_view body, const Headers& headers) {
  return http(port, "POST", path, body, headers);
}

}  // namespace inferd::test
