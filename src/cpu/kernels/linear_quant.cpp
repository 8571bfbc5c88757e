// Linear over quantised tiles; the formulas are linear_spec.h's. Compiled once per instruction set level.
//
// A kernel walks the blocks of one tile once and keeps one float accumulator per row and column. Inside a
// block the integer sums of sixteen rows run side by side, a broadcast word of activations against a word of
// sixteen rows.
#include "cpu/kernels/level_kernels.h"
#include "cpu/kernels/simd.h"

namespace inferd::cpu::INFERD_ISA_NAMESPACE {
namespace {

template <size_t kColumns>
struct Accumulators {
  F32x16 v[kColumns];
};

// Packed weights are read once, as one stream through the tiles of a chunk. The hardware's own prefetchers
// stop at every 4 KB; asking this far ahead as well brought 72 % of the read bandwidth to over 90 %
// (docs/decisions.md).
constexpr int kAhead = 2048;

template <int kBytes>
INFERD_SIMD void prefetch_ahead(const uint8_t* from) {
  each<(kBytes + 63) / 64>([&](auto i) INFERD_INLINE { prefetch(from + kAhead + 64 * i); });
}

template <size_t kColumns>
INFERD_SIMD void write(const TileJob& job, const Accumulators<kColumns>& acc) {
  each<kColumns>([&](auto c) INFERD_INLINE {
    if (c >= job.columns) return;
    F32x16 y = acc.v[c];
    if (job.bias != nullptr) y = add(y, load_n(job.bias, job.rows));
    store_n(job.y + c * job.y_stride, y, job.rows);
  });
}

// ---- Blocks of 32 ----

// Word g of a block, unpacked: elements 4·g … 4·g + 3.
template <class Format>
INFERD_SIMD U8x64 unpacked_word(const uint8_t* block, int g) {
  const U8x64 bytes = load_bytes(block + Format::kWordsAt + kWordBytes * (g % 4));
  const U8x64 low = g < 4 ? low_nibbles(bytes) : high_nibbles(bytes);
  if constexpr (Format::kHigh) {
    return with_fifth_bit(low, load_bytes(block + Format::kHighAt), g);
  } else {
    return low;
  }
}

template <class Format, size_t kColumns, bool kSpread>
void nibble_panel(const TileJob& job) {
  constexpr int depth = kDepth<Format::kMax>;
  const auto* x = static_cast<const Record32<kColumns>*>(job.x);
  const uint8_t* block = job.tile;
  const uint8_t* values = job.values;
  Accumulators<kColumns> acc;
  each<kColumns>([&](auto c) INFERD_INLINE { acc.v[c] = zero(); });
  for (int64_t b = 0; b < job.blocks; ++b, ++x, block += Format::kBytes) {
    if constexpr (!kSpread) prefetch_ahead<Format::kBytes>(block);
    I32x16 sum[kColumns];
    Dot dot[kColumns];
    each<kColumns>([&](auto c) INFERD_INLINE {
      sum[c] = iset1(Format::kZero == 8 ? x->minus_8[c] : Format::kZero == 16 ? x->minus_16[c] : 0);
    });
    each<8>([&](auto g) INFERD_INLINE {
      const U8x64 w = kSpread ? load_bytes(values + kWordBytes * g) : unpacked_word<Format>(block, g);
      each<kColumns>([&](auto c) INFERD_INLINE {
        dot[c] = g % depth == 0 ? dot_begin(w, x->words[g][c]) : dot_more(dot[c], w, x->words[g][c]);
        if constexpr (g % depth == depth - 1 || g == 7) sum[c] = dot_finish(sum[c], dot[c]);
      });
    });
    if constexpr (kSpread) values += 8 * kWordBytes;
    const F32x16 d = load_f16(block);
    each<kColumns>(
        [&](auto c) INFERD_INLINE { acc.v[c] = fma(to_f32(sum[c]), mul(d, set1(x->scale[c])), acc.v[c]); });
    if constexpr (Format::kMin) {
      const F32x16 m = load_f16(block + Format::kMinAt);
      each<kColumns>([&](auto c) INFERD_INLINE { acc.v[c] = fma(m, set1(x->scaled_sum[c]), acc.v[c]); });
    }
  }
  write<kColumns>(job, acc);
}

template <class Format>
void spread_nibbles(uint8_t* values, const uint8_t* tile, int64_t blocks) {
  for (int64_t b = 0; b < blocks; ++b, tile += Format::kBytes, values += 8 * kWordBytes) {
    each<8>([&](auto g)
                INFERD_INLINE { store_bytes(values + kWordBytes * g, unpacked_word<Format>(tile, g)); });
  }
}

// Signed bytes; the two types differ in how they store the scales of the rows.
struct Q8_0 : TileQ8_0 {
  INFERD_SIMD F32x16 scales(const uint8_t* block) { return load_f16(block); }
};
struct I8 : TileI8 {
  INFERD_SIMD F32x16 scales(const uint8_t* block) { return load(reinterpret_cast<const float*>(block)); }
};

template <class Format, size_t kColumns>
void signed_panel(const TileJob& job) {
  const auto* x = static_cast<const Record32<kColumns>*>(job.x);
  const uint8_t* block = job.tile;
  Accumulators<kColumns> acc;
  each<kColumns>([&](auto c) INFERD_INLINE { acc.v[c] = zero(); });
  for (int64_t b = 0; b < job.blocks; ++b, ++x, block += Format::kBytes) {
    prefetch_ahead<Format::kBytes>(block);
    SignedDot dot[kColumns];
    each<kColumns>([&](auto c) INFERD_INLINE { dot[c] = signed_begin(x->minus_16[c]); });
    each<8>([&](auto g) INFERD_INLINE {
      const SignedWeights w = load_signed(block + Format::kWordsAt + kWordBytes * g);
      each<kColumns>([&](auto c) INFERD_INLINE { dot[c] = signed_more(dot[c], w, x->words[g][c]); });
    });
    const F32x16 d = Format::scales(block);
    each<kColumns>([&](auto c) INFERD_INLINE {
      acc.v[c] = fma(to_f32(signed_finish(dot[c])), mul(d, set1(x->scale[c])), acc.v[c]);
    });
  }
  write<kColumns>(job, acc);
}

// ---- Blocks of 256 ----

// What differs between the K types. A block is walked in kOuter rounds of kInner pairs of sub-blocks
// (tile_layout.h). `word` is word w of sub-block s of the pair, unpacked; `first_word` says where the
// sub-block's activations begin.
struct Q4_K : TileQ4_K {
  static constexpr int kOuter = 4;
  static constexpr int kInner = 1;
  static constexpr int kSubWords = 8;
  static constexpr bool kMin = true;
  INFERD_SIMD const uint8_t* word_at(const uint8_t* block, int64_t outer, int, int w) {
    return block + kWordsAt + kWordBytes * (8 * outer + w);
  }
  INFERD_SIMD U8x64 word(const uint8_t* block, int64_t outer, int inner, int s, int w) {
    const U8x64 bytes = load_bytes(word_at(block, outer, inner, w));
    return s == 0 ? low_nibbles(bytes) : high_nibbles(bytes);
  }
  INFERD_SIMD int64_t first_word(int64_t outer, int, int s) { return 16 * outer + 8 * s; }
};
struct Q5_K : TileQ5_K {
  static constexpr int kOuter = 4;
  static constexpr int kInner = 1;
  static constexpr int kSubWords = 8;
  static constexpr bool kMin = true;
  INFERD_SIMD const uint8_t* word_at(const uint8_t* block, int64_t outer, int, int w) {
    return block + kWordsAt + kWordBytes * (8 * outer + w);
  }
  INFERD_SIMD U8x64 word(const uint8_t* block, int64_t outer, int inner, int s, int w) {
    const U8x64 bytes = load_bytes(word_at(block, outer, inner, w));
    const U8x64 high = load_bytes(block + kHighAt + kWordBytes * (2 * outer + w / 4));
    return with_fifth_bit(s == 0 ? low_nibbles(bytes) : high_nibbles(bytes), high, 4 * s + w % 4);
  }
  INFERD_SIMD int64_t first_word(int64_t outer, int, int s) { return 16 * outer + 8 * s; }
};
struct Q6_K : TileQ6_K {
  static constexpr int kOuter = 4;  // 2 · half + j
  static constexpr int kInner = 2;  // g
  static constexpr int kSubWords = 4;
  static constexpr bool kMin = false;
  INFERD_SIMD const uint8_t* word_at(const uint8_t* block, int64_t outer, int inner, int w) {
    return block + kWordsAt + kWordBytes * (8 * outer + 4 * inner + w);
  }
  INFERD_SIMD U8x64 word(const uint8_t* block, int64_t outer, int inner, int s, int w) {
    const U8x64 bytes = load_bytes(word_at(block, outer, inner, w));
    const U8x64 high = load_bytes(block + kHighAt + kWordBytes * (4 * outer + w));
    return with_two_bits(s == 0 ? low_nibbles(bytes) : high_nibbles(bytes), high, inner + 2 * s);
  }
  INFERD_SIMD int64_t first_word(int64_t outer, int inner, int s) {
    return outer / 2 * 32 + outer % 2 * 4 + inner * 8 + s * 16;
  }
};

struct Q2_K : TileQ2_K {
  static constexpr int kOuter = 4;  // 2 · half + j
  static constexpr int kInner = 2;  // g
  static constexpr int kSubWords = 4;
  static constexpr bool kMin = true;
  INFERD_SIMD const uint8_t* word_at(const uint8_t* block, int64_t outer, int, int w) {
    return block + kWordsAt + kWordBytes * (4 * outer + w);
  }
  INFERD_SIMD U8x64 word(const uint8_t* block, int64_t outer, int inner, int s, int w) {
    return two_bits(load_bytes(word_at(block, outer, inner, w)), inner + 2 * s);
  }
  INFERD_SIMD int64_t first_word(int64_t outer, int inner, int s) {
    return Q6_K::first_word(outer, inner, s);
  }
};

template <class Format, size_t kColumns, bool kSpread>
void k_panel(const TileJob& job) {
  constexpr int depth = kDepth<Format::kMax>;
  constexpr int sub_words = Format::kSubWords;
  const auto* x = static_cast<const Record256<kColumns>*>(job.x);
  const uint8_t* block = job.tile;
  const uint8_t* values = job.values;
  Accumulators<kColumns> acc;
  each<kColumns>([&](auto c) INFERD_INLINE { acc.v[c] = zero(); });
  for (int64_t b = 0; b < job.blocks; ++b, ++x, block += Format::kBytes) {
    if constexpr (!kSpread) prefetch_ahead<Format::kWordsAt>(block);
    I32x16 sum[kColumns];
    I32x16 offset[kColumns];  // Σ min · Σ xq, or Σ sub-scale · Σ xq
    each<kColumns>([&](auto c) INFERD_INLINE { sum[c] = offset[c] = izero(); });
    for (int64_t outer = 0; outer < Format::kOuter; ++outer) {
      each<Format::kInner>([&](auto inner) INFERD_INLINE {
        const int64_t pair = outer * Format::kInner + inner;
        const uint8_t* scales = block + Format::kScalesAt + pair * 2 * kTileRows;
        if constexpr (Format::kMin) {
          const Pairs mins = load_unsigned_pairs(block + Format::kMinsAt + pair * 2 * kTileRows);
          each<kColumns>([&](auto c) INFERD_INLINE {
            const int32_t sums = sub_words == 4 ? x->sums_16[pair][c] : x->sums_32[pair][c];
            offset[c] = pairs_dot(offset[c], mins, sums);
          });
        } else {
          const Pairs factors = load_signed_pairs(scales);
          each<kColumns>(
              [&](auto c) INFERD_INLINE { offset[c] = pairs_dot(offset[c], factors, x->sums_16[pair][c]); });
        }
        each<2>([&](auto s) INFERD_INLINE {
          const Scales scale = Format::kMin ? load_unsigned_scales(scales, s) : load_signed_scales(scales, s);
          Dot dot[kColumns];
          each<sub_words>([&](auto w) INFERD_INLINE {
            const U8x64 weights =
                kSpread ? load_bytes(values + kWordBytes * w) : Format::word(block, outer, inner, s, w);
            if constexpr (!kSpread && s == 0)
              prefetch_ahead<kWordBytes>(Format::word_at(block, outer, inner, w));
            const int32_t* words = x->words[Format::first_word(outer, inner, s) + w];
            each<kColumns>([&](auto c) INFERD_INLINE {
              dot[c] = w % depth == 0 ? dot_begin(weights, words[c]) : dot_more(dot[c], weights, words[c]);
              if constexpr (w % depth == depth - 1 || w == sub_words - 1) {
                sum[c] = dot_finish_scaled(sum[c], dot[c], scale);
              }
            });
          });
          if constexpr (kSpread) values += sub_words * kWordBytes;
        });
      });
    }
    const F32x16 d = load_f16(block);
    if constexpr (Format::kMin) {
      const F32x16 dmin = load_f16(block + kHalfBytes);
      each<kColumns>([&](auto c) INFERD_INLINE {
        const F32x16 scale = set1(x->scale[c]);
        acc.v[c] = fma(to_f32(sum[c]), mul(d, scale), acc.v[c]);
        acc.v[c] = fma(to_f32(isub(izero(), offset[c])), mul(dmin, scale), acc.v[c]);
      });
    } else {
      each<kColumns>([&](auto c) INFERD_INLINE {
        const I32x16 centred = isub(sum[c], ishift_left(offset[c], 5));  // weights are stored plus 32
        acc.v[c] = fma(to_f32(centred), mul(d, set1(x->scale[c])), acc.v[c]);
      });
    }
  }
  write<kColumns>(job, acc);
}

template <class Format>
void spread_k(uint8_t* values, const uint8_t* tile, int64_t blocks) {
  for (int64_t b = 0; b < blocks; ++b, tile += Format::kBytes) {
    for (int64_t outer = 0; outer < Format::kOuter; ++outer) {
      each<Format::kInner>([&](auto inner) INFERD_INLINE {
        each<2>([&](auto s) INFERD_INLINE {
          each<Format::kSubWords>([&](auto w) INFERD_INLINE {
            store_bytes(values, Format::word(tile, outer, inner, s, w));
            values += kWordBytes;
          });
        });
      });
    }
  }
}

// ---- The table ----

template <class Format>
QuantKernels nibble_kernels() {
  QuantKernels k = {};
  each<kWidths>([&](auto i) INFERD_INLINE {
    k.panel[i] = nibble_panel<Format, 1 << i, false>;
    k.spread_panel[i] = nibble_panel<Format, 1 << i, true>;
  });
  k.spread = spread_nibbles<Format>;
  return k;
}

template <class Format>
QuantKernels k_kernels() {
  QuantKernels k = {};
  each<kWidths>([&](auto i) INFERD_INLINE {
    k.panel[i] = k_panel<Format, 1 << i, false>;
    k.spread_panel[i] = k_panel<Format, 1 << i, true>;
  });
  k.spread = spread_k<Format>;
  return k;
}

}  // namespace

void add_quant_kernels(Kernels& kernels) {
  kernels.panel_widths = kWidths;
  kernels.quant[kQ4_0] = nibble_kernels<TileQ4_0>();
  kernels.quant[kQ4_1] = nibble_kernels<TileQ4_1>();
  kernels.quant[kQ5_0] = nibble_kernels<TileQ5_0>();
  kernels.quant[kQ5_1] = nibble_kernels<TileQ5_1>();
  each<kWidths>([&](auto i) INFERD_INLINE {
    kernels.quant[kQ8_0].panel[i] = signed_panel<Q8_0, 1 << i>;
    kernels.quant[kI8].panel[i] = signed_panel<I8, 1 << i>;
  });
  kernels.quant[kQ4_K] = k_kernels<Q4_K>();
  kernels.quant[kQ5_K] = k_kernels<Q5_K>();
  kernels.quant[kQ6_K] = k_kernels<Q6_K>();
  kernels.quant[kQ2_K] = k_kernels<Q2_K>();
}

}  // namespace inferd::cpu::INFERD_ISA_NAMESPACE
