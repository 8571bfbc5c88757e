// UTF-8 without a locale: decode one code point, validate, encode. Ill-formed input follows the Unicode
// standard's "maximal subpart" rule (section 3.9, U+FFFD substitution), the rule that Rust, Python and
// browsers share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace inferd {

inline constexpr char32_t kReplacement = 0xFFFD;

struct Utf8Step {
  char32_t code_point;  // kReplacement when !valid
  uint8_t length;       // bytes taken, at least 1
  bool valid;
  bool truncated;  // not valid, but only because the text ends inside a character
};

// Decodes the first character of a text that is not empty.
Utf8Step decode_utf8(std::string_view text);

void append_utf8(std::string& out, char32_t code_point);  // surrogates and values past U+10FFFF become U+FFFD

bool is_valid_utf8(std::string_view text);

// Byte offset of the first ill-formed sequence, or npos.
size_t find_invalid_utf8(std::string_view text);

// Each maximal ill-formed subpart replaced by U+FFFD.
std::string replace_invalid_utf8(std::string_view text);

// Number of code points of a valid text.
size_t count_code_points(std::string_view text);

}  // namespace inferd
