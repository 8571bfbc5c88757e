// Vectors of sixteen lanes for the kernels of this folder, the same operations on every level with the same
// bits.
//
// The kernels are compiled once per instruction set level (INFERD_ISA_LEVEL), each time into a namespace of
// its own. Nothing here may be an inline function with external linkage that another translation unit also
// has: the linker could keep the copy with AVX code and hand it to a machine without. So: no standard headers
// but <cstdint> and <cstddef>, everything static, and only raw pointers and plain structs cross the border
// (kernels.h).
//
// On every level a float operation is IEEE single precision with one rounding, fma() rounds once, min and max
// return the second operand when either is NaN, and the sixteen lanes are added up by the same tree
// (reduce_add).
#pragma once

#include <cstddef>
#include <cstdint>

#if INFERD_ISA_LEVEL == 0
// The portable operations are loops over arrays: inlined everywhere they make code that takes minutes to
// compile.
#define INFERD_INLINE
#else
#define INFERD_INLINE __attribute__((always_inline))
#endif
#define INFERD_SIMD static inline INFERD_INLINE

#if INFERD_ISA_LEVEL == 0
#define INFERD_ISA_NAMESPACE portable
#include "cpu/kernels/simd_portable.h"
#elif INFERD_ISA_LEVEL == 1
#define INFERD_ISA_NAMESPACE avx2
#include "cpu/kernels/simd_avx2.h"
#elif INFERD_ISA_LEVEL == 2
#define INFERD_ISA_NAMESPACE avx512
#include "cpu/kernels/simd_avx512.h"
#else
#error "INFERD_ISA_LEVEL must be 0, 1 or 2"
#endif

namespace inferd::cpu::INFERD_ISA_NAMESPACE {

// each<N>([&](auto i) INFERD_INLINE { … }): the body N times with i = 0 … N − 1 known to the compiler, so
// that arrays of vectors indexed by i live in registers whatever it thinks of unrolling.
template <size_t kIndex>
struct Index {
  constexpr INFERD_INLINE operator int() const {
    return static_cast<int>(kIndex);
  }  // NOLINT: implicit by design
};
template <size_t kCount, size_t kIndex = 0, class Body>
INFERD_SIMD void each(const Body& body) {
  if constexpr (kIndex < kCount) {
    body(Index<kIndex>());
    each<kCount, kIndex + 1>(body);
  }
}

// e^x, within 1.5 units in the last place; below −87.3 zero, above 88.3 as at 88.3; NaN stays NaN.
// x = n·ln 2 + r with ln 2 in two parts (Cody and Waite, 1980), e^r = 1 + r + r²·p(r) with p interpolated at
// the five Chebyshev nodes of |r| ≤ ln 2 / 2 (relative error 1e-8), then times 2^n.
INFERD_SIMD F32x16 exp(F32x16 x) {
  constexpr float kLowest = -87.3f;
  const F32x16 clamped = min(set1(88.3f), max(set1(kLowest), x));
  const F32x16 shifted = fma(clamped, set1(0x1.715476p+0f), set1(0x1.8p+23f));  // n in the low bits
  const F32x16 n = sub(shifted, set1(0x1.8p+23f));
  F32x16 r = fma(n, set1(-0.693359375f), clamped);
  r = fma(n, set1(0x1.bd0106p-13f), r);
  F32x16 p = set1(0x1.6d10fcp-10f);
  p = fma(p, r, set1(0x1.120b62p-7f));
  p = fma(p, r, set1(0x1.55551ap-5f));
  p = fma(p, r, set1(0x1.5554dep-3f));
  p = fma(p, r, set1(0.5f));
  const F32x16 e = add(fma(p, mul(r, r), r), set1(1.0f));
  return select_less(x, set1(kLowest), zero(), scale_by_power_of_two(e, shifted));
}

// 8-bit quantisation of values whose largest magnitude has these bits: q = x · inverse to the nearest
// integer, x ≈ scale · q. inverse 0: all q are 0, because everything is tiny (scale 0) or something is not
// finite (scale not finite either). Defined in linear_spec.h.
struct QuantScale {
  float scale;
  float inverse;
};
INFERD_SIMD QuantScale quant_scale(int32_t largest_bits) {
  float largest;
  __builtin_memcpy(&largest, &largest_bits, sizeof largest);
  if (largest_bits >= 0x7F800000) return {largest / 127.0f, 0.0f};
  if (largest < 0x1.0p-120f) return {0.0f, 0.0f};
  return {largest / 127.0f, 127.0f / largest};
}

// z / (1 + e^−z)
INFERD_SIMD F32x16 silu(F32x16 z) {
  return div(z, add(set1(1.0f), exp(sub(zero(), z))));
}

// z / (1 + e^−2u), u = √(2/π) · (z + 0.044715 z³), which is z / 2 · (1 + tanh u).
INFERD_SIMD F32x16 gelu(F32x16 z) {
  const F32x16 twice_u = mul(z, add(set1(1.5957691216f), mul(set1(0.0713548163f), mul(z, z))));
  return div(z, add(set1(1.0f), exp(sub(zero(), twice_u))));
}

// tanh x, within 3 units in the last place. Under 0.625 x + x³ · q(x²), with q interpolated at the five
// Chebyshev nodes of 0 … 0.625² (relative error 2e-8); above (1 − e) / (1 + e) with e = e^−2|x|. NaN stays
// NaN.
INFERD_SIMD F32x16 tanh(F32x16 x) {
  const F32x16 square = mul(x, x);
  F32x16 q = set1(-0x1.8f8de4p-8f);
  q = fma(q, square, set1(0x1.58048ep-6f));
  q = fma(q, square, set1(-0x1.b9258ap-5f));
  q = fma(q, square, set1(0x1.110e1cp-3f));
  q = fma(q, square, set1(-0x1.555552p-2f));
  const F32x16 near = fma(mul(x, square), q, x);
  const F32x16 magnitude = max(x, sub(zero(), x));
  const F32x16 e = exp(mul(set1(-2.0f), magnitude));
  const F32x16 far = div(sub(set1(1.0f), e), add(set1(1.0f), e));
  return select_less(magnitude, set1(0.625f), near, select_less(x, zero(), sub(zero(), far), far));
}

// cap · tanh(x / cap)
INFERD_SIMD F32x16 soft_capped(F32x16 x, F32x16 cap) {
  return mul(cap, tanh(div(x, cap)));
}

}  // namespace inferd::cpu::INFERD_ISA_NAMESPACE
