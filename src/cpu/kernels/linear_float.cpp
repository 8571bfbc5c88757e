// Linear over float tiles by fma. Compiled once per instruction set level.
#include "cpu/kernels/float_tiles.h"
#include "cpu/kernels/level_kernels.h"

namespace inferd::cpu::INFERD_ISA_NAMESPACE {
namespace {

struct F32 {
  static constexpr int kStep = 1;
  static constexpr int kStepBytes = 64;
  static constexpr int kStepX = 1;
  INFERD_SIMD const float* x_of(const FloatJob& job) { return job.x; }
  template <size_t kTiles, size_t kColumns>
  INFERD_SIMD void step(Block<kTiles, kColumns>& b, const FloatJob& job, const uint8_t* w, const float* x,
                        int64_t) {
    each<kTiles>([&](auto t) INFERD_INLINE {
      const F32x16 weights = load(reinterpret_cast<const float*>(w + t * job.tile_bytes));
      each<kColumns>(
          [&](auto c) INFERD_INLINE { b.acc[t][c] = fma(weights, set1(x[c * job.x_stride]), b.acc[t][c]); });
    });
  }
};

struct F16 {
  static constexpr int kStep = 1;
  static constexpr int kStepBytes = 32;
  static constexpr int kStepX = 1;
  INFERD_SIMD const float* x_of(const FloatJob& job) { return job.x; }
  template <size_t kTiles, size_t kColumns>
  INFERD_SIMD void step(Block<kTiles, kColumns>& b, const FloatJob& job, const uint8_t* w, const float* x,
                        int64_t) {
    each<kTiles>([&](auto t) INFERD_INLINE {
      const F32x16 weights = load_f16(w + t * job.tile_bytes);
      each<kColumns>(
          [&](auto c) INFERD_INLINE { b.acc[t][c] = fma(weights, set1(x[c * job.x_stride]), b.acc[t][c]); });
    });
  }
};

struct Bf16 {
  static constexpr int kStep = 2;
  static constexpr int kStepBytes = 64;
  static constexpr int kStepX = 2;
  INFERD_SIMD const float* x_of(const FloatJob& job) { return job.x; }
  template <size_t kTiles, size_t kColumns>
  INFERD_SIMD void step(Block<kTiles, kColumns>& b, const FloatJob& job, const uint8_t* w, const float* x,
                        int64_t left) {
    each<kTiles>([&](auto t) INFERD_INLINE {
      F32x16 even;
      F32x16 odd;
      load_bf16_pairs(even, odd, w + t * job.tile_bytes);
      each<kColumns>([&](auto c)
                         INFERD_INLINE { b.acc[t][c] = fma(even, set1(x[c * job.x_stride]), b.acc[t][c]); });
      if (left > 1) {  // the second of a pair may not exist
        each<kColumns>([&](auto c) INFERD_INLINE {
          b.acc[t][c] = fma(odd, set1(x[c * job.x_stride + 1]), b.acc[t][c]);
        });
      }
    });
  }
};

// A step is a chunk of columns that share the scale of their row.
struct F8 {
  static constexpr int kStep = kScaleCols;
  static constexpr int kStepBytes = kWordBytes + kScaleCols * kHalfBytes;
  static constexpr int kStepX = kScaleCols;
  INFERD_SIMD const float* x_of(const FloatJob& job) { return job.x; }
  template <size_t kTiles, size_t kColumns>
  INFERD_SIMD void step(Block<kTiles, kColumns>& b, const FloatJob& job, const uint8_t* w, const float* x,
                        int64_t left) {
    F32x16 scale[kTiles];
    each<kTiles>([&](auto t) INFERD_INLINE {
      scale[t] = load(reinterpret_cast<const float*>(w + t * job.tile_bytes));
    });
    w += kWordBytes;
    for (int64_t k = 0; k < left; ++k, w += kHalfBytes, ++x) {
      each<kTiles>([&](auto t) INFERD_INLINE {
        const F32x16 weights = mul(load_f16(w + t * job.tile_bytes), scale[t]);
        each<kColumns>([&](auto c) INFERD_INLINE {
          b.acc[t][c] = fma(weights, set1(x[c * job.x_stride]), b.acc[t][c]);
        });
      });
    }
  }
};

}  // namespace

void add_float_kernels(Kernels& kernels) {
  kernels.linear_f32 = linear_over<F32>;
  kernels.linear_f16 = linear_over<F16>;
  kernels.linear_bf16 = linear_over<Bf16>;
  kernels.linear_f8 = linear_over<F8>;
}

}  // namespace inferd::cpu::INFERD_ISA_NAMESPACE
