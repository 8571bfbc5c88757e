// Real models on the reference backend against transformers: float arithmetic on dequantised weights.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "base/threads.h"
#include "reference/reference_backend.h"
#include "support/decoder_probe.h"
#include "support/golden.h"

namespace inferd {
namespace {

// The golden README: float noise is 4e-5, a backend that computes in float is within these.
constexpr double kLogitTolerance = 1e-3;
constexpr double kSquaresTolerance = 1e-5;
constexpr double kNllTolerance = 1e-3;
constexpr double kMargin = 2e-3;

std::vector<int32_t> ids_of(const Json& array) {
  std::vector<int32_t> ids;
  for (const Json& id : array.as_array()) ids.push_back(static_cast<int32_t>(id.as_integer()));
  return ids;
}

void compare_logits(const Json& golden, std::span<const float> logits, const std::string& name) {
  double worst = 0;
  for (const Json& entry : golden.find("top")->as_array()) {
    const auto id = static_cast<size_t>(entry.as_array()[0].as_integer());
    worst = std::max(worst, std::fabs(static_cast<double>(logits[id]) - entry.as_array()[1].as_number()));
  }
  EXPECT_LE(worst, kLogitTolerance) << name;
  double squares = 0;
  for (const float x : logits) squares += static_cast<double>(x) * static_cast<double>(x);
  const double wanted = golden.find("sum_of_squares")->as_number();
  EXPECT_LE(std::fabs(squares - wanted) / wanted, kSquaresTolerance) << name;
  EXPECT_EQ(test::arg_max(logits), golden.find("top")->as_array()[0].as_array()[0].as_integer()) << name;
  std::printf("%-12s largest difference of the 64 largest logits %.2e\n", name.c_str(), worst);
}

// Up to the first step whose golden margin is below kMargin, or `steps`.
void compare_greedy(test::DecoderProbe& probe, const Json& golden, std::vector<float> logits, size_t steps,
                    const std::string& name) {
  const std::vector<int32_t> wanted = ids_of(*golden.find("greedy"));
  for (size_t i = 0; i < std::min(steps, wanted.size()); ++i) {
    if (golden.find("margin")->as_array()[i].as_number() < kMargin) return;
    const int32_t id = test::arg_max(logits);
    ASSERT_EQ(id, wanted[i]) << name << " step " << i;
    logits = probe.feed_last({&id, 1});
  }
}

void run(const std::string& model, const std::string& golden_name, size_t greedy_steps,
         size_t perplexity_tokens) {
  const Json golden = test::read_json(cat(test::golden_dir(), "/models/", golden_name, ".json.gz"));
  test::DecoderProbe probe(make_reference_backend(usable_cpus()), cat(test::model_dir(), "/", model, ".gguf"),
                           {.ctx = 1100, .max_tokens = 128});
  for (const auto& [name, prompt] : golden.find("prompts")->as_object()) {
    probe.reset();
    const std::vector<float> logits = probe.feed_last(ids_of(*prompt.find("ids")));
    compare_logits(prompt, logits, name);
    compare_greedy(probe, prompt, logits, greedy_steps, name);
  }
  const Json& perplexity = *golden.find("perplexity");
  std::vector<int32_t> ids = ids_of(*perplexity.find("ids"));
  ids.resize(std::min(ids.size(), perplexity_tokens + 1));
  const Json::Array& nll = perplexity.find("nll")->as_array();
  const std::vector<double> got = test::token_nll(probe, ids);
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i) worst = std::max(worst, std::fabs(got[i] - nll[i].as_number()));
  EXPECT_LE(worst, kNllTolerance);
  std::printf("perplexity of %zu tokens %.4f, largest difference of one token's nll %.2e\n", ids.size() - 1,
              test::perplexity(got), worst);
}

TEST(RealModelsOnReference, smollm2_gives_the_golden_logits_greedy_ids_and_perplexity) {
  run("smollm2", "smollm2-135m", 16, 511);
}

// Four times the weights, so fewer tokens. The whole lengths are compared on the CPU backend.
TEST(RealModelsOnReference, qwen_coder_gives_the_golden_logits_greedy_ids_and_perplexity) {
  run("qwen2.5-coder-0.5b", "qwen2.5-coder-0.5b", 4, 255);
}

// Windows of 512 in fifteen of eighteen layers: the perplexity's ids go past them.
TEST(RealModelsOnReference, gemma3_gives_the_golden_logits_greedy_ids_and_perplexity) {
  run("gemma3-270m", "gemma3-270m", 4, 639);
}

}  // namespace
}  // namespace inferd
