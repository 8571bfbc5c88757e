#include "text/token_table.h"

#include <bit>

#include "text/token_hash.h"

namespace inferd {

void TokenTable::reserve(size_t tokens) {
  text_.clear();
  slots_.assign(std::bit_ceil(tokens + tokens / 2 + 2), Slot{});
}

// Where the bytes are, or the free slot where they would go.
size_t TokenTable::find_slot(std::string_view bytes, uint64_t hash) const {
  const auto tag = static_cast<uint32_t>(hash >> 32);
  const size_t mask = slots_.size() - 1;
  size_t at = hash & mask;
  for (;; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.id < 0) return at;
    if (slot.tag == tag && std::string_view(text_).substr(slot.begin, slot.size) == bytes) return at;
  }
}

void TokenTable::insert(std::string_view bytes, int32_t id) {
  const uint64_t hash = hash_bytes(bytes);
  Slot& slot = slots_[find_slot(bytes, hash)];
  if (slot.id >= 0) return;
  slot = {static_cast<uint32_t>(hash >> 32), id, static_cast<uint32_t>(text_.size()),
          static_cast<uint32_t>(bytes.size())};
  text_ += bytes;
}

int32_t TokenTable::find(std::string_view bytes) const {
  return slots_[find_slot(bytes, hash_bytes(bytes))].id;
}

int64_t TokenTable::bytes() const {
  return static_cast<int64_t>(text_.capacity() + slots_.capacity() * sizeof(Slot));
}

}  // namespace inferd
