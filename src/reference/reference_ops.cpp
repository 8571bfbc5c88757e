#include "reference/reference_ops.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/host_device.h"
#include "reference/dequant.h"
#include "reference/reference_backend.h"

namespace inferd {

Backend make_reference_backend(int threads) {
  auto device = std::make_unique<HostDevice>("reference");
  auto ops = std::make_unique<reference::ReferenceOps>(*device, threads);
  return {std::move(device), std::move(ops)};
}

namespace reference {
namespace {

// Dequantised rows, (rows, cols) in float.
class FloatWeight final : public PackedWeight {
 public:
  FloatWeight(std::span<const RowGroup> groups, Buffer buffer) : buffer_(std::move(buffer)) {
    cols_ = groups.empty() ? 0 : groups.front().cols;
    for (const RowGroup& group : groups) {
      groups_.push_back({group.name, group.dtype, rows_, group.rows});
      rows_ += group.rows;
    }
    bytes_ = buffer_.bytes();
  }
  float* row(int64_t index) const { return static_cast<float*>(buffer_.data()) + index * cols_; }

 private:
  Buffer buffer_;
};

const FloatWeight& as_float(const PackedWeight& weight) {
  const auto* w = dynamic_cast<const FloatWeight*>(&weight);
  INFERD_CHECK(w != nullptr, "a weight that another backend packed");
  return *w;
}

// Sixteen partial sums of each product, column i going to sum i mod 16: spelled out in vectors of four, which
// is what every compiler keeps in registers. Several products of one w side by side fill the time that
// additions wait for each other; each sum is the same alone.
using Quad = float __attribute__((vector_size(16)));

Quad load_quad(const float* p) {
  Quad q;
  std::memcpy(&q, p, sizeof q);
  return q;
}

template <size_t kRows>
void dots(float (&sums)[kRows], const float* const (&x)[kRows], const float* w, int64_t n) {
  Quad part[kRows][4] = {};
  int64_t whole = 0;
  for (; whole + 16 <= n; whole += 16) {
    for (size_t q = 0; q < 4; ++q) {
      const int64_t at = whole + 4 * static_cast<int64_t>(q);
      const Quad weights = load_quad(w + at);
      for (size_t r = 0; r < kRows; ++r) part[r][q] += load_quad(x[r] + at) * weights;
    }
  }
  for (size_t r = 0; r < kRows; ++r) {
    sums[r] = 0;
    for (size_t lane = 0; lane < 16; ++lane) sums[r] += part[r][lane / 4][lane % 4];
    for (int64_t i = whole; i < n; ++i) sums[r] += x[r][i] * w[i];
  }
}

}  // namespace

Result<std::unique_ptr<PackedWeight>> ReferenceOps::pack(std::span<const RowGroup> groups) {
  INFERD_TRY_STATUS(check_groups(groups));
  auto buffer = device_.allocate(packed_bytes(groups), groups.empty() ? "no weights" : groups.front().name);
  if (!buffer.ok()) return std::move(buffer).error();
  auto weight = std::make_unique<FloatWeight>(groups, std::move(buffer).value());
  int64_t at = 0;
  for (const RowGroup& group : groups) {
    const auto bytes = static_cast<size_t>(row_bytes(group.dtype, group.cols));
    for (int64_t row = 0; row < group.rows; ++row, ++at) {
      float* out = weight->row(at);
      dequantise_row({out, static_cast<size_t>(group.cols)}, group.dtype,
                     group.data.subspan(static_cast<size_t>(row) * bytes, bytes));
      if (group.scales.values.empty()) continue;
      for (int64_t col = 0; col < group.cols; ++col) out[col] *= group.scales.at(row, col, group.cols);
    }
  }
  return std::unique_ptr<PackedWeight>(std::move(weight));
}

int64_t ReferenceOps::packed_bytes(std::span<const RowGroup> groups) const {
  int64_t elements = 0;
  for (const RowGroup& group : groups) elements += group.rows * group.cols;
  return elements * 4;
}

int64_t ReferenceOps::scratch_bytes(const OpsLimits&) const {
  return 0;
}
Status ReferenceOps::reserve(const OpsLimits&) {
  return {};
}

void ReferenceOps::begin_step(const BatchView& b, const SeqState& state) {
  for (int32_t u = 0; u < *b.update_count; ++u) {
    const SlotUpdate& update = b.updates[u];
    int32_t* ids = state.ids + int64_t{update.slot} * state.ctx;
    std::copy_n(b.update_tokens + update.token_offset, update.token_count, ids);
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
  for (; token < b.tokens; ++token) b.ids[token] = b.positions[token] = b.token_row[token] = -1;
  for (; logit < b.logit_rows; ++logit) b.logit_token[logit] = -1;
}

void ReferenceOps::copy_pages(const KvView& kv, const BatchView& b, int32_t group) {
  const auto bytes = static_cast<size_t>(kv.layout.layer_page_bytes());
  for (int32_t i = 0; i < *b.copy_count[group]; ++i) {
    const PageCopy& copy = b.copies[group][i];
    for (int32_t layer = 0; layer < kv.layout.layers; ++layer) {
      std::memcpy(kv.k(layer, copy.target, 0), kv.k(layer, copy.source, 0), bytes);
    }
  }
}

void ReferenceOps::gather_rows(MatrixView x, const PackedWeight& table, const int32_t* ids) {
  for (int64_t i = 0; i < x.rows; ++i) {
    if (ids[i] >= 0) std::copy_n(as_float(table).row(ids[i]), x.cols, x.row_f32(i));
  }
}

void ReferenceOps::select_rows(MatrixView y, ConstMatrixView x, const int32_t* index) {
  for (int64_t i = 0; i < y.rows; ++i) {
    if (index[i] >= 0) std::copy_n(x.row_f32(index[i]), y.cols, y.row_f32(i));
  }
}

void ReferenceOps::add(MatrixView x, ConstMatrixView h) {
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t j = 0; j < x.cols; ++j) x.row_f32(i)[j] += h.row_f32(i)[j];
  }
}

void ReferenceOps::rmsnorm(MatrixView y, ConstMatrixView x, const float* weight, float eps) {
  for (int64_t i = 0; i < x.rows; ++i) {
    const float* in = x.row_f32(i);
    float squares[1];
    dots(squares, {in}, in, x.cols);
    const float mean = squares[0] / static_cast<float>(x.cols);
    const float scale = 1.0f / std::sqrt(mean + eps);
    for (int64_t j = 0; j < x.cols; ++j) y.row_f32(i)[j] = in[j] * scale * weight[j];
  }
}

void ReferenceOps::linear(MatrixView y, ConstMatrixView x, const PackedWeight& weight, const float* bias) {
  const FloatWeight& w = as_float(weight);
  INFERD_CHECK(x.cols == w.cols() && y.cols == w.rows() && y.rows == x.rows, "linear (", y.rows, ", ", y.cols,
               ") = (", x.rows, ", ", x.cols, ") · (", w.rows(), ", ", w.cols(), ")ᵀ");
  WorkCounter work(w.rows());
  pool_.run([&](int) {
    for (int64_t row = work.next(); row >= 0; row = work.next()) {
      const float* w_row = w.row(row);
      const float added = bias == nullptr ? 0.0f : bias[row];
      int64_t i = 0;
      for (; i + 4 <= x.rows; i += 4) {
        float sums[4];
        dots(sums, {x.row_f32(i), x.row_f32(i + 1), x.row_f32(i + 2), x.row_f32(i + 3)}, w_row, w.cols());
        for (int64_t r = 0; r < 4; ++r) y.row_f32(i + r)[row] = sums[r] + added;
      }
      for (; i < x.rows; ++i) {
        float sum[1];
        dots(sum, {x.row_f32(i)}, w_row, w.cols());
        y.row_f32(i)[row] = sum[0] + added;
      }
    }
  });
}

void ReferenceOps::qk_norm(MatrixView qkv, const float* q_weight, const float* k_weight, float eps,
                           const AttentionShape& shape) {
  for (int64_t i = 0; i < qkv.rows; ++i) {
    for (int32_t head = 0; head < shape.heads + shape.kv_heads; ++head) {  // q, then k
      const MatrixView x = matrix_f32(qkv.row_f32(i) + int64_t{head} * shape.head_dim, 1, shape.head_dim);
      rmsnorm(x, x, head < shape.heads ? q_weight : k_weight, eps);
    }
  }
}

void ReferenceOps::rope(MatrixView qkv, const BatchView& b, const RopeView& rope,
                        const AttentionShape& shape) {
  const int32_t pairs = rope.rotary_dims / 2;
  for (int64_t i = 0; i < qkv.rows; ++i) {
    if (b.positions[i] < 0) continue;
    const float* cos_sin = rope.cos_sin + int64_t{b.positions[i]} * rope.rotary_dims;
    for (int32_t head = 0; head < shape.heads + shape.kv_heads; ++head) {  // q, then k
      float* x = qkv.row_f32(i) + int64_t{head} * shape.head_dim;
      for (int32_t p = 0; p < pairs; ++p) {
        float& first = rope.neighbours ? x[2 * p] : x[p];
        float& second = rope.neighbours ? x[2 * p + 1] : x[p + pairs];
        const float cosine = cos_sin[2 * p];
        const float sine = cos_sin[2 * p + 1];
        const float a = first;
        first = a * cosine - second * sine;
        second = second * cosine + a * sine;
      }
    }
  }
}

void ReferenceOps::silu_mul(MatrixView y, ConstMatrixView gate_up) {
  for (int64_t i = 0; i < y.rows; ++i) {
    const float* gate = gate_up.row_f32(i);
    const float* up = gate + y.cols;
    for (int64_t j = 0; j < y.cols; ++j) y.row_f32(i)[j] = gate[j] / (1.0f + std::exp(-gate[j])) * up[j];
  }
}

// (1 + tanh(u)) / 2 = 1 / (1 + e^−2u), which loses nothing where tanh comes near −1.
void ReferenceOps::gelu_mul(MatrixView y, ConstMatrixView gate_up) {
  constexpr float kLinear = 1.5957691216f;  // 2 · √(2/π)
  constexpr float kCubic = 0.0713548163f;   // 0.044715 times that
  for (int64_t i = 0; i < y.rows; ++i) {
    const float* gate = gate_up.row_f32(i);
    const float* up = gate + y.cols;
    for (int64_t j = 0; j < y.cols; ++j) {
      const float z = gate[j];
      y.row_f32(i)[j] = z / (1.0f + std::exp(-(z * (kLinear + kCubic * (z * z))))) * up[j];
    }
  }
}

void ReferenceOps::scale(MatrixView x, float factor) {
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t j = 0; j < x.cols; ++j) x.row_f32(i)[j] *= factor;
  }
}

void ReferenceOps::softcap(MatrixView x, float cap) {
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t j = 0; j < x.cols; ++j) x.row_f32(i)[j] = cap * std::tanh(x.row_f32(i)[j] / cap);
  }
}

}  // namespace reference
}  // namespace inferd
