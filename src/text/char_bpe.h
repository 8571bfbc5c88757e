// Byte-pair encoding whose symbols are characters, as SentencePiece models and files converted from them have
// it: a character that is no token becomes the tokens of its UTF-8 bytes, or the unknown token. Built once by
// the tokenizer, then const and called from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "text/bpe.h"

namespace inferd {

class CharBpe {
 public:
  CharBpe() { bytes_.fill(-1); }

  BpeMerges& merges() { return merges_; }

  // The id that a character has before merging: of its token or, from `first_virtual` on, a number that only
  // merges know. A virtual character that no merge took is written out as if it had none.
  void set_character(char32_t character, int32_t id);
  void set_first_virtual(int32_t first_virtual) { first_virtual_ = first_virtual; }
  int32_t character_id(char32_t character) const;  // −1: none

  // What stands for a character without an id: the tokens of its bytes when all 256 are there, else the
  // unknown token (one for a run of such characters when `fuse`), else nothing.
  void set_byte(uint8_t byte, int32_t id) { bytes_[byte] = id; }
  void set_unknown(int32_t id, bool fuse) {
    unknown_ = id;
    fuse_unknown_ = fuse;
  }

  // Must be called for each merge that can happen: its left part ends with `last`, its right part begins with
  // `first`.
  void allow_join(char32_t last, char32_t first);
  // Must be called when a byte token or the unknown token is part of a merge.
  void allow_fallback_join() { fallback_joins_ = true; }

  // To be called when all is set, before the first encode().
  void finish();

  // Appends the ids of `piece`, valid UTF-8. O(n log n) in its length. Requires a piece under 2 GiB.
  void encode(std::string_view piece, std::vector<int32_t>& out, BpeMerges::Scratch& scratch) const;

  int64_t bytes() const;  // of memory held

 private:
  static constexpr uint32_t kBlockBits = 7;
  static constexpr size_t kJoinBits = size_t{1} << 20;

  static size_t join_bit(char32_t last, char32_t first) {
    const uint64_t pair = uint64_t{last} << 32 | first;
    return static_cast<size_t>((pair ^ pair >> 27) * 0x9E3779B97F4A7C15u >> 44);
  }
  bool may_join(char32_t last, char32_t first) const {
    const size_t bit = join_bit(last, first);
    return (joins_[bit / 64] >> (bit % 64) & 1) != 0;
  }
  void append_fallback(char32_t character, std::vector<int32_t>& out) const;

  BpeMerges merges_;
  // Ids by character, in blocks of 128 characters; block 0 is empty.
  std::array<uint16_t, (0x110000 >> kBlockBits)> block_of_{};
  std::vector<int32_t> ids_ = std::vector<int32_t>(size_t{1} << kBlockBits, -1);
  std::vector<char32_t> virtual_;  // character of id first_virtual_ + i
  int32_t first_virtual_ = INT32_MAX;
  std::array<int32_t, 256> bytes_;
  std::optional<int32_t> unknown_;
  bool fuse_unknown_ = false;
  bool all_bytes_ = false;
  bool fallback_joins_ = false;
  std::vector<uint64_t> joins_ = std::vector<uint64_t>(kJoinBits / 64);  // a filter: false means never
};

}  // namespace inferd
