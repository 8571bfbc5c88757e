// Sixteen lanes as two 256-bit registers (AVX2, FMA, F16C); what each operation means: simd_portable.h.
#pragma once

#include <immintrin.h>

#include "cpu/kernels/transpose_avx.h"

// clang-format off: one line an operation
namespace inferd::cpu::avx2 {

inline constexpr int kWidths = 3;            // panels of quantised weights: 1 … 2^(kWidths − 1) columns
inline constexpr int kFloatColumns = 6;  // of float weights
inline constexpr int kQueryGroup = 6;        // queries of attention side by side
inline constexpr int kAttentionVectors = 6;  // vectors of sums in registers

struct F32x16 {
  __m256 lo, hi;
};
struct I32x16 {
  __m256i lo, hi;
};

// ---- Float ----

INFERD_SIMD F32x16 set1(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
INFERD_SIMD F32x16 zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
INFERD_SIMD F32x16 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
INFERD_SIMD void store(float* p, F32x16 a) {
  _mm256_storeu_ps(p, a.lo);
  _mm256_storeu_ps(p + 8, a.hi);
}
// All bits of lanes first … first + 7 that are below n.
INFERD_SIMD __m256i lanes_below(int n, int first) {
  const __m256i lane = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(first));
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), lane);
}
INFERD_SIMD F32x16 load_n(const float* p, int n) {
  if (n >= 16) return load(p);
  const float* second = n > 8 ? p + 8 : p;  // a pointer past the data would be no pointer, even under a mask
  return {_mm256_maskload_ps(p, lanes_below(n, 0)), _mm256_maskload_ps(second, lanes_below(n, 8))};
}
INFERD_SIMD void store_n(float* p, F32x16 a, int n) {
  if (n >= 16) return store(p, a);
  _mm256_maskstore_ps(p, lanes_below(n, 0), a.lo);
  if (n > 8) _mm256_maskstore_ps(p + 8, lanes_below(n, 8), a.hi);
}

INFERD_SIMD F32x16 add(F32x16 a, F32x16 b) { return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)}; }
INFERD_SIMD F32x16 sub(F32x16 a, F32x16 b) { return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)}; }
INFERD_SIMD F32x16 mul(F32x16 a, F32x16 b) { return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)}; }
INFERD_SIMD F32x16 div(F32x16 a, F32x16 b) { return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)}; }
INFERD_SIMD F32x16 max(F32x16 a, F32x16 b) { return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)}; }
INFERD_SIMD F32x16 min(F32x16 a, F32x16 b) { return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)}; }
INFERD_SIMD F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
INFERD_SIMD F32x16 select_less(F32x16 a, F32x16 b, F32x16 yes, F32x16 no) {
  return {_mm256_blendv_ps(no.lo, yes.lo, _mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ)),
          _mm256_blendv_ps(no.hi, yes.hi, _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ))};
}
INFERD_SIMD F32x16 first_lanes(F32x16 a, F32x16 b, int n) {
  return {_mm256_blendv_ps(b.lo, a.lo, _mm256_castsi256_ps(lanes_below(n, 0))),
          _mm256_blendv_ps(b.hi, a.hi, _mm256_castsi256_ps(lanes_below(n, 8)))};
}
INFERD_SIMD uint32_t at_least(F32x16 a, F32x16 b) {
  return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(a.lo, b.lo, _CMP_GE_OQ)) |
                               _mm256_movemask_ps(_mm256_cmp_ps(a.hi, b.hi, _CMP_GE_OQ)) << 8);
}
INFERD_SIMD F32x16 swap_neighbours(F32x16 a) { return {_mm256_permute_ps(a.lo, 0xB1), _mm256_permute_ps(a.hi, 0xB1)}; }
INFERD_SIMD float reduce_add(F32x16 a) {
  const __m256 eight = _mm256_add_ps(a.lo, a.hi);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
INFERD_SIMD float reduce_max(F32x16 a) {
  const __m256 eight = _mm256_max_ps(a.lo, a.hi);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
INFERD_SIMD float sqrt1(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }
INFERD_SIMD float fma1(float a, float b, float c) {
  return _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(a), _mm_set_ss(b), _mm_set_ss(c)));
}
INFERD_SIMD __m256 power_of_two(__m256 shifted) {
  return _mm256_castsi256_ps(
      _mm256_add_epi32(_mm256_slli_epi32(_mm256_castps_si256(shifted), 23), _mm256_set1_epi32(0x3F800000)));
}
INFERD_SIMD F32x16 scale_by_power_of_two(F32x16 e, F32x16 shifted) {
  return {_mm256_mul_ps(e.lo, power_of_two(shifted.lo)), _mm256_mul_ps(e.hi, power_of_two(shifted.hi))};
}

// ---- Half, bfloat16, int8 to float and back ----

INFERD_SIMD __m128i load_128(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
INFERD_SIMD __m256i load_256(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
INFERD_SIMD void store_256(void* p, __m256i a) { _mm256_storeu_si256(static_cast<__m256i*>(p), a); }

INFERD_SIMD F32x16 load_f16(const void* p) {
  return {_mm256_cvtph_ps(load_128(p)), _mm256_cvtph_ps(load_128(static_cast<const char*>(p) + 16))};
}
INFERD_SIMD __m256 widen_bf16(__m128i h) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}
INFERD_SIMD F32x16 load_bf16(const void* p) {
  return {widen_bf16(load_128(p)), widen_bf16(load_128(static_cast<const char*>(p) + 16))};
}
INFERD_SIMD F32x16 load_i8(const void* p) {
  const __m128i q = load_128(p);
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(q)), _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(q, 8)))};
}
INFERD_SIMD void store_f16(void* p, F32x16 a) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  store_256(p, _mm256_set_m128i(_mm256_cvtps_ph(a.hi, kNearest), _mm256_cvtps_ph(a.lo, kNearest)));
}
INFERD_SIMD __m256i round_bf16(__m256 a) {
  const __m256i bits = _mm256_castps_si256(a);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded =
      _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF))), 16);
  const __m256i quiet = _mm256_or_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(0x40));
  return _mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q)));
}
INFERD_SIMD void store_bf16(void* p, F32x16 a) {
  store_256(p, _mm256_permute4x64_epi64(_mm256_packus_epi32(round_bf16(a.lo), round_bf16(a.hi)), 0xD8));
}
INFERD_SIMD void load_bf16_pairs(F32x16& even, F32x16& odd, const void* p) {
  const __m256i first = load_256(p);
  const __m256i second = load_256(static_cast<const char*>(p) + 32);
  const __m256i high = _mm256_set1_epi32(static_cast<int32_t>(0xFFFF0000u));
  even = {_mm256_castsi256_ps(_mm256_slli_epi32(first, 16)), _mm256_castsi256_ps(_mm256_slli_epi32(second, 16))};
  odd = {_mm256_castsi256_ps(_mm256_and_si256(first, high)), _mm256_castsi256_ps(_mm256_and_si256(second, high))};
}

// ---- 32-bit integers ----

INFERD_SIMD I32x16 izero() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
INFERD_SIMD I32x16 iset1(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
INFERD_SIMD I32x16 iadd(I32x16 a, I32x16 b) { return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)}; }
INFERD_SIMD I32x16 isub(I32x16 a, I32x16 b) { return {_mm256_sub_epi32(a.lo, b.lo), _mm256_sub_epi32(a.hi, b.hi)}; }
INFERD_SIMD I32x16 ishift_left(I32x16 a, int bits) {
  return {_mm256_slli_epi32(a.lo, bits), _mm256_slli_epi32(a.hi, bits)};
}
INFERD_SIMD F32x16 to_f32(I32x16 a) { return {_mm256_cvtepi32_ps(a.lo), _mm256_cvtepi32_ps(a.hi)}; }

INFERD_SIMD I32x16 magnitudes(F32x16 a) {
  const __m256i mask = _mm256_set1_epi32(0x7FFFFFFF);
  return {_mm256_and_si256(_mm256_castps_si256(a.lo), mask), _mm256_and_si256(_mm256_castps_si256(a.hi), mask)};
}
INFERD_SIMD I32x16 imax(I32x16 a, I32x16 b) { return {_mm256_max_epi32(a.lo, b.lo), _mm256_max_epi32(a.hi, b.hi)}; }
INFERD_SIMD int32_t ireduce_max(I32x16 a) {
  const __m256i eight = _mm256_max_epi32(a.lo, a.hi);
  __m128i r = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  r = _mm_max_epi32(r, _mm_shuffle_epi32(r, 0x4E));
  r = _mm_max_epi32(r, _mm_shuffle_epi32(r, 0xB1));
  return _mm_cvtsi128_si32(r);
}
INFERD_SIMD int32_t store_i8(int8_t* q, F32x16 a) {
  // packs works inside 128-bit halves: lo 0-3, hi 0-3, lo 4-7, hi 4-7; the permutation puts lo before hi.
  const __m256i words =
      _mm256_permute4x64_epi64(_mm256_packs_epi32(_mm256_cvtps_epi32(a.lo), _mm256_cvtps_epi32(a.hi)), 0xD8);
  const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(q), bytes);
  const __m256i pairs = _mm256_madd_epi16(words, _mm256_set1_epi16(1));
  __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4E));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xB1));
  return _mm_cvtsi128_si32(sum);
}

// ---- Dot products of weights and 8-bit activations ----

struct U8x64 {
  __m256i lo, hi;  // rows 0-7, rows 8-15
};

INFERD_SIMD U8x64 load_bytes(const uint8_t* p) { return {load_256(p), load_256(p + 32)}; }
INFERD_SIMD void store_bytes(uint8_t* p, U8x64 a) {
  store_256(p, a.lo);
  store_256(p + 32, a.hi);
}
INFERD_SIMD U8x64 low_nibbles(U8x64 a) {
  const __m256i mask = _mm256_set1_epi8(15);
  return {_mm256_and_si256(a.lo, mask), _mm256_and_si256(a.hi, mask)};
}
INFERD_SIMD U8x64 high_nibbles(U8x64 a) {
  return low_nibbles({_mm256_srli_epi16(a.lo, 4), _mm256_srli_epi16(a.hi, 4)});
}
// Bits `from`, `from` + 1 … of each byte moved to bit 4 …; what lands outside `mask` is dropped.
INFERD_SIMD __m256i moved_to_bit_4(__m256i a, int from, int mask) {
  const __m256i moved = from > 4 ? _mm256_srli_epi16(a, from - 4) : _mm256_slli_epi16(a, 4 - from);
  return _mm256_and_si256(moved, _mm256_set1_epi8(static_cast<char>(mask)));
}
INFERD_SIMD U8x64 with_fifth_bit(U8x64 a, U8x64 high, int index) {
  return {_mm256_or_si256(a.lo, moved_to_bit_4(high.lo, index, 0x10)),
          _mm256_or_si256(a.hi, moved_to_bit_4(high.hi, index, 0x10))};
}
INFERD_SIMD U8x64 with_two_bits(U8x64 a, U8x64 high, int index) {
  return {_mm256_or_si256(a.lo, moved_to_bit_4(high.lo, 2 * index, 0x30)),
          _mm256_or_si256(a.hi, moved_to_bit_4(high.hi, 2 * index, 0x30))};
}

INFERD_SIMD U8x64 two_bits(U8x64 a, int index) {
  const __m256i mask = _mm256_set1_epi8(3);
  return {_mm256_and_si256(_mm256_srli_epi16(a.lo, 2 * index), mask),
          _mm256_and_si256(_mm256_srli_epi16(a.hi, 2 * index), mask)};
}

// vpmaddubsw adds two products to 16 bits with saturation, and the sums are added in 16 bits: kDepth terms of at most
// 2 · 127 · kMax each must stay within 32,767. That gives 8 for weights up to 15 (8 · 3,810 = 30,480), 4 up to 31
// (31,496), 2 up to 63 (32,004).
template <int kMax>
inline constexpr int kDepth = 32767 / (2 * 127 * kMax);

struct Dot {
  __m256i lo, hi;  // sixteen 16-bit sums each, two per row
};
INFERD_SIMD Dot dot_begin(U8x64 w, int32_t x) {
  const __m256i xs = _mm256_set1_epi32(x);
  return {_mm256_maddubs_epi16(w.lo, xs), _mm256_maddubs_epi16(w.hi, xs)};
}
INFERD_SIMD Dot dot_more(Dot dot, U8x64 w, int32_t x) {
  const Dot term = dot_begin(w, x);
  return {_mm256_add_epi16(dot.lo, term.lo), _mm256_add_epi16(dot.hi, term.hi)};
}
INFERD_SIMD I32x16 dot_finish(I32x16 sum, Dot dot) {
  const __m256i ones = _mm256_set1_epi16(1);
  return iadd(sum, {_mm256_madd_epi16(dot.lo, ones), _mm256_madd_epi16(dot.hi, ones)});
}

struct Scales {
  __m256i lo, hi;  // each row's scale twice, as 16-bit numbers
};
INFERD_SIMD __m256i spread_scales(const uint8_t* p, int8_t index, int8_t place) {
  // Byte 2·row + index goes to the low (place 0) or high (place 1) byte of both 16-bit numbers of the row.
  const __m256i pairs = _mm256_broadcastsi128_si256(load_128(p));
  const __m256i rows = _mm256_setr_epi8(0, 0, 0, 0, 2, 2, 2, 2, 4, 4, 4, 4, 6, 6, 6, 6, 8, 8, 8, 8, 10, 10, 10, 10, 12, 12,
                                        12, 12, 14, 14, 14, 14);
  const __m256i kept = place == 0 ? _mm256_set1_epi16(static_cast<int16_t>(0x8000)) : _mm256_set1_epi16(0x0080);
  return _mm256_shuffle_epi8(pairs, _mm256_or_si256(_mm256_add_epi8(rows, _mm256_set1_epi8(index)), kept));
}
INFERD_SIMD Scales load_unsigned_scales(const uint8_t* p, int index) {
  const auto i = static_cast<int8_t>(index);
  return {spread_scales(p, i, 0), spread_scales(p + 16, i, 0)};
}
INFERD_SIMD Scales load_signed_scales(const uint8_t* p, int index) {
  const auto i = static_cast<int8_t>(index);
  return {_mm256_srai_epi16(spread_scales(p, i, 1), 8), _mm256_srai_epi16(spread_scales(p + 16, i, 1), 8)};
}
INFERD_SIMD I32x16 dot_finish_scaled(I32x16 sum, Dot dot, Scales scales) {
  return iadd(sum, {_mm256_madd_epi16(dot.lo, scales.lo), _mm256_madd_epi16(dot.hi, scales.hi)});
}

struct Pairs {
  __m256i lo, hi;  // 16-bit numbers
};
INFERD_SIMD Pairs load_unsigned_pairs(const uint8_t* p) {
  return {_mm256_cvtepu8_epi16(load_128(p)), _mm256_cvtepu8_epi16(load_128(p + 16))};
}
INFERD_SIMD Pairs load_signed_pairs(const uint8_t* p) {
  return {_mm256_cvtepi8_epi16(load_128(p)), _mm256_cvtepi8_epi16(load_128(p + 16))};
}
INFERD_SIMD I32x16 pairs_dot(I32x16 sum, Pairs a, int32_t x) {
  const __m256i xs = _mm256_set1_epi32(x);
  return iadd(sum, {_mm256_madd_epi16(a.lo, xs), _mm256_madd_epi16(a.hi, xs)});
}

// vpmaddubsw wants one unsigned factor: |w| with the sign of w moved to x. |w| ≤ 128 and |x| ≤ 127, so a pair sums to
// 32,512 at most; a second one would not fit 16 bits.
struct SignedWeights {
  U8x64 w;
  U8x64 magnitude;
};
INFERD_SIMD SignedWeights load_signed(const uint8_t* p) {
  const U8x64 w = load_bytes(p);
  return {w, {_mm256_abs_epi8(w.lo), _mm256_abs_epi8(w.hi)}};
}
struct SignedDot {
  I32x16 sum;
};
INFERD_SIMD SignedDot signed_begin(int32_t) { return {izero()}; }
INFERD_SIMD SignedDot signed_more(SignedDot dot, const SignedWeights& w, int32_t x) {
  const __m256i xs = _mm256_set1_epi32(x);
  const __m256i ones = _mm256_set1_epi16(1);
  const __m256i lo = _mm256_maddubs_epi16(w.magnitude.lo, _mm256_sign_epi8(xs, w.w.lo));
  const __m256i hi = _mm256_maddubs_epi16(w.magnitude.hi, _mm256_sign_epi8(xs, w.w.hi));
  return {iadd(dot.sum, {_mm256_madd_epi16(lo, ones), _mm256_madd_epi16(hi, ones)})};
}
INFERD_SIMD I32x16 signed_finish(SignedDot dot) { return dot.sum; }

// ---- Transposing ----

INFERD_SIMD void store_transposed(float* out, const F32x16 (&r)[16]) {
  store_transposed_8(out, r[0].lo, r[1].lo, r[2].lo, r[3].lo, r[4].lo, r[5].lo, r[6].lo, r[7].lo);
  store_transposed_8(out + 8, r[8].lo, r[9].lo, r[10].lo, r[11].lo, r[12].lo, r[13].lo, r[14].lo, r[15].lo);
  store_transposed_8(out + 8 * 16, r[0].hi, r[1].hi, r[2].hi, r[3].hi, r[4].hi, r[5].hi, r[6].hi, r[7].hi);
  store_transposed_8(out + 8 * 16 + 8, r[8].hi, r[9].hi, r[10].hi, r[11].hi, r[12].hi, r[13].hi, r[14].hi, r[15].hi);
}

INFERD_SIMD void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }

}  // namespace inferd::cpu::avx2
