// The verbs of the reference backend; see reference_backend.h.
#pragma once

#include "base/threads.h"
#include "ops/ops.h"

namespace inferd::reference {

class ReferenceOps final : public Ops {
 public:
  ReferenceOps(Device& device, int threads) : device_(device), pool_(threads, false) {}

  Result<std::unique_ptr<PackedWeight>> pack(std::span<const RowGroup> groups) override;
  int64_t packed_bytes(std::span<const RowGroup> groups) const override;
  int64_t scratch_bytes(const OpsLimits& limits) const override;
  Status reserve(const OpsLimits& limits) override;

  void begin_step(const BatchView& b, const SeqState& state) override;
  void copy_pages(const KvView& kv, const BatchView& b, int32_t group) override;
  void gather_rows(MatrixView x, const PackedWeight& table, const int32_t* ids) override;
  void select_rows(MatrixView y, ConstMatrixView x, const int32_t* index) override;
  void add(MatrixView x, ConstMatrixView h) override;
  void rmsnorm(MatrixView y, ConstMatrixView x, const float* weight, float eps) override;
  void linear(MatrixView y, ConstMatrixView x, const PackedWeight& w, const float* bias) override;
  void qk_norm(MatrixView qkv, const float* q_weight, const float* k_weight, float eps,
               const AttentionShape& shape) override;
  void rope(MatrixView qkv, const BatchView& b, const RopeView& rope, const AttentionShape& shape) override;
  void store_kv(const KvView& kv, ConstMatrixView qkv, const BatchView& b, int32_t group, int32_t layer,
                const AttentionShape& shape) override;
  void attention(MatrixView out, ConstMatrixView qkv, const KvView& kv, const BatchView& b, int32_t group,
                 int32_t layer, const AttentionShape& shape) override;
  void silu_mul(MatrixView y, ConstMatrixView gate_up) override;
  void gelu_mul(MatrixView y, ConstMatrixView gate_up) override;
  void scale(MatrixView x, float factor) override;
  void softcap(MatrixView x, float cap) override;
  void sample(SampleResult* out, MatrixView logits, const BatchView& b, const SeqState& state,
              const SampleOptions& options) override;

 private:
  Device& device_;
  ThreadPool pool_;
};

}  // namespace inferd::reference
