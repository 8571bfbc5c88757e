// What is done to the text between added tokens before it is cut into pieces. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/byte_range.h"

namespace inferd {

struct NormalizerStep {
  enum class Kind : uint8_t {
    nfc,         // normalisation form C
    prepend,     // `content` before a text that is not empty
    replace,     // every `pattern` (not empty), from the left, becomes `content`
    space_runs,  // every run of two spaces (U+0020) or more becomes `content`
  };
  Kind kind;
  std::string pattern;
  std::string content;

  bool operator==(const NormalizerStep&) const = default;
};

// False: `steps` leave `text` as it is, for sure. Valid UTF-8.
bool may_change(std::span<const NormalizerStep> steps, std::string_view text);

// Can normalize() say where a range of the text went? Not behind nfc and space_runs.
bool follows_ranges(std::span<const NormalizerStep> steps);

// Does all steps to valid UTF-8, in time linear in the text for each. `ranges`: ascending and disjoint places
// of the text, which become their places in the result; one that only part of a changed place belongs to
// shrinks by it, and what is put before the text belongs to the one at its begin. Requires that `ranges` is
// empty or follows_ranges(steps).
std::string normalize(std::span<const NormalizerStep> steps, std::string_view text,
                      std::vector<ByteRange>& ranges);

}  // namespace inferd
