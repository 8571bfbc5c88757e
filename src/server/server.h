// The HTTP server over one engine. It owns its threads (one a shard, one for long texts), a listener and the
// connections; it borrows the engine. Signals are the caller's: drain() and stop() may be called from any
// thread.
//
//   auto socket = ListenSocket::bind(options);        // before the model is loaded
//   auto server = Server::start(model, options, std::move(*socket));   // listens, answers
//   ... (*server)->drain();                           // no new requests; running ones go on
//   (*server)->wait();                                // all answered, or the grace is over
//   engine.stop();
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "server/served_model.h"

namespace inferd {

struct ServerOptions {
  std::string host = "127.0.0.1";      // an address, or a name that resolves to one of this machine
  int port = 8000;                     // 0: a free one
  std::optional<std::string> api_key;  // not empty; every route but /health/* then needs it
  bool allow_open = false;             // listen beyond loopback without a key

  int shards = 1;  // I/O threads; connections stay on one
  int max_connections = 4096;
  int64_t max_body_bytes = int64_t{16} << 20;
  int64_t max_bodies_bytes =
      int64_t{256} << 20;          // of all requests being read or parsed on a shard; more are told to retry
  int64_t drain_grace_ms = 30000;  // how long running requests may go on after drain()

  // Deadlines count from the first byte of the header, and from the end of the header; slow bytes do not move
  // them.
  int64_t header_timeout_ms = 10000;
  int64_t body_timeout_ms = 30000;
  int64_t idle_timeout_ms = 75000;  // between requests of a connection
  // A reader that takes nothing for so long, or lets so much pile up, is dropped and its request cancelled.
  // The kernel's send buffer is asked for the same size.
  int64_t stall_timeout_ms = 30000;
  int64_t stream_buffer_bytes = int64_t{256} << 10;
  int64_t ping_interval_ms = 15000;  // a comment line on a silent stream
  // Not ready when work is in flight and the engine's loop has not turned for so long. One step of a long
  // prompt on a CPU may rightly take seconds.
  int64_t stalled_engine_ms = 10000;

  std::string version = "0.1.0";
  std::string git_sha = "unknown";
  Logger* log = nullptr;  // null: silent; must outlive the server
  const Clock* clock = &monotonic_clock();
};

// An address that is ours, with nobody listening on it yet: what is wrong with it is known before a model is
// loaded, and until the server starts clients are refused, not kept waiting.
class ListenSocket {
 public:
  // E-NET-001 the port is taken, E-NET-002 the address is not this machine's, E-NET-003 beyond loopback
  // without a key.
  static Result<ListenSocket> bind(const ServerOptions& options);
  ListenSocket(ListenSocket&& other) noexcept;
  ListenSocket& operator=(ListenSocket&& other) = delete;
  ~ListenSocket();

  int release();  // the descriptor, for a new owner
  bool is_ipv6() const { return is_ipv6_; }
  bool is_loopback() const { return is_loopback_; }

 private:
  ListenSocket(int descriptor, bool is_ipv6, bool is_loopback);
  int descriptor_;
  bool is_ipv6_;
  bool is_loopback_;
};

class Server {
 public:
  // E-NET-001 when another program began to listen on the port meanwhile.
  static Result<std::unique_ptr<Server>> start(ServedModel model, ServerOptions options, ListenSocket socket);

  // As stop() and wait(). Requests that are still in the engine get no answer any more.
  virtual ~Server() = default;

  virtual int port() const = 0;
  virtual std::string base_url() const = 0;  // "http://127.0.0.1:8000"

  // Requests are refused with 503 from now on, readiness is 503, idle connections are closed; running
  // requests go on until they end or the grace is over: then they end with an error event. Idempotent.
  virtual void drain() = 0;
  // Drains, and the grace is over at once.
  virtual void stop() = 0;
  // Returns when, after drain() or stop(), every connection is closed and all threads have ended. One caller.
  virtual void wait() = 0;

  virtual bool draining() const = 0;
  // HTTP requests, from their first byte to the end of the answer.
  virtual int64_t requests_in_flight() const = 0;
};

}  // namespace inferd
