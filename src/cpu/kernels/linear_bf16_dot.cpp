// Linear over BF16 tiles by bf16 dot products, and the table of the level that has them: avx512's but for
// this. Compiled once, with AVX512_BF16.
//
// vdpbf16ps adds the two products of a pair to a float, rounding after each to nearest and taking subnormals
// for zero whatever the control register says (Intel SDM, volume 2). x is rounded to bf16 once per linear,
// which is where its error against fma comes from: an NMSE of about 3e-6.
#include "cpu/kernels/float_tiles.h"
#include "cpu/kernels/level_kernels.h"

namespace inferd::cpu {
namespace avx512 {
namespace {

struct Bf16Pairs {
  static constexpr int kStep = 2;
  static constexpr int kStepBytes = 64;
  static constexpr int kStepX = 1;
  INFERD_SIMD const uint32_t* x_of(const FloatJob& job) { return job.x_pairs; }
  template <size_t kTiles, size_t kColumns>
  INFERD_SIMD void step(Block<kTiles, kColumns>& b, const FloatJob& job, const uint8_t* w, const uint32_t* x,
                        int64_t) {
    each<kTiles>([&](auto t) INFERD_INLINE {
      const auto weights = __builtin_bit_cast(__m512bh, _mm512_loadu_si512(w + t * job.tile_bytes));
      each<kColumns>([&](auto c) INFERD_INLINE {
        const __m512i pair = _mm512_set1_epi32(static_cast<int32_t>(x[c * job.x_stride]));
        b.acc[t][c] = _mm512_dpbf16_ps(b.acc[t][c], weights, __builtin_bit_cast(__m512bh, pair));
      });
    });
  }
};

void round_to_bf16(uint32_t* pairs, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; i += 32, pairs += 16) {
    const int64_t left = n - i < 32 ? n - i : 32;
    const __m512 low = load_n(x + i, static_cast<int>(left));
    const __m512 high = left > 16 ? load_n(x + i + 16, static_cast<int>(left - 16)) : zero();
    const auto rounded = __builtin_bit_cast(__m512i, _mm512_cvtne2ps_pbh(high, low));
    _mm512_mask_storeu_epi32(pairs, lanes_below(static_cast<int>((left + 1) / 2)), rounded);
  }
}

}  // namespace
}  // namespace avx512

const Kernels& avx512_bf16_kernels() {
  static const Kernels kTable = [] {
    Kernels kernels = avx512_kernels();
    kernels.linear_bf16_dot = avx512::linear_over<avx512::Bf16Pairs>;
    kernels.round_to_bf16 = avx512::round_to_bf16;
    return kernels;
  }();
  return kTable;
}

}  // namespace inferd::cpu
