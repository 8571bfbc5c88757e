// The hash that tables of token texts share.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace inferd {

// Multiply and fold, eight bytes at a time. Not for tables that a stranger can fill while others wait: what
// comes from a file is hashed once, at load.
inline uint64_t hash_bytes(std::string_view text) {
  const auto fold = [](uint64_t x) {
    x *= 0xD6E8FEB86659FD93u;
    return x ^ x >> 32;
  };
  uint64_t hash = text.size();
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    uint64_t word;
    std::memcpy(&word, text.data() + at, 8);
    hash = fold(hash ^ word) * 3;
  }
  uint64_t rest = 0;
  if (at < text.size()) std::memcpy(&rest, text.data() + at, text.size() - at);
  return fold(fold(hash ^ rest));
}

}  // namespace inferd
