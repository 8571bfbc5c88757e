// The CPU equalities on tiny models.
#include <gtest/gtest.h>

#include "reference/reference_backend.h"
#include "support/equalities.h"
#include "support/golden.h"

namespace inferd {
namespace {

test::EqualityOptions tiny(const std::string& family, const std::string& variant, KvDType kv) {
  test::EqualityOptions options;
  options.backend = [](int threads) { return make_reference_backend(threads); };
  options.model = cat(test::golden_dir(), "/tiny/", family, "/gguf/tiny-", family, "-", variant, ".gguf");
  options.kv_dtype = kv;
  return options;
}

void check_all(const test::EqualityOptions& options) {
  test::Equalities equal(options);
  equal.among_others();
  equal.in_chunks(16);
  equal.in_chunks(64);
  equal.in_chunks(512);
  equal.after_prefix_hits();
  equal.after_preemption();
  equal.with_two_threads();
  equal.forked_choices();
}

TEST(Equalities, the_reference_backend_keeps_them) {
  test::EqualityOptions options = tiny("llama", "f32", KvDType::f32);
  options.requests = 60;
  check_all(options);
}

}  // namespace
}  // namespace inferd
