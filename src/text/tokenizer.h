// Text to token ids and back, with the ids of Hugging Face's tokenizers: BPE over bytes or characters, and
// unigram models. Built once at a model's load from data that some file format holds; afterwards const, and
// every method may be called from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/char_bpe.h"
#include "text/span.h"
#include "text/token_table.h"
#include "text/tokenizer_spec.h"
#include "text/unigram.h"
#include "text/word_table.h"

namespace inferd {

// Token types as GGUF numbers them (tokenizer.ggml.token_type). The file's type decides, not the token's
// text: "</s>" may be an ordinary token, and the fill-in-the-middle tokens of Qwen2.5-Coder are control
// tokens as its GGUF file says.
enum class TokenType : int32_t {
  normal = 1,        // made by the model only; in byte-level BPE its text is in the byte alphabet
  unknown = 2,       // stands for what no token covers; otherwise as a control token
  control = 3,       // "special": steers the model; never made from plain text
  user_defined = 4,  // found in any text as it is written, before merging
  unused = 5,        // fills the vocabulary up; never made, never matched
  byte = 6,          // "<0x0A>": one byte of a character that is no token
};

// What a GGUF file says of a tokenizer (its keys tokenizer.ggml.*). Views only: they must live until create()
// returns, not longer.
struct TokenizerData {
  std::string_view model;  // "gpt2": byte-level BPE; "llama": SentencePiece's BPE by scores
  std::string_view pre;    // gpt2: the pre-tokeniser's name, see pretokenizer.h
  // (V) by id: normal tokens of gpt2 in the byte alphabet, the others as they are written.
  std::span<const std::string_view> tokens;
  std::span<const int32_t> types;  // (V) TokenType
  // gpt2, by rank: "left right" in the byte alphabet.
  std::span<const std::string_view> merges;
  std::span<const double> scores;         // llama: (V)
  std::optional<bool> add_space_prefix;   // llama: without it, true
  bool remove_extra_whitespaces = false;  // llama: refused
  std::optional<int32_t> bos, eos, eot, unk, pad;
  // What EncodeOptions::add_special adds. Without add_bos the model and the pre-tokeniser's name decide.
  std::optional<bool> add_bos;
  bool add_eos = false;
};

struct EncodeOptions {
  // The begin and end tokens, where the model wants them. Leave it off for rendered chat templates, which
  // write them.
  bool add_special = false;
  // Control tokens written out in the text become their ids. Leave it off for what users wrote.
  bool parse_special = false;
};

class Tokenizer {
 public:
  // E-TOK-001: a model or pre-tokeniser that is not known here. E-TOK-002: data that contradicts itself; one
  // fault is named by id or rank.
  static Result<Tokenizer> create(const TokenizerData& data);
  // The same from what another file said. E-TOK-002.
  static Result<Tokenizer> build(TokenizerSpec spec);

  // The ids of a text. Ill-formed UTF-8 is read as U+FFFD, one for each maximal ill-formed subpart. Time
  // linear in the text. User-defined tokens are recognised whatever the options. Requires a text under 2 GiB.
  std::vector<int32_t> encode(std::string_view text, EncodeOptions options = {}) const;

  // The ids of the spans' joined text, where a control token is recognised only if all of it lies in markup:
  // no text that a user wrote can become one, or turn one that the template wrote into another. Apart from
  // that borders do not matter: pieces and user-defined tokens go across them. A character must not be cut by
  // a border (its halves would become U+FFFD).
  std::vector<int32_t> encode_spans(std::span<const TextSpan> spans, bool add_special = false) const;

  // Valid UTF-8; what is ill-formed in the tokens' bytes becomes U+FFFD by the maximal subpart rule. The ids
  // are a whole text: where the model puts a space before each text, it is left out again. Requires ids of
  // this vocabulary; see check_ids().
  std::string decode(std::span<const int32_t> ids, bool skip_special = false) const;

  // E-TOK-003 names the first id that is not of this vocabulary. For ids from outside.
  Status check_ids(std::span<const int32_t> ids) const;

  // These require 0 <= id < vocab_size().
  // token_bytes: what the token adds to the text, perhaps half a character.
  std::string_view token_bytes(int32_t id) const;
  TokenType type(int32_t id) const { return static_cast<TokenType>(types_[index(id)]); }
  bool is_special(int32_t id) const { return type(id) == TokenType::control; }
  bool is_banned(int32_t id) const { return type(id) == TokenType::unused; }

  int32_t vocab_size() const { return static_cast<int32_t>(types_.size()); }
  // For a model with `rows` logits: bit i of word i / 32 is 1 when id i must never be drawn, which are unused
  // ids and all from vocab_size() on. ceil(rows / 32) words. Made anew at each call.
  std::vector<uint32_t> banned_mask(int64_t rows) const;
  // Ids that end an answer, ascending: eos, eot, and control tokens known by name to end a turn or a
  // document.
  std::span<const int32_t> end_ids() const { return end_ids_; }
  std::optional<int32_t> bos() const { return bos_; }
  std::optional<int32_t> eos() const { return eos_; }
  std::optional<int32_t> pad() const { return pad_; }
  bool adds_bos() const { return bos_ && !prefix_.empty() && prefix_[0] == *bos_; }

  int64_t bytes() const;  // of memory held

 private:
  class Builder;  // tokenizer_build.cpp
  struct Scratch {
    BpeMerges::Scratch merges;
    Unigram::Scratch unigram;
  };

  Tokenizer() = default;

  size_t index(int32_t id) const;
  std::vector<int32_t> encode_flat(std::string_view text, std::span<const ByteRange> markup,
                                   bool add_special) const;
  // `text`: what lies between two added tokens; `first`: at the begin of all.
  void encode_plain(std::string_view text, std::span<const ByteRange> markup, bool first,
                    std::vector<int32_t>& ids, Scratch& scratch) const;
  void encode_pieces(std::string_view text, bool first, std::vector<int32_t>& ids, Scratch& scratch) const;
  void encode_piece(std::string_view piece, std::vector<int32_t>& ids, Scratch& scratch) const;

  TokenizerSpec::Model model_ = TokenizerSpec::Model::byte_bpe;
  std::vector<NormalizerStep> normalizer_;
  std::vector<PiecePattern> patterns_;
  std::vector<SplitStep> splits_;     // in place of patterns_
  BpeMerges merges_;                  // byte_bpe
  std::unique_ptr<CharBpe> chars_;    // char_bpe, score_bpe
  std::unique_ptr<Unigram> unigram_;  // unigram
  bool whole_tokens_ = false;
  // byte_bpe: pieces that are known to become one token; no others are short and become a whole token.
  WordTable words_;
  TokenTable whole_;               // the other normal tokens, where pieces may be whole tokens
  AddedTokens added_;              // looked for in the text,
  AddedTokens normalized_added_;   // and then in the normalised text
  std::string text_;               // the bytes of all tokens, one after another
  std::vector<uint32_t> offsets_;  // (V + 1) into text_
  std::vector<uint8_t> types_;     // (V)
  std::vector<int32_t> end_ids_;
  std::optional<int32_t> bos_, eos_, pad_;
  std::vector<int32_t> prefix_, suffix_;  // what add_special puts around a text
  TokenizerSpec::LeadingSpace leading_space_ = TokenizerSpec::LeadingSpace::keep;
};

}  // namespace inferd
