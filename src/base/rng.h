// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
// A counter-based generator: the same key and counter give the same numbers on every machine and thread.
#pragma once

#include <array>
#include <cstdint>

namespace inferd {

struct Philox {
  using Counter = std::array<uint32_t, 4>;
  using Key = std::array<uint32_t, 2>;

  static constexpr Counter draw(Counter counter, Key key) {
    for (int round = 0; round < 10; ++round) {
      const uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
      const uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
      counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(product1),
                 static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
                 static_cast<uint32_t>(product0)};
      key[0] += 0x9E3779B9;
      key[1] += 0xBB67AE85;
    }
    return counter;
  }
};

// A number in [0, 1) from 53 bits, for (request seed, position in the output, draw, choice):
// docs/numerics.md.
constexpr double uniform_draw(uint64_t seed, uint32_t position, uint32_t draw, uint32_t choice) {
  const Philox::Counter bits = Philox::draw({position, draw, choice, 0},
                                            {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  const uint64_t high = uint64_t{bits[0]} << 32 | bits[1];
  return static_cast<double>(high >> 11) * 0x1.0p-53;
}

}  // namespace inferd
