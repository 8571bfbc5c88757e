// The runner owns a model on a device and runs plans: batch, forward, sample. It keeps what a step needs in
// device memory from load to unload, so nothing is allocated while serving. One thread, the engine's.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "engine/batch_builder.h"
#include "engine/scheduler.h"
#include "model/decoder.h"
#include "ops/ops.h"

namespace inferd {

struct RunnerOptions {
  int32_t ctx = 4096;           // tokens a sequence may have
  int32_t max_seqs = 16;        // sequences of a step
  int32_t prefill_chunk = 512;  // prompt tokens of a step
  int32_t kv_pages = 256;
  KvDType kv_dtype = KvDType::bf16;
};

// Device bytes of a runner by part, for the memory plan. Computed by the same code that places the parts.
struct RunnerBytes {
  int64_t kv = 0;           // the KV pool
  int64_t activations = 0;  // activations, logits
  int64_t scratch = 0;      // the backend's own
  int64_t state = 0;        // sequence slots, batch staging, results
};

class Runner {
 public:
  // `decoder` was loaded for backend.ops. Bit i of word i / 32 of `banned` is 1 when id i may never be drawn;
  // ids past the mask may not either. An empty mask forbids nothing. E-MEM-002 when memory is short.
  static Result<std::unique_ptr<Runner>> create(Backend backend, std::unique_ptr<Decoder> decoder,
                                                const RunnerOptions& options,
                                                std::span<const uint32_t> banned = {});

  static RunnerBytes bytes(const DecoderConfig& config, const RunnerOptions& options, const Device& device,
                           const Ops& ops);

  // Gives a step to the device. At most lag() + 1 steps are in flight. DeviceError when the device fails.
  void launch(const StepPlan& plan, const BatchBuilder::ParamsOf& params_of);

  // Waits for the oldest step in flight. The results hold until the next launch(). results[i] belongs to row
  // i of its plan.
  std::vector<RowResult> collect();

  int lag() const { return backend_.device->lag(); }
  const Decoder& decoder() const { return *decoder_; }
  const RunnerOptions& options() const { return options_; }
  const Device& device() const { return *backend_.device; }
  Ops& ops() { return *backend_.ops; }
  int32_t page_tokens() const { return backend_.device->kv_page_tokens(); }

 private:
  // Everything that one step in flight needs for itself.
  struct Step {
    std::unique_ptr<BatchBuilder> builder;
    SampleResult* device_results = nullptr;  // (logit rows)
    SampleResult* host_results = nullptr;
    std::vector<int32_t> logits_of_row;
    uint64_t mark = 0;
  };
  // Pointers into the buffers below; placing them with empty arenas adds up their sizes.
  struct Parts {
    Activations activations;
    MatrixView logits;
    SeqState state;
    uint32_t* banned = nullptr;
    std::vector<Step> steps;
  };
  struct Sizes {
    int64_t activations = 0;
    int64_t state = 0;
    int64_t host = 0;
  };
  static BatchLimits limits(const RunnerOptions& options, int32_t page_tokens);
  static Sizes place(Parts& parts, const DecoderConfig& config, const RunnerOptions& options,
                     const Device& device, Arena& activation_arena, Arena& state_arena, Arena& host_arena);

  Runner(Backend backend, std::unique_ptr<Decoder> decoder, const RunnerOptions& options)
      : backend_(std::move(backend)), decoder_(std::move(decoder)), options_(options) {}

  Backend backend_;  // first in, last out: everything below lives on it
  std::unique_ptr<Decoder> decoder_;
  const RunnerOptions options_;
  Buffer kv_buffer_;
  Buffer activation_buffer_;
  Buffer state_buffer_;
  std::vector<std::byte> host_buffer_;
  KvView kv_;
  Parts parts_;
  std::deque<size_t> in_flight_;  // indices of steps, oldest first
  size_t next_step_ = 0;
};

}  // namespace inferd
