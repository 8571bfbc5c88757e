#include "text/tokenizer.h"

#include "base/check.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "text/pretokenizer.h"

namespace inferd {

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
  Scratch scratch;
  if (add_special) ids = prefix_;
  AddedTokens::Scan scan(added_, text, markup);
  AddedTokens::Match match{};
  size_t at = 0;
  std::vector<ByteRange> inside;  // what of `markup` lies in the plain text, from its begin
  const auto plain = [&](size_t end) {
    if (end <= at) return;
    inside.clear();
    if (normalized_added_.has_control()) {
      while (!markup.empty() && markup.front().end <= at) markup = markup.subspan(1);
      for (const ByteRange& range : markup) {
        if (range.begin >= end) break;
        inside.push_back({std::max(range.begin, at) - at, std::min(range.end, end) - at});
      }
    }
    encode_plain(text.substr(at, end - at), inside, at == 0, ids, scratch);
  };
  while (scan.next(match)) {
    plain(match.range.begin);
    ids.push_back(match.id);
    at = match.range.end;
  }
  plain(text.size());
  if (add_special) ids.insert(ids.end(), suffix_.begin(), suffix_.end());
  return ids;
}

void Tokenizer::encode_plain(std::string_view text, std::span<const ByteRange> markup, bool first,
                             std::vector<int32_t>& ids, Scratch& scratch) const {
  std::string normalised;
  std::vector<ByteRange> ranges(markup.begin(), markup.end());
  if (may_change(normalizer_, text)) {
    normalised = normalize(normalizer_, text, ranges);
    text = normalised;
  }
  if (normalized_added_.empty()) return encode_pieces(text, first, ids, scratch);
  AddedTokens::Scan scan(normalized_added_, text, ranges);
  AddedTokens::Match match{};
  size_t at = 0;
  while (scan.next(match)) {
    if (match.range.begin > at)
      encode_pieces(text.substr(at, match.range.begin - at), first && at == 0, ids, scratch);
    ids.push_back(match.id);
    at = match.range.end;
  }
  encode_pieces(text.substr(at), first && at == 0, ids, scratch);
}

void Tokenizer::encode_pieces(std::string_view text, bool first, std::vector<int32_t>& ids,
                              Scratch& scratch) const {
  if (!splits_.empty()) {
    split_text(splits_, text, first, [&](std::string_view piece) { encode_piece(piece, ids, scratch); });
  } else if (model_ == TokenizerSpec::Model::byte_bpe && !whole_tokens_) {
    for_each_piece(patterns_, text, [&](std::string_view piece) {
      if (const int32_t id = words_.find(piece); id >= 0) {
        ids.push_back(id);
      } else {
        merges_.encode(piece, ids, scratch.merges);
      }
    });
  } else {
    for_each_piece(patterns_, text, [&](std::string_view piece) { encode_piece(piece, ids, scratch); });
  }
}

void Tokenizer::encode_piece(std::string_view piece, std::vector<int32_t>& ids, Scratch& scratch) const {
  if (const int32_t id = words_.find(piece); id >= 0) return ids.push_back(id);
  if (whole_tokens_) {
    if (const int32_t id = whole_.find(piece); id >= 0) return ids.push_back(id);
  }
  switch (model_) {
    case TokenizerSpec::Model::byte_bpe:
      return merges_.encode(piece, ids, scratch.merges);
    case TokenizerSpec::Model::char_bpe:
    case TokenizerSpec::Model::score_bpe:
      return chars_->encode(piece, ids, scratch.merges);
    case TokenizerSpec::Model::unigram:
      return unigram_->encode(piece, ids, scratch.unigram);
  }
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::string text;
  bool first = true;
  for (const int32_t id : ids) {
    if (skip_special && is_special(id)) continue;
    std::string_view bytes = token_bytes(id);
    if (first && leading_space_ == TokenizerSpec::LeadingSpace::drop_one && bytes.starts_with(' '))
      bytes.remove_prefix(1);
    text += bytes;
    if (first && leading_space_ == TokenizerSpec::LeadingSpace::drop_in_first_token) std::erase(text, ' ');
    first = false;
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
  return static_cast<int64_t>(own) + merges_.bytes() + added_.bytes() + normalized_added_.bytes() +
         words_.bytes() + whole_.bytes() + (chars_ != nullptr ? chars_->bytes() : 0) +
         (unigram_ != nullptr ? unigram_->bytes() : 0);
}

}  // namespace inferd
