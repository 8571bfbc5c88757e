// The one memory plan: computed before anything is loaded, printed by `inferd plan` and `inferd serve`, and
// kept to. What the user gave is used as given or refused; what was not given is chosen here and printed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/runner.h"

namespace inferd {

struct MemoryRequest {
  // Unset: chosen.
  std::optional<int32_t> ctx;            // at most the context the model was made for
  std::optional<int32_t> max_seqs;       // 1 … 1,024
  std::optional<int32_t> prefill_chunk;  // 1 … 4,096
  std::optional<int64_t> kv_bytes;       // at most one of these two
  std::optional<int32_t> kv_pages;
  KvDType kv_dtype = KvDType::bf16;
  int64_t process_bytes = 0;    // the program, the tokenizer, the file's header, threads and connections
  int64_t available_bytes = 0;  // what the machine could still give
};

// Of the memory that is available, what a plan may take: the rest is for buffers that are not the engine's,
// such as connections, allocator slack and stacks.
int64_t usable_memory(int64_t available);

struct MemoryPlan {
  RunnerOptions runner;
  int64_t weights = 0;
  RunnerBytes parts;
  int64_t process = 0;
  int64_t available = 0;
  int64_t kv_page_bytes = 0;
  int32_t page_tokens = 0;

  // Of this process when everything is in use.
  int64_t total() const {
    return process + weights + parts.kv + parts.activations + parts.scratch + parts.state;
  }
  bool fits() const { return total() - process <= usable_memory(available); }
  int64_t pool_tokens() const { return int64_t{runner.kv_pages} * page_tokens; }
  // One line a part, for people: "weights          93.8 MiB".
  std::string text() const;
};

// E-MEM-001 when it does not fit, with the sum and what is there; E-ARG-003 for a value out of range; and
// what Decoder::weight_bytes() refuses.
Result<MemoryPlan> plan_memory(const GgufFile& file, const DecoderConfig& config, const Backend& backend,
                               const MemoryRequest& request);

}  // namespace inferd
