// Short words to the token that each becomes, so that most pieces of a text are found instead of merged.
// Built once, then const and called from any thread.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace inferd {

class WordTable {
 public:
  static constexpr size_t kMaxBytes = 16;

  // Makes room for that many words, and forgets all others.
  void reserve(size_t words);
  // Takes a word of 1 to kMaxBytes bytes in that is not there yet. Requires room.
  void insert(std::string_view word, int32_t id);

  // −1: the word is not there. Words of any length.
  int32_t find(std::string_view word) const {
    if (word.empty() || word.size() > kMaxBytes) return -1;
    const Key key = key_of(word);
    for (size_t at = key.hash() & mask_;; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.size == word.size() && slot.key.first == key.first && slot.key.last == key.last)
        return slot.id;
      if (slot.size == 0) return -1;
    }
  }

  int64_t bytes() const { return static_cast<int64_t>(slots_.capacity() * sizeof(Slot)); }

 private:
  // The first and the last eight bytes, which may overlap; of shorter words the first and last four, or all
  // bytes. With the size they say what the word is.
  struct Key {
    uint64_t first, last;

    size_t hash() const {
      const uint64_t mixed = (first ^ last << 21 ^ last >> 43) * 0x9E3779B97F4A7C15u;
      return static_cast<size_t>(mixed ^ mixed >> 32);
    }
  };
  struct Slot {
    Key key{0, 0};
    int32_t id = -1;
    uint32_t size = 0;  // 0: free
  };

  static Key key_of(std::string_view word) {
    const auto load = [&word](size_t at, size_t bytes) {
      uint64_t value = 0;
      std::memcpy(&value, word.data() + at, bytes);
      return value;
    };
    const size_t size = word.size();
    if (size >= 8) return {load(0, 8), load(size - 8, 8)};
    if (size >= 4) return {load(0, 4), load(size - 4, 4)};
    const auto byte = [&word](size_t at) { return uint64_t{static_cast<unsigned char>(word[at])}; };
    return {byte(0) | byte(size / 2) << 8, byte(size - 1)};
  }

  std::vector<Slot> slots_ = std::vector<Slot>(1);  // open addressing, a power of two, at most 2/3 full
  size_t mask_ = 0;
};

}  // namespace inferd
