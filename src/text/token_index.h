// Token text to id while a tokenizer is built.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "text/token_hash.h"

namespace inferd {

// Open addressing over the caller's views. A lookup misses the cache three times, so callers go through their
// data in batches: for all of a batch hash_bytes(), then prefetch_slot(), then ...
class TokenIndex {
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

}  // namespace inferd
