// Linear over float tiles: per output one chain of fma over ascending columns, a lane of a vector being a
// row. Compiled once per instruction set level.
//
// A chain advances once per 4 cycles, so several tiles (few columns of x) or several columns go side by side.
#include "cpu/kernels/level_kernels.h"
#include "cpu/kernels/simd.h"

namespace inferd::cpu::INFERD_ISA_NAMESPACE {
namespace {

template <size_t kTiles, size_t kColumns>
struct Block {
  F32x16 acc[kTiles][kColumns];
};

// How a type's tile is read: kStep columns of x at a time, kStepBytes of a tile.
struct F32 {
  static constexpr int kStep = 1;
  static constexpr int kStepBytes = 64;
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
  // `left` columns of x are left; the second of a pair may not exist.
  template <size_t kTiles, size_t kColumns>
  INFERD_SIMD void step(Block<kTiles, kColumns>& b, const FloatJob& job, const uint8_t* w, const float* x,
                        int64_t left) {
    each<kTiles>([&](auto t) INFERD_INLINE {
      F32x16 even;
      F32x16 odd;
      load_bf16_pairs(even, odd, w + t * job.tile_bytes);
      each<kColumns>([&](auto c)
                         INFERD_INLINE { b.acc[t][c] = fma(even, set1(x[c * job.x_stride]), b.acc[t][c]); });
      if (left > 1) {
        each<kColumns>([&](auto c) INFERD_INLINE {
          b.acc[t][c] = fma(odd, set1(x[c * job.x_stride + 1]), b.acc[t][c]);
        });
      }
    });
  }
};

// kTiles tiles from tile `first`, kColumns columns from column `column`.
template <class Type, size_t kTiles, size_t kColumns>
void block(const FloatJob& job, int64_t first, int64_t column) {
  Block<kTiles, kColumns> b;
  each<kTiles>([&](auto t)
                   INFERD_INLINE { each<kColumns>([&](auto c) INFERD_INLINE { b.acc[t][c] = zero(); }); });
  const uint8_t* w = job.tiles + first * job.tile_bytes;
  const float* x = job.x + column * job.x_stride;
  int64_t k = 0;
  for (; k + Type::kStep <= job.cols; k += Type::kStep, w += Type::kStepBytes)
    Type::step(b, job, w, x + k, Type::kStep);
  if (k < job.cols) Type::step(b, job, w, x + k, job.cols - k);
  each<kTiles>([&](auto t) INFERD_INLINE {
    const int64_t row = (first + t) * kTileRows;
    const auto rows = static_cast<int>(job.rows - row < kTileRows ? job.rows - row : kTileRows);
    each<kColumns>([&](auto c) INFERD_INLINE {
      F32x16 y = b.acc[t][c];
      if (job.bias != nullptr) y = add(y, load_n(job.bias + row, rows));
      store_n(job.y + (column + c) * job.y_stride + row, y, rows);
    });
  });
}

template <class Type, size_t kTiles, size_t kColumns>
void all_tiles(const FloatJob& job, int64_t column) {
  constexpr int64_t together = kTiles;
  int64_t tile = 0;
  for (; tile + together <= job.tile_count; tile += together)
    block<Type, kTiles, kColumns>(job, tile, column);
  for (; tile < job.tile_count; ++tile) block<Type, 1, kColumns>(job, tile, column);
}

// The caller gives few enough tiles to stay in the cache from one group of columns to the next.
template <class Type>
void linear(const FloatJob& job) {
  int64_t column = 0;
  for (; column + kFloatColumns <= job.columns; column += kFloatColumns)
    all_tiles<Type, 1, kFloatColumns>(job, column);
  for (; column + 4 <= job.columns; column += 4) all_tiles<Type, 1, 4>(job, column);
  for (; column + 2 <= job.columns; column += 2) all_tiles<Type, 2, 2>(job, column);
  for (; column < job.columns; ++column) all_tiles<Type, 4, 1>(job, column);
}

}  // namespace

void add_float_kernels(Kernels& kernels) {
  kernels.linear_f32 = linear<F32>;
  kernels.linear_f16 = linear<F16>;
  kernels.linear_bf16 = linear<Bf16>;
}

}  // namespace inferd::cpu::INFERD_ISA_NAMESPACE
