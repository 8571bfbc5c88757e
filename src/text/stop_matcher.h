// Stop strings over streamed text: what may be the beginning of one is held back until that is decided, so no
// character of a stop string is ever given out. One per answer, used by one thread at a time. Each string is
// followed by the automaton of Knuth, Morris and Pratt (1977).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace inferd {

class StopMatcher {
 public:
  static constexpr size_t kMaxStrings = 64;
  static constexpr size_t kMaxBytes = 4096;  // of one string

  StopMatcher() = default;  // no stop strings: everything passes

  // E-REQ-004, param "stop": too many, an empty one, one that is too long or ill-formed UTF-8.
  static Result<StopMatcher> create(std::vector<std::string> stops);

  // Takes the next text and appends to `out` what is certain not to belong to a stop string. True: a stop
  // string is complete, `out` has the text before it, and whatever comes later is ignored. The string that is
  // complete first wins; of several that end at one byte, the longest.
  bool push(std::string_view text, std::string& out);

  // The text ends here: what was held back is given out, unless a stop string was found.
  void finish(std::string& out);

  // Index into `stops` of the string that was found.
  std::optional<size_t> matched() const { return matched_; }

 private:
  struct Pattern {
    std::string text;
    std::vector<uint32_t> border;  // [i]: length of the longest proper prefix of text[0, i] that also ends it
    uint32_t state = 0;            // how much of `text` the input ends with
  };

  std::vector<Pattern> patterns_;
  std::string held_;  // the end of the input, as long as the largest state
  std::optional<size_t> matched_;
};

}  // namespace inferd
