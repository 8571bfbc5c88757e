// The text of one answer while its ids come in: characters, then stop strings. The same ids give the same
// text and the same end wherever they are pushed, so the engine's thread (which ends the sequence) and the
// I/O thread (which sends the text) each have one. Used by one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "engine/request.h"
#include "text/stop_matcher.h"
#include "text/stream_decoder.h"

namespace inferd {

class AnswerText {
 public:
  // The tokenizer must outlive this. Stop strings are looked for in the text from token number `min_tokens`
  // on.
  AnswerText(const Tokenizer& tokenizer, StopMatcher stops, int64_t min_tokens)
      : decoder_(tokenizer), stops_(std::move(stops)), bypass_(min_tokens - 1) {}

  // The text that is certain now: valid UTF-8, often empty. Once stopped() it is always empty.
  std::string push(int32_t id);
  // No id follows: the rest. Call once.
  std::string finish();

  // Index of the stop string that was found.
  std::optional<size_t> stopped() const { return stops_.matched(); }
  // Characters decoded so far, those held back or cut off by a stop string included.
  int64_t characters() const { return characters_; }

 private:
  StreamDecoder decoder_;
  StopMatcher stops_;
  int64_t bypass_;  // tokens that no stop string can end at
  int64_t characters_ = 0;
};

// Ends a sequence at its stop string, on the engine's thread.
std::unique_ptr<StopCheck> make_stop_check(const Tokenizer& tokenizer, const StopMatcher& stops,
                                           int64_t min_tokens);

}  // namespace inferd
