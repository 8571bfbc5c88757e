#include "text/tokenizer.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/check.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "text/byte_level.h"
#include "text/token_hash.h"
#include "text/unicode.h"

namespace inferd {
namespace {

// Control tokens that end a turn or a document in the models of the known pre-tokenisers, also where the file
// names only one of them as its end: those of ChatML, GPT-2, Llama 3, Gemma, gpt-oss and DeepSeek.
constexpr std::string_view kEndNames[] = {
    "<|im_end|>", "<|endoftext|>",   "<|eot_id|>",
    "<|eom_id|>", "<|end_of_text|>", "<end_of_turn>",
    "<|return|>", "<|call|>",        "<\uFF5Cend\u2581of\u2581sentence\uFF5C>"};

Error data_error(std::string where, std::string detail) {
  return {.code = Code::tokenizer_data, .detail = std::move(detail), .where = std::move(where)};
}

}  // namespace

// Token text to id while a tokenizer is built: open addressing over the caller's views. A lookup misses the
// cache three times, so callers go through their data in batches: for all of a batch hash_bytes(),
// then prefetch_slot(), then ...
class Tokenizer::TokenIndex {
 public:
  static constexpr size_t kBatch = 64;

  explicit TokenIndex(std::span<const std::string_view> tokens)
      : tokens_(tokens),
        slots_(std::bit_ceil(tokens.size() + tokens.size() / 2 + 2)),
        mask_(slots_.size() - 1) {}

  // ... the slot, the view that the slot names, the bytes that the view names. The later two read what the
  // earlier fetched.
  void prefetch_slot(uint64_t hash) const { __builtin_prefetch(&slots_[hash & mask_]); }
  void prefetch_view(uint64_t hash) const {
    if (const uint32_t id_plus_1 = slots_[hash & mask_].id_plus_1; id_plus_1 != 0) {
      __builtin_prefetch(&tokens_[id_plus_1 - 1]);
    }
  }
  void prefetch_text(uint64_t hash) const {
    if (const uint32_t id_plus_1 = slots_[hash & mask_].id_plus_1; id_plus_1 != 0) {
      __builtin_prefetch(tokens_[id_plus_1 - 1].data());
    }
  }

  // The id of that text; −1: none.
  int32_t find(std::string_view text, uint64_t hash) const {
    const Slot& slot = slots_[find_slot(text, hash)];
    return static_cast<int32_t>(slot.id_plus_1) - 1;
  }

  // Takes token `id` in and returns −1, or returns the id that has the same text already.
  int32_t insert(size_t id, uint64_t hash) {
    Slot& slot = slots_[find_slot(tokens_[id], hash)];
    if (slot.id_plus_1 != 0) return static_cast<int32_t>(slot.id_plus_1) - 1;
    slot = {static_cast<uint32_t>(hash >> 32), static_cast<uint32_t>(id + 1)};
    return -1;
  }

 private:
  struct Slot {
    uint32_t tag = 0;
    uint32_t id_plus_1 = 0;  // 0: free
  };

  // Where the text is, or the free slot where it would go.
  size_t find_slot(std::string_view text, uint64_t hash) const {
    const auto tag = static_cast<uint32_t>(hash >> 32);
    size_t at = hash & mask_;
    while (slots_[at].id_plus_1 != 0 &&
           (slots_[at].tag != tag || tokens_[slots_[at].id_plus_1 - 1] != text)) {
      at = (at + 1) & mask_;
    }
    return at;
  }

  std::span<const std::string_view> tokens_;
  std::vector<Slot> slots_;
  size_t mask_;
};

Result<Tokenizer> Tokenizer::create(const TokenizerData& data) {
  Tokenizer tokenizer;
  tokenizer.rules_ = find_pre_tokenizer(data.pre);
  if (data.model != "gpt2" || tokenizer.rules_ == nullptr) {
    return Error{.code = Code::tokenizer_kind,
                 .detail = cat("model ", printable(data.model), " with pre-tokeniser ", printable(data.pre),
                               "; known are model \"gpt2\" with one of ", pre_tokenizer_names())};
  }
  TokenIndex index(data.tokens);
  INFERD_TRY_STATUS(tokenizer.take_tokens(data, index));
  INFERD_TRY_STATUS(tokenizer.take_merges(data, index));
  INFERD_TRY_STATUS(tokenizer.take_special_ids(data));
  if (tokenizer.rules_->whole_tokens) tokenizer.take_whole_tokens();
  return tokenizer;
}

Status Tokenizer::take_tokens(const TokenizerData& data, TokenIndex& index) {
  const size_t count = data.tokens.size();
  if (count == 0 || count > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    return data_error("tokens", cat(count, " tokens; 1 to 2147483647 allowed"));
  }
  if (data.types.size() != count) {
    return data_error("token types", cat(data.types.size(), " types for ", count, " tokens"));
  }
  size_t text_bytes = 0;
  for (const std::string_view token : data.tokens) text_bytes += token.size();
  if (text_bytes > std::numeric_limits<uint32_t>::max()) {
    return data_error("tokens", cat(text_bytes, " bytes of token text; 4294967295 allowed"));
  }
  text_.reserve(text_bytes);
  offsets_.reserve(count + 1);
  offsets_.push_back(0);
  types_.reserve(count);
  std::vector<AddedTokens::Token> added;
  uint64_t hashes[TokenIndex::kBatch];
  for (size_t id = 0; id < count; ++id) {
    const size_t in_batch = id % TokenIndex::kBatch;
    if (in_batch == 0) {
      for (size_t i = 0; i < std::min(TokenIndex::kBatch, count - id); ++i) {
        hashes[i] = hash_bytes(data.tokens[id + i]);
        index.prefetch_slot(hashes[i]);
      }
    }
    const std::string_view token = data.tokens[id];
    const auto where = [id] { return cat("token ", id); };
    const auto type = static_cast<TokenType>(data.types[id]);
    switch (type) {
      case TokenType::normal:
      case TokenType::control:
      case TokenType::user_defined: {
        if (token.empty()) return data_error(where(), "empty text");
        if (const int32_t other = index.insert(id, hashes[in_batch]); other >= 0) {
          return data_error(where(), cat("the text ", printable(token), " is that of token ", other, " too"));
        }
        const size_t start = text_.size();
        const bool plain = type == TokenType::normal;
        // A normal token outside the alphabet is no merge's; Hugging Face decodes it as it is written.
        if (!plain || !append_alphabet_bytes(text_, token)) {
          if (!is_valid_utf8(token)) return data_error(where(), cat("ill-formed UTF-8 ", printable(token)));
          text_ += token;
        }
        if (type != TokenType::control) {
          std::string bytes;
          if (token.size() <= 2 && append_alphabet_bytes(bytes, token) && bytes.size() == 1) {
            merges_.set_byte(static_cast<uint8_t>(bytes[0]), static_cast<int32_t>(id));
          }
        }
        if (!plain) {
          if (token.size() > AddedTokens::kMaxBytes) {
            return data_error(where(), cat("a control or user-defined token of ", token.size(), " bytes; ",
                                           AddedTokens::kMaxBytes, " allowed"));
          }
          added.push_back({text_.substr(start), static_cast<int32_t>(id), type == TokenType::control});
        }
        break;
      }
      case TokenType::unused:
        break;
      default:
        return data_error(where(), cat("type ", data.types[id], "; 1, 3, 4 and 5 allowed in byte-level BPE"));
    }
    types_.push_back(static_cast<uint8_t>(type));
    offsets_.push_back(static_cast<uint32_t>(text_.size()));
  }
  added_ = AddedTokens(std::move(added));
  return {};
}

Status Tokenizer::take_merges(const TokenizerData& data, const TokenIndex& index) {
  struct Pending {
    std::string_view left, right;
    uint64_t left_hash, right_hash;
    int32_t left_id, right_id, joined_id;
  };
  if (data.merges.size() > BpeMerges::kMaxMerges) {
    return data_error("merges", cat(data.merges.size(), " merges; ", BpeMerges::kMaxMerges, " allowed"));
  }
  merges_.reserve(data.merges.size());
  const auto makes = [&](size_t id, const Pending& merge) {
    const std::string_view text = id < data.tokens.size() ? data.tokens[id] : std::string_view();
    return text.size() == merge.left.size() + merge.right.size() && text.starts_with(merge.left) &&
           text.ends_with(merge.right) && types_[id] == static_cast<uint8_t>(TokenType::normal);
  };
  const auto fault = [](size_t rank, std::string_view merge, std::string_view what) {
    return data_error(cat("merge ", rank), cat(printable(merge), " ", what));
  };
  int32_t joined = -1;
  for (size_t begin = 0; begin < data.merges.size(); begin += TokenIndex::kBatch) {
    const auto views = data.merges.subspan(begin, std::min(TokenIndex::kBatch, data.merges.size() - begin));
    Pending batch[TokenIndex::kBatch];
    for (size_t i = 0; i < views.size(); ++i) {
      const size_t space = views[i].find(' ');
      if (space == std::string_view::npos || views[i].find(' ', space + 1) != std::string_view::npos) {
        return fault(begin + i, views[i], "is not two parts with one space between them");
      }
      Pending& merge = batch[i];
      merge.left = views[i].substr(0, space);
      merge.right = views[i].substr(space + 1);
      merge.left_hash = hash_bytes(merge.left);
      merge.right_hash = hash_bytes(merge.right);
      index.prefetch_slot(merge.left_hash);
      index.prefetch_slot(merge.right_hash);
    }
    const std::span<Pending> pending(batch, views.size());
    for (const Pending& merge : pending) {
      index.prefetch_view(merge.left_hash);
      index.prefetch_view(merge.right_hash);
    }
    for (const Pending& merge : pending) {
      index.prefetch_text(merge.left_hash);
      index.prefetch_text(merge.right_hash);
    }
    for (size_t i = 0; i < views.size(); ++i) {
      Pending& merge = batch[i];
      merge.left_id = index.find(merge.left, merge.left_hash);
      merge.right_id = index.find(merge.right, merge.right_hash);
      // Files list merges in the order of the ids they make, so the next id is tried before the index is
      // asked.
      if (makes(static_cast<size_t>(joined + 1), merge)) {
        ++joined;
      } else {
        const std::string whole = cat(merge.left, merge.right);
        joined = index.find(whole, hash_bytes(whole));
      }
      merge.joined_id = joined;
      for (const int32_t id : {merge.left_id, merge.right_id, merge.joined_id}) {
        if (id < 0) return fault(begin + i, views[i], "has a part, or makes a whole, that is no token");
        if (is_special(id)) return fault(begin + i, views[i], cat("has or makes the control token ", id));
      }
      merges_.prefetch(merge.left_id, merge.right_id);
    }
    for (size_t i = 0; i < views.size(); ++i) {
      const Pending& merge = batch[i];
      if (!merges_.add(merge.left_id, merge.right_id, merge.joined_id)) {
        return fault(begin + i, views[i], "was listed before");
      }
      // A part outside the alphabet is never made, so it can never be joined.
      const int last = last_alphabet_byte(merge.left);
      const int first = first_alphabet_byte(merge.right);
      if (last >= 0 && first >= 0)
        merges_.allow_join(static_cast<uint8_t>(last), static_cast<uint8_t>(first));
    }
  }
  return {};
}

Status Tokenizer::take_special_ids(const TokenizerData& data) {
  const std::pair<std::string_view, std::optional<int32_t>> named[] = {
      {"bos", data.bos}, {"eos", data.eos}, {"eot", data.eot}, {"unk", data.unk}, {"pad", data.pad}};
  for (const auto& [name, id] : named) {
    if (id && (*id < 0 || *id >= vocab_size())) {
      return data_error(cat(name, " token"), cat("id ", *id, "; 0 to ", vocab_size() - 1, " allowed"));
    }
  }
  if (data.add_bos.value_or(false) && !data.bos) {
    return data_error("bos token", "is to be added, but has no id");
  }
  if (data.add_eos && !data.eos) return data_error("eos token", "is to be added, but has no id");
  bos_ = data.bos;
  eos_ = data.eos;
  pad_ = data.pad;
  add_bos_ = data.add_bos.value_or(rules_->adds_bos && data.bos.has_value());
  add_eos_ = data.add_eos;
  for (const auto& id : {data.eos, data.eot}) {
    if (id) end_ids_.push_back(*id);
  }
  for (int32_t id = 0; id < vocab_size(); ++id) {
    if (is_special(id) && std::ranges::find(kEndNames, token_bytes(id)) != std::end(kEndNames))
      end_ids_.push_back(id);
  }
  std::ranges::sort(end_ids_);
  end_ids_.erase(std::ranges::unique(end_ids_).begin(), end_ids_.end());
  return {};
}

void Tokenizer::take_whole_tokens() {
  whole_.reserve(types_.size());
  for (int32_t id = 0; id < vocab_size(); ++id) {
    if (type(id) == TokenType::normal) whole_.insert(texts(), static_cast<size_t>(id));
  }
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  std::string repaired;
  if (!is_valid_utf8(text)) {
    repaired = replace_invalid_utf8(text);
    text = repaired;
  }
  const ByteRange whole{0, text.size()};
  return encode_flat(text, {&whole, options.parse_special ? size_t{1} : size_t{0}}, options.add_special);
}

std::vector<int32_t> Tokenizer::encode_spans(std::span<const TextSpan> spans, bool add_special) const {
  std::string flat;
  std::vector<ByteRange> markup;
  for (const TextSpan& span : spans) {
    const size_t begin = flat.size();
    // Each span by itself, so that the bytes of two never join to one character.
    if (is_valid_utf8(span.text)) {
      flat += span.text;
    } else {
      flat += replace_invalid_utf8(span.text);
    }
    if (!span.markup || flat.size() == begin) continue;
    if (!markup.empty() && markup.back().end == begin) {
      markup.back().end = flat.size();
    } else {
      markup.push_back({begin, flat.size()});
    }
  }
  return encode_flat(flat, markup, add_special);
}

std::vector<int32_t> Tokenizer::encode_flat(std::string_view text, std::span<const ByteRange> markup,
                                            bool add_special) const {
  std::vector<int32_t> ids;
  BpeMerges::Scratch scratch;
  if (add_special && add_bos_) ids.push_back(*bos_);
  AddedTokens::Scan scan(added_, text, markup);
  AddedTokens::Match match{};
  size_t at = 0;
  while (scan.next(match)) {
    encode_plain(text.substr(at, match.range.begin - at), ids, scratch);
    ids.push_back(match.id);
    at = match.range.end;
  }
  encode_plain(text.substr(at), ids, scratch);
  if (add_special && add_eos_) ids.push_back(*eos_);
  return ids;
}

void Tokenizer::encode_plain(std::string_view text, std::vector<int32_t>& ids,
                             BpeMerges::Scratch& scratch) const {
  std::string normalised;
  if (rules_->nfc && may_change_in_nfc(text)) {
    normalised = to_nfc(text);
    text = normalised;
  }
  if (!rules_->whole_tokens) {
    for_each_piece(rules_->steps, text, [&](std::string_view piece) { merges_.encode(piece, ids, scratch); });
    return;
  }
  for_each_piece(rules_->steps, text, [&](std::string_view piece) {
    if (const int32_t id = whole_.find(texts(), piece); id >= 0) {
      ids.push_back(id);
    } else {
      merges_.encode(piece, ids, scratch);
    }
  });
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::string text;
  for (const int32_t id : ids) {
    if (!skip_special || !is_special(id)) text += token_bytes(id);
  }
  return is_valid_utf8(text) ? text : replace_invalid_utf8(text);
}

Status Tokenizer::check_ids(std::span<const int32_t> ids) const {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= vocab_size()) {
      return Error{.code = Code::token_id,
                   .detail = cat("id ", ids[i], " at index ", i, "; 0 to ", vocab_size() - 1, " allowed")};
    }
  }
  return {};
}

std::vector<uint32_t> Tokenizer::banned_mask(int64_t rows) const {
  std::vector<uint32_t> mask(static_cast<size_t>((rows + 31) / 32), 0);
  for (size_t id = 0; id < mask.size() * 32; ++id) {
    if (id >= types_.size() || is_banned(static_cast<int32_t>(id))) mask[id / 32] |= 1u << (id % 32);
  }
  return mask;
}

std::string_view Tokenizer::token_bytes(int32_t id) const {
  const size_t i = index(id);
  return std::string_view(text_).substr(offsets_[i], offsets_[i + 1] - offsets_[i]);
}

size_t Tokenizer::index(int32_t id) const {
  INFERD_CHECK(id >= 0 && id < vocab_size(), "token id ", id, " of a vocabulary of ", vocab_size());
  return static_cast<size_t>(id);
}

int64_t Tokenizer::bytes() const {
  const size_t own = text_.capacity() + offsets_.capacity() * sizeof(uint32_t) + types_.capacity() +
                     end_ids_.capacity() * sizeof(int32_t);
  return static_cast<int64_t>(own) + merges_.bytes() + added_.bytes() + whole_.bytes();
}

}  // namespace inferd
