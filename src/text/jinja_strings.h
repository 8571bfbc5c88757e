// Python's str operations on text with provenance; methods and filters share them. All keep the mark of safe
// text.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/jinja_runtime.h"

namespace inferd::jinja {

Result<Text> to_upper(Runtime& runtime, const Text& text);
Result<Text> to_lower(Runtime& runtime, const Text& text);
Result<Text> to_title(Runtime& runtime,
                      const Text& text);  // str.title: what follows a cased character is lowered
Result<Text> to_capitalized(Runtime& runtime, const Text& text);
Result<Text> swap_case(Runtime& runtime, const Text& text);

enum class Side : uint8_t { left, right, both };
// Without `characters`, white space.
Result<Text> strip(Runtime& runtime, const Text& text, const std::optional<Text>& characters, Side side);

// Without `separator`, at runs of white space. `limit` < 0: no limit.
Result<std::vector<Value>> split_text(Runtime& runtime, const Text& text,
                                      const std::optional<Text>& separator, int64_t limit);
Result<std::vector<Value>> rsplit_text(Runtime& runtime, const Text& text,
                                       const std::optional<Text>& separator, int64_t limit);
Result<std::vector<Value>> split_lines(Runtime& runtime, const Text& text, bool keep_ends);

// `limit` < 0: all of them.
Result<Text> replace_text(Runtime& runtime, const Text& text, const Text& old, const Text& fresh,
                          int64_t limit);

// `left` and `right` more characters of `fill`, which must be one character; negative counts are none.
Result<Text> pad(Runtime& runtime, const Text& text, int64_t left, int64_t right, const Text& fill);
Result<Text> center(Runtime& runtime, const Text& text, int64_t width, const Text& fill);

Result<Text> join_all(Runtime& runtime, const Text& separator, const std::vector<Text>& parts);

bool is_upper(std::string_view text);  // at least one cased character, and none that is not upper case
bool is_lower(std::string_view text);
bool is_title(std::string_view text);

}  // namespace inferd::jinja
