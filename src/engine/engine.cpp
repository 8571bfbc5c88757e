#include "engine/engine.h"

#include <algorithm>
#include <array>

namespace inferd {
namespace {

constexpr std::array<int32_t, 7> kChunkLadder = {16, 32, 64, 128, 256, 512, 1024};
constexpr std::chrono::milliseconds kIdleBeat{500};

// Of the older value; new steps count for the rest.
constexpr double kSmoothing = 0.7;

}  // namespace

struct Engine::Choice {
  RequestId request = 0;
  int32_t index = 0;
  SampleParams params{};
  std::unique_ptr<StopCheck> stop_check;
  std::shared_ptr<EventSink> sink;
  RequestStats stats;
  int64_t last_token_ns = 0;
  std::optional<Error> error;  // why it ends with FinishReason::error
};

Engine::Engine(std::unique_ptr<Runner> runner, EngineOptions options)
    : options_(std::move(options)), runner_(std::move(runner)), scheduler_(options_.scheduler, *this) {
  const RunnerOptions& made = runner_->options();
  const SchedulerOptions& wanted = options_.scheduler;
  INFERD_CHECK(made.ctx == wanted.ctx && made.max_seqs == wanted.max_seqs &&
                   made.prefill_chunk == wanted.prefill_chunk && made.kv_pages == wanted.pool.pages &&
                   runner_->page_tokens() == wanted.pool.page_tokens,
               "the scheduler and the runner are of different sizes");
  metrics_.kv_blocks_total.set(wanted.pool.pages);
  heartbeat_ns_.store(options_.clock->now_ns(), std::memory_order_relaxed);
  refresh_gauges();
}

Engine::~Engine() {
  stop();
}

Error Engine::refuse_now() const {
  if (state() == State::failed)
    return Error{.code = Code::engine_failed, .detail = "no request is taken any more"};
  return Error{.code = Code::engine_stopping};
}

Result<RequestId> Engine::submit(Request request) {
  INFERD_CHECK(
      !request.prompt.empty() && request.max_tokens >= 1 && request.choices >= 1 && request.sink != nullptr &&
          (request.stop_checks.empty() || request.stop_checks.size() == static_cast<size_t>(request.choices)),
      "a request that the front end should have refused");
  if (state() != State::running) {
    metrics_.rejected_draining.add();
    return refuse_now();
  }
  const Status fits = Scheduler::check_fits(options_.scheduler, static_cast<int64_t>(request.prompt.size()),
                                            request.max_tokens);
  if (!fits.ok()) {
    (fits.error().code == Code::kv_never_fits ? metrics_.rejected_kv : metrics_.rejected_context).add();
    return fits.error();
  }
  const int64_t most = int64_t{options_.scheduler.max_seqs} + options_.max_queue;
  if (in_flight_.fetch_add(request.choices, std::memory_order_acq_rel) + request.choices > most) {
    in_flight_.fetch_sub(request.choices, std::memory_order_acq_rel);
    metrics_.rejected_full.add();
    return Error{.code = Code::engine_full, .detail = cat(most, " are allowed")};
  }
  const RequestId id = next_id_.fetch_add(1, std::memory_order_relaxed);
  const int32_t choices = request.choices;
  if (!inbox_.push(Submitted{id, std::move(request), options_.clock->now_ns()})) {
    in_flight_.fetch_sub(choices, std::memory_order_acq_rel);
    return refuse_now();
  }
  return id;
}

void Engine::cancel(RequestId request) {
  inbox_.push(Cancel{request});
}

void Engine::start() {
  thread_ = std::thread([this] { loop(); });
}

void Engine::drain() {
  State expected = State::running;
  state_.compare_exchange_strong(expected, State::draining, std::memory_order_acq_rel);
}

void Engine::stop() {
  drain();
  stopping_.store(true, std::memory_order_release);
  inbox_.wake();
  if (thread_.joinable()) thread_.join();
  end_everything(Error{.code = Code::engine_stopping});
}

std::string Engine::failure() const {
  return state() == State::failed ? failure_ : std::string();
}

int64_t Engine::heartbeat_age_ns() const {
  return options_.clock->now_ns() - heartbeat_ns_.load(std::memory_order_relaxed);
}

void Engine::loop() {
  while (!stopping_.load(std::memory_order_acquire) && state() != State::failed) {
    if (!step()) take(inbox_.wait_all(kIdleBeat));
  }
}

bool Engine::step() {
  heartbeat_ns_.store(options_.clock->now_ns(), std::memory_order_relaxed);
  if (state() == State::failed) return false;
  try {
    return turn();
  } catch (const DeviceError& error) {
    fail(error.what());
    return false;
  }
}

bool Engine::turn() {
  take(inbox_.take_all());
  StepPlan plan = scheduler_.plan();
  const bool launched = !plan.empty();
  if (launched) {
    const int64_t now = options_.clock->now_ns();
    runner_->launch(plan, [this](SequenceId sequence) { return choices_.at(sequence)->params; });
    metrics_.steps.add();
    metrics_.step_sequences.observe(static_cast<double>(plan.rows.size()));
    metrics_.step_tokens.observe(plan.tokens);
    metrics_.step_sequences_max.raise_to(static_cast<int64_t>(plan.rows.size()));
    flight_.push_back({std::move(plan), now});
  }
  const size_t allowed = launched ? static_cast<size_t>(runner_->lag()) : 0;
  while (flight_.size() > allowed) collect_oldest();
  if (scheduler_.idle()) scheduler_.check_invariants();
  refresh_gauges();
  publish();
  return launched;
}

void Engine::take(std::deque<Message> messages) {
  for (Message& message : messages) {
    if (auto* submitted = std::get_if<Submitted>(&message)) {
      take_submitted(std::move(*submitted));
    } else if (const auto open = open_.find(std::get<Cancel>(message).request); open != open_.end()) {
      for (const SequenceId sequence : std::vector<SequenceId>(open->second)) scheduler_.cancel(sequence);
    }
  }
}

void Engine::take_submitted(Submitted submitted) {
  Request& request = submitted.request;
  std::optional<SequenceId> leader;
  for (int32_t i = 0; i < request.choices; ++i) {
    const SequenceId sequence = scheduler_.submit({.prompt = request.prompt,
                                                   .max_tokens = request.max_tokens,
                                                   .cache_key = request.cache_salt,
                                                   .leader = leader});
    if (!leader) leader = sequence;
    auto choice = std::make_unique<Choice>();
    choice->request = submitted.id;
    choice->index = i;
    choice->params = to_device(request.sampling, static_cast<uint32_t>(i));
    if (!request.stop_checks.empty())
      choice->stop_check = std::move(request.stop_checks[static_cast<size_t>(i)]);
    choice->sink = request.sink;
    choice->stats.arrival_ns = submitted.arrival_ns;
    choices_[sequence] = std::move(choice);
    open_[submitted.id].push_back(sequence);
  }
}

void Engine::collect_oldest() {
  const std::vector<RowResult> results = runner_->collect();
  const Flight flight = std::move(flight_.front());
  flight_.pop_front();
  const int64_t now = options_.clock->now_ns();
  // With a lag the next step was launched before this one ended: it took from the end of the one before.
  const double seconds = static_cast<double>(now - std::max(flight.launched_ns, step_done_ns_)) * 1e-9;
  step_done_ns_ = now;
  metrics_.step_seconds.observe(seconds);
  choose_busy_chunk(flight.plan, seconds);
  scheduler_.commit(flight.plan, results);
}

void Engine::choose_busy_chunk(const StepPlan& plan, double seconds) {
  const int32_t prompt_tokens = plan.tokens - plan.decode_rows;
  if (prompt_tokens < kChunkLadder.front()) return;
  const double measured = seconds / plan.tokens;
  seconds_per_prompt_token_ = seconds_per_prompt_token_ == 0
                                  ? measured
                                  : kSmoothing * seconds_per_prompt_token_ + (1 - kSmoothing) * measured;
  int32_t chunk = kChunkLadder.front();
  for (const int32_t size : kChunkLadder) {
    if (size * seconds_per_prompt_token_ * 1000 <= options_.chunk_target_ms) chunk = size;
  }
  scheduler_.set_busy_chunk(chunk);
}

void Engine::on_admitted(SequenceId sequence, const SequenceStats& stats, bool first_time) {
  if (!first_time) return;
  Choice& choice = *choices_.at(sequence);
  choice.stats.first_scheduled_ns = options_.clock->now_ns();
  metrics_.admitted.add();
  metrics_.prompt_tokens.add(stats.prompt_tokens);
  metrics_.prefix_hit_tokens.add(stats.cached_tokens);
  metrics_.queue_seconds.observe(
      static_cast<double>(choice.stats.first_scheduled_ns - choice.stats.arrival_ns) * 1e-9);
}

std::optional<FinishReason> Engine::on_token(SequenceId sequence, const SampleResult& drawn) {
  Choice& choice = *choices_.at(sequence);
  if (drawn.status != SampleResult::ok) {
    choice.error = Error{.code = Code::engine_logits,
                         .detail = drawn.status == SampleResult::nothing_allowed
                                       ? "every token is forbidden or has probability zero"
                                       : "the model computed a value that is not a number"};
    return FinishReason::error;
  }
  const int64_t now = step_done_ns_;
  if (choice.stats.first_token_ns == 0) {
    choice.stats.first_token_ns = now;
    const int64_t ttft = now - choice.stats.arrival_ns;
    metrics_.last_ttft_ns.set(ttft);
    metrics_.ttft_seconds.observe(static_cast<double>(ttft) * 1e-9);
    metrics_.prefill_seconds.observe(static_cast<double>(now - choice.stats.first_scheduled_ns) * 1e-9);
  } else {
    metrics_.inter_token_seconds.observe(static_cast<double>(now - choice.last_token_ns) * 1e-9);
  }
  choice.last_token_ns = now;
  metrics_.generation_tokens.add();

  Event event;
  event.request = choice.request;
  event.choice = choice.index;
  event.kind = Event::Kind::token;
  event.id = drawn.id;
  event.logprob = drawn.logprob;
  for (int32_t i = 0; i < drawn.top_count; ++i)
    event.top.push_back({drawn.top_ids[i], drawn.top_logprobs[i]});
  send(choice.sink, std::move(event));

  const std::span<const int32_t> stop_ids(choice.params.stop_ids,
                                          static_cast<size_t>(choice.params.stop_count));
  if (std::ranges::find(stop_ids, drawn.id) != stop_ids.end()) return FinishReason::stop_id;
  if (choice.stop_check != nullptr && choice.stop_check->on_token(drawn.id)) return FinishReason::stop_check;
  return std::nullopt;
}

void Engine::on_finished(SequenceId sequence, FinishReason reason, const SequenceStats& stats) {
  const auto entry = choices_.find(sequence);
  const std::unique_ptr<Choice> choice = std::move(entry->second);
  choices_.erase(entry);
  std::vector<SequenceId>& siblings = open_.at(choice->request);
  std::erase(siblings, sequence);
  if (siblings.empty()) open_.erase(choice->request);

  const int64_t now = options_.clock->now_ns();
  choice->stats.prompt_tokens = stats.prompt_tokens;
  choice->stats.cached_tokens = stats.cached_tokens;
  choice->stats.output_tokens = stats.output_tokens;
  choice->stats.preemptions = stats.preemptions;
  choice->stats.finished_ns = now;
  metrics_.request_seconds.observe(static_cast<double>(now - choice->stats.arrival_ns) * 1e-9);
  if (choice->stats.first_token_ns != 0) {
    const double decode = static_cast<double>(choice->last_token_ns - choice->stats.first_token_ns) * 1e-9;
    metrics_.decode_seconds.observe(decode);
    if (stats.output_tokens > 1)
      metrics_.time_per_output_token_seconds.observe(decode / (stats.output_tokens - 1));
  }
  switch (reason) {
    case FinishReason::stop_id:
    case FinishReason::stop_check:
      metrics_.finished_stop.add();
      break;
    case FinishReason::length:
      metrics_.finished_length.add();
      break;
    case FinishReason::cancelled:
      metrics_.finished_cancelled.add();
      break;
    case FinishReason::error:
      metrics_.finished_error.add();
      break;
  }

  Event event;
  event.request = choice->request;
  event.choice = choice->index;
  event.kind = Event::Kind::finished;
  event.reason = reason;
  event.error = ending_ ? ending_ : choice->error;
  event.stats = choice->stats;
  send(choice->sink, std::move(event));
  in_flight_.fetch_sub(1, std::memory_order_acq_rel);
}

void Engine::send(const std::shared_ptr<EventSink>& sink, Event event) {
  const auto known =
      std::ranges::find(outbox_, sink, &std::pair<std::shared_ptr<EventSink>, std::vector<Event>>::first);
  std::vector<Event>& events =
      known != outbox_.end() ? known->second : outbox_.emplace_back(sink, std::vector<Event>()).second;
  events.push_back(std::move(event));
}

// One call for each sink, its events in order.
void Engine::publish() {
  for (auto& [sink, events] : std::exchange(outbox_, {})) sink->on_events(std::move(events));
}

void Engine::refresh_gauges() {
  metrics_.requests_running.set(scheduler_.running());
  metrics_.requests_waiting.set(scheduler_.waiting());
  const std::optional<SequenceId> longest = scheduler_.longest_waiting();
  metrics_.queue_oldest_ns.set(longest ? choices_.at(*longest)->stats.arrival_ns : 0);
  const PagePool& pool = scheduler_.pool();
  metrics_.kv_blocks_active.set(pool.active());
  metrics_.kv_blocks_cached.set(pool.cached());
  metrics_.kv_blocks_free.set(pool.free());
  metrics_.kv_blocks_used_max.raise_to(pool.active());
  metrics_.preemptions.add(scheduler_.preemptions() - metrics_.preemptions.value());
  metrics_.page_forks.add(scheduler_.forks() - metrics_.page_forks.value());
  metrics_.prefills_chunked.add(scheduler_.split_chunks() - metrics_.prefills_chunked.value());
}

void Engine::fail(const std::string& cause) {
  failure_ = cause;
  state_.store(State::failed, std::memory_order_release);
  if (options_.log != nullptr) options_.log->error("engine", "a step failed: ", cause);
  end_everything(Error{.code = Code::engine_failed, .detail = cause});
  if (options_.on_failure) options_.on_failure(cause);
}

// Every open choice gets its finished event; the steps in flight are forgotten, and nothing comes in any
// more.
void Engine::end_everything(const Error& error) {
  take(inbox_.close());
  ending_ = error;
  std::vector<SequenceId> sequences;
  for (const auto& [sequence, choice] : choices_) sequences.push_back(sequence);
  std::ranges::sort(sequences);
  for (const SequenceId sequence : sequences) scheduler_.cancel(sequence, FinishReason::error);
  ending_.reset();
  publish();
}

}  // namespace inferd
