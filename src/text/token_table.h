// Bytes to the id of the token that is written with just these bytes. Built once, then const and called from
// any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace inferd {

class TokenTable {
 public:
  // Makes room for that many tokens, and forgets all others.
  void reserve(size_t tokens);
  // Takes a token in, unless another has its bytes already. Requires room, and under 4 GiB in all.
  void insert(std::string_view bytes, int32_t id);
  // The id of the token with these bytes; −1: none.
  int32_t find(std::string_view bytes) const;

  int64_t bytes() const;  // of memory held

 private:
  struct Slot {
    uint32_t tag = 0;
    int32_t id = -1;  // −1: free
    uint32_t begin = 0, size = 0;
  };

  size_t find_slot(std::string_view bytes, uint64_t hash) const;

  std::string text_;
  std::vector<Slot> slots_ = std::vector<Slot>(1);  // open addressing, a power of two, at most 2/3 full
};

}  // namespace inferd
