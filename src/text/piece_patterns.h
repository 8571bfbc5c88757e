// The regular expressions that published tokenizers split text by, each as a hand-written scanner; tests hold
// them equal to a regex engine. Pure functions, any thread. Character classes are those of unicode.h.
#pragma once

#include <cstdint>
#include <string_view>

#include "text/byte_range.h"

namespace inferd {

enum class PiecePattern : uint8_t {
  // These match at every place of a text, so its pieces are the matches.

  // GPT-2:  's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  gpt2,
  // Qwen2:  (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|
  // ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
  qwen2,
  // Qwen3.5: as qwen2 with [\p{L}\p{M}] for \p{L} in words and [^\s\p{L}\p{M}\p{N}] for the others.
  qwen35,
  // Llama 3, and cl100k before: as qwen2 with \p{N}{1,3} for \p{N}.
  llama3,
  // GPT-4o, with U = [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}], W = [\p{Ll}\p{Lm}\p{Lo}\p{M}] and
  // C = (?i:'s|'t|'re|'ve|'m|'ll|'d)?:
  // [^\r\n\p{L}\p{N}]?U*W+C|[^\r\n\p{L}\p{N}]?U+W*C|\p{N}{1,3}|
  // ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
  o200k,

  // These match here and there.

  // DeepSeek-V3, the last of its three: [!-/:-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|
  // ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+   where [!-/:-~] has no letters: ASCII punctuation.
  deepseek_v3,
  digit,                 // one number character, those of the "Digits" splitter
  digits,                // a run of them
  numbers_3,             // \p{N}{1,3}
  ascii_digits_3,        // [0-9][0-9][0-9]
  space,                 // one character of white space
  punctuation,           // one of what the \"Punctuation\" splitter calls so
  punctuation_run,       // a run of what the "Punctuation" splitter calls so
  newline,               // [\r\n]
  spaced_letters,        // \s?\p{L}+
  spaced_punctuation,    // \s?\p{P}+
  deepseek_letters,      // \s?[A-Za-z…]+, the cased letters that DeepSeek-LLM lists
  deepseek_punctuation,  // \s?[!-/:-~！-／：-～‘-‟　-。]+
  trailing_spaces,       // \s+$
  deepseek_cjk,          // [一-龥ࠀ-一가-퟿]+
  deepseek_v3_cjk,       // [一-龥぀-ゟ゠-ヿ]+
  // A run of bytes whose characters in the byte alphabet are numbers: 0 to 9, and B2 B3 B9 BC BD BE, which
  // look
  // like superscripts and fractions there. It cuts characters, as Falcon's tokenizer does, whose "Digits"
  // splitter stands behind the change to that alphabet. The only pattern that takes any bytes.
  alphabet_digits,
};

// The first match at or after `at` when `text` is the whole input; {text.size(), text.size()}: there is none.
// Requires at < text.size(), and valid UTF-8 but for ascii_digits_3 and alphabet_digits. A match is not
// empty. Going from match to match through a text takes time linear in it.
ByteRange find_match(PiecePattern pattern, std::string_view text, size_t at);

}  // namespace inferd
