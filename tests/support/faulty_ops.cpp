#include "support/faulty_ops.h"

#include <thread>

namespace inferd::test {
namespace {

class FaultyOps final : public Ops {
 public:
  FaultyOps(std::unique_ptr<Ops> ops, int step, std::chrono::milliseconds delay)
      : ops_(std::move(ops)), step_(step), delay_(delay) {}

  Result<std::unique_ptr<PackedWeight>> pack(std::span<const RowGroup> groups) override {
    return ops_->pack(groups);
  }
  int64_t packed_bytes(std::span<const RowGroup> groups) const override { return ops_->packed_bytes(groups); }
  int64_t scratch_bytes(const OpsLimits& limits) const override { return ops_->scratch_bytes(limits); }
  Status reserve(const OpsLimits& limits) override { return ops_->reserve(limits); }
  void begin_step(const BatchView& b, const SeqState& state) override {
    ++steps_;
    if (delay_.count() > 0) std::this_thread::sleep_for(delay_);
    ops_->begin_step(b, state);
  }
  void copy_pages(const KvView& kv, const BatchView& b, int32_t group) override {
    ops_->copy_pages(kv, b, group);
  }
  void gather_rows(MatrixView x, const PackedWeight& table, const int32_t* ids) override {
    ops_->gather_rows(x, table, ids);
  }
  void select_rows(MatrixView y, ConstMatrixView x, const int32_t* index) override {
    ops_->select_rows(y, x, index);
  }
  void add(MatrixView x, ConstMatrixView h) override { ops_->add(x, h); }
  void rmsnorm(MatrixView y, ConstMatrixView x, const float* weight, float eps) override {
    ops_->rmsnorm(y, x, weight, eps);
  }
  void linear(MatrixView y, ConstMatrixView x, const PackedWeight& w, const float* bias) override {
    ops_->linear(y, x, w, bias);
  }
  void qk_norm(MatrixView qkv, const float* q_weight, const float* k_weight, float eps,
               const AttentionShape& shape) override {
    ops_->qk_norm(qkv, q_weight, k_weight, eps, shape);
  }
  void rope(MatrixView qkv, const BatchView& b, const RopeView& table, const AttentionShape& shape) override {
    ops_->rope(qkv, b, table, shape);
  }
  void store_kv(const KvView& kv, ConstMatrixView qkv, const BatchView& b, int32_t group, int32_t layer,
                const AttentionShape& shape) override {
    ops_->store_kv(kv, qkv, b, group, layer, shape);
  }
  void attention(MatrixView out, ConstMatrixView qkv, const KvView& kv, const BatchView& b, int32_t group,
                 int32_t layer, const AttentionShape& shape) override {
    if (steps_ == step_) throw DeviceError(cat("injected fault in step ", step_));
    ops_->attention(out, qkv, kv, b, group, layer, shape);
  }
  void silu_mul(MatrixView y, ConstMatrixView gate_up) override { ops_->silu_mul(y, gate_up); }
  void gelu_mul(MatrixView y, ConstMatrixView gate_up) override { ops_->gelu_mul(y, gate_up); }
  void scale(MatrixView x, float factor) override { ops_->scale(x, factor); }
  void softcap(MatrixView x, float cap) override { ops_->softcap(x, cap); }
  void sample(SampleResult* out, MatrixView logits, const BatchView& b, const SeqState& state,
              const SampleOptions& options) override {
    ops_->sample(out, logits, b, state, options);
  }

 private:
  const std::unique_ptr<Ops> ops_;
  const int step_;
  const std::chrono::milliseconds delay_;
  int steps_ = 0;
};

}  // namespace

Backend make_faulty(Backend backend, int step, std::chrono::milliseconds delay) {
  backend.ops = std::make_unique<FaultyOps>(std::move(backend.ops), step, delay);
  return backend;
}

}  // namespace inferd::test
