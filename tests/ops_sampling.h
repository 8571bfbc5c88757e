// Random logits and sampling parameters for tests of sample().
#pragma once

#include <cmath>
#include <initializer_list>

#include "ops_batch.h"

namespace inferd::test {

enum class LogitKind { peaked, flat, ties, holes };

inline std::vector<float> random_logits(LogitKind kind, int64_t vocab, Random& random) {
  std::vector<float> x;
  for (int64_t i = 0; i < vocab; ++i) {
    // The sum of three uniforms is near enough to a bell.
    const float bell = random.uniform(-2, 2) + random.uniform(-2, 2) + random.uniform(-2, 2);
    switch (kind) {
      case LogitKind::peaked:
        x.push_back(bell * 3);
        break;
      case LogitKind::flat:
        x.push_back(bell * 0.05f);
        break;
      case LogitKind::ties:
        x.push_back(std::nearbyint(bell));
        break;
      case LogitKind::holes:
        x.push_back(random.below(4) == 0 ? bell * 2 : -INFINITY);
        break;
    }
  }
  return x;
}

inline SampleParams random_params(Random& random, int64_t vocab) {
  SampleParams p = Step::plain_params();
  const auto pick = [&random](std::initializer_list<float> values) {
    return *(values.begin() + random.below(static_cast<int32_t>(values.size())));
  };
  p.temperature = pick({0, 0.3f, 0.7f, 1, 1, 1.9f});
  p.top_k = static_cast<int32_t>(pick({0, 0, 1, 5, 40, 100, 700, 5000}));
  p.top_p = pick({1, 1, 0.99f, 0.9f, 0.5f, 0.01f});
  p.min_p = pick({0, 0, 0.02f, 0.3f, 1});
  p.repetition = pick({1, 1, 1.3f, 0.8f});
  p.frequency = pick({0, 0, 0.7f, -0.4f});
  p.presence = pick({0, 0, 1.1f, -0.6f});
  p.min_tokens = random.below(6);
  p.stop_count = random.below(4);
  for (int32_t i = 0; i < p.stop_count; ++i) p.stop_ids[i] = random.below(static_cast<int32_t>(vocab));
  p.bias_count = random.below(3) == 0 ? 20 : 0;
  for (int32_t i = 0; i < p.bias_count; ++i) {
    p.bias[i] = {static_cast<int32_t>((i * vocab) / 20), pick({-100, 100, 2.5f, -1})};
  }
  p.logprobs = random.below(24) - 3;
  if (p.logprobs < -1) p.logprobs = -1;
  if (p.logprobs > kMaxTopLogprobs) p.logprobs = kMaxTopLogprobs;
  p.processed_logprobs = random.below(2);
  p.choice = static_cast<uint32_t>(random.below(3));
  return p;
}

// The first `vocab` bits of a mask.
inline std::vector<uint32_t> mask_words(const std::vector<bool>& banned) {
  std::vector<uint32_t> words((banned.size() + 31) / 32);
  for (size_t i = 0; i < banned.size(); ++i) words[i / 32] |= static_cast<uint32_t>(banned[i]) << (i % 32);
  return words;
}

}  // namespace inferd::test
