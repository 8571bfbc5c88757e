// Cuts text into the pieces that a tokenizer's model takes, by any sequence of the splitters that a
// tokenizer.json may name. Built once, then const and called from any thread. (Where all steps only cut by
// patterns, for_each_piece() of pretokenizer.h does the same, quicker.)
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/piece_patterns.h"

namespace inferd {

// What becomes of matches and of what lies between them; Hugging Face's names.
enum class SplitBehavior : uint8_t {
  isolated,              // each is a piece
  removed,               // matches are dropped
  merged_with_previous,  // a match goes to the piece before it
  merged_with_next,      // or to the piece behind it
  contiguous,            // matches that touch are one piece
};

struct SplitStep {
  enum class Kind : uint8_t {
    pattern,    // by `pattern`
    literal,    // by `text`, which is not empty
    metaspace,  // spaces become `text`, which is put before the piece as `prepend` says; then, with `cuts`,
                // pieces begin at each `text`
    prefix_space,  // a space before a piece that does not begin with white space
  };
  enum class Prepend : uint8_t { never, first, always };

  Kind kind = Kind::pattern;
  PiecePattern pattern = PiecePattern::gpt2;
  std::string text;
  SplitBehavior behavior = SplitBehavior::isolated;
  bool invert = false;  // matches and what lies between them change places
  Prepend prepend = Prepend::never;
  bool cuts = true;
};

using EmitPiece = std::function<void(std::string_view piece)>;

// Calls emit for each piece in order. `first`: the text stands at the very begin of what is encoded. Requires
// valid UTF-8. Time linear in the text for each step.
void split_text(std::span<const SplitStep> steps, std::string_view text, bool first, const EmitPiece& emit);

}  // namespace inferd
