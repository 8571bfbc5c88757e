#include "client/http_client.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include "base/clock.h"
#include "base/strings.h"

namespace inferd {
namespace {

constexpr size_t kMaxHead = size_t{64} << 10;
constexpr size_t kMaxBody = size_t{64} << 20;
constexpr size_t kMaxChunkLine = 1024;

class Socket {
 public:
  Socket(const LoopbackUrl& url, const HttpCall& call) : url_(url), call_(call) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }

  Error failed(std::string_view what) const {
    return Error{.code = Code::server_answer, .detail = std::string(what), .where = url_.text()};
  }

  Status connect() {
    sockaddr_storage address{};
    socklen_t size = 0;
    auto* v4 = reinterpret_cast<sockaddr_in*>(&address);
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&address);
    if (::inet_pton(AF_INET, url_.address.c_str(), &v4->sin_addr) == 1) {
      v4->sin_family = AF_INET;
      v4->sin_port = htons(static_cast<uint16_t>(url_.port));
      size = sizeof(sockaddr_in);
    } else {
      ::inet_pton(AF_INET6, url_.address.c_str(), &v6->sin6_addr);
      v6->sin6_family = AF_INET6;
      v6->sin6_port = htons(static_cast<uint16_t>(url_.port));
      size = sizeof(sockaddr_in6);
    }
    fd_ = ::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd_ < 0) return failed(cat("no socket: ", std::strerror(errno)));
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), size) == 0) return {};
    if (errno != EINPROGRESS) return failed(cat("cannot connect: ", std::strerror(errno)));
    INFERD_TRY_STATUS(wait(POLLOUT, call_.connect_timeout_ms, "no connection"));
    int error = 0;
    socklen_t error_size = sizeof error;
    ::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &error_size);
    if (error != 0) return failed(cat("cannot connect: ", std::strerror(error)));
    return {};
  }

  Status send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent > 0) {
        bytes.remove_prefix(static_cast<size_t>(sent));
      } else if (errno == EAGAIN) {
        INFERD_TRY_STATUS(wait(POLLOUT, call_.silence_timeout_ms, "it takes no request"));
      } else if (errno == EPIPE || errno == ECONNRESET) {
        return {};  // an early refusal can still be read
      } else if (errno != EINTR) {
        return failed(cat("cannot send: ", std::strerror(errno)));
      }
    }
    return {};
  }

  // More bytes at the end of `buffer`; false: the server has closed the connection.
  Result<bool> receive(std::string& buffer) {
    while (true) {
      std::array<char, 65536> piece;
      const ssize_t got = ::recv(fd_, piece.data(), piece.size(), 0);
      if (got >= 0) {
        buffer.append(piece.data(), static_cast<size_t>(got));
        return got > 0;
      }
      if (errno == EAGAIN) {
        INFERD_TRY_STATUS(wait(POLLIN, call_.silence_timeout_ms, "it is silent"));
      } else if (errno != EINTR) {
        return failed(cat("the connection broke: ", std::strerror(errno)));
      }
    }
  }

 private:
  Status wait(short events, int64_t timeout_ms, std::string_view late) {
    const int64_t end_ns = monotonic_clock().now_ns() + timeout_ms * 1000000;
    while (true) {
      const int64_t left_ms = (end_ns - monotonic_clock().now_ns()) / 1000000;
      if (left_ms <= 0)
        return failed(cat(late, " after ", human_seconds(static_cast<double>(timeout_ms) / 1000)));
      std::array<pollfd, 2> waiting = {pollfd{.fd = fd_, .events = events, .revents = 0},
                                       pollfd{.fd = call_.wake_fd, .events = POLLIN, .revents = 0}};
      if (::poll(waiting.data(), waiting.size(), static_cast<int>(std::min<int64_t>(left_ms, INT32_MAX))) <
          0) {
        if (errno == EINTR) continue;
        return failed(cat("poll: ", std::strerror(errno)));
      }
      if (waiting[1].revents != 0 && call_.stop()) return Error{.code = Code::interrupted};
      if (waiting[0].revents != 0) return {};
    }
  }

  const LoopbackUrl& url_;
  const HttpCall& call_;
  int fd_ = -1;
};

// The body as it comes in, without its transfer coding.
class BodyReader {
 public:
  BodyReader(Socket& socket, std::string buffer, const BodySink& sink, std::string& collected)
      : socket_(socket), buffer_(std::move(buffer)), sink_(sink), collected_(collected) {}

  Status read_chunked() {
    while (go_on_) {
      INFERD_TRY(const std::string line, read_line());
      size_t size = 0;
      const auto parsed = std::from_chars(line.data(), line.data() + line.size(), size, 16);
      if (parsed.ec != std::errc() || (*parsed.ptr != '\0' && *parsed.ptr != ';'))
        return socket_.failed("a chunk of its answer has no size");
      if (size == 0) return read_trailer();
      INFERD_TRY_STATUS(read_sized(size));
      if (!go_on_) return {};
      INFERD_TRY(const std::string end, read_line());
      if (!end.empty()) return socket_.failed("a chunk of its answer has no end");
    }
    return {};
  }

  Status read_sized(size_t size) {
    while (size > 0 && go_on_) {
      if (buffer_.empty()) {
        INFERD_TRY(const bool more, socket_.receive(buffer_));
        if (!more) return socket_.failed("its answer is cut off");
      }
      const size_t taken = std::min(size, buffer_.size());
      INFERD_TRY_STATUS(give(std::string_view(buffer_).substr(0, taken)));
      buffer_.erase(0, taken);
      size -= taken;
    }
    return {};
  }

  Status read_to_end() {
    while (go_on_) {
      INFERD_TRY_STATUS(give(buffer_));
      buffer_.clear();
      INFERD_TRY(const bool more, socket_.receive(buffer_));
      if (!more) return {};
    }
    return {};
  }

 private:
  Status give(std::string_view piece) {
    if (piece.empty()) return {};
    if (sink_) {
      go_on_ = sink_(piece);
    } else if (collected_.size() + piece.size() > kMaxBody) {
      return socket_.failed("its answer is longer than 64 MiB");
    } else {
      collected_ += piece;
    }
    return {};
  }

  Result<std::string> read_line() {
    while (true) {
      if (const size_t end = buffer_.find("\r\n"); end != std::string::npos) {
        std::string line = buffer_.substr(0, end);
        buffer_.erase(0, end + 2);
        return line;
      }
      if (buffer_.size() > kMaxChunkLine) return socket_.failed("a chunk of its answer has no size");
      INFERD_TRY(const bool more, socket_.receive(buffer_));
      if (!more) return socket_.failed("its answer is cut off");
    }
  }

  Status read_trailer() {
    for (int lines = 0; lines < 100; ++lines) {
      INFERD_TRY(const std::string line, read_line());
      if (line.empty()) return {};
    }
    return socket_.failed("its answer has no end");
  }

  Socket& socket_;
  std::string buffer_;
  const BodySink& sink_;
  std::string& collected_;
  bool go_on_ = true;
};

Status read_head(Socket& socket, std::string& buffer, HttpAnswer& answer) {
  size_t end = 0;
  while ((end = buffer.find("\r\n\r\n")) == std::string::npos) {
    if (buffer.size() > kMaxHead) return socket.failed("the head of its answer is too long");
    INFERD_TRY(const bool more, socket.receive(buffer));
    if (!more) {
      return socket.failed(buffer.empty() ? "it closed the connection without an answer"
                                          : "its answer is cut off");
    }
  }
  const std::string head = buffer.substr(0, end);
  buffer.erase(0, end + 4);
  for (const std::string_view line : split(head, '\n')) {
    const std::string_view text = trim(line);
    if (answer.status == 0) {
      const auto status =
          text.starts_with("HTTP/1.") && text.size() >= 12 ? parse_int(text.substr(9, 3)) : std::nullopt;
      if (!status || *status < 100) return socket.failed(cat("it does not speak HTTP: ", printable(text)));
      answer.status = static_cast<int>(*status);
    } else if (const size_t colon = text.find(':'); colon != std::string_view::npos) {
      answer.headers.emplace_back(to_lower_ascii(text.substr(0, colon)), trim(text.substr(colon + 1)));
    }
  }
  return {};
}

}  // namespace

Result<LoopbackUrl> LoopbackUrl::parse(std::string_view url) {
  const Error error{.code = Code::server_answer,
                    .detail = cat(printable(url), " is no address of this machine's loopback")};
  static constexpr std::string_view kScheme = "http://";
  if (!url.starts_with(kScheme)) return error;
  const std::string_view authority = url.substr(kScheme.size());
  const size_t colon = authority.rfind(':');
  if (colon == std::string_view::npos) return error;
  LoopbackUrl out{.address = std::string(authority.substr(0, colon))};
  const auto port = parse_int(authority.substr(colon + 1));
  if (!port || *port < 1 || *port > 65535) return error;
  out.port = static_cast<int>(*port);
  std::array<unsigned char, 16> bytes{};
  if (out.address == "[::1]") {
    out.address = "::1";
  } else if (::inet_pton(AF_INET, out.address.c_str(), bytes.data()) != 1 || bytes[0] != 127) {
    return error;
  }
  return out;
}

std::string LoopbackUrl::text() const {
  const bool v6 = address.find(':') != std::string::npos;
  return cat("http://", v6 ? "[" : "", address, v6 ? "]" : "", ":", port);
}

std::string_view HttpAnswer::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

Result<HttpAnswer> http_call(const LoopbackUrl& url, const HttpCall& call, const BodySink& sink) {
  Socket socket(url, call);
  INFERD_TRY_STATUS(socket.connect());
  const std::string authority = url.text().substr(std::string_view("http://").size());
  std::string request = cat(call.method, " ", call.path, " HTTP/1.1\r\nHost: ", authority,
                            "\r\nConnection: close\r\nAccept: application/json, text/event-stream\r\n");
  for (const auto& [name, value] : call.headers) request += cat(name, ": ", value, "\r\n");
  if (call.method == "POST")
    request += cat("Content-Type: application/json\r\nContent-Length: ", call.body.size(), "\r\n");
  request += "\r\n";
  request += call.body;
  INFERD_TRY_STATUS(socket.send(request));
  HttpAnswer answer;
  std::string buffer;
  do {  // 100 Continue and its like are not the answer
    answer = {};
    INFERD_TRY_STATUS(read_head(socket, buffer, answer));
  } while (answer.status < 200);
  static const BodySink kNone;
  BodyReader body(socket, std::move(buffer), answer.status == 200 ? sink : kNone, answer.body);
  if (to_lower_ascii(answer.header("transfer-encoding")) == "chunked") {
    INFERD_TRY_STATUS(body.read_chunked());
  } else if (const std::string_view length = answer.header("content-length"); !length.empty()) {
    const auto size = parse_int(length);
    if (!size || *size < 0) return socket.failed(cat("its answer has a length of ", printable(length)));
    INFERD_TRY_STATUS(body.read_sized(static_cast<size_t>(*size)));
  } else {
    INFERD_TRY_STATUS(body.read_to_end());
  }
  return answer;
}

}  // namespace inferd
