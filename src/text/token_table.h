// Bytes to the id of the token that stands for just these bytes. Built once, then const and called from any
// thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace inferd {

class TokenTable {
 public:
  // The bytes of all tokens: token i is text[offsets[i], offsets[i + 1]).
  struct Texts {
    std::string_view text;
    std::span<const uint32_t> offsets;  // (V + 1)

    std::string_view at(size_t id) const { return text.substr(offsets[id], offsets[id + 1] - offsets[id]); }
  };

  // Makes room for that many tokens, and forgets all others.
  void reserve(size_t tokens);
  // Takes token `id` in, unless another has its bytes already. Requires room.
  void insert(const Texts& texts, size_t id);
  // The id of `bytes` among the tokens taken in; −1: none. `texts` as at insert().
  int32_t find(const Texts& texts, std::string_view bytes) const;

  int64_t bytes() const;  // of memory held

 private:
  struct Slot {
    uint32_t tag = 0;
    uint32_t id_plus_1 = 0;  // 0: free
  };

  size_t find_slot(const Texts& texts, std::string_view bytes) const;

  std::vector<Slot> slots_ = std::vector<Slot>(1);  // open addressing, a power of two, at most 2/3 full
};

}  // namespace inferd
