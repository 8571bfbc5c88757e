#include "text/added_tokens.h"

#include <algorithm>

#include "text/unicode.h"
#include "text/word_characters.h"

namespace inferd {

AddedTokens::AddedTokens(std::vector<Token> tokens) : tokens_(std::move(tokens)) {
  std::sort(tokens_.begin(), tokens_.end(), [](const Token& a, const Token& b) { return a.text < b.text; });
  for (const Token& token : tokens_) ++first_byte_[static_cast<unsigned char>(token.text[0]) + 1];
  for (size_t b = 1; b < first_byte_.size(); ++b) first_byte_[b] += first_byte_[b - 1];
  for (size_t b = 0; b < begins_.size(); ++b) begins_[b] = first_byte_[b] != first_byte_[b + 1];
  has_control_ =
      std::any_of(tokens_.begin(), tokens_.end(), [](const Token& token) { return token.control; });
}

AddedTokens::Scan::Place AddedTokens::Scan::place(ByteRange range) {
  while (!markup_.empty() && markup_.front().end <= range.begin) markup_ = markup_.subspan(1);
  if (markup_.empty() || range.end <= markup_.front().begin) return Place::outside;
  return markup_.front().begin <= range.begin && range.end <= markup_.front().end ? Place::inside
                                                                                  : Place::across;
}

bool AddedTokens::Scan::touches_word(ByteRange range) const {
  if (range.begin > 0) {
    size_t before = range.begin - 1;
    while (before > 0 && (static_cast<unsigned char>(text_[before]) & 0xC0) == 0x80) --before;
    if (is_word_character(next_code_point(text_, before))) return true;
  }
  size_t behind = range.end;
  return behind < text_.size() && is_word_character(next_code_point(text_, behind));
}

// Where the white space that ends at `end` begins, but not before the end of the last match.
size_t AddedTokens::Scan::spaces_begin(size_t end) const {
  while (end > last_end_) {
    size_t before = end - 1;
    while (before > 0 && (static_cast<unsigned char>(text_[before]) & 0xC0) == 0x80) --before;
    size_t at = before;
    if (before < last_end_ || char_class(next_code_point(text_, at)) != CharClass::space) break;
    end = before;
  }
  return end;
}

// Where the white space that begins at `begin` ends. Looks through no run twice.
size_t AddedTokens::Scan::spaces_end(size_t begin) {
  if (begin >= spaces_.begin && begin < spaces_.end) return spaces_.end;
  size_t end = begin;
  for (size_t next = end; end < text_.size(); end = next) {
    if (char_class(next_code_point(text_, next)) != CharClass::space) break;
  }
  spaces_ = {begin, end};
  return end;
}

bool AddedTokens::Scan::next(Match& match) {
  const auto& tokens = tokens_.tokens_;
  while (at_ < text_.size()) {
    const auto lead = static_cast<unsigned char>(text_[at_]);
    if (!tokens_.begins_[lead]) {
      ++at_;
      continue;
    }
    auto low = tokens.begin() + tokens_.first_byte_[lead];
    auto high = tokens.begin() + tokens_.first_byte_[lead + 1];
    // [low, high) are the tokens that begin with text[at, at + length); a token of just that text comes
    // first.
    const Token* allowed = nullptr;
    size_t plain = 0;  // length of the control token that is plain text here
    for (size_t length = 1; low != high; ++length) {
      if (low->text.size() == length) {
        const Place where = low->control ? place({at_, at_ + length}) : Place::inside;
        if (where == Place::inside) allowed = &*low;
        if (where != Place::across) plain = where == Place::outside ? length : 0;
        ++low;
      }
      if (at_ + length == text_.size()) break;
      const auto byte_at = [length](const Token& token) {
        return static_cast<unsigned char>(token.text[length]);
      };
      const auto byte = static_cast<unsigned char>(text_[at_ + length]);
      low = std::partition_point(low, high, [&](const Token& token) { return byte_at(token) < byte; });
      high = std::partition_point(low, high, [&](const Token& token) { return byte_at(token) == byte; });
    }
    if (plain != 0) {
      at_ += plain;
    } else if (allowed != nullptr) {
      match = {{at_, at_ + allowed->text.size()}, allowed->id};
      at_ = match.range.end;
      // What an earlier match took as white space is gone.
      if (match.range.begin < last_end_ || (allowed->single_word && touches_word(match.range))) continue;
      if (allowed->lstrip) match.range.begin = spaces_begin(match.range.begin);
      if (allowed->rstrip) match.range.end = spaces_end(match.range.end);
      last_end_ = match.range.end;
      return true;
    } else {
      ++at_;
    }
  }
  return false;
}

int64_t AddedTokens::bytes() const {
  size_t total = sizeof(*this) + tokens_.capacity() * sizeof(Token);
  for (const Token& token : tokens_) total += token.text.capacity();
  return static_cast<int64_t>(total);
}

}  // namespace inferd
