// What the engine is asked and what it answers: token ids in, token ids out. No text, JSON or sockets.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "sampling/params.h"

namespace inferd {

using RequestId = uint64_t;

enum class FinishReason {
  stop_id,     // an id of SamplingParams::stop_ids was drawn; it is the last id and not part of the text
  stop_check,  // the request's StopCheck ended it (a stop string)
  length,      // max_tokens, or the context is full
  cancelled,
  error,  // Event::error says why
};

// Looks at a sequence's output and may end it; implemented by the front end (stop strings). One per choice;
// called on the engine's thread at commit, once per token in order, so it must be quick and must not block.
class StopCheck {
 public:
  virtual ~StopCheck() = default;
  // True: the sequence ends with this token.
  virtual bool on_token(int32_t id) = 0;
};

struct TopLogprob {
  int32_t id;
  float logprob;
};

struct RequestStats {
  int32_t prompt_tokens = 0;
  int32_t cached_tokens = 0;  // of the prompt, taken from the prefix cache
  int32_t output_tokens = 0;  // of this choice, a final stop id included
  int32_t preemptions = 0;
  int64_t arrival_ns = 0;  // monotonic; submit() was called
  int64_t first_scheduled_ns = 0;
  int64_t first_token_ns = 0;  // 0: none
  int64_t finished_ns = 0;
};

struct Event {
  enum class Kind { token, finished };
  RequestId request = 0;
  int32_t choice = 0;
  Kind kind = Kind::token;

  // token
  int32_t id = -1;
  float logprob = 0;
  std::vector<TopLogprob> top;  // when asked for, likeliest first

  // finished: exactly one per choice, the last event of that choice
  FinishReason reason = FinishReason::stop_id;
  std::optional<Error> error;
  RequestStats stats;
};

// Where a request's events go. Called on the engine's thread, once per step with all events for this sink in
// order; must be quick and must not block. A sink outlives every request that was submitted with it.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void on_events(std::vector<Event> events) = 0;
};

struct Request {
  std::vector<int32_t> prompt;                          // at least one id
  SamplingParams sampling;                              // validated; with a seed
  int32_t max_tokens = 0;                               // ≥ 1 per choice
  int32_t choices = 1;                                  // n: 1 … 8; they share the prompt's pages
  std::vector<std::unique_ptr<StopCheck>> stop_checks;  // empty, or one per choice
  std::string cache_salt;                               // requests with different salts never share pages
  std::shared_ptr<EventSink> sink;
};

}  // namespace inferd
