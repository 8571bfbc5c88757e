// How likely a model finds a text: log-probabilities token by token, and what they come to.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lab/sequence_logits.h"

namespace inferd {

// ln p of each id but the first `given` (at least one), given all before it. Starts a new sequence. `ids` at
// most the context. `step` is called after each forward pass with how many ids were fed; false: stop, and
// what was computed so far is returned.
std::vector<double> log_probabilities(SequenceLogits& model, std::span<const int32_t> ids, size_t given,
                                      const std::function<bool(size_t fed)>& step = nullptr);

// A text in windows that share nothing: of each, every token but the first is predicted from those before it
// in the window.
struct Perplexity {
  int64_t tokens = 0;  // predicted
  int64_t windows = 0;
  double sum = 0;  // of −ln p
  double sum_of_squares = 0;

  void add(std::span<const double> log_probabilities);
  double mean() const { return sum / static_cast<double>(tokens); }  // nats a token
  // Standard error of the mean, as if tokens were independent; 0 with fewer than two.
  double mean_error() const;
  double value() const;        // e to the mean
  double value_error() const;  // to first order: value · mean_error
};

}  // namespace inferd
