// An engine over a model file, stepped by hand, and what came out of each request: for the equality tests.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace inferd::test {

struct HarnessOptions {
  int32_t ctx = 256;
  int32_t max_seqs = 4;
  int32_t prefill_chunk = 64;
  int32_t kv_pages = 0;  // 0: max_seqs · ctx
  bool prefix_cache = true;
  KvDType kv_dtype = KvDType::bf16;
  int32_t max_queue = 100000;
  uint64_t hash_mask = ~uint64_t{0};
  std::vector<uint32_t> banned;  // mask, see Runner::create
};

// One choice, from its events. Comparing two compares ids and log-probabilities bit by bit.
struct Outcome {
  std::vector<int32_t> ids;
  std::vector<uint32_t> logprob_bits;             // of each id
  std::vector<std::pair<int32_t, uint32_t>> top;  // of all ids, one after another
  FinishReason reason = FinishReason::error;
  std::string error;
  bool operator==(const Outcome&) const = default;
};

class EngineHarness : public EventSink, public std::enable_shared_from_this<EngineHarness> {
 public:
  // Ends the test program with the error when the model does not load.
  static std::shared_ptr<EngineHarness> create(Backend backend, const std::string& gguf_path,
                                               const HarnessOptions& options);

  // Sets the request's sink. Ends the test program when it is refused.
  RequestId submit(Request request);
  // Steps until nothing is left.
  void run();
  Engine& engine() { return *engine_; }
  const EngineMetrics& metrics() const { return engine_->metrics(); }
  // By (request, choice), once finished.
  const Outcome& outcome(RequestId request, int32_t choice = 0) const {
    return outcomes_.at({request, choice});
  }
  const RequestStats& stats(RequestId request, int32_t choice = 0) const {
    return stats_.at({request, choice});
  }
  size_t finished() const { return stats_.size(); }
  int32_t vocab() const { return engine_->runner().decoder().config().vocab; }

  void on_events(std::vector<Event> events) override;

 private:
  std::unique_ptr<Engine> engine_;
  std::map<std::pair<RequestId, int32_t>, Outcome> outcomes_;
  std::map<std::pair<RequestId, int32_t>, RequestStats> stats_;
};

}  // namespace inferd::test
