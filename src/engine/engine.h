// The engine: an inbox, a scheduler, a runner, and the step loop that joins them.
//
// submit() and cancel() may be called from any thread; everything else happens on the one thread that steps. Either
// start() makes that thread, or the caller steps by hand (tests, benchmarks, the command line).
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <variant>

#include "base/clock.h"
#include "base/log.h"
#include "base/queue.h"
#include "engine/engine_metrics.h"
#include "engine/request.h"
#include "engine/runner.h"
#include "engine/scheduler.h"

namespace inferd {

struct EngineOptions {
  SchedulerOptions scheduler;
  int32_t max_queue = 256;           // requests in flight beyond the running ones; more are refused with E-ENG-004
  const Clock* clock = &monotonic_clock();
  Logger* log = nullptr;             // null: silent
  std::function<void(const std::string& cause)> on_failure;  // called once on the engine's thread after every open
                                                             // request got its error event
};

class Engine {
 public:
  // The runner is owned; `options.scheduler` must agree with the runner's pools.
  Engine(std::unique_ptr<Runner> runner, EngineOptions options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Any thread. E-REQ-006 the prompt does not fit the context, E-KV-001 it can never fit the pool, E-ENG-004 too many in
  // flight, E-ENG-003 draining, E-ENG-001 the engine has failed. After success the sink gets exactly one finished event
  // per choice.
  Result<RequestId> submit(Request request);

  // Any thread; idempotent; unknown ids are ignored. Pages are free within lag + 1 steps.
  void cancel(RequestId request);

  void start();  // the step thread
  // Refuses new requests from now on; running ones go on.
  void drain();
  // Cancels what is left with the given error (E-ENG-003), and joins the step thread.
  void stop();

  // One turn of the loop on the calling thread: false when there was nothing to do. Not together with start().
  bool step();

  enum class State { running, draining, failed };
  State state() const { return state_.load(std::memory_order_acquire); }
  std::string failure() const;       // the cause, when failed
  // Nanoseconds since the loop last turned; large when a step hangs. Any thread.
  int64_t heartbeat_age_ns() const;
  int64_t requests_in_flight() const { return in_flight_.load(std::memory_order_relaxed); }

  const EngineMetrics& metrics() const { return metrics_; }
  const Runner& runner() const { return *runner_; }
  const EngineOptions& options() const { return options_; }

 private:
  struct Submitted;
  using Message = std::variant<std::unique_ptr<Submitted>, RequestId>;  // a request, or one to cancel

  void loop();
  void take(Message message);
  void collect_oldest();
  void publish();
  void fail(const std::string& cause);
  void refresh_gauges();

  struct Sequence;   // one choice
  struct InFlight;   // a launched step

  const EngineOptions options_;
  std::unique_ptr<Runner> runner_;
  EngineMetrics metrics_;
  Inbox<Message> inbox_;
  std::atomic<State> state_{State::running};
  std::atomic<int64_t> in_flight_{0};
  std::atomic<int64_t> heartbeat_ns_{0};
  std::atomic<RequestId> next_id_{1};
};

}  // namespace inferd
