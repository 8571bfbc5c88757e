// All that a tokenizer is, whatever file said so: read_tokenizer_json() and Tokenizer::create() for GGUF data
// make one of these, and Tokenizer::build() checks and takes it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/normalizer.h"
#include "text/piece_splitter.h"

namespace inferd {

struct MergeView {
  std::string_view left, right;
};

// How an added token is looked for (Hugging Face's names).
struct AddedRules {
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // and behind it
  bool single_word = false;  // only where no word character touches it
  bool normalized = false;   // in the normalised text
};

struct TokenizerSpec {
  enum class Model : uint8_t {
    byte_bpe,   // merges over bytes; tokens are in the byte alphabet
    char_bpe,   // merges over characters
    score_bpe,  // the same; the merge that makes the token with the highest score comes first
    unigram,    // scores
  };
  // What decode() leaves out at the begin.
  enum class LeadingSpace : uint8_t { keep, drop_one, drop_in_first_token };

  Model model = Model::byte_bpe;
  // Views: they must live until build() returns.
  std::span<const std::string_view> tokens;       // (V) by id
  std::span<const int32_t> types;                 // (V) TokenType
  std::span<const MergeView> merges;              // byte_bpe, char_bpe: by rank
  std::span<const std::string_view> merge_texts;  // the same as "left right", in place of merges
  std::span<const double> scores;                 // score_bpe, unigram: (V)
  std::span<const AddedRules> rules;  // (V), of control and user-defined tokens; empty: none has any
  bool whole_tokens = false;          // a piece that is a token becomes that token, whatever merges say
  bool fuse_unknown = false;          // char_bpe, score_bpe
  std::vector<NormalizerStep> normalizer;
  std::vector<PiecePattern> patterns;  // how text is cut, where cutting by patterns is all there is to it ...
  std::vector<SplitStep> splits;       // ... and otherwise
  std::vector<int32_t> prefix, suffix;  // what EncodeOptions::add_special puts around a text
  std::optional<int32_t> bos, eos, eot, unk, pad;
  std::string space;  // what tokens write for a space; empty: a space
  LeadingSpace leading_space = LeadingSpace::keep;
};

}  // namespace inferd
