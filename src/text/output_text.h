// The text of one answer while its ids come in: decoder, then stop strings. Used by one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "text/stop_matcher.h"
#include "text/stream_decoder.h"

namespace inferd {

class OutputText {
 public:
  // The tokenizer must outlive this.
  OutputText(const Tokenizer& tokenizer, StopMatcher stops, bool skip_special = true)
      : decoder_(tokenizer, skip_special), stops_(std::move(stops)) {}

  // The text that is certain after this id: valid UTF-8, often empty. Once stopped() it is always empty.
  std::string push(int32_t id);

  // No id follows: the rest of the text. Call once.
  std::string finish();

  // Index of the stop string that was found, in the last push() or finish() or before.
  std::optional<size_t> stopped() const { return stops_.matched(); }

 private:
  StreamDecoder decoder_;
  StopMatcher stops_;
};

}  // namespace inferd
