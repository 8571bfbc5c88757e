// The CPU equalities on tiny models: 200 requests a mode on the CPU backend, fewer on the reference.
#include <gtest/gtest.h>

#include "cpu/cpu_backend.h"
#include "reference/reference_backend.h"
#include "support/equalities.h"
#include "support/golden.h"

namespace inferd {
namespace {

test::EqualityOptions tiny(const std::string& family, const std::string& variant, KvDType kv) {
  test::EqualityOptions options;
  options.model = cat(test::tiny_dir(family), "/gguf/tiny-", family, "-", variant, ".gguf");
  options.kv_dtype = kv;
  return options;
}

struct Case {
  std::string family;
  std::string variant;
  KvDType kv;
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.family << " " << c.variant; }
};

class CpuEqualities : public testing::TestWithParam<Case> {
 protected:
  test::EqualityOptions options() const {
    test::EqualityOptions options = tiny(GetParam().family, GetParam().variant, GetParam().kv);
    options.backend = [](int threads) {
      Result<Backend> backend = make_cpu_backend({.threads = threads, .pin = false});
      INFERD_CHECK(backend.ok(), backend.error().message());
      return std::move(backend).value();
    };
    options.ctx = 1760;
    options.long_prompts = 6;
    return options;
  }
};

TEST_P(CpuEqualities, hold_in_every_mode) {
  test::Equalities equal(options());
  equal.among_others();
  equal.in_chunks(16);
  equal.in_chunks(64);
  equal.in_chunks(512);
  equal.after_prefix_hits();
  equal.after_preemption();
  equal.with_two_threads();
  equal.forked_choices();
}

INSTANTIATE_TEST_SUITE_P(
    Tiny, CpuEqualities,
    testing::Values(Case{"llama", "q4_0", KvDType::bf16}, Case{"llama", "q8_0", KvDType::q8_0},
                    Case{"qwen2", "q8_0", KvDType::f16}, Case{"qwen2", "f16", KvDType::f32},
                    Case{"qwen3", "q8_0", KvDType::bf16}, Case{"mistral", "f16", KvDType::q8_0},
                    Case{"phi3", "f16", KvDType::f16}, Case{"gemma", "f16", KvDType::f16},
                    Case{"gemma2", "f16", KvDType::bf16}, Case{"gemma3", "q8_0", KvDType::bf16}),
    [](const auto& instance) {
      return cat(instance.param.family, "_", instance.param.variant, "_kv_",
                 kv_dtype_name(instance.param.kv));
    });

TEST(ReferenceEqualities, hold_in_every_mode) {
  test::EqualityOptions options = tiny("llama", "f32", KvDType::f32);
  options.backend = [](int threads) { return make_reference_backend(threads); };
  options.requests = 60;
  test::Equalities equal(options);
  equal.among_others();
  equal.in_chunks(16);
  equal.in_chunks(64);
  equal.after_prefix_hits();
  equal.after_preemption();
  equal.with_two_threads();
  equal.forked_choices();
}

}  // namespace
}  // namespace inferd
