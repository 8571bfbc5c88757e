// Eight by eight floats transposed in 256-bit registers, for both AVX levels; see simd.h.
#pragma once

#include <immintrin.h>

namespace inferd::cpu::INFERD_ISA_NAMESPACE {

// out[j·16 + i] = lane j of row i, for eight rows of eight.
INFERD_SIMD void store_transposed_8(float* out, __m256 a, __m256 b, __m256 c, __m256 d, __m256 e, __m256 f,
                                    __m256 g, __m256 h) {
  const __m256 ab0 = _mm256_unpacklo_ps(a, b), ab1 = _mm256_unpackhi_ps(a, b);  // a0 b0 a1 b1 | a4 b4 …
  const __m256 cd0 = _mm256_unpacklo_ps(c, d), cd1 = _mm256_unpackhi_ps(c, d);
  const __m256 ef0 = _mm256_unpacklo_ps(e, f), ef1 = _mm256_unpackhi_ps(e, f);
  const __m256 gh0 = _mm256_unpacklo_ps(g, h), gh1 = _mm256_unpackhi_ps(g, h);
  const __m256 abcd0 = _mm256_shuffle_ps(ab0, cd0, 0x44), abcd1 = _mm256_shuffle_ps(ab0, cd0, 0xEE);
  const __m256 abcd2 = _mm256_shuffle_ps(ab1, cd1, 0x44), abcd3 = _mm256_shuffle_ps(ab1, cd1, 0xEE);
  const __m256 efgh0 = _mm256_shuffle_ps(ef0, gh0, 0x44), efgh1 = _mm256_shuffle_ps(ef0, gh0, 0xEE);
  const __m256 efgh2 = _mm256_shuffle_ps(ef1, gh1, 0x44), efgh3 = _mm256_shuffle_ps(ef1, gh1, 0xEE);
  _mm256_storeu_ps(out + 0 * 16, _mm256_permute2f128_ps(abcd0, efgh0, 0x20));
  _mm256_storeu_ps(out + 1 * 16, _mm256_permute2f128_ps(abcd1, efgh1, 0x20));
  _mm256_storeu_ps(out + 2 * 16, _mm256_permute2f128_ps(abcd2, efgh2, 0x20));
  _mm256_storeu_ps(out + 3 * 16, _mm256_permute2f128_ps(abcd3, efgh3, 0x20));
  _mm256_storeu_ps(out + 4 * 16, _mm256_permute2f128_ps(abcd0, efgh0, 0x31));
  _mm256_storeu_ps(out + 5 * 16, _mm256_permute2f128_ps(abcd1, efgh1, 0x31));
  _mm256_storeu_ps(out + 6 * 16, _mm256_permute2f128_ps(abcd2, efgh2, 0x31));
  _mm256_storeu_ps(out + 7 * 16, _mm256_permute2f128_ps(abcd3, efgh3, 0x31));
}

}  // namespace inferd::cpu::INFERD_ISA_NAMESPACE
