// What Python's str methods know of a character: its class, its case mappings, white space. Unicode 14
// (Python 3.11).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace inferd::jinja {

enum CharProperty : uint16_t {
  kAlpha = 1 << 0,
  kDecimal = 1 << 1,
  kDigit = 1 << 2,
  kNumeric = 1 << 3,
  kUpper = 1 << 4,
  kLower = 1 << 5,
  kTitle = 1 << 6,
  kPrintable = 1 << 7,  // repr() shows it as it is
  kCased = 1 << 8,
  kCaseIgnorable = 1 << 9,
  kIdentifierStart = 1 << 10,
  kIdentifierPart = 1 << 11,
  kAlnum = kAlpha | kDecimal | kDigit | kNumeric,
};

uint16_t char_properties(char32_t c);
inline bool has_property(char32_t c, unsigned mask) {
  return (char_properties(c) & mask) != 0;
}

bool is_space(char32_t c);       // str.isspace, what strip() and \s mean
bool is_line_break(char32_t c);  // what splitlines() splits at; \r\n counts as one

// Full case mapping of one character, which may become several ("ß" to "SS").
void append_upper(std::string& out, char32_t c);
void append_lower(std::string& out, char32_t c);
void append_title(std::string& out, char32_t c);

// Code points of valid UTF-8, one after another.
struct CharStep {
  char32_t c;
  size_t length;
};
CharStep char_at(std::string_view text, size_t at);
CharStep char_before(std::string_view text, size_t end);  // end > 0

bool is_ascii(std::string_view text);

// The byte offset of the code point `count` after `at`, or npos when the text ends before.
size_t skip_forward(std::string_view text, size_t at, size_t count);
// The byte offset of the code point `count` before `at`, or npos when the text begins after.
size_t skip_backward(std::string_view text, size_t at, size_t count);

}  // namespace inferd::jinja
