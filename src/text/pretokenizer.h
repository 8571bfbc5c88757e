// Splits text into the pieces that byte-level BPE merges within, by the name that a GGUF file gives. Pure
// functions, any thread. docs/tokenizers.md lists the names and what holds each to its model.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "text/piece_patterns.h"

namespace inferd {

// What a pre-tokeniser's name (GGUF: tokenizer.ggml.pre) stands for, as Hugging Face's tokenizer of those
// models does it.
struct PreTokenizer {
  std::string_view name;
  // Each cuts every piece of the one before into its matches and what lies between them; a piece is all that
  // a pattern sees.
  std::span<const PiecePattern> steps;
  bool nfc = false;           // text between added tokens is first brought to normalisation form C
  bool whole_tokens = false;  // a piece that is a token as a whole becomes that token, whatever merges say
  bool adds_bos = false;      // where the file does not say
};

// By name; null when the name is not known.
const PreTokenizer* find_pre_tokenizer(std::string_view name);
// All names, for messages: "gpt-2, phi-2, …".
std::string pre_tokenizer_names();

// Is a match of this pattern one character, so that no step behind cuts it further?
constexpr bool matches_one_character(PiecePattern pattern) {
  return pattern == PiecePattern::digit || pattern == PiecePattern::newline;
}

// Calls emit(std::string_view piece) for each piece of `text` in order; they add up to `text`. Requires valid
// UTF-8, and no alphabet_digits behind a pattern that matches one character. Time linear in the text.
template <typename Emit>
void for_each_piece(std::span<const PiecePattern> steps, std::string_view text, Emit&& emit) {
  if (text.empty()) return;
  if (steps.empty()) {
    emit(text);
    return;
  }
  const std::span<const PiecePattern> inner = steps.subspan(1);
  for (size_t at = 0; at < text.size();) {
    const ByteRange match = find_match(steps[0], text, at);
    if (match.begin != at) for_each_piece(inner, text.substr(at, match.begin - at), emit);
    const std::string_view piece = text.substr(match.begin, match.end - match.begin);
    if (inner.empty() || matches_one_character(steps[0])) {
      if (!piece.empty()) emit(piece);
    } else {
      for_each_piece(inner, piece, emit);
    }
    at = match.end;
  }
}

}  // namespace inferd
