// The CPU equalities on a real model, whose sizes reach kernels and thread splits that tiny ones do not.
#include <gtest/gtest.h>

#include "cpu/cpu_backend.h"
#include "support/equalities.h"
#include "support/golden.h"

namespace inferd {
namespace {

TEST(RealModelEqualities, hold_on_the_cpu) {
  test::EqualityOptions options;
  options.backend = [](int threads) {
    Result<Backend> backend = make_cpu_backend({.threads = threads, .pin = false});
    INFERD_CHECK(backend.ok(), backend.error().message());
    return std::move(backend).value();
  };
  options.model = cat(test::model_dir(), "/smollm2.gguf");
  options.requests = 32;
  options.ctx = 1680;
  options.longest_output = 48;
  options.long_prompts = 1;
  test::Equalities equal(options);
  equal.among_others();
  equal.in_chunks(64);
  equal.in_chunks(512);
  equal.after_prefix_hits();
  equal.after_preemption();
  equal.with_two_threads();
}

}  // namespace
}  // namespace inferd
