// Linear over float tiles: per output one chain over ascending columns, a lane of a vector being a row. The
// types of weights say what a link of the chain is.
//
// A chain advances once per 4 to 6 cycles, so several tiles (few columns of x) or several columns go side by
// side.
#pragma once

#include "cpu/kernels.h"
#include "cpu/kernels/simd.h"

namespace inferd::cpu::INFERD_ISA_NAMESPACE {

template <size_t kTiles, size_t kColumns>
struct Block {
  F32x16 acc[kTiles][kColumns];
};

// A type of weights says how its tile is read, kStep columns of the weight at a time: kStepBytes of the tile
// and kStepX elements of x_of(job). `step(block, job, w, x, left)` adds them to every sum; `left` columns are
// left, fewer than kStep at the end only.

// kTiles tiles from tile `first`, kColumns columns from column `column`.
template <class Type, size_t kTiles, size_t kColumns>
static void block(const FloatJob& job, int64_t first, int64_t column) {
  Block<kTiles, kColumns> b;
  each<kTiles>([&](auto t)
                   INFERD_INLINE { each<kColumns>([&](auto c) INFERD_INLINE { b.acc[t][c] = zero(); }); });
  const uint8_t* w = job.tiles + first * job.tile_bytes;
  const auto* x = Type::x_of(job) + column * job.x_stride;
  int64_t k = 0;
  for (; k + Type::kStep <= job.cols; k += Type::kStep, w += Type::kStepBytes, x += Type::kStepX)
    Type::step(b, job, w, x, Type::kStep);
  if (k < job.cols) Type::step(b, job, w, x, job.cols - k);
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
static void all_tiles(const FloatJob& job, int64_t column) {
  constexpr int64_t together = kTiles;
  int64_t tile = 0;
  for (; tile + together <= job.tile_count; tile += together)
    block<Type, kTiles, kColumns>(job, tile, column);
  for (; tile < job.tile_count; ++tile) block<Type, 1, kColumns>(job, tile, column);
}

// The caller gives few enough tiles to stay in the cache from one group of columns to the next.
template <class Type>
static void linear_over(const FloatJob& job) {
  int64_t column = 0;
  for (; column + kFloatColumns <= job.columns; column += kFloatColumns)
    all_tiles<Type, 1, kFloatColumns>(job, column);
  for (; column + 4 <= job.columns; column += 4) all_tiles<Type, 1, 4>(job, column);
  for (; column + 2 <= job.columns; column += 2) all_tiles<Type, 2, 2>(job, column);
  for (; column < job.columns; ++column) all_tiles<Type, 4, 1>(job, column);
}

}  // namespace inferd::cpu::INFERD_ISA_NAMESPACE
