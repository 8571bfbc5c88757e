// The engine: an inbox, a scheduler, a runner, and the step loop that joins them.
//
// submit() and cancel() may be called from any thread; everything else happens on the one thread that steps.
// Either start() makes that thread, or the caller steps by hand (tests, benchmarks, the command line).
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
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
  SchedulerOptions scheduler;  // ctx, pool and chunk as the runner has them
  int32_t max_queue = 256;     // choices in flight beyond max_seqs; more are refused with E-ENG-004
  // How much a prompt chunk may add to the gap between two tokens of the others: chunk sizes follow from it
  // and the measured speed, out of a fixed ladder.
  int32_t chunk_target_ms = 150;
  const Clock* clock = &monotonic_clock();
  Logger* log = nullptr;  // null: silent
  // Called once on the stepping thread after a failure, when every open request has got its error event.
  std::function<void(const std::string& cause)> on_failure;
};

class Engine : private ScheduleListener {
 public:
  // `options.scheduler` must have the ctx, max_seqs, prefill_chunk and pages that the runner was made with.
  Engine(std::unique_ptr<Runner> runner, EngineOptions options);
  ~Engine() override;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Any thread. E-REQ-006 the prompt does not fit the context, E-KV-001 it can never fit the pool, E-ENG-004
  // too many in flight, E-ENG-003 draining, E-ENG-001 the engine has failed. After success the sink gets
  // exactly one finished event per choice.
  Result<RequestId> submit(Request request);

  // Any thread; idempotent; unknown ids are ignored. Pages are free within lag + 1 steps.
  void cancel(RequestId request);

  void start();  // the step thread
  // Refuses new requests from now on; running ones go on.
  void drain();
  // Cancels what is left with the given error (E-ENG-003), and joins the step thread.
  void stop();

  // One turn of the loop on the calling thread: false when there was nothing to do. Not together with
  // start().
  bool step();

  enum class State { running, draining, failed };
  State state() const { return state_.load(std::memory_order_acquire); }
  std::string failure() const;  // the cause, when failed
  // Nanoseconds since the loop last turned; large when a step hangs. Any thread.
  int64_t heartbeat_age_ns() const;
  int64_t requests_in_flight() const { return in_flight_.load(std::memory_order_relaxed); }

  const EngineMetrics& metrics() const { return metrics_; }
  const Runner& runner() const { return *runner_; }
  const EngineOptions& options() const { return options_; }

 private:
  struct Choice;   // one sequence of a request, from submit to its finished event
  struct Flight {  // a launched step
    StepPlan plan;
    int64_t launched_ns = 0;
  };
  struct Cancel {
    RequestId request = 0;
  };
  struct Submitted {
    RequestId id = 0;
    Request request;
    int64_t arrival_ns = 0;
  };
  using Message = std::variant<Submitted, Cancel>;

  // ScheduleListener, on the stepping thread.
  void on_admitted(SequenceId sequence, const SequenceStats& stats, bool first_time) override;
  std::optional<FinishReason> on_token(SequenceId sequence, const SampleResult& drawn) override;
  void on_finished(SequenceId sequence, FinishReason reason, const SequenceStats& stats) override;

  void loop();
  void take(std::deque<Message> messages);
  void take_submitted(Submitted submitted);
  bool turn();
  void collect_oldest();
  void choose_busy_chunk(const StepPlan& plan, double seconds);
  void refresh_gauges();
  void send(const std::shared_ptr<EventSink>& sink, Event event);
  void publish();
  void fail(const std::string& cause);
  void end_everything(const Error& error);
  Error refuse_now() const;

  const EngineOptions options_;
  const std::unique_ptr<Runner> runner_;
  EngineMetrics metrics_;
  Inbox<Message> inbox_;
  std::atomic<State> state_{State::running};
  std::atomic<bool> stopping_{false};
  std::atomic<int64_t> in_flight_{0};
  std::atomic<int64_t> heartbeat_ns_{0};
  std::atomic<RequestId> next_id_{1};
  std::string failure_;  // written before state_ becomes failed
  std::thread thread_;

  // The stepping thread's own.
  Scheduler scheduler_;
  std::unordered_map<SequenceId, std::unique_ptr<Choice>> choices_;
  std::unordered_map<RequestId, std::vector<SequenceId>> open_;  // unfinished choices of a request
  std::deque<Flight> flight_;
  std::vector<std::pair<std::shared_ptr<EventSink>, std::vector<Event>>> outbox_;
  std::optional<Error> ending_;  // the error that choices end with while everything is ended
  double seconds_per_prompt_token_ = 0;
  int64_t step_done_ns_ = 0;
};

}  // namespace inferd
