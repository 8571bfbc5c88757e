// The equalities a request's bytes must keep on the CPU: the same ids and log-probabilities, bit for bit,
// whatever else happens in the engine. Each check also asserts that the path it is about really ran.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "support/engine_harness.h"

namespace inferd::test {

struct EqualityOptions {
  std::function<Backend(int threads)> backend;
  std::string model;  // path
  int requests = 200;
  int32_t ctx = 352;  // the longest prompt + longest_output, and a little
  int32_t longest_output = 96;
  int32_t long_prompts = 0;  // so many prompts of 1,100 to 1,600 ids
  KvDType kv_dtype = KvDType::bf16;
};

// Prompts of 1 to 240 ids (and long_prompts), some sharing beginnings; half of them greedy, half sampled with
// penalties and truncation; all with log-probabilities.
std::vector<Request> equality_requests(const EqualityOptions& options, int32_t vocab);

class Equalities {
 public:
  // Runs every request alone: one thread, one sequence, whole prompts, no prefix cache.
  explicit Equalities(EqualityOptions options);

  void among_others();            // 32 sequences a step, all requests at once
  void in_chunks(int32_t chunk);  // some prompt takes three chunks or more
  void after_prefix_hits();       // the same engine answers everything twice
  void after_preemption();        // a pool too small for what runs
  void with_two_threads();
  void forked_choices();  // n = 3 by fork = n = 3 computed one after another

 private:
  std::shared_ptr<EngineHarness> harness(int threads, HarnessOptions options) const;
  std::vector<RequestId> submit_all(EngineHarness& h) const;
  void expect_same(const EngineHarness& h, const std::vector<RequestId>& ids, const std::string& mode) const;

  const EqualityOptions options_;
  int32_t vocab_ = 0;
  std::vector<Outcome> alone_;
};

}  // namespace inferd::test
