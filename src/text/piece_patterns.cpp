#include "text/piece_patterns.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>

#include "base/check.h"
#include "text/unicode.h"

namespace inferd {
namespace {

using namespace unicode_tables;

// A set of characters, by their flags: one load says whether a character is in it.
struct CharSet {
  std::array<bool, 256> has{};

  constexpr CharSet operator|(const CharSet& other) const {
    CharSet both = *this;
    for (size_t i = 0; i < has.size(); ++i) both.has[i] = has[i] || other.has[i];
    return both;
  }
  constexpr CharSet without(const CharSet& other) const {
    CharSet rest = *this;
    for (size_t i = 0; i < has.size(); ++i) rest.has[i] = has[i] && !other.has[i];
    return rest;
  }
};

constexpr CharSet whole_class(CharClass kind) {
  CharSet set;
  for (size_t i = 0; i < set.has.size(); ++i) set.has[i] = (i & kClassMask) == static_cast<size_t>(kind);
  return set;
}
constexpr CharSet set_of(CharClass kind, uint8_t detail) {
  CharSet set = whole_class(kind);
  for (size_t i = 0; i < set.has.size(); ++i) set.has[i] = set.has[i] && (i & kDetailMask) == detail;
  return set;
}

constexpr CharSet kLetters = whole_class(CharClass::letter);
constexpr CharSet kNumbers = whole_class(CharClass::number);
constexpr CharSet kSpaces = whole_class(CharClass::space);
constexpr CharSet kOthers = whole_class(CharClass::other);
constexpr CharSet kMarks = set_of(CharClass::other, kMarkCategory);
constexpr CharSet kPunctuations = set_of(CharClass::other, kPunctuation);
constexpr CharSet kSigns = kPunctuations | set_of(CharClass::other, kSymbol);
constexpr CharSet kUncased = set_of(CharClass::letter, 0) | kMarks;
constexpr CharSet kUpperOrUncased = set_of(CharClass::letter, kUpper) | kUncased;
constexpr CharSet kLowerOrUncased = set_of(CharClass::letter, kLower) | kUncased;
// Words as Qwen3.5 and DeepSeek-V3 make them, and what is then left of the others.
constexpr CharSet kLettersAndMarks = kLetters | kMarks;
constexpr CharSet kOthersButMarks = kOthers.without(kMarks);

struct Char {
  char32_t code_point;
  uint8_t flags;
  size_t end;

  bool in(const CharSet& set) const { return set.has[flags]; }
};

// Inlined everywhere: the loops over characters below are what splitting costs.
[[gnu::always_inline]] inline Char char_at(std::string_view text, size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  if (lead < 0x80) return {lead, kFlags[lead], at + 1};
  Char c{};
  c.end = at;
  c.code_point = next_code_point(text, c.end);
  c.flags = char_flags(c.code_point);
  return c;
}

bool is_newline(char32_t c) {
  return c == '\r' || c == '\n';
}

bool is_ascii_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// End of the longest run of `set` from `at`.
size_t run_end(std::string_view text, size_t at, const CharSet& set) {
  while (at < text.size()) {
    const Char c = char_at(text, at);
    if (!c.in(set)) break;
    at = c.end;
  }
  return at;
}

// End of the longest run from `at` of at most three numbers.
size_t three_numbers_end(std::string_view text, size_t at) {
  for (int left = 3; left > 0 && at < text.size(); --left) {
    const Char c = char_at(text, at);
    if (!c.in(kNumbers)) break;
    at = c.end;
  }
  return at;
}

// End of 's 't 'm 'd 're 've 'll at an apostrophe, or `at` when there is none. With `any_case` also capitals
// and U+017F, the long s, which folds to s.
size_t contraction_end(std::string_view text, size_t at, bool any_case) {
  const auto letter = [&](size_t i) -> char {
    if (i >= text.size()) return '\0';
    const char c = text[i];
    return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  const char first = letter(at + 1);
  const char second = letter(at + 2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
  if (any_case && text.substr(at + 1).starts_with("\u017F")) return at + 3;
  if ((first == 'r' || first == 'v') && second == 'e') return at + 3;
  if (first == 'l' && second == 'l') return at + 3;
  return at;
}

// \s+(?!\S)|\s+ at white space; with `newlines` first \s*[\r\n]+.
size_t space_end(std::string_view text, size_t at, bool newlines) {
  size_t end = at;
  size_t last = at;         // start of the run's last character
  size_t newline_end = at;  // behind the run's last newline
  while (end < text.size()) {
    const Char c = char_at(text, end);
    if (!c.in(kSpaces)) break;
    last = end;
    end = c.end;
    if (is_newline(c.code_point)) newline_end = end;
  }
  if (newlines && newline_end != at) return newline_end;
  if (end == text.size() || last == at) return end;
  return last;
}

size_t gpt2_end(std::string_view text, size_t at) {
  Char c = char_at(text, at);
  if (c.code_point == '\'') {
    if (const size_t end = contraction_end(text, at, false); end != at) return end;
  }
  if (c.code_point == ' ' && c.end < text.size()) {
    const Char next = char_at(text, c.end);
    if (!next.in(kSpaces)) c = next;
  }
  if (c.in(kSpaces)) return space_end(text, at, false);
  return run_end(text, c.end, c.in(kLetters) ? kLetters : c.in(kNumbers) ? kNumbers : kOthers);
}

// qwen2, qwen35 and llama3: which characters words are made of, and how many numbers a piece takes. A mark
// that may begin a word as its prefix is in the word anyway where words have marks.
template <const CharSet& kWord, const CharSet& kOther, bool kThreeNumbers>
size_t cl100k_end(std::string_view text, size_t at) {
  const Char c = char_at(text, at);
  if (c.code_point == '\'') {
    if (const size_t end = contraction_end(text, at, true); end != at) return end;
  }
  if (c.in(kWord)) return run_end(text, c.end, kWord);
  if (c.in(kNumbers)) return kThreeNumbers ? three_numbers_end(text, at) : c.end;
  size_t others = c.in(kOther) ? c.end : at;  // behind ` ?[^\s\p{L}\p{N}]`, or `at` when that fails
  if (c.end < text.size() && !is_newline(c.code_point)) {
    const Char next = char_at(text, c.end);
    if (next.in(kWord)) return run_end(text, next.end, kWord);
    if (c.code_point == ' ' && next.in(kOther)) others = next.end;
  }
  if (others == at) return space_end(text, at, true);
  size_t end = run_end(text, others, kOther);
  while (end < text.size() && is_newline(static_cast<unsigned char>(text[end]))) ++end;
  return end;
}

// U*W+ of o200k, or `at` when it does not match: U* takes all it can and gives back as little as it must.
size_t lower_word_end(std::string_view text, size_t at) {
  const size_t upper_end = run_end(text, at, kUpperOrUncased);
  if (const size_t end = run_end(text, upper_end, kLowerOrUncased); end != upper_end) return end;
  for (size_t end = upper_end; end > at;) {
    size_t start = end - 1;
    while ((static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) --start;
    if (char_at(text, start).in(kLowerOrUncased)) return end;
    end = start;
  }
  return at;
}

size_t o200k_end(std::string_view text, size_t at) {
  const Char c = char_at(text, at);
  const auto with_contraction = [&](size_t end) {
    return end < text.size() && text[end] == '\'' ? contraction_end(text, end, true) : end;
  };
  const bool prefix = !is_newline(c.code_point) && !c.in(kLetters) && !c.in(kNumbers);
  if (prefix) {
    if (const size_t end = lower_word_end(text, c.end); end != c.end) return with_contraction(end);
  }
  if (const size_t end = lower_word_end(text, at); end != at) return with_contraction(end);
  if (prefix) {
    if (const size_t end = run_end(text, c.end, kUpperOrUncased); end != c.end) return with_contraction(end);
  }
  if (c.in(kUpperOrUncased)) return with_contraction(run_end(text, c.end, kUpperOrUncased));
  if (c.in(kNumbers)) return three_numbers_end(text, at);
  size_t others = c.in(kOthers) ? c.end : at;
  if (c.code_point == ' ' && c.end < text.size()) {
    if (const Char next = char_at(text, c.end); next.in(kOthers)) others = next.end;
  }
  if (others == at) return space_end(text, at, true);
  size_t end = run_end(text, others, kOthers);
  while (end < text.size() && (is_newline(static_cast<unsigned char>(text[end])) || text[end] == '/')) ++end;
  return end;
}

// The match of deepseek_v3 that begins at `at`, or `at`.
size_t deepseek_v3_end(std::string_view text, size_t at) {
  const Char c = char_at(text, at);
  if (c.code_point < 0x80 && c.in(kSigns) && c.end < text.size() && is_ascii_letter(text[c.end])) {
    size_t end = c.end;
    while (end < text.size() && is_ascii_letter(text[end])) ++end;
    return end;
  }
  if (c.in(kLettersAndMarks)) return run_end(text, c.end, kLettersAndMarks);
  size_t signs = c.in(kSigns) ? c.end : at;
  if (c.end < text.size()) {
    const Char next = char_at(text, c.end);
    if (next.in(kLettersAndMarks) && !c.in(kSigns) && !is_newline(c.code_point)) {
      return run_end(text, next.end, kLettersAndMarks);
    }
    if (c.code_point == ' ' && next.in(kSigns)) signs = next.end;
  }
  if (signs == at) return c.in(kSpaces) ? space_end(text, at, true) : at;
  size_t end = run_end(text, signs, kSigns);
  while (end < text.size() && is_newline(static_cast<unsigned char>(text[end]))) ++end;
  return end;
}

struct CodeRange {
  char32_t first, last;
};

template <size_t kCount>
bool in_ranges(const CodeRange (&ranges)[kCount], char32_t c) {
  const auto found = std::upper_bound(std::begin(ranges), std::end(ranges), c,
                                      [](char32_t value, const CodeRange& r) { return value < r.first; });
  return found != std::begin(ranges) && c <= std::prev(found)->last;
}

// The letters of DeepSeek-LLM's pattern: those of scripts with case, in the published order.
constexpr CodeRange kDeepseekLetters[] = {
    {0x41, 0x5A},       {0x61, 0x7A},       {0xB5, 0xB5},       {0xC0, 0xD6},       {0xD8, 0xF6},
    {0xF8, 0x1BA},      {0x1BC, 0x1BF},     {0x1C4, 0x293},     {0x295, 0x2AF},     {0x370, 0x373},
    {0x376, 0x377},     {0x37B, 0x37D},     {0x37F, 0x37F},     {0x386, 0x386},     {0x388, 0x38A},
    {0x38C, 0x38C},     {0x38E, 0x3A1},     {0x3A3, 0x3F5},     {0x3F7, 0x481},     {0x48A, 0x52F},
    {0x531, 0x556},     {0x10A0, 0x10C5},   {0x13A0, 0x13F5},   {0x13F8, 0x13FD},   {0x1C90, 0x1CBA},
    {0x1CBD, 0x1CBF},   {0x1D00, 0x1D2B},   {0x1D6B, 0x1D77},   {0x1D79, 0x1D9A},   {0x1E00, 0x1F15},
    {0x1F18, 0x1F1D},   {0x1F20, 0x1F45},   {0x1F48, 0x1F4D},   {0x1F50, 0x1F57},   {0x1F59, 0x1F59},
    {0x1F5B, 0x1F5B},   {0x1F5D, 0x1F5D},   {0x1F5F, 0x1F7D},   {0x1F80, 0x1FB4},   {0x1FB6, 0x1FBC},
    {0x1FBE, 0x1FBE},   {0x1FC2, 0x1FC4},   {0x1FC6, 0x1FCC},   {0x1FD0, 0x1FD3},   {0x1FD6, 0x1FDB},
    {0x1FE0, 0x1FEC},   {0x1FF2, 0x1FF4},   {0x1FF6, 0x1FFC},   {0x2102, 0x2102},   {0x2107, 0x2107},
    {0x210A, 0x2113},   {0x2115, 0x2115},   {0x2119, 0x211D},   {0x2124, 0x2124},   {0x2126, 0x2126},
    {0x2128, 0x2128},   {0x212A, 0x212D},   {0x212F, 0x2134},   {0x2139, 0x2139},   {0x213C, 0x213F},
    {0x2145, 0x2149},   {0x214E, 0x214E},   {0x2183, 0x2184},   {0x2C00, 0x2C7B},   {0x2C7E, 0x2CE4},
    {0x2CEB, 0x2CEE},   {0x2CF2, 0x2CF3},   {0xA640, 0xA66D},   {0xA680, 0xA69B},   {0xA722, 0xA76F},
    {0xA771, 0xA787},   {0xA78B, 0xA78E},   {0xAB70, 0xABBF},   {0xFB00, 0xFB06},   {0xFB13, 0xFB17},
    {0xFF21, 0xFF3A},   {0xFF41, 0xFF5A},   {0x10400, 0x1044F}, {0x104B0, 0x104D3}, {0x104D8, 0x104FB},
    {0x10C80, 0x10CB2}, {0x10CC0, 0x10CF2}, {0x118A0, 0x118DF}, {0x1E900, 0x1E943},
};
constexpr CodeRange kDeepseekPunctuation[] = {{0x21, 0x2F},     {0x3A, 0x7E},     {0x2018, 0x201F},
                                              {0x3000, 0x3002}, {0xFF01, 0xFF0F}, {0xFF1A, 0xFF5E}};
constexpr CodeRange kDeepseekCjk[] = {{0x800, 0x9FA5}, {0xAC00, 0xD7FF}};
constexpr CodeRange kDeepseekV3Cjk[] = {{0x3040, 0x30FF}, {0x4E00, 0x9FA5}};

// The first run of characters that `in` holds, at most `longest` of them.
template <typename In>
ByteRange find_run(std::string_view text, size_t at, In in, size_t longest = SIZE_MAX) {
  while (at < text.size()) {
    const Char c = char_at(text, at);
    if (!in(c)) {
      at = c.end;
      continue;
    }
    size_t end = c.end;
    for (size_t count = 1; count < longest && end < text.size(); ++count) {
      const Char next = char_at(text, end);
      if (!in(next)) break;
      end = next.end;
    }
    return {at, end};
  }
  return {at, at};
}

// \s?X+ where `in` holds the X.
template <typename In>
ByteRange find_spaced_run(std::string_view text, size_t at, In in) {
  ByteRange run = find_run(text, at, in);
  if (run.begin == run.end || run.begin == at) return run;
  size_t before = run.begin - 1;
  while ((static_cast<unsigned char>(text[before]) & 0xC0) == 0x80) --before;
  if (before >= at && char_at(text, before).in(kSpaces)) run.begin = before;
  return run;
}

ByteRange find_trailing_spaces(std::string_view text, size_t at) {
  size_t begin = at;  // of the run of spaces that reaches to `at`
  while (at < text.size()) {
    const Char c = char_at(text, at);
    at = c.end;
    if (!c.in(kSpaces)) begin = at;
  }
  return {begin, at};
}

ByteRange find_deepseek_v3(std::string_view text, size_t at) {
  while (at < text.size()) {
    if (const size_t end = deepseek_v3_end(text, at); end != at) return {at, end};
    at = char_at(text, at).end;
  }
  return {at, at};
}

bool is_ascii_digit(char c) {
  return c >= '0' && c <= '9';
}

ByteRange find_ascii_digits_3(std::string_view text, size_t at) {
  for (size_t run = 0; at < text.size(); ++at) {
    run = is_ascii_digit(text[at]) ? run + 1 : 0;
    if (run == 3) return {at - 2, at + 1};
  }
  return {at, at};
}

ByteRange find_alphabet_digits(std::string_view text, size_t at) {
  const auto in = [](char c) {
    return is_ascii_digit(c) ||
           std::string_view("\xB2\xB3\xB9\xBC\xBD\xBE").find(c) != std::string_view::npos;
  };
  while (at < text.size() && !in(text[at])) ++at;
  size_t end = at;
  while (end < text.size() && in(text[end])) ++end;
  return {at, end};
}

}  // namespace

ByteRange find_match(PiecePattern pattern, std::string_view text, size_t at) {
  switch (pattern) {
    case PiecePattern::gpt2:
      return {at, gpt2_end(text, at)};
    case PiecePattern::qwen2:
      return {at, cl100k_end<kLetters, kOthers, false>(text, at)};
    case PiecePattern::qwen35:
      return {at, cl100k_end<kLettersAndMarks, kOthersButMarks, false>(text, at)};
    case PiecePattern::llama3:
      return {at, cl100k_end<kLetters, kOthers, true>(text, at)};
    case PiecePattern::o200k:
      return {at, o200k_end(text, at)};
    case PiecePattern::deepseek_v3:
      return find_deepseek_v3(text, at);
    case PiecePattern::digit:
      return find_run(text, at, [](const Char& c) { return (c.flags & kDigitSplit) != 0; }, 1);
    case PiecePattern::digits:
      return find_run(text, at, [](const Char& c) { return (c.flags & kDigitSplit) != 0; });
    case PiecePattern::numbers_3:
      return find_run(text, at, [](const Char& c) { return c.in(kNumbers); }, 3);
    case PiecePattern::ascii_digits_3:
      return find_ascii_digits_3(text, at);
    case PiecePattern::space:
      return find_run(text, at, [](const Char& c) { return c.in(kSpaces); }, 1);
    case PiecePattern::punctuation:
      return find_run(text, at, [](const Char& c) { return (c.flags & kPunctuationSplit) != 0; }, 1);
    case PiecePattern::punctuation_run:
      return find_run(text, at, [](const Char& c) { return (c.flags & kPunctuationSplit) != 0; });
    case PiecePattern::newline:
      return find_run(text, at, [](const Char& c) { return is_newline(c.code_point); }, 1);
    case PiecePattern::spaced_letters:
      return find_spaced_run(text, at, [](const Char& c) { return c.in(kLetters); });
    case PiecePattern::spaced_punctuation:
      return find_spaced_run(text, at, [](const Char& c) { return c.in(kPunctuations); });
    case PiecePattern::deepseek_letters:
      return find_spaced_run(text, at, [](const Char& c) {
        return c.code_point < 0x80 ? c.in(kLetters) : in_ranges(kDeepseekLetters, c.code_point);
      });
    case PiecePattern::deepseek_punctuation:
      return find_spaced_run(text, at,
                             [](const Char& c) { return in_ranges(kDeepseekPunctuation, c.code_point); });
    case PiecePattern::trailing_spaces:
      return find_trailing_spaces(text, at);
    case PiecePattern::deepseek_cjk:
      return find_run(text, at, [](const Char& c) { return in_ranges(kDeepseekCjk, c.code_point); });
    case PiecePattern::deepseek_v3_cjk:
      return find_run(text, at, [](const Char& c) { return in_ranges(kDeepseekV3Cjk, c.code_point); });
    case PiecePattern::alphabet_digits:
      return find_alphabet_digits(text, at);
  }
  INFERD_CHECK(false, "piece pattern ", static_cast<int>(pattern));
}

}  // namespace inferd
