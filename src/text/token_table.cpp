#include "text/token_table.h"

#include <bit>

#include "text/token_hash.h"

namespace inferd {

void TokenTable::reserve(size_t tokens) {
  slots_.assign(std::bit_ceil(tokens + tokens / 2 + 2), Slot{});
}

// Where the bytes are, or the free slot where they would go.
size_t TokenTable::find_slot(const Texts& texts, std::string_view bytes) const {
  const uint64_t hash = hash_bytes(bytes);
  const auto tag = static_cast<uint32_t>(hash >> 32);
  const size_t mask = slots_.size() - 1;
  size_t at = hash & mask;
  while (slots_[at].id_plus_1 != 0 &&
         (slots_[at].tag != tag || texts.at(slots_[at].id_plus_1 - 1) != bytes)) {
    at = (at + 1) & mask;
  }
  return at;
}

void TokenTable::insert(const Texts& texts, size_t id) {
  const std::string_view bytes = texts.at(id);
  Slot& slot = slots_[find_slot(texts, bytes)];
  if (slot.id_plus_1 != 0) return;
  slot = {static_cast<uint32_t>(hash_bytes(bytes) >> 32), static_cast<uint32_t>(id + 1)};
}

int32_t TokenTable::find(const Texts& texts, std::string_view bytes) const {
  return static_cast<int32_t>(slots_[find_slot(texts, bytes)].id_plus_1) - 1;
}

int64_t TokenTable::bytes() const {
  return static_cast<int64_t>(slots_.capacity() * sizeof(Slot));
}

}  // namespace inferd
