// What the tests of downloads share: an HTTP server on loopback, with TLS when asked for, whose answers a
// test writes itself; a certificate authority made on the spot; a repository as the hub would serve it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

struct ssl_ctx_st;
struct ssl_st;

namespace inferd::testing_hub {

// A throw-away authority and what it signs.
class TestAuthority {
 public:
  TestAuthority();
  ~TestAuthority();
  TestAuthority(const TestAuthority&) = delete;
  TestAuthority& operator=(const TestAuthority&) = delete;

  std::string pem() const;  // the root
  // A server's certificate for "DNS:localhost", "IP:127.0.0.1" or several of those between commas, valid for
  // so many seconds from now (below 0: it ended then). `most_version`: of TLS, such as TLS1_1_VERSION; 0:
  // any.
  std::shared_ptr<ssl_ctx_st> issue(const std::string& names, long seconds = 3600,
                                    int most_version = 0) const;

 private:
  struct Made;
  std::unique_ptr<Made> made_;
};

struct WebRequest {
  std::string method, target;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case

  std::string header(std::string_view name) const;  // empty: absent
  int64_t range_begin() const;                      // -1: no Range
};

// One connection, to answer on.
class WebReply {
 public:
  WebReply(int fd, ssl_st* tls, const std::atomic<bool>& stop) : fd_(fd), tls_(tls), stop_(stop) {}
  bool send(std::string_view bytes);  // false: the client has gone
  void stall() const;                 // until the client has gone or the server ends
  void relay(int port);               // answers a CONNECT: passes bytes both ways to a port of loopback

  int fd() const { return fd_; }
  bool stopping() const { return stop_; }

 private:
  int fd_;
  ssl_st* tls_;
  const std::atomic<bool>& stop_;
};

class WebServer {
 public:
  using Handler = std::function<void(const WebRequest&, WebReply&)>;
  explicit WebServer(Handler handler, std::shared_ptr<ssl_ctx_st> tls = nullptr);
  ~WebServer();
  WebServer(const WebServer&) = delete;
  WebServer& operator=(const WebServer&) = delete;

  int port() const { return port_; }
  std::string url(std::string_view host = "127.0.0.1") const;
  std::vector<WebRequest> requests() const;

 private:
  void accept_all();
  void serve(int fd);

  const Handler handler_;
  const std::shared_ptr<ssl_ctx_st> tls_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stop_{false};
  mutable std::mutex mutex_;  // requests_ and threads_
  std::vector<WebRequest> requests_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

// "HTTP/1.1 STATUS\r\nHEADERS…\r\n\r\nBODY" with Content-Length; each header ends in "\r\n".
std::string web_answer(std::string_view status, std::string_view headers, std::string_view body);

struct FakeFile {
  std::string path;
  std::string content;
  bool lfs = true;
  std::string hash() const;  // SHA-256, or git's SHA-1
  std::string etag() const;  // of the place that has the bytes, which is not the hash
};

struct FakeRepo {
  std::string id = "acme/tiny";
  std::string commit = std::string(40, 'c');
  std::vector<FakeFile> files;

  std::string listing() const;
  // The file that /ID/resolve/COMMIT/PATH or /cdn/HASH is, or null.
  const FakeFile* find(std::string_view target) const;
  // As the hub does: the listing, a redirect for large files, ranges, ETag and If-Range.
  void serve(const WebRequest& request, WebReply& reply) const;
};

// The whole or the part that a request for `content` gets.
std::string content_answer(const WebRequest& request, const std::string& content, std::string_view etag);

// `bytes` of no pattern; another seed gives other ones.
std::string noise(size_t bytes, uint64_t seed = 1);

}  // namespace inferd::testing_hub
