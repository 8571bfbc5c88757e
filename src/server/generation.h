// A request to generate, checked and ready for the engine, and what came out of it. Between them stands a
// StreamSession; how it all looks on the wire is an AnswerFormat's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/request.h"
#include "server/http_message.h"
#include "text/stop_matcher.h"

namespace inferd {

// Answers are numbered prompt · n + choice.
struct Generation {
  std::vector<Request> requests;                 // one a prompt; none when max_tokens is 0
  std::vector<std::vector<int32_t>> prompt_ids;  // by prompt, when they are to be returned
  std::vector<int64_t> prompt_tokens;            // by prompt
  int32_t n = 1;
  SamplingParams sampling;  // as used, with the seed
  int64_t max_tokens = 0;   // of the first prompt's answers, as used
  std::vector<std::string> stops;
  StopMatcher matcher;  // of `stops`
  bool stream = false;
  bool include_usage = false;
  bool logprobs = false;
  bool return_token_ids = false;

  size_t answers() const { return prompt_tokens.size() * static_cast<size_t>(n); }
};

struct TokenInfo {
  int32_t id = -1;
  float logprob = 0;
  std::vector<TopLogprob> top;
  int64_t offset = 0;  // characters of the answer before it
};

// What one token added.
struct AnswerDelta {
  size_t answer = 0;
  bool first = false;
  std::string text;
  std::vector<TokenInfo> tokens;  // when log-probabilities or ids are wanted
};

struct AnswerEnd {
  size_t answer = 0;
  bool first = false;  // no delta came before
  FinishReason reason = FinishReason::length;
  std::optional<std::string> stop_text;  // the stop string, or
  std::optional<int32_t> stop_id;        // the stop token, that ended it

  // "stop" or "length"
  std::string_view reason_text() const { return reason == FinishReason::length ? "length" : "stop"; }
};

// A whole answer; its tokens are all that were drawn, also a stop token and those whose text a stop string
// cut off.
struct Answer {
  std::string text;
  std::vector<TokenInfo> tokens;
  AnswerEnd end;
};

struct Totals {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t output_tokens = 0;
  int64_t answers = 0;
  int64_t preemptions = 0;
  double queue_ms = 0;   // arrival to the first prompt's first step
  double prompt_ms = 0;  // from there to the first token
  double output_ms = 0;  // first token to the last
};

// How answers are written. Const, one thread.
class AnswerFormat {
 public:
  virtual ~AnswerFormat() = default;

  // Server-sent events, appended to `out`.
  virtual void delta(std::string& out, const AnswerDelta& delta) const = 0;
  // `totals`: with the last answer to end.
  virtual void end(std::string& out, const AnswerEnd& end, const Totals* totals) const = 0;
  virtual void done(std::string& out, const Totals& totals) const = 0;
  // Ends the stream instead of done().
  virtual void error(std::string& out, const Error& error) const = 0;

  // The reply of a request that does not stream.
  virtual HttpReply reply(const std::vector<Answer>& answers, const Totals& totals) const = 0;
};

}  // namespace inferd
