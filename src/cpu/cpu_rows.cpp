// Verbs that treat every row by itself, and the bookkeeping of a step. Small ones stay on the calling thread:
// waking the others costs more than a decode step's row.
#include <algorithm>
#include <cstring>

#include "base/arithmetic.h"
#include "cpu/cpu_ops.h"

namespace inferd::cpu {
namespace {

constexpr int64_t kAloneElements = 1 << 14;
constexpr int64_t kPartElements = 1 << 12;

void expect_same_shape(const ConstMatrixView& a, const ConstMatrixView& b) {
  INFERD_CHECK(a.rows == b.rows && a.cols == b.cols && a.dtype == DType::f32 && b.dtype == DType::f32, "(",
               a.rows, ", ", a.cols, ") beside (", b.rows, ", ", b.cols, ")");
}

KvKind kind_of(KvDType type) {
  switch (type) {
    case KvDType::f32:
      return KvKind::f32;
    case KvDType::f16:
      return KvKind::f16;
    case KvDType::bf16:
      return KvKind::bf16;
    case KvDType::q8_0:
      return KvKind::q8_0;
  }
  INFERD_CHECK(false, "KV type ", static_cast<int>(type));
}

}  // namespace

void CpuOps::for_each_row(int64_t rows, int64_t row_elements, FunctionRef<void(int64_t)> body) {
  const int64_t part_rows = std::max<int64_t>(1, kPartElements / std::max<int64_t>(1, row_elements));
  for_each(ceil_div(rows, part_rows), rows * row_elements < kAloneElements, [&](int, int64_t part) {
    const int64_t end = std::min(rows, (part + 1) * part_rows);
    for (int64_t row = part * part_rows; row < end; ++row) body(row);
  });
}

void CpuOps::begin_step(const BatchView& b, const SeqState& state) {
  for (int32_t u = 0; u < *b.update_count; ++u) {
    const SlotUpdate& update = b.updates[u];
    INFERD_CHECK(update.slot >= 0 && update.slot < state.slots && update.token_count <= state.ctx, "slot ",
                 update.slot, " of ", state.slots, ", ", update.token_count, " ids of ", state.ctx);
    std::copy_n(b.update_tokens + update.token_offset, update.token_count,
                state.ids + int64_t{update.slot} * state.ctx);
    state.known[update.slot] = update.token_count;
    state.length[update.slot] = update.length;
    state.prompt_tokens[update.slot] = update.prompt_tokens;
    state.stopped[update.slot] = 0;
    state.params[update.slot] = update.params;
  }
  int32_t token = 0;
  int32_t logit = 0;
  b.cu_seqlens_q[0] = 0;
  for (int32_t r = 0; r < b.rows; ++r) {
    const BatchRow& row = b.row[r];
    const int32_t start = row.slot < 0 ? 0 : state.length[row.slot];
    for (int32_t i = 0; i < row.q_len; ++i, ++token) {
      b.ids[token] = state.ids[int64_t{row.slot} * state.ctx + start + i];
      b.positions[token] = start + i;
      b.token_row[token] = r;
      if (i >= row.q_len - row.logits) b.logit_token[logit++] = token;
    }
    b.kv_lens[r] = start + row.q_len;
    b.cu_seqlens_q[r + 1] = token;
  }
  INFERD_CHECK(token <= b.tokens && logit <= b.logit_rows, token, " tokens of ", b.tokens, ", ", logit,
               " logit rows of ", b.logit_rows);
  for (; token < b.tokens; ++token) b.ids[token] = b.positions[token] = b.token_row[token] = -1;
  for (; logit < b.logit_rows; ++logit) b.logit_token[logit] = -1;
}

void CpuOps::copy_pages(const KvView& kv, const BatchView& b, int32_t group) {
  const auto bytes = static_cast<size_t>(kv.layout.layer_page_bytes());
  for (int32_t i = 0; i < *b.copy_count[group]; ++i) {
    const PageCopy& copy = b.copies[group][i];
    for (int32_t layer = 0; layer < kv.layout.layers; ++layer) {
      std::memcpy(kv.k(layer, copy.target, 0), kv.k(layer, copy.source, 0), bytes);
    }
  }
}

void CpuOps::select_rows(MatrixView y, ConstMatrixView x, const int32_t* index) {
  INFERD_CHECK(y.cols == x.cols, "rows of ", x.cols, " into rows of ", y.cols);
  for_each_row(y.rows, y.cols, [&](int64_t i) {
    if (index[i] >= 0) std::copy_n(x.row_f32(index[i]), y.cols, y.row_f32(i));
  });
}

void CpuOps::add(MatrixView x, ConstMatrixView h) {
  expect_same_shape(x, h);
  for_each_row(x.rows, x.cols, [&](int64_t i) { kernels_.add(x.row_f32(i), h.row_f32(i), x.cols); });
}

void CpuOps::rmsnorm(MatrixView y, ConstMatrixView x, const float* weight, float eps) {
  expect_same_shape(y, x);
  for_each_row(x.rows, x.cols,
               [&](int64_t i) { kernels_.rmsnorm(y.row_f32(i), x.row_f32(i), weight, eps, x.cols); });
}

void CpuOps::add_rmsnorm(MatrixView y, MatrixView x, ConstMatrixView h, const float* weight, float eps) {
  expect_same_shape(y, x);
  expect_same_shape(x, h);
  for_each_row(x.rows, x.cols, [&](int64_t i) {
    kernels_.add_rmsnorm(y.row_f32(i), x.row_f32(i), h.row_f32(i), weight, eps, x.cols);
  });
}

void CpuOps::qk_norm(MatrixView qkv, const float* q_weight, const float* k_weight, float eps,
                     const AttentionShape& shape) {
  INFERD_CHECK(qkv.cols == shape.qkv_width(), "qk_norm of ", qkv.cols, " columns");
  for_each_row(qkv.rows, qkv.cols, [&](int64_t i) {
    for (int32_t head = 0; head < shape.heads + shape.kv_heads; ++head) {
      float* x = qkv.row_f32(i) + int64_t{head} * shape.head_dim;
      kernels_.rmsnorm(x, x, head < shape.heads ? q_weight : k_weight, eps, shape.head_dim);
    }
  });
}

void CpuOps::silu_mul(MatrixView y, ConstMatrixView gate_up) {
  INFERD_CHECK(gate_up.cols == 2 * y.cols && gate_up.rows == y.rows, "silu_mul (", y.rows, ", ", y.cols,
               ") of (", gate_up.rows, ", ", gate_up.cols, ")");
  // Exponentials: an element counts for several of the other verbs'.
  for_each_row(y.rows, 4 * y.cols, [&](int64_t i) {
    kernels_.silu_mul(y.row_f32(i), gate_up.row_f32(i), gate_up.row_f32(i) + y.cols, y.cols);
  });
}

void CpuOps::gelu_mul(MatrixView y, ConstMatrixView gate_up) {
  INFERD_CHECK(gate_up.cols == 2 * y.cols && gate_up.rows == y.rows, "gelu_mul (", y.rows, ", ", y.cols,
               ") of (", gate_up.rows, ", ", gate_up.cols, ")");
  for_each_row(y.rows, 4 * y.cols, [&](int64_t i) {
    kernels_.gelu_mul(y.row_f32(i), gate_up.row_f32(i), gate_up.row_f32(i) + y.cols, y.cols);
  });
}

void CpuOps::scale(MatrixView x, float factor) {
  for_each_row(x.rows, x.cols, [&](int64_t i) { kernels_.scale(x.row_f32(i), factor, x.cols); });
}

void CpuOps::softcap(MatrixView x, float cap) {
  for_each_row(x.rows, 4 * x.cols, [&](int64_t i) { kernels_.softcap(x.row_f32(i), cap, x.cols); });
}

void CpuOps::rope_token(MatrixView qkv, int64_t token, const BatchView& b, const RopeView& rope,
                        const AttentionShape& shape) {
  kernels_.rope(qkv.row_f32(token), shape.heads + shape.kv_heads, shape.head_dim,
                rope.cos_sin + int64_t{b.positions[token]} * rope.rotary_dims, rope.rotary_dims / 2,
                rope.neighbours);
}

void CpuOps::store_kv_token(const KvView& kv, ConstMatrixView qkv, int64_t token, const BatchView& b,
                            int32_t group, int32_t layer, const AttentionShape& shape) {
  const KvLayout& layout = kv.layout;
  const int32_t position = b.positions[token];
  const int32_t* table = b.block_table[group] + int64_t{b.token_row[token]} * b.max_blocks[group];
  const int32_t page = table[position / layout.page_tokens];
  const int64_t offset = position % layout.page_tokens;
  const int64_t scales_at = int64_t{layout.page_tokens} * layout.head_dim;  // q8_0
  const int64_t token_bytes =
      layout.dtype == KvDType::q8_0 ? layout.head_dim : layout.head_bytes() / layout.page_tokens;
  const float* k = qkv.row_f32(token) + int64_t{shape.heads} * shape.head_dim;
  const float* v = k + int64_t{shape.kv_heads} * shape.head_dim;
  const auto put = [&](std::byte* head_page, const float* x) {
    auto* bytes = reinterpret_cast<uint8_t*>(head_page);
    float scale = 0;
    kernels_.store_kv(bytes + offset * token_bytes, &scale, x, layout.head_dim, kind_of(layout.dtype));
    if (layout.dtype == KvDType::q8_0) std::memcpy(bytes + scales_at + 4 * offset, &scale, 4);
  };
  for (int32_t head = 0; head < shape.kv_heads; ++head) {
    put(kv.k(layer, page, head), k + int64_t{head} * shape.head_dim);
    put(kv.v(layer, page, head), v + int64_t{head} * shape.head_dim);
  }
}

void CpuOps::rope(MatrixView qkv, const BatchView& b, const RopeView& rope, const AttentionShape& shape) {
  INFERD_CHECK(qkv.cols == shape.qkv_width() && rope.rotary_dims <= shape.head_dim, "rope of ", qkv.cols,
               " columns");
  for_each_row(qkv.rows, qkv.cols, [&](int64_t i) {
    if (b.positions[i] >= 0) rope_token(qkv, i, b, rope, shape);
  });
}

void CpuOps::store_kv(const KvView& kv, ConstMatrixView qkv, const BatchView& b, int32_t group, int32_t layer,
                      const AttentionShape& shape) {
  INFERD_CHECK(qkv.cols == shape.qkv_width() && kv.layout.head_dim == shape.head_dim, "store_kv of ",
               qkv.cols, " columns");
  for_each_row(qkv.rows, qkv.cols, [&](int64_t i) {
    if (b.positions[i] >= 0) store_kv_token(kv, qkv, i, b, group, layer, shape);
  });
}

void CpuOps::rope_store_kv(MatrixView qkv, const KvView& kv, const BatchView& b, int32_t group, int32_t layer,
                           const RopeView& rope, const AttentionShape& shape) {
  INFERD_CHECK(qkv.cols == shape.qkv_width() && rope.rotary_dims <= shape.head_dim &&
                   kv.layout.head_dim == shape.head_dim,
               "rope_store_kv of ", qkv.cols, " columns");
  for_each_row(qkv.rows, qkv.cols, [&](int64_t i) {
    if (b.positions[i] < 0) return;
    rope_token(qkv, i, b, rope, shape);
    store_kv_token(kv, qkv, i, b, group, layer, shape);
  });
}

}  // namespace inferd::cpu
