#include "text/pretokenizer.h"

#include <array>

namespace inferd {
namespace {

// One row a name; the only list of what is supported. `smollm` is Digits(individual_digits) then ByteLevel
// with its own pattern, `gpt-2` ByteLevel alone, `qwen2` NFC, then Split by the Qwen2 pattern.
constexpr std::array<PreTokenizer, 3> kPreTokenizers = {{
    {.name = "gpt-2", .pattern = PiecePattern::gpt2, .nfc = false, .isolate_digits = false},
    {.name = "smollm", .pattern = PiecePattern::gpt2, .nfc = false, .isolate_digits = true},
    {.name = "qwen2", .pattern = PiecePattern::qwen2, .nfc = true, .isolate_digits = false},
}};

struct Char {
  char32_t code_point;
  CharClass kind;
  size_t end;
};

Char char_at(std::string_view text, size_t at) {
  Char c{};
  c.end = at;
  c.code_point = next_code_point(text, c.end);
  c.kind = char_class(c.code_point);
  return c;
}

bool is_newline(char32_t c) {
  return c == '\r' || c == '\n';
}

// End of the longest run of `kind` from `at`.
size_t run_end(std::string_view text, size_t at, CharClass kind) {
  while (at < text.size()) {
    const Char c = char_at(text, at);
    if (c.kind != kind) break;
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
    if (c.kind != CharClass::space) break;
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
    if (next.kind != CharClass::space) c = next;
  }
  if (c.kind == CharClass::space) return space_end(text, at, false);
  return run_end(text, c.end, c.kind);
}

size_t qwen2_end(std::string_view text, size_t at) {
  const Char c = char_at(text, at);
  if (c.code_point == '\'') {
    if (const size_t end = contraction_end(text, at, true); end != at) return end;
  }
  if (c.kind == CharClass::letter) return run_end(text, c.end, CharClass::letter);
  if (c.kind == CharClass::number) return c.end;
  size_t others =
      c.kind == CharClass::other ? c.end : at;  // behind ` ?[^\s\p{L}\p{N}]`, or `at` when that fails
  if (c.end < text.size() && !is_newline(c.code_point)) {
    const Char next = char_at(text, c.end);
    if (next.kind == CharClass::letter) return run_end(text, next.end, CharClass::letter);
    if (c.code_point == ' ' && next.kind == CharClass::other) others = next.end;
  }
  if (others == at) return space_end(text, at, true);
  size_t end = run_end(text, others, CharClass::other);
  while (end < text.size() && is_newline(static_cast<unsigned char>(text[end]))) ++end;
  return end;
}

}  // namespace

const PreTokenizer* find_pre_tokenizer(std::string_view name) {
  for (const PreTokenizer& rules : kPreTokenizers) {
    if (rules.name == name) return &rules;
  }
  return nullptr;
}

std::string pre_tokenizer_names() {
  std::string names;
  for (const PreTokenizer& rules : kPreTokenizers) {
    if (!names.empty()) names += ", ";
    names += rules.name;
  }
  return names;
}

size_t piece_end(PiecePattern pattern, std::string_view text, size_t at) {
  return pattern == PiecePattern::gpt2 ? gpt2_end(text, at) : qwen2_end(text, at);
}

size_t find_isolated_digit(std::string_view text, size_t at) {
  while (at < text.size()) {
    const size_t start = at;
    if (splits_as_digit(next_code_point(text, at))) return start;
  }
  return at;
}

}  // namespace inferd
