// Calls a backend's sample verb on rows that a test makes up, without a model.
#pragma once

#include <vector>

#include "ops/ops.h"

namespace inferd::test {

struct SampleRow {
  std::vector<float> logits;  // (V)
  SampleParams params{};
  std::vector<int32_t> prompt;  // at least one id
  std::vector<int32_t> output;
};

SampleParams plain_params(uint64_t seed);  // temperature 1, everything else off

class SamplingBench {
 public:
  SamplingBench(Backend backend, int32_t vocab, int32_t max_rows, int32_t ctx = 64);

  // One step in which every row decodes one token.
  std::vector<SampleResult> sample(const std::vector<SampleRow>& rows, const uint32_t* banned = nullptr);
  // After sample(): was a stop id drawn for row i; and the row's known ids.
  bool stopped(size_t row) const { return stopped_[row] != 0; }
  std::vector<int32_t> known(size_t row) const;

 private:
  Backend backend_;
  const int32_t vocab_;
  const int32_t ctx_;
  std::vector<int32_t> ids_, known_, length_, prompt_, stopped_;
  std::vector<SampleParams> params_;
};

}  // namespace inferd::test
