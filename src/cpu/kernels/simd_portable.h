// Sixteen lanes as plain arrays; see simd.h. This file says what every operation means.
#pragma once

#include <cmath>
#include <cstring>

#include "tensor/half.h"

// clang-format off: one line an operation
namespace inferd::cpu::portable {

inline constexpr int kWidths = 2;            // panels of quantised weights: 1 … 2^(kWidths − 1) columns
inline constexpr int kFloatColumns = 4;  // of float weights
inline constexpr int kQueryGroup = 4;        // queries of attention side by side
inline constexpr int kAttentionVectors = 4;  // vectors of sums in registers

struct F32x16 {
  float v[16];
};
struct I32x16 {
  int32_t v[16];
};

// ---- Float ----

#define INFERD_EACH_LANE for (int i = 0; i < 16; ++i)

INFERD_SIMD F32x16 set1(float x) {
  F32x16 r;
  INFERD_EACH_LANE r.v[i] = x;
  return r;
}
INFERD_SIMD F32x16 zero() { return set1(0.0f); }
INFERD_SIMD F32x16 load(const float* p) {
  F32x16 r;
  std::memcpy(r.v, p, sizeof r.v);
  return r;
}
// The first n lanes, zeros after them; nothing behind p[n − 1] is read.
INFERD_SIMD F32x16 load_n(const float* p, int n) {
  F32x16 r = zero();
  for (int i = 0; i < n; ++i) r.v[i] = p[i];
  return r;
}
INFERD_SIMD void store(float* p, F32x16 a) { std::memcpy(p, a.v, sizeof a.v); }
INFERD_SIMD void store_n(float* p, F32x16 a, int n) {
  for (int i = 0; i < n; ++i) p[i] = a.v[i];
}

#define INFERD_LANEWISE(name, expression)              \
  INFERD_SIMD F32x16 name(F32x16 a, F32x16 b) {        \
    F32x16 r;                                          \
    INFERD_EACH_LANE r.v[i] = expression;              \
    return r;                                          \
  }
INFERD_LANEWISE(add, a.v[i] + b.v[i])
INFERD_LANEWISE(sub, a.v[i] - b.v[i])
INFERD_LANEWISE(mul, a.v[i] * b.v[i])
INFERD_LANEWISE(div, a.v[i] / b.v[i])
INFERD_LANEWISE(max, a.v[i] > b.v[i] ? a.v[i] : b.v[i])
INFERD_LANEWISE(min, a.v[i] < b.v[i] ? a.v[i] : b.v[i])
#undef INFERD_LANEWISE

// a·b + c, rounded once.
INFERD_SIMD F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  F32x16 r;
  INFERD_EACH_LANE r.v[i] = __builtin_fmaf(a.v[i], b.v[i], c.v[i]);
  return r;
}
// a < b ? yes : no
INFERD_SIMD F32x16 select_less(F32x16 a, F32x16 b, F32x16 yes, F32x16 no) {
  F32x16 r;
  INFERD_EACH_LANE r.v[i] = a.v[i] < b.v[i] ? yes.v[i] : no.v[i];
  return r;
}
// Lane i is a's for i < n, else b's.
INFERD_SIMD F32x16 first_lanes(F32x16 a, F32x16 b, int n) {
  F32x16 r;
  INFERD_EACH_LANE r.v[i] = i < n ? a.v[i] : b.v[i];
  return r;
}
// Bit i is 1 when lane i of a is at least b's.
INFERD_SIMD uint32_t at_least(F32x16 a, F32x16 b) {
  uint32_t r = 0;
  INFERD_EACH_LANE r |= static_cast<uint32_t>(a.v[i] >= b.v[i]) << i;
  return r;
}
// Lanes 2i and 2i + 1 change places.
INFERD_SIMD F32x16 swap_neighbours(F32x16 a) {
  F32x16 r;
  INFERD_EACH_LANE r.v[i] = a.v[i ^ 1];
  return r;
}
// The sum of the lanes, halves folded onto each other: 16, 8, 4, 2.
INFERD_SIMD float reduce_add(F32x16 a) {
  float r[8];
  for (int i = 0; i < 8; ++i) r[i] = a.v[i] + a.v[i + 8];
  for (int i = 0; i < 4; ++i) r[i] = r[i] + r[i + 4];
  for (int i = 0; i < 2; ++i) r[i] = r[i] + r[i + 2];
  return r[0] + r[1];
}
// The largest lane; any lane when one is NaN.
INFERD_SIMD float reduce_max(F32x16 a) {
  float r = a.v[0];
  for (int i = 1; i < 16; ++i) r = r > a.v[i] ? r : a.v[i];
  return r;
}
INFERD_SIMD float sqrt1(float x) { return __builtin_sqrtf(x); }
INFERD_SIMD float fma1(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

// e · 2^n, n in −126 … 127 given as `shifted` = n + 1.5 · 2^23. A product, so that a NaN stays one.
INFERD_SIMD F32x16 scale_by_power_of_two(F32x16 e, F32x16 shifted) {
  F32x16 r;
  INFERD_EACH_LANE {
    r.v[i] = e.v[i] * std::bit_cast<float>((std::bit_cast<uint32_t>(shifted.v[i]) << 23) + 0x3F800000u);
  }
  return r;
}

// ---- Half, bfloat16, int8 to float and back ----

INFERD_SIMD F32x16 load_f16(const void* p) {
  uint16_t h[16];
  std::memcpy(h, p, sizeof h);
  F32x16 r;
  INFERD_EACH_LANE r.v[i] = f16_to_f32(h[i]);
  return r;
}
INFERD_SIMD F32x16 load_bf16(const void* p) {
  uint16_t h[16];
  std::memcpy(h, p, sizeof h);
  F32x16 r;
  INFERD_EACH_LANE r.v[i] = bf16_to_f32(h[i]);
  return r;
}
INFERD_SIMD F32x16 load_i8(const void* p) {
  int8_t q[16];
  std::memcpy(q, p, sizeof q);
  F32x16 r;
  INFERD_EACH_LANE r.v[i] = static_cast<float>(q[i]);
  return r;
}
// Round to nearest even. NaN stays NaN, with any payload.
INFERD_SIMD void store_f16(void* p, F32x16 a) {
  uint16_t h[16];
  INFERD_EACH_LANE h[i] = f32_to_f16(a.v[i]);
  std::memcpy(p, h, sizeof h);
}
INFERD_SIMD void store_bf16(void* p, F32x16 a) {
  uint16_t h[16];
  INFERD_EACH_LANE h[i] = f32_to_bf16(a.v[i]);
  std::memcpy(p, h, sizeof h);
}
// Pairs (even, odd) of bfloat16 in the low and high half of 32-bit words: sixteen words at p.
INFERD_SIMD void load_bf16_pairs(F32x16& even, F32x16& odd, const void* p) {
  uint32_t w[16];
  std::memcpy(w, p, sizeof w);
  INFERD_EACH_LANE {
    even.v[i] = std::bit_cast<float>(w[i] << 16);
    odd.v[i] = std::bit_cast<float>(w[i] & 0xFFFF0000u);
  }
}

// ---- 32-bit integers ----

INFERD_SIMD I32x16 izero() {
  I32x16 r;
  INFERD_EACH_LANE r.v[i] = 0;
  return r;
}
INFERD_SIMD I32x16 iset1(int32_t x) {
  I32x16 r;
  INFERD_EACH_LANE r.v[i] = x;
  return r;
}
INFERD_SIMD I32x16 iadd(I32x16 a, I32x16 b) {
  I32x16 r;
  INFERD_EACH_LANE r.v[i] = a.v[i] + b.v[i];
  return r;
}
INFERD_SIMD I32x16 isub(I32x16 a, I32x16 b) {
  I32x16 r;
  INFERD_EACH_LANE r.v[i] = a.v[i] - b.v[i];
  return r;
}
INFERD_SIMD I32x16 ishift_left(I32x16 a, int bits) {
  INFERD_EACH_LANE a.v[i] = static_cast<int32_t>(static_cast<uint32_t>(a.v[i]) << bits);
  return a;
}
INFERD_SIMD F32x16 to_f32(I32x16 a) {
  F32x16 r;
  INFERD_EACH_LANE r.v[i] = static_cast<float>(a.v[i]);
  return r;
}
// The bits of |a|, as integers: finite < infinity < NaN.
INFERD_SIMD I32x16 magnitudes(F32x16 a) {
  I32x16 r;
  INFERD_EACH_LANE r.v[i] = static_cast<int32_t>(std::bit_cast<uint32_t>(a.v[i]) & 0x7FFFFFFFu);
  return r;
}
INFERD_SIMD I32x16 imax(I32x16 a, I32x16 b) {
  INFERD_EACH_LANE a.v[i] = a.v[i] > b.v[i] ? a.v[i] : b.v[i];
  return a;
}
INFERD_SIMD int32_t ireduce_max(I32x16 a) {
  int32_t r = a.v[0];
  for (int i = 1; i < 16; ++i) r = r > a.v[i] ? r : a.v[i];
  return r;
}
// Sixteen int8 at q: a rounded to nearest even. Requires |a| < 128. Returns their sum.
INFERD_SIMD int32_t store_i8(int8_t* q, F32x16 a) {
  int32_t sum = 0;
  INFERD_EACH_LANE {
    // Adding 1.5 · 2^23 rounds to an integer in the float adder.
    q[i] = static_cast<int8_t>((a.v[i] + 0x1.8p+23f) - 0x1.8p+23f);
    sum += q[i];
  }
  return sum;
}

// ---- Dot products of weights and 8-bit activations ----
// A U8x64 holds four consecutive k of sixteen rows: byte 4·row + j. `x` holds four activations in its bytes.

struct U8x64 {
  uint8_t v[64];
};

INFERD_SIMD U8x64 load_bytes(const uint8_t* p) {
  U8x64 r;
  std::memcpy(r.v, p, sizeof r.v);
  return r;
}
INFERD_SIMD void store_bytes(uint8_t* p, U8x64 a) { std::memcpy(p, a.v, sizeof a.v); }
INFERD_SIMD U8x64 low_nibbles(U8x64 a) {
  for (int i = 0; i < 64; ++i) a.v[i] = a.v[i] & 15;
  return a;
}
INFERD_SIMD U8x64 high_nibbles(U8x64 a) {
  for (int i = 0; i < 64; ++i) a.v[i] = static_cast<uint8_t>(a.v[i] >> 4);
  return a;
}
// a | bit `index` of each byte of `high`, moved to bit 4.
INFERD_SIMD U8x64 with_fifth_bit(U8x64 a, U8x64 high, int index) {
  for (int i = 0; i < 64; ++i) a.v[i] = static_cast<uint8_t>(a.v[i] | (high.v[i] >> index & 1) << 4);
  return a;
}
// a | bits 2·index and 2·index + 1 of each byte of `high`, moved to bits 4 and 5.
INFERD_SIMD U8x64 with_two_bits(U8x64 a, U8x64 high, int index) {
  for (int i = 0; i < 64; ++i) a.v[i] = static_cast<uint8_t>(a.v[i] | (high.v[i] >> (2 * index) & 3) << 4);
  return a;
}

// Bits 2·index and 2·index + 1 of each byte.
INFERD_SIMD U8x64 two_bits(U8x64 a, int index) {
  for (int i = 0; i < 64; ++i) a.v[i] = static_cast<uint8_t>(a.v[i] >> (2 * index) & 3);
  return a;
}

INFERD_SIMD int32_t signed_byte(int32_t x, int j) { return static_cast<int8_t>(static_cast<uint32_t>(x) >> (8 * j)); }

// A sum of products of unsigned weights ≤ kMax with activations in −127 … 127. At most kDepth<kMax> terms of four
// products fit; then finish() and begin anew.
template <int kMax>
inline constexpr int kDepth = 64;

struct Dot {
  I32x16 sum;
};
INFERD_SIMD Dot dot_begin(U8x64 w, int32_t x) {
  Dot r;
  INFERD_EACH_LANE {
    int32_t sum = 0;
    for (int j = 0; j < 4; ++j) sum += w.v[4 * i + j] * signed_byte(x, j);
    r.sum.v[i] = sum;
  }
  return r;
}
INFERD_SIMD Dot dot_more(Dot dot, U8x64 w, int32_t x) { return {iadd(dot.sum, dot_begin(w, x).sum)}; }
// sum + the dot product.
INFERD_SIMD I32x16 dot_finish(I32x16 sum, Dot dot) { return iadd(sum, dot.sum); }

// One scale per row, for dot_finish_scaled.
struct Scales {
  int32_t v[16];
};
// Rows' pairs of bytes at p: byte 2·row + index is the scale.
INFERD_SIMD Scales load_unsigned_scales(const uint8_t* p, int index) {
  Scales r;
  INFERD_EACH_LANE r.v[i] = p[2 * i + index];
  return r;
}
INFERD_SIMD Scales load_signed_scales(const uint8_t* p, int index) {
  Scales r;
  INFERD_EACH_LANE r.v[i] = static_cast<int8_t>(p[2 * i + index]);
  return r;
}
// sum + scale · the dot product.
INFERD_SIMD I32x16 dot_finish_scaled(I32x16 sum, Dot dot, Scales scales) {
  INFERD_EACH_LANE sum.v[i] += scales.v[i] * dot.sum.v[i];
  return sum;
}

// One pair of small factors per row, for pairs_dot.
struct Pairs {
  int32_t v[32];
};
INFERD_SIMD Pairs load_unsigned_pairs(const uint8_t* p) {
  Pairs r;
  for (int i = 0; i < 32; ++i) r.v[i] = p[i];
  return r;
}
INFERD_SIMD Pairs load_signed_pairs(const uint8_t* p) {
  Pairs r;
  for (int i = 0; i < 32; ++i) r.v[i] = static_cast<int8_t>(p[i]);
  return r;
}
// sum + first of the pair · low half of x + second · high half of x.
INFERD_SIMD I32x16 pairs_dot(I32x16 sum, Pairs a, int32_t x) {
  INFERD_EACH_LANE sum.v[i] += a.v[2 * i] * static_cast<int16_t>(x) + a.v[2 * i + 1] * (x >> 16);
  return sum;
}

// Signed weights: signed_begin(−16 · sum of the block's activations), signed_more() per four k, signed_finish().
struct SignedWeights {
  U8x64 w;
};
INFERD_SIMD SignedWeights load_signed(const uint8_t* p) { return {load_bytes(p)}; }
struct SignedDot {
  I32x16 sum;
};
INFERD_SIMD SignedDot signed_begin(int32_t) { return {izero()}; }
INFERD_SIMD SignedDot signed_more(SignedDot dot, const SignedWeights& w, int32_t x) {
  INFERD_EACH_LANE {
    for (int j = 0; j < 4; ++j) dot.sum.v[i] += static_cast<int8_t>(w.w.v[4 * i + j]) * signed_byte(x, j);
  }
  return dot;
}
INFERD_SIMD I32x16 signed_finish(SignedDot dot) { return dot.sum; }

// ---- Transposing ----

// out[j·16 + i] = lane j of row i, for sixteen rows of sixteen.
INFERD_SIMD void store_transposed(float* out, const F32x16 (&rows)[16]) {
  for (int j = 0; j < 16; ++j) {
    INFERD_EACH_LANE out[j * 16 + i] = rows[i].v[j];
  }
}

INFERD_SIMD void prefetch(const void*) {}

}  // namespace inferd::cpu::portable
