// Token ids to text as they come: what is given out is always valid UTF-8 and never half a character. One per
// answer, used by one thread at a time. The one policy for bytes that are no text: each maximal ill-formed
// subpart (base/utf8.h) becomes one U+FFFD, and so does a character that the end of the answer cuts off. All
// deltas joined are Tokenizer::decode() of all ids, but for the space that decode() leaves out at the begin
// of a text: an answer goes on from a prompt.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "text/tokenizer.h"

namespace inferd {

// Bytes to valid UTF-8.
class Utf8Stream {
 public:
  // Appends to `out` all text that is certain now; up to three bytes of an unfinished character are kept.
  void push(std::string_view bytes, std::string& out);
  // The bytes end here.
  void finish(std::string& out);

 private:
  std::string unfinished_;
};

class StreamDecoder {
 public:
  // The tokenizer must outlive the decoder. `skip_special`: control tokens give no text.
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special = true)
      : tokenizer_(tokenizer), skip_special_(skip_special) {}

  // Requires an id of the vocabulary.
  void push(int32_t id, std::string& out) {
    if (!skip_special_ || !tokenizer_.is_special(id)) bytes_.push(tokenizer_.token_bytes(id), out);
  }
  void finish(std::string& out) { bytes_.finish(out); }

 private:
  const Tokenizer& tokenizer_;
  const bool skip_special_;
  Utf8Stream bytes_;
};

}  // namespace inferd
