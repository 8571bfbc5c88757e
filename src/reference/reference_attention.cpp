// Attention and the KV pages of the reference backend.
#include <cmath>
#include <cstring>
#include <vector>

#include "reference/reference_ops.h"
#include "tensor/half.h"

namespace inferd::reference {
namespace {

struct PagePlace {
  int32_t page;
  int32_t offset;  // token inside the page
};

PagePlace place_of(const BatchView& b, int32_t group, int32_t row, int32_t position, const KvLayout& layout) {
  const int32_t* table = b.block_table[group] + int64_t{row} * b.max_blocks[group];
  return {table[position / layout.page_tokens], position % layout.page_tokens};
}

void write_head(std::byte* page, const KvLayout& layout, int32_t offset, const float* x) {
  const int64_t first = int64_t{offset} * layout.head_dim;
  switch (layout.dtype) {
    case KvDType::f32:
      std::memcpy(page + first * 4, x, static_cast<size_t>(layout.head_dim) * 4);
      return;
    case KvDType::f16:
    case KvDType::bf16:
      for (int64_t d = 0; d < layout.head_dim; ++d) {
        const uint16_t half = layout.dtype == KvDType::f16 ? f32_to_f16(x[d]) : f32_to_bf16(x[d]);
        std::memcpy(page + (first + d) * 2, &half, 2);
      }
      return;
    case KvDType::q8_0: {
      float largest = 0;  // NaN when one is
      for (int64_t d = 0; d < layout.head_dim; ++d) {
        const float magnitude = std::fabs(x[d]);
        if (magnitude > largest || std::isnan(magnitude)) largest = magnitude;
      }
      const bool tiny = largest < KvLayout::kSmallest;
      const float scale = tiny ? 0.0f : largest / 127.0f;
      const float inverse = 127.0f / largest;
      for (int64_t d = 0; d < layout.head_dim; ++d) {
        const auto q =
            tiny || !std::isfinite(largest) ? int8_t{0} : static_cast<int8_t>(std::nearbyint(x[d] * inverse));
        std::memcpy(page + first + d, &q, 1);
      }
      std::memcpy(page + int64_t{layout.page_tokens} * layout.head_dim + int64_t{offset} * 4, &scale, 4);
      return;
    }
  }
}

void read_head(float* x, const std::byte* page, const KvLayout& layout, int32_t offset) {
  const int64_t first = int64_t{offset} * layout.head_dim;
  float scale = 1;
  if (layout.dtype == KvDType::q8_0) {
    std::memcpy(&scale, page + int64_t{layout.page_tokens} * layout.head_dim + int64_t{offset} * 4, 4);
  }
  for (int64_t d = 0; d < layout.head_dim; ++d) {
    switch (layout.dtype) {
      case KvDType::f32:
        std::memcpy(x + d, page + (first + d) * 4, 4);
        break;
      case KvDType::f16:
      case KvDType::bf16: {
        uint16_t half = 0;
        std::memcpy(&half, page + (first + d) * 2, 2);
        x[d] = layout.dtype == KvDType::f16 ? f16_to_f32(half) : bf16_to_f32(half);
        break;
      }
      case KvDType::q8_0: {
        int8_t q = 0;
        std::memcpy(&q, page + first + d, 1);
        x[d] = scale * static_cast<float>(q);
        break;
      }
    }
  }
}

}  // namespace

void ReferenceOps::store_kv(const KvView& kv, ConstMatrixView qkv, const BatchView& b, int32_t group,
                            int32_t layer, const AttentionShape& shape) {
  for (int64_t i = 0; i < qkv.rows; ++i) {
    if (b.positions[i] < 0) continue;
    const PagePlace place = place_of(b, group, b.token_row[i], b.positions[i], kv.layout);
    const float* k = qkv.row_f32(i) + int64_t{shape.heads} * shape.head_dim;
    const float* v = k + int64_t{shape.kv_heads} * shape.head_dim;
    for (int32_t head = 0; head < shape.kv_heads; ++head) {
      write_head(kv.k(layer, place.page, head), kv.layout, place.offset, k + int64_t{head} * shape.head_dim);
      write_head(kv.v(layer, place.page, head), kv.layout, place.offset, v + int64_t{head} * shape.head_dim);
    }
  }
}

void ReferenceOps::attention(MatrixView out, ConstMatrixView qkv, const KvView& kv, const BatchView& b,
                             int32_t group, int32_t layer, const AttentionShape& shape) {
  const auto dim = static_cast<size_t>(shape.head_dim);
  const int32_t heads_per_kv = shape.heads / shape.kv_heads;
  std::vector<float> keys;
  std::vector<float> values;
  std::vector<float> weights;
  for (int32_t r = 0; r < b.rows; ++r) {
    const auto length = static_cast<size_t>(b.kv_lens[r]);
    if (b.row[r].q_len == 0) continue;
    keys.resize(length * dim);
    values.resize(length * dim);
    weights.resize(length);
    for (int32_t kv_head = 0; kv_head < shape.kv_heads; ++kv_head) {
      const auto first_read = static_cast<size_t>(shape.first_seen(b.positions[b.cu_seqlens_q[r]]));
      for (size_t t = first_read; t < length; ++t) {
        const PagePlace place = place_of(b, group, r, static_cast<int32_t>(t), kv.layout);
        read_head(keys.data() + t * dim, kv.k(layer, place.page, kv_head), kv.layout, place.offset);
        read_head(values.data() + t * dim, kv.v(layer, place.page, kv_head), kv.layout, place.offset);
      }
      for (int32_t i = b.cu_seqlens_q[r]; i < b.cu_seqlens_q[r + 1]; ++i) {
        const auto first = static_cast<size_t>(shape.first_seen(b.positions[i]));
        const auto visible = static_cast<size_t>(b.positions[i]) + 1;
        for (int32_t head = kv_head * heads_per_kv; head < (kv_head + 1) * heads_per_kv; ++head) {
          const float* q = qkv.row_f32(i) + static_cast<size_t>(head) * dim;
          float* y = out.row_f32(i) + static_cast<size_t>(head) * dim;
          float largest = -INFINITY;
          for (size_t t = first; t < visible; ++t) {
            float score = 0;
            for (size_t d = 0; d < dim; ++d) score += q[d] * keys[t * dim + d];
            weights[t] = score * shape.scale;
            if (shape.softcap > 0) weights[t] = shape.softcap * std::tanh(weights[t] / shape.softcap);
            largest = std::max(largest, weights[t]);
          }
          float total = 0;
          for (size_t t = first; t < visible; ++t) total += weights[t] = std::exp(weights[t] - largest);
          for (size_t d = 0; d < dim; ++d) y[d] = 0;
          for (size_t t = first; t < visible; ++t) {
            for (size_t d = 0; d < dim; ++d) y[d] += weights[t] / total * values[t * dim + d];
          }
        }
      }
    }
  }
}

}  // namespace inferd::reference
