#include "text/char_bpe.h"

#include <algorithm>

#include "base/check.h"
#include "base/utf8.h"
#include "text/unicode.h"

namespace inferd {

void CharBpe::set_character(char32_t character, int32_t id) {
  uint16_t& block = block_of_[character >> kBlockBits];
  if (block == 0) {
    block = static_cast<uint16_t>(ids_.size() >> kBlockBits);
    ids_.resize(ids_.size() + (size_t{1} << kBlockBits), -1);
  }
  ids_[(size_t{block} << kBlockBits) + (character & ((1u << kBlockBits) - 1))] = id;
  if (id >= first_virtual_) {
    INFERD_CHECK(static_cast<size_t>(id - first_virtual_) == virtual_.size());
    virtual_.push_back(character);
  }
}

int32_t CharBpe::character_id(char32_t character) const {
  const size_t block = block_of_[character >> kBlockBits];
  return ids_[(block << kBlockBits) + (character & ((1u << kBlockBits) - 1))];
}

void CharBpe::allow_join(char32_t last, char32_t first) {
  const size_t bit = join_bit(last, first);
  joins_[bit / 64] |= uint64_t{1} << (bit % 64);
}

void CharBpe::finish() {
  all_bytes_ = std::ranges::all_of(bytes_, [](int32_t id) { return id >= 0; });
}

void CharBpe::append_fallback(char32_t character, std::vector<int32_t>& out) const {
  if (all_bytes_) {
    std::string bytes;
    append_utf8(bytes, character);
    for (const char byte : bytes) out.push_back(bytes_[static_cast<unsigned char>(byte)]);
  } else if (unknown_) {
    if (!fuse_unknown_ || out.empty() || out.back() != *unknown_) out.push_back(*unknown_);
  }
}

void CharBpe::encode(std::string_view piece, std::vector<int32_t>& out, BpeMerges::Scratch& scratch) const {
  std::vector<int32_t>& symbols = scratch.symbols;
  symbols.clear();
  const size_t begin = out.size();
  bool some_virtual = false;
  const auto flush = [&] {
    merges_.merge(symbols, out, scratch);
    symbols.clear();
  };
  // What lies on the two sides of a place that no merge crosses is merged apart: that cuts most of a text,
  // which is one piece, into words.
  char32_t before = 0;
  bool before_known = false;
  for (size_t at = 0; at < piece.size();) {
    const char32_t character = next_code_point(piece, at);
    const int32_t id = character_id(character);
    if (id >= 0) {
      if (before_known ? !may_join(before, character) : !fallback_joins_) flush();
      symbols.push_back(id);
      some_virtual = some_virtual || id >= first_virtual_;
    } else {
      // A character that leaves nothing behind does not part its neighbours.
      if (!all_bytes_ && !unknown_) continue;
      if (!fallback_joins_ && before_known) flush();
      append_fallback(character, symbols);
    }
    before = character;
    before_known = id >= 0;
  }
  flush();
  if (!some_virtual) return;
  std::vector<int32_t> written;
  for (size_t i = begin; i < out.size(); ++i) {
    if (out[i] < first_virtual_) {
      written.push_back(out[i]);
    } else {
      append_fallback(virtual_[static_cast<size_t>(out[i] - first_virtual_)], written);
    }
  }
  out.resize(begin);
  out.insert(out.end(), written.begin(), written.end());
}

int64_t CharBpe::bytes() const {
  return merges_.bytes() +
         static_cast<int64_t>(sizeof(*this) - sizeof(merges_) + ids_.capacity() * sizeof(int32_t) +
                              virtual_.capacity() * sizeof(char32_t) + joins_.capacity() * sizeof(uint64_t));
}

}  // namespace inferd
