#include "text/word_table.h"

#include <bit>

#include "base/check.h"

namespace inferd {

void WordTable::reserve(size_t words) {
  slots_.assign(std::bit_ceil(words + words / 2 + 1), Slot{});
  mask_ = slots_.size() - 1;
}

void WordTable::insert(std::string_view word, int32_t id) {
  INFERD_CHECK(!word.empty() && word.size() <= kMaxBytes && find(word) < 0);
  const Key key = key_of(word);
  size_t at = key.hash() & mask_;
  while (slots_[at].size != 0) at = (at + 1) & mask_;
  slots_[at] = {key, id, static_cast<uint32_t>(word.size())};
}

}  // namespace inferd
