// Ops: every verb a model may say. The second seam between the engine and a backend.
//
// Rules for all verbs. Outputs first, then inputs, then options. Views are of device memory; nothing is
// allocated, owned or waited for (reserve() sizes the backend's scratch memory at load). Tokens and rows
// marked −1 are padding: read nothing, write nothing. Unless a comment says otherwise, outputs may not alias
// inputs. Shapes that do not fit are a programmer error (INFERD_CHECK); dtypes and shapes that a backend
// cannot do are refused by pack() or reserve(). N is BatchView::tokens, R its rows, L its logit_rows, D the
// model's hidden size, V its vocabulary. What each verb computes, in which precision and order:
// docs/numerics.md.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "ops/batch.h"
#include "ops/device.h"
#include "ops/kv_view.h"
#include "tensor/view.h"

namespace inferd {

// Scales that lie beside a matrix in a model file: element (r, c) is multiplied by values[r / block_rows, c /
// block_cols]. One for the whole tensor: blocks of (rows, cols). One for each output: blocks of (1, cols).
struct BlockScales {
  std::span<const float> values;  // (rows / block_rows, cols / block_cols), each rounded up; empty: all are 1
  int64_t block_rows = 1;
  int64_t block_cols = 1;

  float at(int64_t row, int64_t col, int64_t cols) const {
    if (values.empty()) return 1;
    const int64_t in_a_row = (cols + block_cols - 1) / block_cols;
    return values[static_cast<size_t>(row / block_rows * in_a_row + col / block_cols)];
  }
};

// One named matrix of a model file: `rows` outputs of `cols` inputs each.
struct RowGroup {
  std::string name;
  DType dtype = DType::f32;
  int64_t rows = 0;
  int64_t cols = 0;
  std::span<const std::byte>
      data;  // rows one after another, as the file stores them; empty when only sizes are asked
  BlockScales scales = {};  // of F8_E4M3 only
};

// E-MODEL-006 names a group whose rows are no whole blocks of its type, E-MODEL-005 one that has another
// number of scales than its blocks. Requires the same cols of all.
Status check_groups(std::span<const RowGroup> groups);

// Row groups laid out as the backend likes. Groups keep name, type and place: rows [first_row, first_row +
// rows).
class PackedWeight {
 public:
  struct Group {
    std::string name;
    DType dtype;
    int64_t first_row;
    int64_t rows;
  };

  virtual ~PackedWeight() = default;

  const std::vector<Group>& groups() const { return groups_; }
  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  int64_t bytes() const { return bytes_; }

 protected:
  std::vector<Group> groups_;
  int64_t rows_ = 0;
  int64_t cols_ = 0;
  int64_t bytes_ = 0;
};

// The largest sizes that verbs will be called with; backends size their scratch memory by it.
struct OpsLimits {
  int32_t rows = 0;
  int32_t tokens = 0;
  int32_t logit_rows = 0;
  int32_t ctx = 0;
  int32_t heads = 0;
  int32_t kv_heads = 0;
  int32_t head_dim = 0;
  int64_t linear_cols = 0;  // the longest input row of a linear
  int64_t linear_rows = 0;  // the longest output row of a linear
  int64_t vocab = 0;
};

// Rotary position embedding (Su et al., "RoFormer", 2021). The table holds cos and sin of every position and
// pair.
struct RopeView {
  const float* cos_sin = nullptr;  // (ctx, rotary_dims): per position, pairs of cos, sin
  int32_t rotary_dims = 0;         // ≤ head_dim; the dims after them pass through
  bool neighbours =
      false;  // pairs are dims (2i, 2i+1), as GGUF files of llama have them; else (i, i + dims/2)
};

struct AttentionShape {
  int32_t heads = 0;
  int32_t kv_heads = 0;  // divides heads
  int32_t head_dim = 0;
  float scale = 0;     // scores are scale · q·k
  float softcap = 0;   // scores become softcap · tanh(score / softcap); 0: they stay
  int32_t window = 0;  // positions that a token sees, its own and those right before it; 0: all before it

  // The first position that a token at `position` sees.
  int32_t first_seen(int32_t position) const {
    return window == 0 || position < window ? 0 : position + 1 - window;
  }
  int32_t qkv_width() const { return (heads + 2 * kv_heads) * head_dim; }
};

struct SampleOptions {
  int64_t vocab = 0;
};

class Ops {
 public:
  virtual ~Ops() = default;

  // ---- At load
  // -----------------------------------------------------------------------------------------------

  // Lays the groups out as one weight. All have the same cols. E-MODEL-006 names a group whose type or shape
  // the backend cannot compute with; E-MEM-002 when memory is short. The file's bytes are not needed
  // afterwards.
  virtual Result<std::unique_ptr<PackedWeight>> pack(std::span<const RowGroup> groups) = 0;

  // Bytes that pack() of these groups will take (their data is not read), for the memory plan.
  virtual int64_t packed_bytes(std::span<const RowGroup> groups) const = 0;

  // Bytes of scratch memory for these limits, and the promise that verbs within them allocate nothing.
  virtual int64_t scratch_bytes(const OpsLimits& limits) const = 0;
  virtual Status reserve(const OpsLimits& limits) = 0;

  // ---- A step
  // ------------------------------------------------------------------------------------------------

  // Applies b.updates to `state` and fills the derived part of b.
  virtual void begin_step(const BatchView& b, const SeqState& state) = 0;

  // Does b.copies[group], in order, over all layers of the group.
  virtual void copy_pages(const KvView& kv, const BatchView& b, int32_t group) = 0;

  // x[i] = row ids[i] of the table, dequantised.
  virtual void gather_rows(MatrixView x /* (N, D) */, const PackedWeight& table /* (V, D) */,
                           const int32_t* ids /* (N) */) = 0;

  // y[i] = x[index[i]].
  virtual void select_rows(MatrixView y /* (L, D) */, ConstMatrixView x /* (N, D) */,
                           const int32_t* index /* (L) */) = 0;

  // x += h. Rows of h that are padding must hold finite numbers or zeros.
  virtual void add(MatrixView x /* (N, D) */, ConstMatrixView h /* (N, D) */) = 0;

  // y = x / sqrt(mean(x²) + eps) · weight (Zhang and Sennrich, 2019). y may be x.
  virtual void rmsnorm(MatrixView y /* (N, D) */, ConstMatrixView x /* (N, D) */,
                       const float* weight /* (D) */, float eps) = 0;

  // y = x · wᵀ + bias. bias may be null.
  virtual void linear(MatrixView y /* (N, rows) */, ConstMatrixView x /* (N, cols) */, const PackedWeight& w,
                      const float* bias /* (rows) */) = 0;

  // RMSNorm of every head of q, by q_weight, and of k, by k_weight, in place inside qkv; v stays as it is
  // (query-key normalisation: Henry et al., 2020; per head in Qwen 3 and Gemma 3). Before the rotation.
  virtual void qk_norm(MatrixView qkv /* (N, qkv_width) */, const float* q_weight /* (head_dim) */,
                       const float* k_weight /* (head_dim) */, float eps, const AttentionShape& shape) = 0;

  // Rotates q and k inside qkv, in place. qkv rows are heads of q, then of k, then of v.
  virtual void rope(MatrixView qkv /* (N, qkv_width) */, const BatchView& b, const RopeView& rope,
                    const AttentionShape& shape) = 0;

  // Writes k and v to the pages of layer `layer` of KV group `group`, converting to the pool's type.
  virtual void store_kv(const KvView& kv, ConstMatrixView qkv /* (N, qkv_width) */, const BatchView& b,
                        int32_t group, int32_t layer, const AttentionShape& shape) = 0;

  // Causal attention of the new tokens over their sequence's pages, the tokens of this step included. With a
  // window (Beltagy et al., "Longformer", 2020) pages that hold no position a token of the step sees are not
  // read, and their entries of the block table mean nothing.
  virtual void attention(MatrixView out /* (N, heads · head_dim) */, ConstMatrixView qkv /* (N, qkv_width) */,
                         const KvView& kv, const BatchView& b, int32_t group, int32_t layer,
                         const AttentionShape& shape) = 0;

  // y = silu(gate) · up, where gate_up rows are gate, then up; silu(z) = z / (1 + e^−z).
  virtual void silu_mul(MatrixView y /* (N, F) */, ConstMatrixView gate_up /* (N, 2F) */) = 0;

  // y = gelu(gate) · up, of the same rows; gelu(z) = z / 2 · (1 + tanh(√(2/π) · (z + 0.044715 z³))), the form
  // with tanh (Hendrycks and Gimpel, 2016).
  virtual void gelu_mul(MatrixView y /* (N, F) */, ConstMatrixView gate_up /* (N, 2F) */) = 0;

  // x = factor · x. Rows that are padding must hold finite numbers or zeros.
  virtual void scale(MatrixView x /* (N, D) */, float factor) = 0;

  // x = cap · tanh(x / cap) (Gemma 2, 2024).
  virtual void softcap(MatrixView x /* (L, V) */, float cap) = 0;

  // Sums h over the devices that share a layer. Nothing on one device.
  virtual void reduce(MatrixView h /* (N, D) */);

  // Draws one token for every row of logits, writes it behind the sequence's known ids, and moves every row's
  // sequence on: length += q_len. Loses `logits`. Every row's sequence has its params in `state`.
  virtual void sample(SampleResult* out /* (L) */, MatrixView logits /* (L, V) */, const BatchView& b,
                      const SeqState& state, const SampleOptions& options) = 0;

  // ---- Fusions: a default body in the verbs above; a backend may override it, tests hold the two equal
  // ---------

  // x += h; y = rmsnorm(x). y may be h.
  virtual void add_rmsnorm(MatrixView y /* (N, D) */, MatrixView x /* (N, D) */,
                           ConstMatrixView h /* (N, D) */, const float* weight /* (D) */, float eps);

  // rope, then store_kv.
  virtual void rope_store_kv(MatrixView qkv /* (N, qkv_width) */, const KvView& kv, const BatchView& b,
                             int32_t group, int32_t layer, const RopeView& rope, const AttentionShape& shape);
};

// A device and the math bound to it. The device outlives the ops.
struct Backend {
  std::unique_ptr<Device> device;
  std::unique_ptr<Ops> ops;
};

}  // namespace inferd
