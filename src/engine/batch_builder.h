// From a plan to what the device reads: fills host staging memory, uploads it, and hands out the BatchView.
// One builder per step in flight; called on the engine's thread.
#pragma once

#include <functional>

#include "engine/scheduler.h"
#include "ops/device.h"

namespace inferd {

// The largest step.
struct BatchLimits {
  int32_t rows = 0;  // sequences
  int32_t tokens = 0;
  int32_t logit_rows = 0;
  int32_t ctx = 0;
  int32_t page_tokens = 0;
  int32_t max_blocks() const { return (ctx + page_tokens - 1) / page_tokens; }
};

class BatchBuilder {
 public:
  // Sampling parameters of a sequence that enters a slot.
  using ParamsOf = std::function<SampleParams(SequenceId)>;

  // Takes device memory from `device_arena` and host memory from `host_arena`; with empty arenas only adds up
  // their sizes.
  BatchBuilder(const BatchLimits& limits, Arena& device_arena, Arena& host_arena);

  // Writes the plan to staging memory and uploads it. The view holds until the next build(). The staging
  // memory is reused by the next build(), so the step must have been waited for.
  BatchView build(Device& device, const StepPlan& plan, const ParamsOf& params_of, const uint32_t* banned);

 private:
  // The uploaded part, once in host and once in device memory.
  struct Inputs {
    BatchRow* rows;          // (rows)
    int32_t* tables;         // (rows, max_blocks)
    int32_t* update_count;   // (1)
    SlotUpdate* updates;     // (rows)
    int32_t* update_tokens;  // (rows · ctx)
    int32_t* copy_count;     // (1)
    PageCopy* copies;        // (rows)
  };
  static Inputs place(const BatchLimits& limits, Arena& arena);

  const BatchLimits limits_;
  Inputs host_;
  Inputs device_;
  BatchView derived_;  // only the derived pointers are set
};

}  // namespace inferd
