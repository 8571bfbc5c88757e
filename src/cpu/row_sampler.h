// Draws one token from one row of logits, in the order of steps of docs/numerics.md.
//
// Every path gives the token of the definition: where top-k or top-p leaves few candidates, only those are
// looked at (found through the largest logit of every 64, then sorted); where it leaves many, all are sorted
// by radix; with neither, the whole vocabulary is walked in tiles. Probabilities are float, exp(z − largest);
// sums are double: inside a tile of 1,024 ids in ascending order, tiles merged in order.
#pragma once

#include <span>

#include "base/threads.h"
#include "cpu/kernels.h"
#include "cpu/scratch.h"
#include "ops/batch.h"

namespace inferd::cpu {

class RowSampler {
 public:
  // Runs body(begin, end) over parts of [0, count) that are disjoint and cover it, maybe on several threads.
  using Parts = FunctionRef<void(int64_t count, FunctionRef<void(int64_t begin, int64_t end)> body)>;

  RowSampler(const Kernels& kernels, const Scratch::Sampler& scratch, Parts parts, int64_t vocab)
      : kernels_(kernels), scratch_(scratch), parts_(parts), vocab_(vocab) {}

  // `logits` (vocab) is lost. `history` are the sequence's ids so far, the first `prompt` of them its prompt.
  void sample(SampleResult& out, float* logits, const SampleParams& params, std::span<const int32_t> history,
              int32_t prompt, const uint32_t* banned);

 private:
  float largest_of(const float* x, bool& bad) const;
  void forbid_and_penalise(float* x, const SampleParams& p, std::span<const int32_t> history, int32_t prompt,
                           const uint32_t* banned) const;

  // The `wanted` largest of x that are not −infinity, the largest first, ties to the lower id; fewer if there
  // are fewer.
  std::span<Candidate> top(const float* x, int64_t wanted) const;
  std::span<Candidate> sort_all(const float* x) const;

  // p = exp(x − largest), 0 below `least`; returns the sum.
  double weigh_all(const float* x, float largest, float least) const;
  std::span<Candidate> keep(const float* x, float largest, const SampleParams& p) const;
  int32_t draw_from(std::span<Candidate> kept, double u, double& total) const;
  int32_t draw_from_all(double u, double total) const;
  int64_t tiles() const;

  const Kernels& kernels_;
  const Scratch::Sampler& scratch_;
  const Parts parts_;
  const int64_t vocab_;
};

}  // namespace inferd::cpu
