#include "text/jinja_unicode.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <span>

#include "base/utf8.h"

namespace inferd::jinja {
namespace {

struct PropertyRange {
  uint32_t first;
  uint16_t flags;
};

struct CaseRange {
  uint32_t first;
  uint32_t last;
  int32_t delta;
  uint8_t step;
};

struct CaseSpecial {
  uint32_t from;
  uint32_t to[3];
};

#include "text/jinja_unicode_tables.inc"

void append_mapped(std::string& out, char32_t c, std::span<const CaseRange> ranges,
                   std::span<const CaseSpecial> special) {
  const auto range = std::upper_bound(ranges.begin(), ranges.end(), static_cast<uint32_t>(c),
                                      [](uint32_t value, const CaseRange& row) { return value < row.first; });
  // Rows of step 2 may lie over their neighbours, so one or two before the found one can hold the character.
  for (auto row = range; row != ranges.begin() && std::distance(row, range) < 3;) {
    --row;
    if (c <= row->last && (c - row->first) % row->step == 0) {
      append_utf8(out, static_cast<char32_t>(static_cast<int64_t>(c) + row->delta));
      return;
    }
  }
  const auto exact =
      std::lower_bound(special.begin(), special.end(), static_cast<uint32_t>(c),
                       [](const CaseSpecial& row, uint32_t value) { return row.from < value; });
  if (exact == special.end() || exact->from != c) {
    append_utf8(out, c);
    return;
  }
  for (const uint32_t to : exact->to) {
    if (to != 0) append_utf8(out, to);
  }
}

constexpr bool is_continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

}  // namespace

uint16_t char_properties(char32_t c) {
  const auto next =
      std::upper_bound(std::begin(kProperties), std::end(kProperties), static_cast<uint32_t>(c),
                       [](uint32_t value, const PropertyRange& row) { return value < row.first; });
  return std::prev(next)->flags;
}

bool is_space(char32_t c) {
  if (c < 0x80) return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_line_break(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

void append_upper(std::string& out, char32_t c) {
  if (c < 0x80) {
    out.push_back(static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c));
  } else {
    append_mapped(out, c, kUpperCase, kUpperSpecial);
  }
}

void append_lower(std::string& out, char32_t c) {
  if (c < 0x80) {
    out.push_back(static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c));
  } else {
    append_mapped(out, c, kLowerCase, kLowerSpecial);
  }
}

void append_title(std::string& out, char32_t c) {
  if (c < 0x80) {
    append_upper(out, c);
  } else {
    append_mapped(out, c, kTitleCase, kTitleSpecial);
  }
}

CharStep char_at(std::string_view text, size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  if (lead < 0x80) return {lead, 1};
  const Utf8Step step = decode_utf8(text.substr(at));
  return {step.code_point, step.length};
}

CharStep char_before(std::string_view text, size_t end) {
  size_t begin = end - 1;
  while (begin > 0 && end - begin < 4 && is_continuation(text[begin])) --begin;
  return {char_at(text, begin).c, end - begin};
}

bool is_ascii(std::string_view text) {
  size_t at = 0;
  uint64_t seen = 0;
  for (; at + 8 <= text.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + at, 8);
    seen |= word;
  }
  for (; at < text.size(); ++at) seen |= static_cast<unsigned char>(text[at]);
  return (seen & 0x8080808080808080U) == 0;
}

size_t skip_forward(std::string_view text, size_t at, size_t count) {
  for (; count > 0; --count) {
    if (at >= text.size()) return std::string_view::npos;
    ++at;
    while (at < text.size() && is_continuation(text[at])) ++at;
  }
  return at;
}

size_t skip_backward(std::string_view text, size_t at, size_t count) {
  for (; count > 0; --count) {
    if (at == 0) return std::string_view::npos;
    --at;
    while (at > 0 && is_continuation(text[at])) --at;
  }
  return at;
}

}  // namespace inferd::jinja
