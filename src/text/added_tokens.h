// Finds tokens that are written out in a text ("<|im_start|>", "<tool_call>"): leftmost first, the longest of
// those that start at one place, as Hugging Face's added vocabulary does. Built once, then const and called
// from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/byte_range.h"

namespace inferd {

class AddedTokens {
 public:
  // Longer ones are refused by the tokenizer: a scan may look at this many bytes for each byte of the text.
  static constexpr size_t kMaxBytes = 512;

  struct Token {
    std::string text;  // not empty
    int32_t id;
    bool control;              // matches only inside markup; otherwise everywhere
    bool lstrip = false;       // takes the white space before it, as far as the match before,
    bool rstrip = false;       // and behind it
    bool single_word = false;  // is no match where a word character touches it
  };

  // The texts must differ.
  explicit AddedTokens(std::vector<Token> tokens = {});

  bool empty() const { return tokens_.empty(); }
  bool has_control() const { return has_control_; }

  struct Match {
    ByteRange range;
    int32_t id;
  };

  // Goes through a text once.
  class Scan {
   public:
    // `markup`: ascending, disjoint, not touching each other; a control token matches only wholly inside one
    // of them. All three must outlive the scan.
    Scan(const AddedTokens& tokens, std::string_view text, std::span<const ByteRange> markup)
        : tokens_(tokens), text_(text), markup_(markup) {}

    // The next match; false at the end of the text. A control token that lies wholly outside markup is plain
    // text as a whole: no other token is looked for inside it.
    bool next(Match& match);

   private:
    enum class Place { inside, outside, across };
    Place place(ByteRange range);
    bool touches_word(ByteRange range) const;
    size_t spaces_begin(size_t end) const;
    size_t spaces_end(size_t begin);

    const AddedTokens& tokens_;
    const std::string_view text_;
    std::span<const ByteRange> markup_;  // those that end behind at_
    size_t at_ = 0;
    size_t last_end_ = 0;     // of the last match
    ByteRange spaces_{0, 0};  // a run of white space that was looked through
  };

  int64_t bytes() const;  // of memory held

 private:
  std::vector<Token> tokens_;  // ascending by text
  bool has_control_ = false;
  // Tokens that start with byte b are [first_byte_[b], first_byte_[b + 1]).
  std::array<uint32_t, 257> first_byte_{};
  std::array<bool, 256> begins_{};  // does any token begin with that byte?
};

}  // namespace inferd
