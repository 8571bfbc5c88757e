// The rotation of a model (rotary position embedding: Su et al., "RoFormer", 2021), and what its file does to
// stretch it to longer contexts. Every scaling in use comes down to a divisor of each pair's frequency and
// one factor of cos and sin.
#pragma once

#include <cstdint>
#include <vector>

#include "model/metadata.h"

namespace inferd {

struct RopeConfig {
  double base = 10000;
  int32_t dims = 0;  // of a head that are rotated, even; the ones behind them pass through
  // Pair i turns by base^(−2i / dims) / divisors[i] radians a position. (dims / 2); empty: 1 each.
  std::vector<double> divisors;
  // LongRoPE (Ding et al., 2024): instead of `divisors` in a context of more than original_ctx. Which ones is
  // decided at load, by the context that sequences may reach, so that a token's K does not depend on what
  // comes later. Empty: there are none.
  std::vector<double> long_divisors;
  int32_t original_ctx = 0;
  double magnitude = 1;  // cos and sin are multiplied by it

  // Radians a position of each pair, (dims / 2), where sequences may have `ctx` tokens.
  std::vector<double> frequencies(int32_t ctx) const;
};

// Reads rope.* and the tensors rope_freqs, rope_factors_short and rope_factors_long of the file. Scalings:
// - linear (Chen et al., 2023): the divisor is one number;
// - Llama 3 (Dubey et al., 2024) and LongRoPE: converters store the divisors as tensors;
// - YaRN (Peng et al., 2023): fast pairs stay, slow ones are divided by the factor, a ramp lies between.
// E-MODEL-003 a key or a factor out of range, or another scaling; E-MODEL-005 factors of another shape.
Result<RopeConfig> read_rope(const Metadata& in, int32_t head_dim, int32_t train_ctx);

}  // namespace inferd
