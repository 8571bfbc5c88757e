#include "server/stream_session.h"

#include <algorithm>

namespace inferd {
namespace {

void keep_earliest(int64_t& kept, int64_t time) {
  if (time != 0 && (kept == 0 || time < kept)) kept = time;
}

}  // namespace

double elapsed_ms(int64_t from_ns, int64_t to_ns) {
  return from_ns == 0 || to_ns <= from_ns ? 0 : static_cast<double>(to_ns - from_ns) * 1e-6;
}

StreamSession::StreamSession(const Tokenizer& tokenizer, Generation generation,
                             std::unique_ptr<AnswerFormat> format, std::string request_id)
    : generation_(std::move(generation)),
      format_(std::move(format)),
      request_id_(std::move(request_id)),
      open_(generation_.answers()) {
  for (size_t i = 0; i < open_; ++i) {
    states_.push_back(
        {.text = AnswerText(tokenizer, generation_.matcher, generation_.sampling.min_tokens), .answer = {}});
    states_.back().answer.end.answer = i;
  }
  totals_.answers = static_cast<int64_t>(open_);
  for (const int64_t tokens : generation_.prompt_tokens) totals_.prompt_tokens += tokens;
}

void StreamSession::begin() {
  if (generation_.max_tokens > 0) return;
  for (size_t i = 0; i < states_.size(); ++i) end_answer(i);
}

void StreamSession::on_event(size_t request, Event event) {
  if (finished_) return;
  const size_t index = request * static_cast<size_t>(generation_.n) + static_cast<size_t>(event.choice);
  if (event.kind == Event::Kind::token) {
    on_token(index, std::move(event));
  } else if (event.reason == FinishReason::error || event.reason == FinishReason::cancelled) {
    fail(event.error.value_or(Error{.code = Code::engine_stopping}));
  } else {
    on_end(index, event);
  }
}

void StreamSession::on_token(size_t index, Event event) {
  State& state = states_[index];
  ++drawn_;
  const bool stop_id =
      std::ranges::find(generation_.sampling.stop_ids, event.id) != generation_.sampling.stop_ids.end();
  std::vector<TokenInfo> tokens;
  if (generation_.logprobs || generation_.return_token_ids) {
    tokens.push_back({event.id, event.logprob, std::move(event.top), state.text.characters()});
  }
  if (stop_id) state.answer.end.stop_id = event.id;
  send_delta(index, stop_id ? std::string() : state.text.push(event.id), std::move(tokens));
}

void StreamSession::send_delta(size_t index, std::string text, std::vector<TokenInfo> tokens) {
  if (text.empty() && tokens.empty()) return;
  State& state = states_[index];
  if (generation_.stream) {
    format_->delta(
        output_,
        {.answer = index, .first = !state.started, .text = std::move(text), .tokens = std::move(tokens)});
  } else {
    state.answer.text += text;
    for (TokenInfo& token : tokens) state.answer.tokens.push_back(std::move(token));
  }
  state.started = true;
}

void StreamSession::on_end(size_t index, const Event& event) {
  State& state = states_[index];
  state.answer.end.reason = event.reason;
  if (event.reason != FinishReason::stop_id) state.answer.end.stop_id.reset();
  send_delta(index, state.text.finish(), {});
  if (const auto stop = state.text.stopped()) {
    state.answer.end.reason = FinishReason::stop_check;
    state.answer.end.stop_text = generation_.stops[*stop];
  }
  add_stats(index, event.stats);
  end_answer(index);
}

void StreamSession::end_answer(size_t index) {
  State& state = states_[index];
  state.answer.end.first = !state.started;
  --open_;
  if (generation_.stream) format_->end(output_, state.answer.end, open_ == 0 ? &totals_ : nullptr);
  if (open_ > 0) return;
  finished_ = true;
  outcome_ = state.answer.end.reason_text();
  if (generation_.stream) {
    format_->done(output_, totals_);
    return;
  }
  std::vector<Answer> answers;
  for (State& each : states_) answers.push_back(std::move(each.answer));
  reply_ = format_->reply(answers, totals_);
}

void StreamSession::add_stats(size_t index, const RequestStats& stats) {
  totals_.output_tokens += stats.output_tokens;
  totals_.preemptions += stats.preemptions;
  // The choices of one prompt share it: it counts once.
  if (index % static_cast<size_t>(generation_.n) == 0) totals_.cached_tokens += stats.cached_tokens;
  keep_earliest(arrival_ns_, stats.arrival_ns);
  keep_earliest(scheduled_ns_, stats.first_scheduled_ns);
  keep_earliest(first_token_ns_, stats.first_token_ns);
  finished_ns_ = std::max(finished_ns_, stats.finished_ns);
  totals_.queue_ms = elapsed_ms(arrival_ns_, scheduled_ns_);
  totals_.prompt_ms = elapsed_ms(scheduled_ns_, first_token_ns_);
  totals_.output_ms = elapsed_ms(first_token_ns_, finished_ns_);
}

void StreamSession::fail(const Error& error) {
  if (finished_) return;
  finished_ = true;
  outcome_ = error_row(error.code).id;
  if (generation_.stream) {
    format_->error(output_, error);
  } else {
    reply_ = error_reply(error, request_id_);
  }
}

}  // namespace inferd
