// The definition of a linear on the CPU: one scalar formula per weight type, over the blocks as a file stores
// them.
//
// Every kernel of every instruction set level, for any number of columns and threads, gives these bits; tests
// hold them to it. A kernel may order integer sums as it likes, they are exact. Floats: per block one fma
// (two with mins) into one accumulator per output, blocks in ascending order.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "tensor/dtype.h"
#include "tensor/half.h"
#include "tensor/quant_blocks.h"

namespace inferd::cpu::spec {

// Below this a block's activations count as zero, so that 127 / largest stays finite.
inline constexpr float kSmallest = 0x1.0p-120f;

// q = x / scale to the nearest integer, halves to even; scale = max|x| / 127. Returns the scale. A NaN or an
// infinity makes the scale NaN or infinite and all q zero: 0 · scale then is NaN, so it reaches every output.
inline float quantise(int8_t* q, const float* x, int n) {
  uint32_t largest = 0;  // bits order like magnitudes: finite < infinity < NaN
  for (int i = 0; i < n; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(x[i]) & 0x7FFFFFFF;
    largest = largest > bits ? largest : bits;
  }
  const auto magnitude = std::bit_cast<float>(largest);
  const bool finite = largest < 0x7F800000;
  if (!finite || magnitude < kSmallest) {
    std::memset(q, 0, static_cast<size_t>(n));
    return finite ? 0.0f : magnitude / 127.0f;
  }
  const float inverse = 127.0f / magnitude;
  for (int i = 0; i < n; ++i) q[i] = static_cast<int8_t>(std::nearbyint(x[i] * inverse));
  return magnitude / 127.0f;
}

inline int32_t sum(const int8_t* q, int n) {
  int32_t total = 0;
  for (int i = 0; i < n; ++i) total += q[i];
  return total;
}

// ---- Blocks of 32: acc' is the accumulator after the block; d and m are the block's halves as floats
// -------------------

// Q4_0, Q5_0, Q8_0: x = d · q. acc' = fma(Σ q·xq, d · scale, acc)
inline float step(float acc, int32_t dot, float d, float scale) {
  return std::fma(static_cast<float>(dot), d * scale, acc);
}

// Q4_1, Q5_1: x = d · q + m. acc' = fma(m, scale · Σ xq, fma(Σ q·xq, d · scale, acc))
inline float step_min(float acc, int32_t dot, float d, float m, float scale, int32_t x_sum) {
  return std::fma(m, scale * static_cast<float>(x_sum), step(acc, dot, d, scale));
}

inline int nibble(const uint8_t* q, int i) {
  return i < 16 ? q[i] & 15 : q[i - 16] >> 4;
}
inline int fifth_bit(const uint8_t* high, int i) {
  return (high[i / 8] >> (i % 8) & 1) << 4;
}

inline float block(float acc, const BlockQ4_0& b, const int8_t* xq, float scale) {
  int32_t dot = 0;
  for (int i = 0; i < 32; ++i) dot += (nibble(b.q, i) - 8) * xq[i];
  return step(acc, dot, f16_to_f32(b.d), scale);
}
inline float block(float acc, const BlockQ4_1& b, const int8_t* xq, float scale) {
  int32_t dot = 0;
  for (int i = 0; i < 32; ++i) dot += nibble(b.q, i) * xq[i];
  return step_min(acc, dot, f16_to_f32(b.d), f16_to_f32(b.m), scale, sum(xq, 32));
}
inline float block(float acc, const BlockQ5_0& b, const int8_t* xq, float scale) {
  int32_t dot = 0;
  for (int i = 0; i < 32; ++i) dot += ((nibble(b.q, i) | fifth_bit(b.high, i)) - 16) * xq[i];
  return step(acc, dot, f16_to_f32(b.d), scale);
}
inline float block(float acc, const BlockQ5_1& b, const int8_t* xq, float scale) {
  int32_t dot = 0;
  for (int i = 0; i < 32; ++i) dot += (nibble(b.q, i) | fifth_bit(b.high, i)) * xq[i];
  return step_min(acc, dot, f16_to_f32(b.d), f16_to_f32(b.m), scale, sum(xq, 32));
}
inline float block(float acc, const BlockQ8_0& b, const int8_t* xq, float scale) {
  int32_t dot = 0;
  for (int i = 0; i < 32; ++i) dot += b.q[i] * xq[i];
  return step(acc, dot, f16_to_f32(b.d), scale);
}

// ---- Blocks of 256: sub-block scales and mins are integers and stay in the integer sum ----

inline int k_scale(const uint8_t* packed, int s) {
  return s < 4 ? packed[s] & 63 : (packed[s + 4] & 15) | (packed[s - 4] >> 6) << 4;
}
inline int k_min(const uint8_t* packed, int s) {
  return s < 4 ? packed[s + 4] & 63 : packed[s + 4] >> 4 | (packed[s] >> 6) << 4;
}

// Q4_K, Q5_K. acc' = fma(−Σ min·Σ xq, dmin · scale, fma(Σ sub-scale·Σ q·xq, d · scale, acc))
inline float step_k(float acc, int32_t dot, int32_t mins, float d, float dmin, float scale) {
  return std::fma(static_cast<float>(-mins), dmin * scale, step(acc, dot, d, scale));
}

inline float block(float acc, const BlockQ4_K& b, const int8_t* xq, float scale) {
  int32_t dot = 0;
  int32_t mins = 0;
  for (int s = 0; s < 8; ++s) {
    int32_t part = 0;
    for (int j = 0; j < 32; ++j) {
      const int byte = b.q[s / 2 * 32 + j];
      part += (s % 2 == 0 ? byte & 15 : byte >> 4) * xq[s * 32 + j];
    }
    dot += k_scale(b.scales, s) * part;
    mins += k_min(b.scales, s) * sum(xq + s * 32, 32);
  }
  return step_k(acc, dot, mins, f16_to_f32(b.d), f16_to_f32(b.dmin), scale);
}

inline float block(float acc, const BlockQ5_K& b, const int8_t* xq, float scale) {
  int32_t dot = 0;
  int32_t mins = 0;
  for (int s = 0; s < 8; ++s) {
    int32_t part = 0;
    for (int j = 0; j < 32; ++j) {
      const int byte = b.q[s / 2 * 32 + j];
      part += ((s % 2 == 0 ? byte & 15 : byte >> 4) | (b.high[j] >> s & 1) << 4) * xq[s * 32 + j];
    }
    dot += k_scale(b.scales, s) * part;
    mins += k_min(b.scales, s) * sum(xq + s * 32, 32);
  }
  return step_k(acc, dot, mins, f16_to_f32(b.d), f16_to_f32(b.dmin), scale);
}

// Q6_K. acc' = fma(Σ sub-scale·Σ (q − 32)·xq, d · scale, acc)
inline float block(float acc, const BlockQ6_K& b, const int8_t* xq, float scale) {
  int32_t dot = 0;
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128;
    const int g = i % 128 / 32;
    const int j = i % 32;
    const int byte = b.low[half * 64 + g % 2 * 32 + j];
    const int q = (g < 2 ? byte & 15 : byte >> 4) | (b.high[half * 32 + j] >> (2 * g) & 3) << 4;
    dot += b.scales[i / 16] * ((q - 32) * xq[i]);
  }
  return step(acc, dot, f16_to_f32(b.d), scale);
}

// Q2_K, sixteen parts. acc' as of Q4_K.
inline float block(float acc, const BlockQ2_K& b, const int8_t* xq, float scale) {
  int32_t dot = 0;
  int32_t mins = 0;
  for (int i = 0; i < 256; ++i) {
    const int q = b.q[i / 128 * 32 + i % 32] >> (2 * (i % 128 / 32)) & 3;
    dot += (b.scales[i / 16] & 15) * (q * xq[i]);
    mins += (b.scales[i / 16] >> 4) * xq[i];
  }
  return step_k(acc, dot, mins, f16_to_f32(b.d), f16_to_f32(b.dmin), scale);
}

// Q3_K. acc' = fma(Σ sub-scale·Σ (q − 4)·xq, d · scale, acc)
inline float block(float acc, const BlockQ3_K& b, const int8_t* xq, float scale) {
  int32_t dot = 0;
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128;
    const int g = i % 128 / 32;
    const int q = (b.q[half * 32 + i % 32] >> (2 * g) & 3) | (b.high[i % 32] >> (4 * half + g) & 1) << 2;
    dot += q3_k_scale(b.scales, i / 16) * ((q - 4) * xq[i]);
  }
  return step(acc, dot, f16_to_f32(b.d), scale);
}

// ---- Signed bytes from a table, or as they are: blocks of 32, or parts of 32 of a block of 256, each with
// its own activations' scale. acc' = fma(Σ v·xq, d · scale, acc), d a float: a part's scale times the
// block's, exactly

inline float signed_part(float acc, float d, const int8_t* v, const float* x) {
  int8_t xq[32];
  const float scale = quantise(xq, x, 32);
  int32_t dot = 0;
  for (int i = 0; i < 32; ++i) dot += v[i] * xq[i];
  return step(acc, dot, d, scale);
}

template <class Values>
void look_up(int8_t* v, const Values& values, const uint8_t* q) {
  for (int i = 0; i < 32; ++i) v[i] = values[static_cast<size_t>(nibble(q, i))];
}

inline float signed_block(float acc, const BlockIQ4_NL& b, const float* x) {
  int8_t v[32];
  look_up(v, kIq4Values, b.q);
  return signed_part(acc, f16_to_f32(b.d), v, x);
}
inline float signed_block(float acc, const BlockMXFP4& b, const float* x) {
  int8_t v[32];
  look_up(v, kMxfp4Values, b.q);
  return signed_part(acc, mxfp4_scale(b.e), v, x);
}
inline float signed_block(float acc, const BlockIQ4_XS& b, const float* x) {
  for (int s = 0; s < 8; ++s) {
    int8_t v[32];
    look_up(v, kIq4Values, b.q + 16 * s);
    acc = signed_part(acc, f16_to_f32(b.d) * static_cast<float>(iq4_xs_scale(b, s)), v, x + 32 * s);
  }
  return acc;
}
inline float signed_block(float acc, const BlockQ8_K& b, const float* x) {
  for (int s = 0; s < 8; ++s) acc = signed_part(acc, b.d, b.q + 32 * s, x + 32 * s);
  return acc;
}

template <typename Block>
float signed_row(const std::byte* w, const float* x, int64_t cols) {
  float acc = 0;
  for (int64_t k = 0; k < cols; k += Block::kElements) {
    Block b;
    std::memcpy(&b, w + k / Block::kElements * static_cast<int64_t>(sizeof(Block)), sizeof(Block));
    acc = signed_block(acc, b, x + k);
  }
  return acc;
}

template <typename Block>
float quantised_row(const std::byte* w, const float* x, int64_t cols) {
  float acc = 0;
  for (int64_t k = 0; k < cols; k += Block::kElements) {
    Block b;
    std::memcpy(&b, w + k / Block::kElements * static_cast<int64_t>(sizeof(Block)), sizeof(Block));
    int8_t xq[Block::kElements];
    const float scale = quantise(xq, x + k, Block::kElements);
    acc = block(acc, b, xq, scale);
  }
  return acc;
}

// ---- Float weights: one chain of fma in ascending order ----

template <typename Read>
float float_row(const float* x, int64_t cols, Read weight) {
  float acc = 0;
  for (int64_t k = 0; k < cols; ++k) acc = std::fma(weight(k), x[k], acc);
  return acc;
}

inline uint16_t half_at(const std::byte* w, int64_t k) {
  uint16_t bits = 0;
  std::memcpy(&bits, w + 2 * k, 2);
  return bits;
}

// One output: the row `w` of a weight as the file stores it, times x. A bias is added to it afterwards.
// `scales` are those of the row's blocks of `block_cols` columns, of F8_E4M3 only: the weight times its
// scale, rounded, is what the fma takes; null: all are 1.
inline float row(DType type, const std::byte* w, const float* x, int64_t cols, const float* scales = nullptr,
                 int64_t block_cols = 1) {
  switch (type) {
    case DType::f32:
      return float_row(x, cols, [w](int64_t k) {
        float value = 0;
        std::memcpy(&value, w + 4 * k, 4);
        return value;
      });
    case DType::f16:
      return float_row(x, cols, [w](int64_t k) { return f16_to_f32(half_at(w, k)); });
    case DType::bf16:
      return float_row(x, cols, [w](int64_t k) { return bf16_to_f32(half_at(w, k)); });
    case DType::q4_0:
      return quantised_row<BlockQ4_0>(w, x, cols);
    case DType::q4_1:
      return quantised_row<BlockQ4_1>(w, x, cols);
    case DType::q5_0:
      return quantised_row<BlockQ5_0>(w, x, cols);
    case DType::q5_1:
      return quantised_row<BlockQ5_1>(w, x, cols);
    case DType::q8_0:
      return quantised_row<BlockQ8_0>(w, x, cols);
    case DType::q4_k:
      return quantised_row<BlockQ4_K>(w, x, cols);
    case DType::q5_k:
      return quantised_row<BlockQ5_K>(w, x, cols);
    case DType::q6_k:
      return quantised_row<BlockQ6_K>(w, x, cols);
    case DType::q2_k:
      return quantised_row<BlockQ2_K>(w, x, cols);
    case DType::q3_k:
      return quantised_row<BlockQ3_K>(w, x, cols);
    case DType::q8_k:
      return signed_row<BlockQ8_K>(w, x, cols);
    case DType::iq4_nl:
      return signed_row<BlockIQ4_NL>(w, x, cols);
    case DType::iq4_xs:
      return signed_row<BlockIQ4_XS>(w, x, cols);
    case DType::mxfp4:
      return signed_row<BlockMXFP4>(w, x, cols);
    case DType::f8_e4m3:
      return float_row(x, cols, [=](int64_t k) {
        return e4m3_to_f32(static_cast<uint8_t>(w[k])) * (scales == nullptr ? 1.0f : scales[k / block_cols]);
      });
  }
  INFERD_CHECK(false, "dtype ", static_cast<int>(type));
}

}  // namespace inferd::cpu::spec
