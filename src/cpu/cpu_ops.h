// The verbs of the CPU backend: checks, cutting the work for the threads, and calls of the kernels
// (kernels.h). One file per family of verbs: cpu_linear.cpp, cpu_rows.cpp, cpu_attention.cpp, cpu_sample.cpp.
#pragma once

#include "base/threads.h"
#include "cpu/kernels.h"
#include "cpu/scratch.h"
#include "cpu/slab.h"
#include "ops/ops.h"

namespace inferd::cpu {

class RowSampler;

class CpuOps final : public Ops {
 public:
  CpuOps(Device& device, const Kernels& kernels, int threads, bool pin);

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
  void add_rmsnorm(MatrixView y, MatrixView x, ConstMatrixView h, const float* weight, float eps) override;
  void rope_store_kv(MatrixView qkv, const KvView& kv, const BatchView& b, int32_t group, int32_t layer,
                     const RopeView& rope, const AttentionShape& shape) override;

 private:
  struct AttentionCall;
  struct AttentionSlice;

  // body(worker, item) for items 0 … count − 1, each once, on the workers; on the caller alone when `alone`.
  void for_each(int64_t count, bool alone, FunctionRef<void(int worker, int64_t item)> body);
  // body(row), several rows at a time; on the caller alone when they are few.
  void for_each_row(int64_t rows, int64_t row_elements, FunctionRef<void(int64_t row)> body);

  void quantise(const ConstMatrixView& x, bool blocks_32, bool blocks_256);
  void round_to_bf16(const ConstMatrixView& x);

  void rope_token(MatrixView qkv, int64_t token, const BatchView& b, const RopeView& rope,
                  const AttentionShape& shape);
  void store_kv_token(const KvView& kv, ConstMatrixView qkv, int64_t token, const BatchView& b, int32_t group,
                      int32_t layer, const AttentionShape& shape);

  AttentionSlice slice_of(const AttentionCall& call, int64_t index);
  void load_queries(float* queries, const AttentionCall& call, const AttentionSlice& slice);
  void run_segment(const Scratch::Partial& out, const AttentionCall& call, const AttentionSlice& slice,
                   int32_t segment, int worker);
  void merge(const Scratch::Partial& running, const Scratch::Partial& segment, int32_t count,
             int32_t head_dim);
  void clear(const Scratch::Partial& partial, int32_t count, int32_t head_dim);
  void write_out(const AttentionCall& call, const AttentionSlice& slice, const Scratch::Partial& done);

  void sample_sequence(RowSampler& sampler, SampleResult* out, const MatrixView& logits, const BatchView& b,
                       const SeqState& state, int64_t begin, int64_t end);

  Device& device_;
  const Kernels& kernels_;
  ThreadPool pool_;
  SlabAllocator slabs_;
  OpsLimits limits_;
  Buffer scratch_buffer_;
  Scratch scratch_;
};

}  // namespace inferd::cpu
