// Attention of a few queries of one KV head over one segment of positions. Compiled once per instruction set
// level.
//
// The definition (docs/numerics.md): a score is one chain of fma over the head's dims in ascending order,
// query times `scale` first, through the soft cap where there is one; the largest score of the segment;
// weights exp(score − largest); their sum in sixteen lanes, lane = position mod 16, added up by reduce_add;
// the accumulator one chain of fma over the positions in ascending order. q8_0 multiplies a position's
// finished dot product by its K scale, and its weight by its V scale. Positions that a query does not see are
// in none of these.
//
// Scores run with a lane per position (K expanded to float and transposed), the accumulator with a lane per
// dim (V expanded), so neither needs a sum across lanes, and the queries of all heads that share the KV head
// use one expansion.
#include "cpu/kernels/level_kernels.h"
#include "cpu/kernels/simd.h"

namespace inferd::cpu::INFERD_ISA_NAMESPACE {
namespace {

INFERD_SIMD int32_t padded(int32_t head_dim) {
  return (head_dim + 15) / 16 * 16;
}

INFERD_SIMD int32_t bytes_of(KvKind kind) {
  return kind == KvKind::f32 ? 4 : kind == KvKind::q8_0 ? 1 : 2;
}

INFERD_SIMD F32x16 widen(const uint8_t* p, KvKind kind) {
  switch (kind) {
    case KvKind::f32:
      return load(reinterpret_cast<const float*>(p));
    case KvKind::f16:
      return load_f16(p);
    case KvKind::bf16:
      return load_bf16(p);
    case KvKind::q8_0:
      return load_i8(p);
  }
  return zero();
}

// Elements d … d + 15 of a stored head, zeros past its end.
INFERD_SIMD F32x16 widen_part(const uint8_t* head, int32_t d, int32_t head_dim, KvKind kind) {
  const int32_t width = bytes_of(kind);
  if (d + 16 <= head_dim) return widen(head + d * width, kind);
  uint8_t last[64] = {};
  __builtin_memcpy(last, head + d * width, static_cast<size_t>((head_dim - d) * width));
  return widen(last, kind);
}

// keys[tile][dim][16 positions] from up to kKvTokens stored heads. A tile that is not full repeats its last
// position: what comes of it is masked.
template <KvKind kKind>
void expand_keys(float* keys, const uint8_t* const* k, int32_t tokens, int32_t head_dim) {
  for (int32_t first = 0; first < tokens; first += 16, keys += 16 * padded(head_dim)) {
    for (int32_t d = 0; d < head_dim; d += 16) {
      F32x16 rows[16];
      each<16>([&](auto i) INFERD_INLINE {
        const int32_t t = first + i < tokens ? first + i : tokens - 1;
        rows[i] = widen_part(k[t], d, head_dim, kKind);
      });
      store_transposed(keys + d * 16, rows);
    }
  }
}

// values[position][padded dim]
template <KvKind kKind>
void expand_values(float* values, const uint8_t* const* v, int32_t tokens, int32_t head_dim) {
  for (int32_t t = 0; t < tokens; ++t, values += padded(head_dim)) {
    for (int32_t d = 0; d < head_dim; d += 16) store(values + d, widen_part(v[t], d, head_dim, kKind));
  }
}

void expand(bool keys, float* out, const uint8_t* const* heads, int32_t tokens, int32_t head_dim,
            KvKind kind) {
  switch (kind) {
    case KvKind::f32:
      return keys ? expand_keys<KvKind::f32>(out, heads, tokens, head_dim)
                  : expand_values<KvKind::f32>(out, heads, tokens, head_dim);
    case KvKind::f16:
      return keys ? expand_keys<KvKind::f16>(out, heads, tokens, head_dim)
                  : expand_values<KvKind::f16>(out, heads, tokens, head_dim);
    case KvKind::bf16:
      return keys ? expand_keys<KvKind::bf16>(out, heads, tokens, head_dim)
                  : expand_values<KvKind::bf16>(out, heads, tokens, head_dim);
    case KvKind::q8_0:
      return keys ? expand_keys<KvKind::q8_0>(out, heads, tokens, head_dim)
                  : expand_values<KvKind::q8_0>(out, heads, tokens, head_dim);
  }
}

// Queries are cut into groups of up to kGroup whose sizes differ by one at most; a group of w lies as
// [dim][w].
struct Groups {
  int32_t count;
  int32_t groups;
};
INFERD_SIMD Groups groups_of(int32_t queries) {
  return {queries, (queries + kQueryGroup - 1) / kQueryGroup};
}
INFERD_SIMD int32_t group_begin(Groups g, int32_t group) {
  const int32_t extra = g.count % g.groups;
  return group * (g.count / g.groups) + (group < extra ? group : extra);
}

void prepare_queries(float* out, const float* const* q, int32_t count, int32_t head_dim, float scale) {
  const Groups groups = groups_of(count);
  for (int32_t g = 0; g < groups.groups; ++g) {
    const int32_t begin = group_begin(groups, g);
    const int32_t width = group_begin(groups, g + 1) - begin;
    for (int32_t i = 0; i < width; ++i) {
      for (int32_t d = 0; d < head_dim; ++d) out[begin * head_dim + d * width + i] = q[begin + i][d] * scale;
    }
  }
}

// Vectors of a block of kQueries queries that keep the multipliers busy without leaving the registers.
template <size_t kQueries>
inline constexpr size_t kWide = kAttentionVectors / kQueries >= 4   ? 4
                                : kAttentionVectors / kQueries >= 2 ? 2
                                                                    : 1;

// scores[q][16·tile …] of kTiles tiles from `tile` on.
template <size_t kQueries, size_t kTiles>
INFERD_SIMD void score_tiles(float* scores, const float* queries, const float* keys, int32_t tile,
                             const float* k_scale, int32_t head_dim) {
  const float* at = keys + tile * 16 * padded(head_dim);
  F32x16 dot[kQueries][kTiles];
  each<kQueries>([&](auto q)
                     INFERD_INLINE { each<kTiles>([&](auto t) INFERD_INLINE { dot[q][t] = zero(); }); });
  for (int32_t d = 0; d < head_dim; ++d, queries += kQueries, at += 16) {
    F32x16 k[kTiles];
    each<kTiles>([&](auto t) INFERD_INLINE { k[t] = load(at + t * 16 * padded(head_dim)); });
    each<kQueries>([&](auto q) INFERD_INLINE {
      const F32x16 x = set1(queries[q]);
      each<kTiles>([&](auto t) INFERD_INLINE { dot[q][t] = fma(x, k[t], dot[q][t]); });
    });
  }
  each<kTiles>([&](auto t) INFERD_INLINE {
    const int32_t position = (tile + t) * 16;
    each<kQueries>([&](auto q) INFERD_INLINE {
      F32x16 score = dot[q][t];
      if (k_scale != nullptr) score = mul(score, load(k_scale + position));
      store(scores + q * kSegment + position, score);
    });
  });
}

template <size_t kQueries>
void scores_of(float* scores, const float* queries, const float* keys, int32_t tiles, const float* k_scale,
               int32_t head_dim) {
  constexpr int32_t wide = kWide<kQueries>;
  int32_t tile = 0;
  for (; tile + wide <= tiles; tile += wide) {
    score_tiles<kQueries, kWide<kQueries>>(scores, queries, keys, tile, k_scale, head_dim);
  }
  for (; tile < tiles; ++tile) score_tiles<kQueries, 1>(scores, queries, keys, tile, k_scale, head_dim);
}

// acc[q][16 · kVectors dims] += weights of positions begin … end times their values.
template <size_t kQueries, size_t kVectors>
INFERD_SIMD void accumulate_dims(float* acc, const float* weights, const float* values, int32_t begin,
                                 int32_t end, int32_t width) {
  F32x16 sum[kQueries][kVectors];
  each<kQueries>([&](auto q) INFERD_INLINE {
    each<kVectors>([&](auto i) INFERD_INLINE { sum[q][i] = load(acc + q * width + 16 * i); });
  });
  for (int32_t t = begin; t < end; ++t) {
    F32x16 v[kVectors];
    each<kVectors>([&](auto i) INFERD_INLINE { v[i] = load(values + t * width + 16 * i); });
    each<kQueries>([&](auto q) INFERD_INLINE {
      const F32x16 w = set1(weights[q * kSegment + t]);
      each<kVectors>([&](auto i) INFERD_INLINE { sum[q][i] = fma(w, v[i], sum[q][i]); });
    });
  }
  each<kQueries>([&](auto q) INFERD_INLINE {
    each<kVectors>([&](auto i) INFERD_INLINE { store(acc + q * width + 16 * i, sum[q][i]); });
  });
}

template <size_t kQueries>
void accumulate(float* acc, const float* weights, const float* values, int32_t begin, int32_t end,
                int32_t width) {
  constexpr int32_t wide = 16 * kWide<kQueries>;
  int32_t d = 0;
  for (; d + wide <= width; d += wide) {
    accumulate_dims<kQueries, kWide<kQueries>>(acc + d, weights, values + d, begin, end, width);
  }
  for (; d < width; d += 16) accumulate_dims<kQueries, 1>(acc + d, weights, values + d, begin, end, width);
}

struct GroupKernels {
  void (*scores)(float* scores, const float* queries, const float* keys, int32_t tiles, const float* k_scale,
                 int32_t head_dim);
  void (*accumulate)(float* acc, const float* weights, const float* values, int32_t begin, int32_t end,
                     int32_t width);
};

INFERD_SIMD GroupKernels group_kernels(int32_t width) {
  GroupKernels found = {};
  each<kQueryGroup>([&](auto i) INFERD_INLINE {
    if (width == i + 1) found = {scores_of<i + 1>, accumulate<i + 1>};
  });
  return found;
}

// Scores to weights for one query that sees positions hidden … visible − 1.
INFERD_SIMD void weigh(float* scores, float softcap, int32_t hidden, int32_t visible, float& largest,
                       float& sum, const float* v_scale) {
  const F32x16 nothing = set1(-__builtin_inff());
  const int32_t begin = hidden / 16 * 16;
  if (softcap > 0) {
    for (int32_t t = begin; t < visible; t += 16)
      store(scores + t, soft_capped(load(scores + t), set1(softcap)));
  }
  if (begin < hidden) store(scores + begin, first_lanes(nothing, load(scores + begin), hidden - begin));
  const int32_t whole = visible / 16 * 16;
  if (whole < visible) store(scores + whole, first_lanes(load(scores + whole), nothing, visible - whole));
  F32x16 most = nothing;
  for (int32_t t = begin; t < visible; t += 16) most = max(most, load(scores + t));
  largest = reduce_max(most);
  F32x16 lanes = zero();
  for (int32_t t = begin; t < visible; t += 16) {
    const F32x16 weight = exp(sub(load(scores + t), set1(largest)));
    lanes = add(lanes, weight);
    store(scores + t, v_scale == nullptr ? weight : mul(weight, load(v_scale + t)));
  }
  sum = reduce_add(lanes);
}

void attention_segment(const SegmentJob& job) {
  const Groups groups = groups_of(job.query_count);
  const int32_t width = padded(job.head_dim);
  for (int32_t first = 0; first < job.tokens; first += kKvTokens) {
    const int32_t tokens = job.tokens - first < kKvTokens ? job.tokens - first : kKvTokens;
    expand(true, job.expanded, job.k + first, tokens, job.head_dim, job.kind);
    for (int32_t g = 0; g < groups.groups; ++g) {
      const int32_t begin = group_begin(groups, g);
      const int32_t end = group_begin(groups, g + 1);
      const int32_t seen = job.visible[end - 1] - first;  // by the group's last query
      if (seen <= 0) continue;
      group_kernels(end - begin)
          .scores(job.scores + begin * kSegment + first, job.queries + begin * job.head_dim, job.expanded,
                  ((seen < tokens ? seen : tokens) + 15) / 16,
                  job.k_scale == nullptr ? nullptr : job.k_scale + first, job.head_dim);
    }
  }
  for (int32_t q = 0; q < job.query_count; ++q) {
    job.largest[q] = -__builtin_inff();
    job.sum[q] = 0;
    const int32_t hidden = job.hidden == nullptr ? 0 : job.hidden[q];
    if (job.visible[q] > hidden) {
      weigh(job.scores + q * kSegment, job.softcap, hidden, job.visible[q], job.largest[q], job.sum[q],
            job.v_scale);
    }
  }
  __builtin_memset(job.acc, 0,
                   static_cast<size_t>(job.query_count) * static_cast<size_t>(width) * sizeof(float));
  for (int32_t first = 0; first < job.tokens; first += kKvTokens) {
    const int32_t tokens = job.tokens - first < kKvTokens ? job.tokens - first : kKvTokens;
    expand(false, job.expanded, job.v + first, tokens, job.head_dim, job.kind);
    for (int32_t g = 0; g < groups.groups; ++g) {
      const int32_t begin = group_begin(groups, g);
      const int32_t end = group_begin(groups, g + 1);
      // What all of the group see goes side by side; what only the earlier or the later ones see, one by one.
      const int32_t least = job.visible[begin] - first;
      const int32_t common = least < 0 ? 0 : least < tokens ? least : tokens;
      const float* weights = job.scores + begin * kSegment + first;
      float* acc = job.acc + begin * width;
      const auto alone = [&](int32_t q, int32_t from, int32_t to) {
        const int32_t hidden = job.hidden == nullptr ? 0 : job.hidden[begin + q] - first;
        if (from < hidden) from = hidden;
        if (from < to) accumulate<1>(acc + q * width, weights + q * kSegment, job.expanded, from, to, width);
      };
      const int32_t most_hidden = job.hidden == nullptr ? 0 : job.hidden[end - 1] - first;
      const int32_t from = most_hidden < 0 ? 0 : most_hidden < common ? most_hidden : common;
      for (int32_t q = 0; from > 0 && q < end - begin; ++q) alone(q, 0, from);
      group_kernels(end - begin).accumulate(acc, weights, job.expanded, from, common, width);
      for (int32_t q = 0; q < end - begin; ++q) {
        const int32_t seen = job.visible[begin + q] - first;
        alone(q, common, seen < tokens ? seen : tokens);
      }
    }
  }
}

void merge_segment(float* largest, float* sum, float* acc, float segment_largest, float segment_sum,
                   const float* segment_acc, int32_t head_dim) {
  const F32x16 most = max(set1(segment_largest), set1(*largest));
  const F32x16 old_part = exp(sub(set1(*largest), most));
  const F32x16 new_part = exp(sub(set1(segment_largest), most));
  float factors[16];
  store(factors, old_part);
  const float keep = factors[0];
  store(factors, new_part);
  *sum = fma1(*sum, keep, segment_sum * factors[0]);
  for (int32_t d = 0; d < padded(head_dim); d += 16) {
    store(acc + d, fma(load(acc + d), old_part, mul(load(segment_acc + d), new_part)));
  }
  store(factors, most);
  *largest = factors[0];
}

void finish_query(float* out, const float* acc, float sum, int32_t head_dim) {
  const F32x16 inverse = set1(1.0f / sum);
  for (int32_t d = 0; d < head_dim; d += 16) {
    store_n(out + d, mul(load(acc + d), inverse), head_dim - d < 16 ? head_dim - d : 16);
  }
}

}  // namespace

void add_attention_kernels(Kernels& kernels) {
  kernels.prepare_queries = prepare_queries;
  kernels.attention_segment = attention_segment;
  kernels.merge_segment = merge_segment;
  kernels.finish_query = finish_query;
}

}  // namespace inferd::cpu::INFERD_ISA_NAMESPACE
