// How one request wants its tokens drawn, checked once at the edge and turned into what the device reads.
// The order of the steps is in docs/numerics.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ops/batch.h"

namespace inferd {

struct SamplingParams {
  double temperature = 1.0;         // 0 … 100; 0 takes the likeliest token
  int64_t top_k = 0;                // 0: off
  double top_p = 1.0;               // (0, 1]; the token that crosses the threshold stays
  double min_p = 0.0;               // [0, 1]; relative to the likeliest token
  double repetition_penalty = 1.0;  // (0, 10]; over prompt and output
  double presence_penalty = 0.0;    // [−2, 2]; over the output
  double frequency_penalty = 0.0;   // [−2, 2]; over the output
  std::vector<LogitBias>
      logit_bias;  // at most kMaxLogitBias, each in [−100, 100], ids of the vocabulary, none twice
  std::optional<uint64_t> seed;   // none: drawn from the operating system, and returned
  int64_t min_tokens = 0;         // stop ids cannot be drawn before
  std::vector<int32_t> stop_ids;  // at most kMaxStopIds; the model's end ids are among them unless ignore_eos
  int32_t logprobs = -1;          // −1: none; 0 … kMaxTopLogprobs alternatives
  bool processed_logprobs = false;  // of the distribution that was drawn from instead of the raw model's
};

// E-REQ-004 names the first field out of range, with got and allowed. `vocab` bounds the ids.
Status validate(const SamplingParams& params, int64_t vocab);

// The device's form, for choice `choice` of the request. Requires validate() and a seed.
SampleParams to_device(const SamplingParams& params, uint32_t choice);

// A seed from the operating system's generator.
uint64_t random_seed();

}  // namespace inferd
