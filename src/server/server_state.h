// What all parts of one server share: the model, the options, and what is counted. Const or atomic; any
// thread.
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <string>

#include "base/metrics.h"
#include "server/access.h"
#include "server/server.h"

namespace inferd {

// Tokens per second over the last five seconds, from samples that somebody takes about twice a second.
class RateWindow {
 public:
  void sample(int64_t now_ns, int64_t count);
  double per_second(int64_t now_ns, int64_t count) const;

 private:
  struct Sample {
    int64_t time_ns = 0;
    int64_t count = 0;
  };
  mutable std::mutex mutex_;
  std::array<Sample, 16> samples_{};  // a ring
  size_t next_ = 0;
  size_t filled_ = 0;
};

inline constexpr size_t kMaxRoutes = 20;

struct ServerMetrics {
  Counter connections_total;
  Counter connections_refused;               // more than max_connections, or no descriptor left
  Counter http_requests[kMaxRoutes + 1][3];  // by route (the last: no route), and 2xx, 4xx, 5xx
  Counter clients_gone;                      // hung up before their answer was complete
  Counter slow_readers;                      // dropped
  Counter timeouts;                          // of headers, bodies and idle connections
  Counter rejected_invalid;  // generation requests that were refused before the engine saw them
  Counter rejected_context;
  Counter rejected_kv;
  Counter rejected_draining;
};

struct ServerState {
  ServedModel model;
  ModelView view;
  ServerOptions options;
  Access access;
  int64_t started_ns = 0;
  ServerMetrics metrics;
  RateWindow rate;
  std::atomic<bool> draining{false};
  std::atomic<int64_t> connections{0};  // open
  std::atomic<int64_t> in_flight{0};    // HTTP requests, from their first byte to the end of the answer
  std::string base_url;

  ServerState(ServedModel served, ServerOptions chosen, bool beyond_loopback);

  Engine& engine() const { return *model.engine; }
  bool engine_failed() const { return engine().state() == Engine::State::failed; }
  bool engine_stalled() const;
  double uptime_seconds() const { return options.clock->seconds_since(started_ns); }
};

}  // namespace inferd
