#include "ops_registry_faults.h"

#include <cmath>

#include "tensor/half.h"

namespace inferd::test {
namespace {

float next(float x) {
  return std::nextafter(x, INFINITY);
}

class WrongOps final : public Ops {
 public:
  WrongOps(std::unique_ptr<Ops> right, Fault fault) : right_(std::move(right)), fault_(fault) {}

  Result<std::unique_ptr<PackedWeight>> pack(std::span<const RowGroup> groups) override {
    return right_->pack(groups);
  }
  int64_t packed_bytes(std::span<const RowGroup> groups) const override {
    return right_->packed_bytes(groups);
  }
  int64_t scratch_bytes(const OpsLimits& limits) const override { return right_->scratch_bytes(limits); }
  Status reserve(const OpsLimits& limits) override { return right_->reserve(limits); }
  void begin_step(const BatchView& b, const SeqState& state) override { right_->begin_step(b, state); }
  void copy_pages(const KvView& kv, const BatchView& b, int32_t group) override {
    right_->copy_pages(kv, b, group);
  }
  void gather_rows(MatrixView x, const PackedWeight& table, const int32_t* ids) override {
    right_->gather_rows(x, table, ids);
  }
  void select_rows(MatrixView y, ConstMatrixView x, const int32_t* index) override {
    if (fault_ == Fault::shifted_output) {
      y.data = y.row_f32(0) + 1;
      --y.cols;
    }
    right_->select_rows(y, x, index);
    for (int64_t i = 0; fault_ == Fault::padding_written && i < y.rows; ++i) {
      if (index[i] < 0) y.row_f32(i)[0] = 0;
    }
  }
  void add(MatrixView x, ConstMatrixView h) override {
    right_->add(x, h);
    if (fault_ == Fault::last_bit && x.rows > 0) x.row_f32(0)[0] = next(x.row_f32(0)[0]);
  }
  void rmsnorm(MatrixView y, ConstMatrixView x, const float* weight, float eps) override {
    right_->rmsnorm(y, x, weight, eps);
    if (fault_ == Fault::byte_behind && y.rows > 0)
      *reinterpret_cast<uint8_t*>(y.row_f32(y.rows - 1) + y.cols) = 0;
  }
  void linear(MatrixView y, ConstMatrixView x, const PackedWeight& w, const float* bias) override {
    right_->linear(y, x, w, bias);
    if (y.rows == 0) return;
    float& first = y.row_f32(0)[0];
    if (fault_ == Fault::input_changed) *const_cast<float*>(x.row_f32(0)) = 7;
    if (fault_ == Fault::weights_off) first *= 1.001f;
    if (fault_ == Fault::batch_changes_rows && y.rows > 8) first = next(first);
  }
  void qk_norm(MatrixView qkv, const float* q_weight, const float* k_weight, float eps,
               const AttentionShape& shape) override {
    right_->qk_norm(qkv, q_weight, fault_ == Fault::keys_by_q_weight ? q_weight : k_weight, eps, shape);
  }
  void rope(MatrixView qkv, const BatchView& b, const RopeView& table, const AttentionShape& shape) override {
    right_->rope(qkv, b, table, shape);
  }
  void store_kv(const KvView& kv, ConstMatrixView qkv, const BatchView& b, int32_t group, int32_t layer,
                const AttentionShape& shape) override {
    right_->store_kv(kv, qkv, b, group, layer, shape);
    if (fault_ == Fault::other_page) *kv.k(0, 0, 0) = std::byte{1};
  }
  void attention(MatrixView out, ConstMatrixView qkv, const KvView& kv, const BatchView& b, int32_t group,
                 int32_t layer, const AttentionShape& shape) override {
    AttentionShape s = shape;
    if (fault_ == Fault::window_longer && s.window > 0) ++s.window;
    if (fault_ == Fault::scores_uncapped) s.softcap = 0;
    right_->attention(out, qkv, kv, b, group, layer, s);
  }
  void silu_mul(MatrixView y, ConstMatrixView gate_up) override {
    right_->silu_mul(y, gate_up);
    if (fault_ == Fault::byte_between_rows && y.rows > 1)
      *reinterpret_cast<uint8_t*>(y.row_f32(0) + y.cols) = 0;
  }
  void gelu_mul(MatrixView y, ConstMatrixView gate_up) override {
    if (fault_ == Fault::gelu_is_silu) {
      right_->silu_mul(y, gate_up);
    } else {
      right_->gelu_mul(y, gate_up);
    }
  }
  void scale(MatrixView x, float factor) override {
    right_->scale(x, fault_ == Fault::scale_rounded ? bf16_to_f32(f32_to_bf16(factor)) : factor);
  }
  void softcap(MatrixView x, float cap) override {
    right_->softcap(x, cap);
    if (fault_ == Fault::capped_twice) right_->softcap(x, cap);
  }
  void sample(SampleResult* out, MatrixView logits, const BatchView& b, const SeqState& state,
              const SampleOptions& options) override {
    right_->sample(out, logits, b, state, options);
  }
  void add_rmsnorm(MatrixView y, MatrixView x, ConstMatrixView h, const float* weight, float eps) override {
    Ops::add_rmsnorm(y, x, h, weight, eps);
    if (fault_ == Fault::fusion_differs && y.rows > 0) y.row_f32(0)[0] = next(y.row_f32(0)[0]);
  }

 private:
  const std::unique_ptr<Ops> right_;
  const Fault fault_;
};

}  // namespace

Backend with_fault(Backend backend, Fault fault) {
  backend.ops = std::make_unique<WrongOps>(std::move(backend.ops), fault);
  return backend;
}

}  // namespace inferd::test
