// Sixteen lanes as one 512-bit register (AVX-512 F, BW, DQ, VL, VNNI); what each operation means:
// simd_portable.h.
#pragma once

#include <immintrin.h>

#include "cpu/kernels/transpose_avx.h"

// clang-format off: one line an operation
namespace inferd::cpu::avx512 {

inline constexpr int kWidths = 4;            // panels of quantised weights: 1 … 2^(kWidths − 1) columns
inline constexpr int kFloatColumns = 12;  // of float weights
inline constexpr int kQueryGroup = 12;        // queries of attention side by side
inline constexpr int kAttentionVectors = 24;  // vectors of sums in registers

using F32x16 = __m512;
using I32x16 = __m512i;

// ---- Float ----

INFERD_SIMD F32x16 set1(float x) { return _mm512_set1_ps(x); }
INFERD_SIMD F32x16 zero() { return _mm512_setzero_ps(); }
INFERD_SIMD F32x16 load(const float* p) { return _mm512_loadu_ps(p); }
INFERD_SIMD void store(float* p, F32x16 a) { _mm512_storeu_ps(p, a); }
INFERD_SIMD __mmask16 lanes_below(int n) { return static_cast<__mmask16>(n >= 16 ? 0xFFFF : (1 << n) - 1); }
INFERD_SIMD F32x16 load_n(const float* p, int n) { return _mm512_maskz_loadu_ps(lanes_below(n), p); }
INFERD_SIMD void store_n(float* p, F32x16 a, int n) { _mm512_mask_storeu_ps(p, lanes_below(n), a); }

INFERD_SIMD F32x16 add(F32x16 a, F32x16 b) { return _mm512_add_ps(a, b); }
INFERD_SIMD F32x16 sub(F32x16 a, F32x16 b) { return _mm512_sub_ps(a, b); }
INFERD_SIMD F32x16 mul(F32x16 a, F32x16 b) { return _mm512_mul_ps(a, b); }
INFERD_SIMD F32x16 div(F32x16 a, F32x16 b) { return _mm512_div_ps(a, b); }
INFERD_SIMD F32x16 max(F32x16 a, F32x16 b) { return _mm512_max_ps(a, b); }
INFERD_SIMD F32x16 min(F32x16 a, F32x16 b) { return _mm512_min_ps(a, b); }
INFERD_SIMD F32x16 fma(F32x16 a, F32x16 b, F32x16 c) { return _mm512_fmadd_ps(a, b, c); }
INFERD_SIMD F32x16 select_less(F32x16 a, F32x16 b, F32x16 yes, F32x16 no) {
  return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), no, yes);
}
INFERD_SIMD F32x16 first_lanes(F32x16 a, F32x16 b, int n) { return _mm512_mask_blend_ps(lanes_below(n), b, a); }
INFERD_SIMD uint32_t at_least(F32x16 a, F32x16 b) { return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ); }
INFERD_SIMD F32x16 swap_neighbours(F32x16 a) { return _mm512_permute_ps(a, 0xB1); }
INFERD_SIMD __m256 low_half(F32x16 a) { return _mm512_castps512_ps256(a); }
INFERD_SIMD __m256 high_half(F32x16 a) { return _mm512_extractf32x8_ps(a, 1); }
INFERD_SIMD float reduce_add(F32x16 a) {
  const __m256 eight = _mm256_add_ps(low_half(a), high_half(a));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
INFERD_SIMD float reduce_max(F32x16 a) {
  const __m256 eight = _mm256_max_ps(low_half(a), high_half(a));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
INFERD_SIMD float sqrt1(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }
INFERD_SIMD float fma1(float a, float b, float c) {
  return _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(a), _mm_set_ss(b), _mm_set_ss(c)));
}
INFERD_SIMD F32x16 scale_by_power_of_two(F32x16 e, F32x16 shifted) {
  const __m512i bits =
      _mm512_add_epi32(_mm512_slli_epi32(_mm512_castps_si512(shifted), 23), _mm512_set1_epi32(0x3F800000));
  return _mm512_mul_ps(e, _mm512_castsi512_ps(bits));
}

// ---- Half, bfloat16, int8 to float and back ----

INFERD_SIMD __m128i load_128(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
INFERD_SIMD __m256i load_256(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
INFERD_SIMD void store_256(void* p, __m256i a) { _mm256_storeu_si256(static_cast<__m256i*>(p), a); }

INFERD_SIMD F32x16 load_f16(const void* p) { return _mm512_cvtph_ps(load_256(p)); }
INFERD_SIMD F32x16 load_bf16(const void* p) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(load_256(p)), 16));
}
INFERD_SIMD F32x16 load_i8(const void* p) { return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(load_128(p))); }
INFERD_SIMD void store_f16(void* p, F32x16 a) {
  store_256(p, _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
INFERD_SIMD void store_bf16(void* p, F32x16 a) {
  const __m512i bits = _mm512_castps_si512(a);
  const __m512i high = _mm512_srli_epi32(bits, 16);
  const __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
  const __m512i rounded =
      _mm512_srli_epi32(_mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF))), 16);
  const __m512i quiet = _mm512_or_si512(high, _mm512_set1_epi32(0x40));
  store_256(p, _mm512_cvtepi32_epi16(_mm512_mask_blend_epi32(_mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), rounded, quiet)));
}
INFERD_SIMD void load_bf16_pairs(F32x16& even, F32x16& odd, const void* p) {
  const __m512i pairs = _mm512_loadu_si512(p);
  even = _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16));
  odd = _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(static_cast<int32_t>(0xFFFF0000u))));
}

// ---- 32-bit integers ----

INFERD_SIMD I32x16 izero() { return _mm512_setzero_si512(); }
INFERD_SIMD I32x16 iset1(int32_t x) { return _mm512_set1_epi32(x); }
INFERD_SIMD I32x16 iadd(I32x16 a, I32x16 b) { return _mm512_add_epi32(a, b); }
INFERD_SIMD I32x16 isub(I32x16 a, I32x16 b) { return _mm512_sub_epi32(a, b); }
INFERD_SIMD I32x16 ishift_left(I32x16 a, int bits) { return _mm512_slli_epi32(a, static_cast<unsigned>(bits)); }
INFERD_SIMD F32x16 to_f32(I32x16 a) { return _mm512_cvtepi32_ps(a); }

INFERD_SIMD I32x16 magnitudes(F32x16 a) {
  return _mm512_and_si512(_mm512_castps_si512(a), _mm512_set1_epi32(0x7FFFFFFF));
}
INFERD_SIMD I32x16 imax(I32x16 a, I32x16 b) { return _mm512_max_epi32(a, b); }
INFERD_SIMD int32_t ireduce_max(I32x16 a) { return _mm512_reduce_max_epi32(a); }
INFERD_SIMD int32_t store_i8(int8_t* q, F32x16 a) {
  const __m512i words = _mm512_cvtps_epi32(a);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(q), _mm512_cvtepi32_epi8(words));
  return _mm512_reduce_add_epi32(words);
}

// ---- Dot products of weights and 8-bit activations ----

using U8x64 = __m512i;

INFERD_SIMD U8x64 load_bytes(const uint8_t* p) { return _mm512_loadu_si512(p); }
INFERD_SIMD void store_bytes(uint8_t* p, U8x64 a) { _mm512_storeu_si512(p, a); }
INFERD_SIMD U8x64 low_nibbles(U8x64 a) { return _mm512_and_si512(a, _mm512_set1_epi8(15)); }
INFERD_SIMD U8x64 high_nibbles(U8x64 a) { return low_nibbles(_mm512_srli_epi16(a, 4)); }
// The two compilers' headers disagree on the type of a shift count.
#if defined(__clang__)
using Shift16 = unsigned;
#else
using Shift16 = int;
#endif
// a | (b moved so that its bit `from` comes to bit 4) & mask; one vpternlog does both.
INFERD_SIMD U8x64 or_moved_to_bit_4(U8x64 a, U8x64 b, int from, int mask) {
  const U8x64 moved = from > 4 ? _mm512_srli_epi16(b, static_cast<Shift16>(from - 4))
                               : _mm512_slli_epi16(b, static_cast<Shift16>(4 - from));
  constexpr int kOrAnd = 0xF8;  // a | (b & c)
  return _mm512_ternarylogic_epi32(a, moved, _mm512_set1_epi8(static_cast<char>(mask)), kOrAnd);
}
INFERD_SIMD U8x64 with_fifth_bit(U8x64 a, U8x64 high, int index) {
  return or_moved_to_bit_4(a, high, index, 0x10);
}
INFERD_SIMD U8x64 with_two_bits(U8x64 a, U8x64 high, int index) {
  return or_moved_to_bit_4(a, high, 2 * index, 0x30);
}

INFERD_SIMD U8x64 two_bits(U8x64 a, int index) {
  return _mm512_and_si512(_mm512_srli_epi16(a, static_cast<Shift16>(2 * index)), _mm512_set1_epi8(3));
}

// vpdpbusd adds to 32 bits and cannot overflow here. Depth 4 keeps two chains of its 4 to 5 cycles in flight per block.
template <int kMax>
inline constexpr int kDepth = 4;

struct Dot {
  I32x16 sum;
};
INFERD_SIMD Dot dot_begin(U8x64 w, int32_t x) { return {_mm512_dpbusd_epi32(izero(), w, iset1(x))}; }
INFERD_SIMD Dot dot_more(Dot dot, U8x64 w, int32_t x) { return {_mm512_dpbusd_epi32(dot.sum, w, iset1(x))}; }
INFERD_SIMD I32x16 dot_finish(I32x16 sum, Dot dot) { return iadd(sum, dot.sum); }

using Scales = __m512i;  // 32-bit numbers
INFERD_SIMD Scales load_unsigned_scales(const uint8_t* p, int index) {
  const __m512i pairs = _mm512_cvtepu8_epi16(load_256(p));
  return index == 0 ? _mm512_and_si512(pairs, _mm512_set1_epi32(0xFFFF)) : _mm512_srli_epi32(pairs, 16);
}
INFERD_SIMD Scales load_signed_scales(const uint8_t* p, int index) {
  const __m512i pairs = _mm512_cvtepi8_epi16(load_256(p));
  return _mm512_srai_epi32(index == 0 ? _mm512_slli_epi32(pairs, 16) : pairs, 16);
}
INFERD_SIMD I32x16 dot_finish_scaled(I32x16 sum, Dot dot, Scales scales) {
  return iadd(sum, _mm512_mullo_epi32(dot.sum, scales));
}

struct Pairs {
  __m512i v;  // 16-bit numbers
};
INFERD_SIMD Pairs load_unsigned_pairs(const uint8_t* p) { return {_mm512_cvtepu8_epi16(load_256(p))}; }
INFERD_SIMD Pairs load_signed_pairs(const uint8_t* p) { return {_mm512_cvtepi8_epi16(load_256(p))}; }
INFERD_SIMD I32x16 pairs_dot(I32x16 sum, Pairs a, int32_t x) { return _mm512_dpwssd_epi32(sum, a.v, iset1(x)); }

// vpdpbusd wants one unsigned factor: w + 128, taken back as 128 times the sum of the activations.
struct SignedWeights {
  U8x64 w;
};
INFERD_SIMD SignedWeights load_signed(const uint8_t* p) {
  return {_mm512_xor_si512(load_bytes(p), _mm512_set1_epi8(static_cast<char>(0x80)))};
}
struct SignedDot {
  I32x16 sum;
};
INFERD_SIMD SignedDot signed_begin(int32_t minus_16_sums) { return {iset1(8 * minus_16_sums)}; }
INFERD_SIMD SignedDot signed_more(SignedDot dot, const SignedWeights& w, int32_t x) {
  return {_mm512_dpbusd_epi32(dot.sum, w.w, iset1(x))};
}
INFERD_SIMD I32x16 signed_finish(SignedDot dot) { return dot.sum; }

// ---- Transposing ----

// Eight by eight in 256-bit registers: the same number of shuffles an element as sixteen by sixteen, fewer live values.
INFERD_SIMD void store_transposed(float* out, const F32x16 (&r)[16]) {
  for (int i = 0; i < 16; i += 8) {
    store_transposed_8(out + i, low_half(r[i]), low_half(r[i + 1]), low_half(r[i + 2]), low_half(r[i + 3]),
                       low_half(r[i + 4]), low_half(r[i + 5]), low_half(r[i + 6]), low_half(r[i + 7]));
    store_transposed_8(out + 8 * 16 + i, high_half(r[i]), high_half(r[i + 1]), high_half(r[i + 2]), high_half(r[i + 3]),
                       high_half(r[i + 4]), high_half(r[i + 5]), high_half(r[i + 6]), high_half(r[i + 7]));
  }
}

INFERD_SIMD void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }

}  // namespace inferd::cpu::avx512
