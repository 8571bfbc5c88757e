// Byte-pair encoding of one piece: the merge table and the order in which merges happen. Built once by the
// tokenizer, then const and called from any thread. The rule (Sennrich et al. 2016, arXiv:1508.07909, in the
// form of Hugging Face's tokenizers): among all adjacent pairs that have a merge, the one with the lowest
// rank is joined first, the leftmost one when ranks are equal; then again.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace inferd {

class BpeMerges {
 public:
  // Ranks have 31 bits, and the last value means "no merge".
  static constexpr size_t kMaxMerges = (size_t{1} << 31) - 2;

  BpeMerges() { byte_ids_.fill(-1); }

  // Makes room for that many merges; once, before the first add().
  void reserve(size_t merges);

  // The id of a one-byte token. A byte without one is dropped from every piece, as Hugging Face does.
  void set_byte(uint8_t byte, int32_t id) { byte_ids_[byte] = id; }

  // Appends the merge of the next rank. False: this pair has a merge already. Requires room.
  bool add(int32_t left, int32_t right, int32_t joined);

  // The same with a rank that other merges may have too, below kMaxMerges. All merges of a table are added by
  // this or all by add().
  bool add_ranked(int32_t left, int32_t right, int32_t joined, uint32_t rank);

  // Must be called for each merge that can happen: its left part ends with `last`, its right part begins with
  // `first`.
  void allow_join(uint8_t last, uint8_t first) { joins_[last].set(first); }

  // Fetches what add() of this pair will touch.
  void prefetch(int32_t left, int32_t right) const { __builtin_prefetch(&entries_[slot(left, right)], 1); }

  // Working memory of one caller, so that encoding many pieces allocates once.
  struct Scratch {
    // One slot a byte. A symbol that covers slots [p, p + length) has its id and the rank of its pair with
    // the next symbol (kNoMerge: they do not merge) in slot p, and −length as id in slots p + 1 and p +
    // length − 1, which is how its neighbours are found.
    struct Slot {
      int32_t id;
      uint32_t rank : 31;
      uint32_t later : 1;  // is in `later`
    };
    std::vector<Slot> slots;
    // Pairs to join are rank << 32 | slot of the left symbol. `run`: ascending. `heap`: found since, before
    // the end of the run. `later`: slots whose pairs come behind the run.
    std::vector<uint64_t> run, heap;
    std::vector<uint32_t> later;
    std::vector<int32_t> symbols;  // what a piece is before merging
  };

  // Appends the ids of `piece`, a text of bytes. O(n log n) in its length. Requires a piece under 2 GiB.
  void encode(std::string_view piece, std::vector<int32_t>& out, Scratch& scratch) const;

  // Appends what `symbols` (scratch.symbols, or others) become by merging. O(n log n). Requires under 2^31.
  void merge(std::span<const int32_t> symbols, std::vector<int32_t>& out, Scratch& scratch) const;

  int64_t bytes() const;  // of memory held

 private:
  struct Entry {
    int32_t left = -1;  // −1: free
    int32_t right = -1;
    uint32_t rank = 0;
    int32_t joined = -1;
  };
  struct Merge {
    uint32_t rank;
    int32_t joined;
  };

  size_t slot(int32_t left, int32_t right) const {
    const uint64_t key =
        static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
    return static_cast<size_t>((key ^ key >> 29) * 0x9E3779B97F4A7C15u >> shift_);
  }
  Merge find(int32_t left, int32_t right) const;
  // May a merge ever join what ends with `last` to what begins with `first`? A missing byte does not part its
  // neighbours.
  bool may_join(uint8_t last, uint8_t first) const {
    return joins_[last][first] || byte_ids_[last] < 0 || byte_ids_[first] < 0;
  }
  void merge_short(std::span<int32_t> ids, std::vector<int32_t>& out) const;
  void merge_long(std::span<const int32_t> symbols, std::vector<int32_t>& out, Scratch& scratch) const;

  std::vector<Entry> entries_ = std::vector<Entry>(2);  // open addressing, a power of two, at most 2/3 full
  std::vector<int32_t> joined_;                         // by rank; empty when ranks are shared
  std::array<int32_t, 256> byte_ids_;                   // −1: no token
  std::array<std::bitset<256>, 256> joins_;  // [last byte][first byte] of the two parts of some merge
  size_t count_ = 0;                         // merges
  size_t room_ = 0;                          // merges announced
  int shift_ = 63;                           // 64 − log2 of the capacity
  size_t mask_ = 1;                          // the capacity − 1
};

}  // namespace inferd
