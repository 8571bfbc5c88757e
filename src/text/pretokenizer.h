// Splits text into the pieces that byte-level BPE merges within. Each pattern is a hand-written scanner for
// one regular expression of the published tokenizers; tests hold it equal to a regex engine. Pure functions,
// any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "text/unicode.h"

namespace inferd {

enum class PiecePattern : uint8_t {
  // GPT-2:  's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  gpt2,
  // Qwen2:  (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|
  // ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
  qwen2,
};

// What a pre-tokeniser's name (GGUF: tokenizer.ggml.pre) stands for, as Hugging Face's tokenizer of those
// models does it.
struct PreTokenizer {
  std::string_view name;
  PiecePattern pattern;
  bool nfc;             // text between added tokens is first brought to normalisation form C
  bool isolate_digits;  // each number character is a piece of its own, and the pattern sees only what lies
                        // between
};

// By name; null when the name is not known.
const PreTokenizer* find_pre_tokenizer(std::string_view name);
// All names, for messages: "gpt-2, smollm, qwen2".
std::string pre_tokenizer_names();

// End of the piece that starts at `at`. Requires valid UTF-8 and at < text.size(). Returns more than `at`;
// the piece is what the pattern matches there when `text` is the whole input (so what stands before `at` does
// not matter).
size_t piece_end(PiecePattern pattern, std::string_view text, size_t at);

// Start of the first character at or after `at` that the digit splitter isolates, or text.size().
size_t find_isolated_digit(std::string_view text, size_t at);

// Calls emit(std::string_view piece) for each piece of `text` in order; they add up to `text`. Time linear in
// the text.
template <typename Emit>
void for_each_piece(const PreTokenizer& rules, std::string_view text, Emit&& emit) {
  for (size_t at = 0; at < text.size();) {
    const size_t stop = rules.isolate_digits ? find_isolated_digit(text, at) : text.size();
    const std::string_view visible =
        text.substr(0, stop);  // the pattern's look-ahead ends where the digit begins
    while (at < stop) {
      const size_t end = piece_end(rules.pattern, visible, at);
      emit(text.substr(at, end - at));
      at = end;
    }
    if (at == text.size()) break;
    const size_t digit = at;
    next_code_point(text, at);
    emit(text.substr(digit, at - digit));
  }
}

}  // namespace inferd
