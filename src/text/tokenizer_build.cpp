// Builds a tokenizer out of what a file says, and refuses what contradicts itself. Called at a model's load,
// on any thread.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "text/byte_level.h"
#include "text/pretokenizer.h"
#include "text/token_index.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

namespace inferd {
namespace {

using Model = TokenizerSpec::Model;

// Control tokens that end a turn or a document in the models of the known pre-tokenisers, also where the file
// names only one of them as its end: those of ChatML, GPT-2, Llama 3, Gemma, gpt-oss and DeepSeek.
constexpr std::string_view kEndNames[] = {
    "<|im_end|>", "<|endoftext|>",   "<|eot_id|>",
    "<|eom_id|>", "<|end_of_text|>", "<end_of_turn>",
    "<|return|>", "<|call|>",        "<\uFF5Cend\u2581of\u2581sentence\uFF5C>"};
// How many tokens are looked up before they are merged: the first ones make up most of a text, and each takes
// a third of a microsecond at load.
constexpr int32_t kFrequentTokens = 1 << 14;
constexpr std::string_view kMetaspace = "\u2581";

Error data_error(std::string where, std::string detail) {
  return {.code = Code::tokenizer_data, .detail = std::move(detail), .where = std::move(where)};
}

// The byte that "<0x0A>" stands for; −1: it is not written so.
int byte_of(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  int byte = 0;
  for (const char c : token.substr(3, 2)) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    if (digit < 0) return -1;
    byte = byte * 16 + digit;
  }
  return byte;
}

char32_t first_character(std::string_view text) {
  size_t at = 0;
  return next_code_point(text, at);
}

char32_t last_character(std::string_view text) {
  size_t at = text.size() - 1;
  while ((static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return next_code_point(text, at);
}

}  // namespace

class Tokenizer::Builder {
 public:
  Builder(Tokenizer& tokenizer, const TokenizerSpec& spec)
      : tokenizer_(tokenizer), spec_(spec), index_(spec.tokens) {}

  Status run() {
    if (is_char_model()) tokenizer_.chars_ = std::make_unique<CharBpe>();
    if (spec_.model == Model::unigram) tokenizer_.unigram_ = std::make_unique<Unigram>();
    INFERD_TRY_STATUS(take_tokens());
    if (spec_.model == Model::byte_bpe || spec_.model == Model::char_bpe) INFERD_TRY_STATUS(take_merges());
    if (spec_.model == Model::score_bpe) take_scores();
    INFERD_TRY_STATUS(take_special_ids());
    INFERD_TRY_STATUS(take_fallback());
    if (spec_.whole_tokens) {
      take_whole_tokens();
    } else if (is_byte_model()) {
      take_words();
    }
    return {};
  }

 private:
  bool is_char_model() const { return spec_.model == Model::char_bpe || spec_.model == Model::score_bpe; }
  bool is_byte_model() const { return spec_.model == Model::byte_bpe; }

  Status take_sizes();
  Status take_tokens();
  Status take_token(size_t id, uint64_t hash);
  Status take_added(size_t id, TokenType type);
  void append_text(std::string_view token);
  Status read_merges(std::span<MergeView> views, size_t begin) const;
  Status take_merges();
  void allow_join(int32_t left, int32_t right, const MergeView& merge);
  void take_scores();
  Status take_special_ids();
  Status take_fallback();
  void take_whole_tokens();
  void take_words();

  Tokenizer& tokenizer_;
  const TokenizerSpec& spec_;
  TokenIndex index_;
  std::vector<AddedTokens::Token> added_, normalized_added_;
  int byte_tokens_ = 0;
};

Result<Tokenizer> Tokenizer::create(const TokenizerData& data) {
  TokenizerSpec spec;
  spec.tokens = data.tokens;
  spec.types = data.types;
  spec.bos = data.bos;
  spec.eos = data.eos;
  spec.eot = data.eot;
  spec.unk = data.unk;
  spec.pad = data.pad;
  bool adds_bos = true;
  const PreTokenizer* rules = find_pre_tokenizer(data.pre);
  if (data.model == "gpt2" && rules != nullptr) {
    adds_bos = rules->adds_bos;
    spec.merge_texts = data.merges;
    spec.patterns.assign(rules->steps.begin(), rules->steps.end());
    spec.whole_tokens = rules->whole_tokens;
    if (rules->nfc) spec.normalizer.push_back({NormalizerStep::Kind::nfc, {}, {}});
  } else if (data.model == "llama") {
    if (data.remove_extra_whitespaces) {
      return Error{
          .code = Code::tokenizer_kind,
          .detail = "model \"llama\" with remove_extra_whitespaces; known is only \"llama\" without"};
    }
    spec.model = Model::score_bpe;
    spec.scores = data.scores;
    spec.space = kMetaspace;
    if (data.add_space_prefix.value_or(true)) {
      spec.normalizer.push_back({NormalizerStep::Kind::prepend, {}, std::string(kMetaspace)});
      spec.leading_space = TokenizerSpec::LeadingSpace::drop_one;
    }
    spec.normalizer.push_back({NormalizerStep::Kind::replace, " ", std::string(kMetaspace)});
  } else {
    return Error{
        .code = Code::tokenizer_kind,
        .detail = cat("model ", printable(data.model), " with pre-tokeniser ", printable(data.pre),
                      "; known are model \"llama\", and \"gpt2\" with one of ", pre_tokenizer_names())};
  }
  if (data.add_bos.value_or(false) && !data.bos) {
    return data_error("bos token", "is to be added, but has no id");
  }
  if (data.add_eos && !data.eos) return data_error("eos token", "is to be added, but has no id");
  if (data.bos && data.add_bos.value_or(adds_bos)) spec.prefix.push_back(*data.bos);
  if (data.add_eos) spec.suffix.push_back(*data.eos);
  return build(std::move(spec));
}

Result<Tokenizer> Tokenizer::build(TokenizerSpec spec) {
  Tokenizer tokenizer;
  tokenizer.model_ = spec.model;
  INFERD_TRY_STATUS(Builder(tokenizer, spec).run());
  tokenizer.normalizer_ = std::move(spec.normalizer);
  tokenizer.patterns_ = std::move(spec.patterns);
  tokenizer.splits_ = std::move(spec.splits);
  tokenizer.whole_tokens_ = spec.whole_tokens;
  tokenizer.leading_space_ = spec.leading_space;
  return tokenizer;
}

// Checks that the arrays belong together and makes room.
Status Tokenizer::Builder::take_sizes() {
  const size_t count = spec_.tokens.size();
  if (count == 0 || count > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    return data_error("tokens", cat(count, " tokens; 1 to 2147483647 allowed"));
  }
  if (spec_.types.size() != count) {
    return data_error("token types", cat(spec_.types.size(), " types for ", count, " tokens"));
  }
  if ((spec_.model == Model::score_bpe || spec_.model == Model::unigram) && spec_.scores.size() != count) {
    return data_error("scores", cat(spec_.scores.size(), " scores for ", count, " tokens"));
  }
  for (size_t id = 0; id < spec_.scores.size(); ++id) {
    if (!std::isfinite(spec_.scores[id])) return data_error(cat("token ", id), "a score that is not finite");
  }
  size_t text_bytes = 0;
  for (const std::string_view token : spec_.tokens) text_bytes += token.size();
  if (text_bytes > std::numeric_limits<uint32_t>::max()) {
    return data_error("tokens", cat(text_bytes, " bytes of token text; 4294967295 allowed"));
  }
  tokenizer_.text_.reserve(text_bytes);
  return {};
}

Status Tokenizer::Builder::take_tokens() {
  INFERD_TRY_STATUS(take_sizes());
  const size_t count = spec_.tokens.size();
  tokenizer_.offsets_.reserve(count + 1);
  tokenizer_.offsets_.push_back(0);
  tokenizer_.types_.reserve(count);
  uint64_t hashes[TokenIndex::kBatch];
  for (size_t id = 0; id < count; ++id) {
    const size_t in_batch = id % TokenIndex::kBatch;
    if (in_batch == 0) {
      for (size_t i = 0; i < std::min(TokenIndex::kBatch, count - id); ++i) {
        hashes[i] = hash_bytes(spec_.tokens[id + i]);
        index_.prefetch_slot(hashes[i]);
      }
    }
    INFERD_TRY_STATUS(take_token(id, hashes[in_batch]));
    tokenizer_.offsets_.push_back(static_cast<uint32_t>(tokenizer_.text_.size()));
  }
  tokenizer_.added_ = AddedTokens(std::move(added_));
  tokenizer_.normalized_added_ = AddedTokens(std::move(normalized_added_));
  if (tokenizer_.normalized_added_.has_control() && !follows_ranges(spec_.normalizer)) {
    return data_error("added tokens",
                      "a special token is looked for in text that the normaliser changes as a whole");
  }
  return {};
}

// What the token stands for in text.
void Tokenizer::Builder::append_text(std::string_view token) {
  for (size_t at = 0; !spec_.space.empty();) {
    const size_t space = token.find(spec_.space, at);
    if (space == std::string_view::npos) {
      token = token.substr(at);
      break;
    }
    tokenizer_.text_ += token.substr(at, space - at);
    tokenizer_.text_ += ' ';
    at = space + spec_.space.size();
  }
  tokenizer_.text_ += token;
}

Status Tokenizer::Builder::take_token(size_t id, uint64_t hash) {
  const std::string_view token = spec_.tokens[id];
  const auto where = [id] { return cat("token ", id); };
  auto type = static_cast<TokenType>(spec_.types[id]);
  const bool known = type == TokenType::normal || type == TokenType::control ||
                     type == TokenType::user_defined || type == TokenType::unused ||
                     (!is_byte_model() && (type == TokenType::unknown || type == TokenType::byte));
  if (!known) {
    return data_error(where(),
                      cat("type ", spec_.types[id], "; ",
                          is_byte_model() ? "1, 3, 4 and 5 allowed in byte-level BPE" : "1 to 6 allowed"));
  }
  if (type == TokenType::unknown) type = TokenType::control;
  tokenizer_.types_.push_back(static_cast<uint8_t>(type));
  if (type == TokenType::unused) return {};
  if (token.empty()) return data_error(where(), "empty text");
  if (const int32_t other = index_.insert(id, hash); other >= 0) {
    return data_error(where(), cat("the text ", printable(token), " is that of token ", other, " too"));
  }
  const auto number = static_cast<int32_t>(id);
  if (type == TokenType::byte) {
    const int byte = byte_of(token);
    if (byte < 0) return data_error(where(), cat("a byte token is written <0x0A>, not ", printable(token)));
    tokenizer_.text_ += static_cast<char>(byte);
    if (is_char_model()) tokenizer_.chars_->set_byte(static_cast<uint8_t>(byte), number);
    if (spec_.model == Model::unigram) tokenizer_.unigram_->set_byte(static_cast<uint8_t>(byte), number);
    ++byte_tokens_;
    return {};
  }
  // A normal token outside the byte alphabet is no merge's; Hugging Face decodes it as it is written.
  const bool normal = type == TokenType::normal;
  if (!normal || !is_byte_model() || !append_alphabet_bytes(tokenizer_.text_, token)) {
    if (!is_valid_utf8(token)) return data_error(where(), cat("ill-formed UTF-8 ", printable(token)));
    if (normal) {
      append_text(token);
    } else {
      INFERD_TRY_STATUS(take_added(id, type));
    }
  }
  if (spec_.model == Model::unigram) {
    if (token.size() > Unigram::kMaxTokenBytes) {
      return data_error(where(),
                        cat("a token of ", token.size(), " bytes; ", Unigram::kMaxTokenBytes, " allowed"));
    }
    if (type == TokenType::control) {
      tokenizer_.unigram_->count_score(spec_.scores[id]);
    } else {
      tokenizer_.unigram_->add(token, number, spec_.scores[id]);
    }
  }
  if (type == TokenType::control) return {};
  if (spec_.model == Model::score_bpe && token.size() > AddedTokens::kMaxBytes) {
    return data_error(where(),
                      cat("a token of ", token.size(), " bytes; ", AddedTokens::kMaxBytes, " allowed"));
  }
  if (is_byte_model()) {
    std::string bytes;
    if (token.size() <= 2 && append_alphabet_bytes(bytes, token) && bytes.size() == 1) {
      tokenizer_.merges_.set_byte(static_cast<uint8_t>(bytes[0]), number);
    }
  } else if (is_char_model()) {
    size_t end = 0;
    const char32_t character = next_code_point(token, end);
    if (end == token.size()) tokenizer_.chars_->set_character(character, number);
  }
  return {};
}

// A control or user-defined token: as it is looked for, and as it is written.
Status Tokenizer::Builder::take_added(size_t id, TokenType type) {
  AddedTokens::Token added{std::string(spec_.tokens[id]), static_cast<int32_t>(id),
                           type == TokenType::control};
  const bool normalized = !spec_.rules.empty() && spec_.rules[id].normalized;
  if (normalized) {
    std::vector<ByteRange> none;
    added.text = normalize(spec_.normalizer, spec_.tokens[id], none);
  }
  if (added.text.empty() || added.text.size() > AddedTokens::kMaxBytes) {
    return data_error(cat("token ", id), cat("a control or user-defined token of ", added.text.size(),
                                             " bytes; 1 to ", AddedTokens::kMaxBytes, " allowed"));
  }
  if (!spec_.rules.empty()) {
    added.lstrip = spec_.rules[id].lstrip;
    added.rstrip = spec_.rules[id].rstrip;
    added.single_word = spec_.rules[id].single_word;
  }
  append_text(added.text);
  (normalized ? normalized_added_ : added_).push_back(std::move(added));
  return {};
}

// Notes which characters or bytes may touch where the two tokens, with these texts, are joined.
void Tokenizer::Builder::allow_join(int32_t left, int32_t right, const MergeView& merge) {
  if (is_byte_model()) {
    // A part outside the alphabet is never made, so it can never be joined.
    const int last = last_alphabet_byte(merge.left);
    const int first = first_alphabet_byte(merge.right);
    if (last >= 0 && first >= 0)
      tokenizer_.merges_.allow_join(static_cast<uint8_t>(last), static_cast<uint8_t>(first));
    return;
  }
  if (tokenizer_.type(left) == TokenType::byte || tokenizer_.type(right) == TokenType::byte)
    tokenizer_.chars_->allow_fallback_join();
  tokenizer_.chars_->allow_join(last_character(merge.left), first_character(merge.right));
}

// The merges of ranks [begin, begin + views.size()).
Status Tokenizer::Builder::read_merges(std::span<MergeView> views, size_t begin) const {
  if (spec_.merge_texts.empty()) {
    std::ranges::copy(spec_.merges.subspan(begin, views.size()), views.begin());
    return {};
  }
  for (size_t i = 0; i < views.size(); ++i) {
    const std::string_view text = spec_.merge_texts[begin + i];
    const size_t space = text.find(' ');
    if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos) {
      return data_error(cat("merge ", begin + i),
                        cat(printable(text), " is not two parts with one space between them"));
    }
    views[i] = {text.substr(0, space), text.substr(space + 1)};
  }
  return {};
}

Status Tokenizer::Builder::take_merges() {
  struct Pending {
    uint64_t left_hash, right_hash;
    int32_t left_id, right_id, joined_id;
  };
  const size_t count = spec_.merges.size() + spec_.merge_texts.size();
  if (count > BpeMerges::kMaxMerges) {
    return data_error("merges", cat(count, " merges; ", BpeMerges::kMaxMerges, " allowed"));
  }
  BpeMerges& merges = is_char_model() ? tokenizer_.chars_->merges() : tokenizer_.merges_;
  merges.reserve(count);
  const auto makes = [&](size_t id, const MergeView& merge) {
    const std::string_view text = id < spec_.tokens.size() ? spec_.tokens[id] : std::string_view();
    return text.size() == merge.left.size() + merge.right.size() && text.starts_with(merge.left) &&
           text.ends_with(merge.right) && tokenizer_.types_[id] == static_cast<uint8_t>(TokenType::normal);
  };
  const auto fault = [](size_t rank, const MergeView& merge, std::string_view what) {
    return data_error(cat("merge ", rank), cat(printable(cat(merge.left, " ", merge.right)), " ", what));
  };
  int32_t joined = -1;
  for (size_t begin = 0; begin < count; begin += TokenIndex::kBatch) {
    MergeView some[TokenIndex::kBatch];
    const std::span<MergeView> views(some, std::min(TokenIndex::kBatch, count - begin));
    INFERD_TRY_STATUS(read_merges(views, begin));
    Pending batch[TokenIndex::kBatch];
    for (size_t i = 0; i < views.size(); ++i) {
      Pending& merge = batch[i];
      merge.left_hash = hash_bytes(views[i].left);
      merge.right_hash = hash_bytes(views[i].right);
      index_.prefetch_slot(merge.left_hash);
      index_.prefetch_slot(merge.right_hash);
    }
    const std::span<Pending> pending(batch, views.size());
    for (const Pending& merge : pending) {
      index_.prefetch_view(merge.left_hash);
      index_.prefetch_view(merge.right_hash);
    }
    for (const Pending& merge : pending) {
      index_.prefetch_text(merge.left_hash);
      index_.prefetch_text(merge.right_hash);
    }
    for (size_t i = 0; i < views.size(); ++i) {
      Pending& merge = batch[i];
      merge.left_id = index_.find(views[i].left, merge.left_hash);
      merge.right_id = index_.find(views[i].right, merge.right_hash);
      // Files list merges in the order of the ids they make, so the next id is tried before the index is
      // asked.
      if (makes(static_cast<size_t>(joined + 1), views[i])) {
        ++joined;
      } else {
        const std::string whole = cat(views[i].left, views[i].right);
        joined = index_.find(whole, hash_bytes(whole));
      }
      merge.joined_id = joined;
      for (const int32_t id : {merge.left_id, merge.right_id, merge.joined_id}) {
        if (id < 0) return fault(begin + i, views[i], "has a part, or makes a whole, that is no token");
        if (tokenizer_.is_special(id))
          return fault(begin + i, views[i], cat("has or makes the control token ", id));
      }
      merges.prefetch(merge.left_id, merge.right_id);
    }
    for (size_t i = 0; i < views.size(); ++i) {
      const Pending& merge = batch[i];
      if (!merges.add(merge.left_id, merge.right_id, merge.joined_id)) {
        return fault(begin + i, views[i], "was listed before");
      }
      allow_join(merge.left_id, merge.right_id, views[i]);
    }
  }
  return {};
}

// A merge for every way to cut a token into two others, ranked by the token's score, equal scores alike: a
// pair is joined when the whole is a token. Characters of tokens that are no tokens themselves take part
// under numbers of their own.
void Tokenizer::Builder::take_scores() {
  CharBpe& chars = *tokenizer_.chars_;
  int32_t next_virtual = tokenizer_.vocab_size();
  chars.set_first_virtual(next_virtual);
  const auto mergeable = [&](int32_t id) {
    return tokenizer_.type(id) == TokenType::normal || tokenizer_.type(id) == TokenType::user_defined;
  };
  std::vector<int32_t> by_score;
  for (int32_t id = 0; id < tokenizer_.vocab_size(); ++id) {
    if (!mergeable(id)) continue;
    const std::string_view token = spec_.tokens[static_cast<size_t>(id)];
    size_t characters = 0;
    for (size_t at = 0; at < token.size(); ++characters) {
      const char32_t character = next_code_point(token, at);
      if (chars.character_id(character) < 0) chars.set_character(character, next_virtual++);
    }
    if (characters < 2) continue;
    by_score.push_back(id);
  }
  std::ranges::sort(by_score, [&](int32_t a, int32_t b) {
    return spec_.scores[static_cast<size_t>(a)] > spec_.scores[static_cast<size_t>(b)];
  });
  const auto part = [&](std::string_view text) {
    size_t end = 0;
    const char32_t character = next_code_point(text, end);
    if (end == text.size()) return chars.character_id(character);
    const int32_t id = index_.find(text, hash_bytes(text));
    return id >= 0 && mergeable(id) ? id : -1;
  };
  struct Merge {
    int32_t left, right, joined;
    uint32_t rank;
  };
  std::vector<Merge> merges;
  uint32_t rank = 0;
  for (size_t i = 0; i < by_score.size(); ++i) {
    const auto id = static_cast<size_t>(by_score[i]);
    if (i > 0 && spec_.scores[id] != spec_.scores[static_cast<size_t>(by_score[i - 1])]) ++rank;
    const std::string_view token = spec_.tokens[id];
    for (size_t cut = 0;;) {
      next_code_point(token, cut);
      if (cut == token.size()) break;
      const int32_t left = part(token.substr(0, cut));
      const int32_t right = left < 0 ? -1 : part(token.substr(cut));
      if (right < 0) continue;
      merges.push_back({left, right, by_score[i], rank});
      chars.allow_join(last_character(token.substr(0, cut)), first_character(token.substr(cut)));
    }
  }
  chars.merges().reserve(merges.size());
  for (const Merge& merge : merges)
    chars.merges().add_ranked(merge.left, merge.right, merge.joined, merge.rank);
}

Status Tokenizer::Builder::take_special_ids() {
  const std::pair<std::string_view, std::optional<int32_t>> named[] = {
      {"bos", spec_.bos}, {"eos", spec_.eos}, {"eot", spec_.eot}, {"unk", spec_.unk}, {"pad", spec_.pad}};
  for (const auto& [name, id] : named) {
    if (id && (*id < 0 || *id >= tokenizer_.vocab_size())) {
      return data_error(cat(name, " token"),
                        cat("id ", *id, "; 0 to ", tokenizer_.vocab_size() - 1, " allowed"));
    }
  }
  tokenizer_.bos_ = spec_.bos;
  tokenizer_.eos_ = spec_.eos;
  tokenizer_.pad_ = spec_.pad;
  tokenizer_.prefix_ = spec_.prefix;
  tokenizer_.suffix_ = spec_.suffix;
  std::vector<int32_t>& ends = tokenizer_.end_ids_;
  for (const auto& id : {spec_.eos, spec_.eot}) {
    if (id) ends.push_back(*id);
  }
  for (int32_t id = 0; id < tokenizer_.vocab_size(); ++id) {
    if (tokenizer_.is_special(id) &&
        std::ranges::find(kEndNames, spec_.tokens[static_cast<size_t>(id)]) != std::end(kEndNames)) {
      ends.push_back(id);
    }
  }
  std::ranges::sort(ends);
  ends.erase(std::ranges::unique(ends).begin(), ends.end());
  return {};
}

// What becomes of characters that are no tokens.
Status Tokenizer::Builder::take_fallback() {
  if (byte_tokens_ != 0 && byte_tokens_ != 256) {
    return data_error("byte tokens", cat(byte_tokens_, " of the 256 bytes are there; all or none allowed"));
  }
  if (is_char_model()) {
    if (spec_.unk) tokenizer_.chars_->set_unknown(*spec_.unk, spec_.fuse_unknown);
    tokenizer_.chars_->finish();
  }
  if (spec_.model == Model::unigram) {
    if (!spec_.unk && byte_tokens_ == 0)
      return data_error("unk token", "is missing, and there are no byte tokens either");
    if (spec_.unk) tokenizer_.unigram_->set_unknown(*spec_.unk);
    tokenizer_.unigram_->finish();
  }
  return {};
}

void Tokenizer::Builder::take_whole_tokens() {
  tokenizer_.words_.reserve(is_byte_model() ? spec_.tokens.size() : 0);
  tokenizer_.whole_.reserve(spec_.tokens.size());
  for (int32_t id = 0; id < tokenizer_.vocab_size(); ++id) {
    if (tokenizer_.type(id) != TokenType::normal) continue;
    const std::string_view bytes =
        is_byte_model() ? tokenizer_.token_bytes(id) : spec_.tokens[static_cast<size_t>(id)];
    if (is_byte_model() && bytes.size() <= WordTable::kMaxBytes) {
      // A token outside the byte alphabet may be written as another one is in it: the first stays.
      if (tokenizer_.words_.find(bytes) < 0) tokenizer_.words_.insert(bytes, id);
    } else {
      tokenizer_.whole_.insert(bytes, id);
    }
  }
}

// The first tokens, which are the most frequent ones, that begin like a piece, where merging gives them back
// from their own bytes.
void Tokenizer::Builder::take_words() {
  tokenizer_.words_.reserve(static_cast<size_t>(std::min(tokenizer_.vocab_size(), kFrequentTokens)));
  BpeMerges::Scratch scratch;
  std::vector<int32_t> ids;
  for (int32_t id = 0, tried = 0; id < tokenizer_.vocab_size() && tried < kFrequentTokens; ++id) {
    const std::string_view bytes = tokenizer_.token_bytes(id);
    if (tokenizer_.type(id) != TokenType::normal || bytes.size() > WordTable::kMaxBytes) continue;
    // A script without spaces makes long pieces, which are no tokens.
    if (static_cast<unsigned char>(bytes[0]) >= 0x80) continue;
    ++tried;
    ids.clear();
    tokenizer_.merges_.encode(bytes, ids, scratch);
    if (ids.size() == 1 && ids[0] == id) tokenizer_.words_.insert(bytes, id);
  }
}

}  // namespace inferd
