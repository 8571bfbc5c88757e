// Verbs over one row of activations: norm, sum, rotation, gate, and the row's way into the KV pages. Compiled
// once per instruction set level.
#include "cpu/kernels/level_kernels.h"
#include "cpu/kernels/simd.h"

namespace inferd::cpu::INFERD_ISA_NAMESPACE {
namespace {

// body(i, n) for pieces of sixteen elements, the last one with n ≤ 16.
template <class Body>
INFERD_SIMD void pieces(int64_t count, const Body& body) {
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) body(i, 16);
  if (i < count) body(i, static_cast<int>(count - i));
}

// Lane l sums the squares of elements l, l + 16, l + 32 …; then the lanes are added up (reduce_add).
INFERD_SIMD float norm_scale(F32x16 squares, float eps, int64_t n) {
  const float mean = reduce_add(squares) / static_cast<float>(n);
  return 1.0f / sqrt1(mean + eps);
}

void rmsnorm(float* y, const float* x, const float* weight, float eps, int64_t n) {
  F32x16 squares = zero();
  pieces(n, [&](int64_t i, int m) INFERD_INLINE {
    const F32x16 v = load_n(x + i, m);
    squares = fma(v, v, squares);
  });
  const F32x16 scale = set1(norm_scale(squares, eps, n));
  pieces(n, [&](int64_t i, int m) INFERD_INLINE {
    store_n(y + i, mul(mul(load_n(x + i, m), scale), load_n(weight + i, m)), m);
  });
}

void add_rmsnorm(float* y, float* x, const float* h, const float* weight, float eps, int64_t n) {
  F32x16 squares = zero();
  pieces(n, [&](int64_t i, int m) INFERD_INLINE {
    const F32x16 v = add(load_n(x + i, m), load_n(h + i, m));
    store_n(x + i, v, m);
    squares = fma(v, v, squares);
  });
  const F32x16 scale = set1(norm_scale(squares, eps, n));
  pieces(n, [&](int64_t i, int m) INFERD_INLINE {
    store_n(y + i, mul(mul(load_n(x + i, m), scale), load_n(weight + i, m)), m);
  });
}

void add_row(float* x, const float* h, int64_t n) {
  pieces(n,
         [&](int64_t i, int m) INFERD_INLINE { store_n(x + i, add(load_n(x + i, m), load_n(h + i, m)), m); });
}

void silu_mul(float* y, const float* gate, const float* up, int64_t n) {
  pieces(n, [&](int64_t i, int m)
                INFERD_INLINE { store_n(y + i, mul(silu(load_n(gate + i, m)), load_n(up + i, m)), m); });
}

void gelu_mul(float* y, const float* gate, const float* up, int64_t n) {
  pieces(n, [&](int64_t i, int m)
                INFERD_INLINE { store_n(y + i, mul(gelu(load_n(gate + i, m)), load_n(up + i, m)), m); });
}

void scale(float* x, float factor, int64_t n) {
  const F32x16 f = set1(factor);
  pieces(n, [&](int64_t i, int m) INFERD_INLINE { store_n(x + i, mul(load_n(x + i, m), f), m); });
}

void softcap(float* x, float cap, int64_t n) {
  const F32x16 c = set1(cap);
  pieces(n, [&](int64_t i, int m) INFERD_INLINE { store_n(x + i, soft_capped(load_n(x + i, m), c), m); });
}

// Pairs (a, b) become (fma(a, cos, b · −sin), fma(b, cos, a · sin)).
void rope(float* x, int32_t heads, int32_t head_dim, const float* cos_sin, int32_t pairs, bool neighbours) {
  if (neighbours) {
    // Lanes are a, b, a, b …: eight pairs a vector.
    for (int32_t p = 0; p < pairs; p += 8) {
      const int n = 2 * (pairs - p < 8 ? pairs - p : 8);
      float cosines[16] = {};
      float sines[16] = {};
      for (int i = 0; i < n; i += 2) {
        cosines[i] = cosines[i + 1] = cos_sin[2 * p + i];
        sines[i] = -cos_sin[2 * p + i + 1];
        sines[i + 1] = cos_sin[2 * p + i + 1];
      }
      const F32x16 cosine = load(cosines);
      const F32x16 sine = load(sines);
      for (int32_t head = 0; head < heads; ++head) {
        float* at = x + head * head_dim + 2 * p;
        const F32x16 v = load_n(at, n);
        store_n(at, fma(v, cosine, mul(swap_neighbours(v), sine)), n);
      }
    }
    return;
  }
  for (int32_t p = 0; p < pairs; p += 16) {
    const int n = pairs - p < 16 ? pairs - p : 16;
    float cosines[16] = {};
    float sines[16] = {};
    for (int i = 0; i < n; ++i) {
      cosines[i] = cos_sin[2 * (p + i)];
      sines[i] = cos_sin[2 * (p + i) + 1];
    }
    const F32x16 cosine = load(cosines);
    const F32x16 sine = load(sines);
    for (int32_t head = 0; head < heads; ++head) {
      float* at = x + head * head_dim + p;
      const F32x16 a = load_n(at, n);
      const F32x16 b = load_n(at + pairs, n);
      store_n(at, fma(a, cosine, mul(b, sub(zero(), sine))), n);
      store_n(at + pairs, fma(b, cosine, mul(a, sine)), n);
    }
  }
}

template <class Store>
INFERD_SIMD void store_narrow(uint8_t* out, const float* x, int32_t n, int width, const Store& narrow) {
  pieces(n, [&](int64_t i, int m) INFERD_INLINE {
    if (m == 16) {
      narrow(out + i * width, load(x + i));
    } else {
      uint8_t last[32];
      narrow(last, load_n(x + i, m));
      __builtin_memcpy(out + i * width, last, static_cast<size_t>(m * width));
    }
  });
}

void store_kv(uint8_t* values, float* scale, const float* x, int32_t n, KvKind kind) {
  switch (kind) {
    case KvKind::f32:
      __builtin_memcpy(values, x, static_cast<size_t>(n) * 4);
      return;
    case KvKind::f16:
      return store_narrow(values, x, n, 2, [](uint8_t* out, F32x16 v) INFERD_INLINE { store_f16(out, v); });
    case KvKind::bf16:
      return store_narrow(values, x, n, 2, [](uint8_t* out, F32x16 v) INFERD_INLINE { store_bf16(out, v); });
    case KvKind::q8_0: {
      I32x16 largest = izero();
      pieces(n,
             [&](int64_t i, int m) INFERD_INLINE { largest = imax(largest, magnitudes(load_n(x + i, m))); });
      const QuantScale s = quant_scale(ireduce_max(largest));
      *scale = s.scale;
      if (s.inverse == 0) {
        __builtin_memset(values, 0, static_cast<size_t>(n));
        return;
      }
      const F32x16 inverse = set1(s.inverse);
      return store_narrow(values, x, n, 1, [inverse](uint8_t* out, F32x16 v) INFERD_INLINE {
        store_i8(reinterpret_cast<int8_t*>(out), mul(v, inverse));
      });
    }
  }
}

}  // namespace

void add_row_kernels(Kernels& kernels) {
  kernels.rmsnorm = rmsnorm;
  kernels.add_rmsnorm = add_rmsnorm;
  kernels.add = add_row;
  kernels.silu_mul = silu_mul;
  kernels.gelu_mul = gelu_mul;
  kernels.scale = scale;
  kernels.softcap = softcap;
  kernels.rope = rope;
  kernels.store_kv = store_kv;
}

}  // namespace inferd::cpu::INFERD_ISA_NAMESPACE
