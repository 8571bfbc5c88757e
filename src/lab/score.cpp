#include "lab/score.h"

#include <algorithm>
#include <cmath>

namespace inferd {
namespace {

double log_probability(std::span<const float> logits, int32_t id) {
  const auto largest = static_cast<double>(*std::ranges::max_element(logits));
  double total = 0;
  for (const float x : logits) total += std::exp(static_cast<double>(x) - largest);
  return static_cast<double>(logits[static_cast<size_t>(id)]) - largest - std::log(total);
}

}  // namespace

std::vector<double> log_probabilities(SequenceLogits& model, std::span<const int32_t> ids, size_t given,
                                      const std::function<bool(size_t fed)>& step) {
  INFERD_CHECK(given > 0, "the first token has nothing before it");
  const auto vocab = static_cast<size_t>(model.vocab());
  const auto most = static_cast<size_t>(model.options().step_tokens);
  std::vector<double> all;
  model.reset();
  // The last id predicts nothing, so it is not fed.
  for (size_t at = 0; at + 1 < ids.size();) {
    const size_t count = std::min(most, ids.size() - 1 - at);
    const size_t first = std::max(at, given - 1);  // of whose logits something is wanted
    const size_t rows = at + count > first ? at + count - first : 0;
    const std::span<const float> logits = model.feed(ids.subspan(at, count), static_cast<int32_t>(rows));
    for (size_t row = 0; row < rows; ++row)
      all.push_back(log_probability(logits.subspan(row * vocab, vocab), ids[first + row + 1]));
    at += count;
    if (step && !step(at)) break;
  }
  return all;
}

void Perplexity::add(std::span<const double> log_probabilities) {
  ++windows;
  for (const double p : log_probabilities) {
    ++tokens;
    sum -= p;
    sum_of_squares += p * p;
  }
}

double Perplexity::mean_error() const {
  if (tokens < 2) return 0;
  const auto n = static_cast<double>(tokens);
  const double variance = std::max(0.0, (sum_of_squares - sum * sum / n) / (n - 1));
  return std::sqrt(variance / n);
}

double Perplexity::value() const {
  return std::exp(mean());
}
double Perplexity::value_error() const {
  return value() * mean_error();
}

}  // namespace inferd
