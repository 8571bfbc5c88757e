// What storing K and V in fewer bits costs: perplexity of a real model on the reference backend, so that
// nothing else is rounded, against the golden one, which the reference meets to 1e-4 a token with KV in f32
// (real_model_golden_test).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "base/threads.h"
#include "reference/reference_backend.h"
#include "support/decoder_probe.h"
#include "support/golden.h"

namespace inferd {
namespace {

// With 384, q8_0 read as 0.55 % better than f32: the mean of so few tokens is no finer than that.
constexpr size_t kTokens = 896;

Json golden_perplexity() {
  return *test::read_json(test::golden_dir() + "/models/smollm2-135m.json.gz").find("perplexity");
}

double perplexity(KvDType kv_dtype) {
  const Json golden = golden_perplexity();
  std::vector<int32_t> ids;
  for (const Json& id : golden.find("ids")->as_array()) ids.push_back(static_cast<int32_t>(id.as_integer()));
  ids.resize(kTokens);
  test::DecoderProbe probe(make_reference_backend(usable_cpus()), test::model_dir() + "/smollm2.gguf",
                           {.ctx = kTokens, .max_tokens = 128, .kv_dtype = kv_dtype});
  return test::perplexity(test::token_nll(probe, ids));
}

TEST(KvDType, fewer_bits_cost_no_more_perplexity_than_numerics_md_allows) {
  const Json golden = golden_perplexity();
  std::vector<double> nll;
  for (size_t i = 0; i + 1 < kTokens; ++i) nll.push_back(golden.find("nll")->as_array()[i].as_number());
  const double exact = test::perplexity(nll);
  for (const auto& [type, bound] : {std::pair(KvDType::bf16, 0.002), std::pair(KvDType::q8_0, 0.003)}) {
    const double change = perplexity(type) / exact - 1;
    std::printf("%s: perplexity %+.3f %%\n", std::string(kv_dtype_name(type)).c_str(), 100 * change);
    EXPECT_LE(std::fabs(change), bound) << kv_dtype_name(type);
  }
}

}  // namespace
}  // namespace inferd
