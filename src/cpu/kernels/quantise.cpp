// Activations to 8 bits, as linear_spec.h's quantise() defines it, into the records of one panel. Compiled
// once per instruction set level.
#include "cpu/kernels/level_kernels.h"
#include "cpu/kernels/simd.h"

namespace inferd::cpu::INFERD_ISA_NAMESPACE {
namespace {

// kVectors · 16 elements of x to q. Returns the scale; sums[i] = the sum of q of vector i.
template <int kVectors>
INFERD_SIMD float quantise(int8_t* q, int32_t* sums, const float* x) {
  I32x16 largest = izero();
  for (int i = 0; i < kVectors; ++i) largest = imax(largest, magnitudes(load(x + 16 * i)));
  const QuantScale s = quant_scale(ireduce_max(largest));
  if (s.inverse == 0) {
    for (int i = 0; i < kVectors; ++i) sums[i] = store_i8(q + 16 * i, zero());
  } else {
    for (int i = 0; i < kVectors; ++i) sums[i] = store_i8(q + 16 * i, mul(load(x + 16 * i), set1(s.inverse)));
  }
  return s.scale;
}

// A record of `columns` columns: its arrays lie one after another, each with `columns` entries a row
// (tile_layout.h).
INFERD_SIMD void put_words(int32_t* record, int count, int32_t column, int32_t width, const int8_t* q) {
  for (int i = 0; i < count; ++i) __builtin_memcpy(record + i * width + column, q + 4 * i, 4);
}
INFERD_SIMD void clear(void* records, int64_t words) {
  __builtin_memset(records, 0, static_cast<size_t>(words) * 4);
}
INFERD_SIMD void put_float(int32_t* at, float value) {
  __builtin_memcpy(at, &value, 4);
}
INFERD_SIMD int32_t pair_of(int32_t low, int32_t high) {
  return static_cast<int32_t>((static_cast<uint32_t>(low) & 0xFFFF) | static_cast<uint32_t>(high) << 16);
}

void quantise_32(void* records, const float* x, int64_t x_stride, int32_t columns, int32_t width,
                 int64_t cols) {
  constexpr int words = kRecord32Bytes / 4;
  if (columns < width) clear(records, cols / 32 * words * width);
  for (int32_t c = 0; c < columns; ++c) {
    auto* record = static_cast<int32_t*>(records);
    for (int64_t k = 0; k < cols; k += 32, record += words * width) {
      int8_t q[32];
      int32_t sums[2];
      const float scale = quantise<2>(q, sums, x + c * x_stride + k);
      const int32_t sum = sums[0] + sums[1];
      put_words(record, 8, c, width, q);
      put_float(record + 8 * width + c, scale);
      put_float(record + 9 * width + c, scale * static_cast<float>(sum));
      record[10 * width + c] = -8 * sum;
      record[11 * width + c] = -16 * sum;
    }
  }
}

void quantise_256(void* records, const float* x, int64_t x_stride, int32_t columns, int32_t width,
                  int64_t cols) {
  constexpr int words = kRecord256Bytes / 4;
  if (columns < width) clear(records, cols / 256 * words * width);
  for (int32_t c = 0; c < columns; ++c) {
    auto* record = static_cast<int32_t*>(records);
    for (int64_t k = 0; k < cols; k += 256, record += words * width) {
      int8_t q[256];
      int32_t sums[16];
      const float scale = quantise<16>(q, sums, x + c * x_stride + k);
      put_words(record, 64, c, width, q);
      put_float(record + 64 * width + c, scale);
      for (int pair = 0; pair < 8; ++pair) {  // Q6_K's pairs: tile_layout.h
        const int first = pair / 4 * 8 + pair % 2 * 2 + pair / 2 % 2;
        record[(65 + pair) * width + c] = pair_of(sums[first], sums[first + 4]);
      }
      for (int i = 0; i < 4; ++i) {
        const int32_t* four = sums + 4 * i;
        record[(73 + i) * width + c] = pair_of(four[0] + four[1], four[2] + four[3]);
      }
    }
  }
}

}  // namespace

void add_quantise_kernels(Kernels& kernels) {
  kernels.quantise_32 = quantise_32;
  kernels.quantise_256 = quantise_256;
}

}  // namespace inferd::cpu::INFERD_ISA_NAMESPACE
