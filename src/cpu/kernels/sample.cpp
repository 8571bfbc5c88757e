// Passes over the logits of one row. Compiled once per instruction set level.
#include "cpu/kernels/level_kernels.h"
#include "cpu/kernels/simd.h"

namespace inferd::cpu::INFERD_ISA_NAMESPACE {
namespace {

bool scan_logits(float* largest, const float* x, int64_t n) {
  F32x16 most = set1(-__builtin_inff());
  I32x16 magnitude = izero();
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const F32x16 v = load(x + i);
    most = max(v, most);
    magnitude = imax(magnitude, magnitudes(v));
  }
  if (i < n) {
    const auto left = static_cast<int>(n - i);
    const F32x16 v = load_n(x + i, left);
    most = max(first_lanes(v, most, left), most);
    magnitude = imax(magnitude, magnitudes(v));
  }
  *largest = reduce_max(most);
  constexpr int32_t kInfinityBits = 0x7F800000;
  return ireduce_max(magnitude) > kInfinityBits || *largest == __builtin_inff();
}

int64_t find_value(const float* x, int64_t n, float value) {
  const F32x16 wanted = set1(value);
  for (int64_t i = 0; i < n; i += 16) {
    const auto left = static_cast<int>(n - i < 16 ? n - i : 16);
    const F32x16 v = load_n(x + i, left);
    uint32_t equal = at_least(v, wanted) & at_least(wanted, v);
    if (left < 16) equal &= (1u << left) - 1;
    if (equal != 0) return i + __builtin_ctz(equal);
  }
  return -1;
}

void divide(float* x, int64_t n, float divisor) {
  const F32x16 d = set1(divisor);
  for (int64_t i = 0; i < n; i += 16) {
    const auto left = static_cast<int>(n - i < 16 ? n - i : 16);
    store_n(x + i, div(load_n(x + i, left), d), left);
  }
}

void exponentials(float* p, const float* x, int64_t n, float largest, float least) {
  const F32x16 most = set1(largest);
  const F32x16 limit = set1(least);
  for (int64_t i = 0; i < n; i += 16) {
    const auto left = static_cast<int>(n - i < 16 ? n - i : 16);
    const F32x16 e = exp(sub(load_n(x + i, left), most));
    store_n(p + i, select_less(e, limit, zero(), e), left);
  }
}

void block_largest(float* out, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; i += 64) {
    F32x16 most = set1(-__builtin_inff());
    for (int64_t j = i; j < i + 64 && j < n; j += 16) {
      const auto left = static_cast<int>(n - j < 16 ? n - j : 16);
      most = max(first_lanes(load_n(x + j, left), most, left), most);
    }
    out[i / 64] = reduce_max(most);
  }
}

int64_t collect(int32_t* ids, const float* x, int64_t n, int32_t first, float threshold) {
  const F32x16 least = set1(threshold);
  int64_t count = 0;
  for (int64_t i = 0; i < n; i += 16) {
    const auto left = static_cast<int>(n - i < 16 ? n - i : 16);
    uint32_t hits = at_least(load_n(x + i, left), least);
    if (left < 16) hits &= (1u << left) - 1;
    for (; hits != 0; hits &= hits - 1) ids[count++] = first + static_cast<int32_t>(i) + __builtin_ctz(hits);
  }
  return count;
}

}  // namespace

void add_sample_kernels(Kernels& kernels) {
  kernels.scan_logits = scan_logits;
  kernels.find_value = find_value;
  kernels.divide = divide;
  kernels.exponentials = exponentials;
  kernels.block_largest = block_largest;
  kernels.collect = collect;
}

}  // namespace inferd::cpu::INFERD_ISA_NAMESPACE
