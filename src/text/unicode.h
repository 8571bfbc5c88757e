// What the tokenizer needs to know of a code point, from tables made by tools/make_unicode_tables.py, and
// normalisation form C. Pure functions, any thread. Unicode versions: categories and white space 16.0, the
// digit splitter's numbers 17.0, normalisation 9.0, the punctuation splitter 8.0; the script says why.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace inferd {

enum class CharClass : uint8_t {
  other = 0,
  letter = 1,  // general category L
  number = 2,  // general category N
  space = 3,   // property White_Space
};

namespace unicode_tables {

inline constexpr uint32_t kBlockBits = 7;
inline constexpr uint8_t kClassMask = 3;
inline constexpr uint8_t kDigitSplit = 4;
inline constexpr uint8_t kMark = 8;     // canonical combining class is not 0
inline constexpr uint8_t kUnsure = 16;  // NFC_Quick_Check is No or Maybe
// Two bits that divide a class. Of letters: upper or title case, lower case, and 0 for the rest (Lm, Lo). Of
// other characters: marks (category M), punctuation (P), symbols (S), and 0 for the rest (C).
inline constexpr uint8_t kDetailMask = 96;
inline constexpr uint8_t kUpper = 32;
inline constexpr uint8_t kLower = 64;
inline constexpr uint8_t kMarkCategory = 32;
inline constexpr uint8_t kPunctuation = 64;
inline constexpr uint8_t kSymbol = 96;
inline constexpr uint8_t kPunctuationSplit = 128;

struct CombiningRange {
  char32_t first, last;
  uint8_t combining_class;
};
struct Decomposition {
  char32_t code_point, first, second;  // second 0: a singleton; only `first` may decompose again
};
struct Composition {
  char32_t first, second, composed;
};

extern const uint16_t kBlockOf[0x110000 >> kBlockBits];
extern const uint8_t kFlags[];  // block 0 is that of ASCII
// Ascending by code points (by both, where there are two). Hangul is not among them: it is computed.
extern const std::span<const CombiningRange> kCombining;
extern const std::span<const Decomposition> kDecompositions;
extern const std::span<const Composition> kCompositions;

}  // namespace unicode_tables

// Requires code_point <= 0x10FFFF, here and below.
inline uint8_t char_flags(char32_t code_point) {
  using namespace unicode_tables;
  const uint32_t block = kBlockOf[code_point >> kBlockBits];
  return kFlags[block << kBlockBits | (code_point & ((1u << kBlockBits) - 1))];
}

inline CharClass char_class(char32_t code_point) {
  return static_cast<CharClass>(char_flags(code_point) & unicode_tables::kClassMask);
}

// Is it a number to Hugging Face's "Digits" splitter?
inline bool splits_as_digit(char32_t code_point) {
  return (char_flags(code_point) & unicode_tables::kDigitSplit) != 0;
}

// Is it punctuation to Hugging Face's "Punctuation" splitter?
inline bool splits_as_punctuation(char32_t code_point) {
  return (char_flags(code_point) & unicode_tables::kPunctuationSplit) != 0;
}

uint8_t combining_class(char32_t code_point);

// Normalisation form C (Unicode Standard Annex 15) of valid UTF-8, in time linear in the text. Characters
// assigned after Unicode 9.0 are left as they are and count as starters.
std::string to_nfc(std::string_view text);

// False: `text` is in form C already, for sure. True: it may not be. Valid UTF-8.
bool may_change_in_nfc(std::string_view text);

// The character at `at` of a text known to be valid UTF-8; moves `at` behind it. Requires at < text.size().
inline char32_t next_code_point(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[i])); };
  const char32_t lead = byte(at);
  if (lead < 0x80) {
    at += 1;
    return lead;
  }
  if (lead < 0xE0) {
    at += 2;
    return (lead & 0x1F) << 6 | (byte(at - 1) & 0x3F);
  }
  if (lead < 0xF0) {
    at += 3;
    return (lead & 0x0F) << 12 | (byte(at - 2) & 0x3F) << 6 | (byte(at - 1) & 0x3F);
  }
  at += 4;
  return (lead & 0x07) << 18 | (byte(at - 3) & 0x3F) << 12 | (byte(at - 2) & 0x3F) << 6 |
         (byte(at - 1) & 0x3F);
}

}  // namespace inferd
