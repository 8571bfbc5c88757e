// One connection of a download: name lookup, TCP, and TLS 1.2 or newer on top of it, each with a time limit.
// Waiting is cut into tenths of a second, in which a stop is seen and the caller gets to draw its progress.
// One thread. The process must ignore SIGPIPE (OpenSSL writes with write()).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

struct ssl_ctx_st;
struct ssl_st;

namespace inferd {

// How to wait.
struct Patience {
  const std::atomic<bool>* cancel = nullptr;  // set: the wait ends with E-SYS-001
  std::function<void()> tick;                 // called about ten times a second while waiting
};

// Certificate authorities to trust, read once.
class TlsRoots {
 public:
  // The PEM bundle `file`; empty: the first of the places where systems keep theirs. E-HUB-011 when there is
  // none or it holds no certificate.
  static Result<TlsRoots> load(const std::string& file);
  ssl_ctx_st* context() const { return context_.get(); }

 private:
  struct Free {
    void operator()(ssl_ctx_st* context) const;
  };
  std::unique_ptr<ssl_ctx_st, Free> context_;
};

class Connection {
 public:
  // Looks `host` up (a number needs no look-up) and tries its addresses in order, each for `timeout_ms`.
  // E-HUB-010, E-SYS-001.
  static Result<std::unique_ptr<Connection>> open(const std::string& host, int port, int timeout_ms,
                                                  const Patience& patience);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Speaks TLS from here on, with a peer whose certificate must lead to `roots` and name `host`. E-HUB-011.
  Status start_tls(const std::string& host, const TlsRoots& roots, int timeout_ms);

  // Writes all. E-HUB-010.
  Status write(std::string_view bytes, int timeout_ms);
  // At least one byte, or 0 at the end. E-HUB-010 with "stalled N s" when nothing came for `timeout_ms`.
  Result<size_t> read(std::span<char> bytes, int timeout_ms);

 private:
  Connection(int fd, const Patience& patience) : fd_(fd), patience_(patience) {}
  Status wait(short events, int timeout_ms, std::string_view what) const;
  // What to do after an SSL call returned `result`: wait and call it again, or give up.
  Status tls_wait(int result, int timeout_ms, std::string_view what);

  struct Free {
    void operator()(ssl_st* tls) const;
  };
  int fd_;
  const Patience& patience_;
  std::unique_ptr<ssl_st, Free> tls_;
};

// Waits `ms`, or less when a stop is asked for: E-SYS-001.
Status pause(int64_t ms, const Patience& patience);

}  // namespace inferd
