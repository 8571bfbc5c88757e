#include "terminal/display_width.h"

#include <algorithm>
#include <array>

#include "base/utf8.h"

namespace inferd {
namespace {

struct WidthRange {
  char32_t first;
  char32_t last;
};

// clang-format off
#include "terminal/width_table.inc"
// clang-format on

template <size_t N>
bool contains(const std::array<WidthRange, N>& ranges, char32_t c) {
  const auto after = std::ranges::upper_bound(ranges, c, {}, &WidthRange::first);
  return after != ranges.begin() && c <= std::prev(after)->last;
}

constexpr char32_t kJoiner = 0x200D;

bool is_flag_half(char32_t c) {
  return c >= 0x1F1E6 && c <= 0x1F1FF;
}

bool is_control(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0);
}

// Never begins a character of its own when something stands before it.
bool extends(char32_t c) {
  return (!is_control(c) && column_width(c) == 0) || (c >= 0x1F3FB && c <= 0x1F3FF);
}

}  // namespace

int column_width(char32_t c) {
  if (is_control(c)) return 0;
  if (c < 0x300) return 1;
  if (contains(kNoColumns, c)) return 0;
  return contains(kTwoColumns, c) ? 2 : 1;
}

int column_width(std::string_view text) {
  int columns = 0;
  while (!text.empty()) {
    const Utf8Step step = decode_utf8(text);
    columns += column_width(step.code_point);
    text.remove_prefix(step.length);
  }
  return columns;
}

size_t next_character(std::string_view text, size_t at) {
  if (at >= text.size()) return text.size();
  Utf8Step step = decode_utf8(text.substr(at));
  at += step.length;
  if (is_control(step.code_point)) return at;
  bool flag_open = is_flag_half(step.code_point);
  bool joined = step.code_point == kJoiner;
  while (at < text.size()) {
    step = decode_utf8(text.substr(at));
    const bool second_half = flag_open && is_flag_half(step.code_point);
    if (is_control(step.code_point) || !(extends(step.code_point) || joined || second_half)) break;
    joined = step.code_point == kJoiner;
    flag_open = false;
    at += step.length;
  }
  return at;
}

// Characters are found forwards; a line feed always ends one, so the search begins behind the last.
size_t previous_character(std::string_view text, size_t at) {
  if (at == 0) return 0;
  const size_t feed = at >= 2 ? text.rfind('\n', at - 2) : std::string_view::npos;
  size_t begin = feed == std::string_view::npos ? 0 : feed + 1;
  for (size_t next = begin; (next = next_character(text, begin)) < at;) begin = next;
  return begin;
}

std::string without_controls(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Utf8Step step = decode_utf8(text);
    if (!is_control(step.code_point) || step.code_point == '\n' || step.code_point == '\t')
      append_utf8(out, step.code_point);
    text.remove_prefix(step.length);
  }
  return out;
}

}  // namespace inferd
