#include "support/equalities.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace inferd::test {
namespace {

// Requests own stop checks and sinks and do not copy; a maker gives the same one again and again.
Request make_request(const EqualityOptions& options, int32_t vocab, int index) {
  std::mt19937 random(static_cast<uint32_t>(index) * 7919 + 17);
  const auto below = [&](int32_t n) { return static_cast<int32_t>(random() % static_cast<uint32_t>(n)); };
  Request request;
  // Every third prompt begins with one of two common beginnings of 40 ids.
  if (index % 3 == 0) {
    std::mt19937 common(static_cast<uint32_t>(index / 3 % 2));
    for (int i = 0; i < 40; ++i)
      request.prompt.push_back(static_cast<int32_t>(common() % static_cast<uint32_t>(vocab)));
  }
  int32_t length = index % 8 == 0 ? 100 + below(100) : 1 + below(30);
  if (index % 10 == 3 && index / 10 < options.long_prompts) length = 1100 + below(500);
  for (int32_t i = 0; i < length; ++i) request.prompt.push_back(below(vocab));
  request.max_tokens = 2 + below(options.longest_output - 1);
  SamplingParams& s = request.sampling;
  s.seed = static_cast<uint64_t>(index) * 1000003;
  s.logprobs = below(4);
  if (index % 2 == 0) {
    s.temperature = 0;
  } else {
    s.temperature = 0.5 + below(100) * 0.01;
    if (below(2) == 0) s.top_k = 1 + below(50);
    if (below(2) == 0) s.top_p = 0.5 + below(50) * 0.01;
    if (below(3) == 0) s.min_p = 0.05;
    if (below(3) == 0) s.repetition_penalty = 1.2;
    if (below(3) == 0) s.frequency_penalty = 0.3;
    if (below(4) == 0) s.logit_bias = {{below(vocab), 3.0f}};
  }
  return request;
}

}  // namespace

std::vector<Request> equality_requests(const EqualityOptions& options, int32_t vocab) {
  std::vector<Request> requests;
  for (int i = 0; i < options.requests; ++i) requests.push_back(make_request(options, vocab, i));
  return requests;
}

Equalities::Equalities(EqualityOptions options) : options_(std::move(options)) {
  const auto h = harness(1, {.max_seqs = 1, .prefill_chunk = options_.ctx, .prefix_cache = false});
  vocab_ = h->vocab();
  for (Request& request : equality_requests(options_, vocab_)) {
    const RequestId id = h->submit(std::move(request));
    h->run();
    alone_.push_back(h->outcome(id));
    INFERD_CHECK(alone_.back().reason == FinishReason::length, alone_.back().error);
  }
  INFERD_CHECK(h->metrics().step_sequences_max.value() == 1, "alone means alone");
}

std::shared_ptr<EngineHarness> Equalities::harness(int threads, HarnessOptions options) const {
  options.ctx = options_.ctx;
  options.kv_dtype = options_.kv_dtype;
  return EngineHarness::create(options_.backend(threads), options_.model, options);
}

std::vector<RequestId> Equalities::submit_all(EngineHarness& h) const {
  std::vector<RequestId> ids;
  for (Request& request : equality_requests(options_, vocab_)) ids.push_back(h.submit(std::move(request)));
  h.run();
  return ids;
}

void Equalities::expect_same(const EngineHarness& h, const std::vector<RequestId>& ids,
                             const std::string& mode) const {
  int different = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (h.outcome(ids[i]) == alone_[i]) continue;
    if (++different <= 3) {
      const Outcome& got = h.outcome(ids[i]);
      ADD_FAILURE() << mode << ": request " << i
                    << (got.ids == alone_[i].ids ? " has other log-probabilities" : " has other ids")
                    << " than alone " << got.error;
    }
  }
  EXPECT_EQ(different, 0) << mode;
}

void Equalities::among_others() {
  const auto h = harness(1, {.max_seqs = 32, .prefill_chunk = 256});
  const std::vector<RequestId> ids = submit_all(*h);
  expect_same(*h, ids, "among others");
  EXPECT_GE(h->metrics().step_sequences_max.value(), 16);
}

void Equalities::in_chunks(int32_t chunk) {
  const auto h = harness(1, {.max_seqs = 4, .prefill_chunk = chunk, .prefix_cache = false});
  const std::vector<RequestId> ids = submit_all(*h);
  expect_same(*h, ids, cat("chunks of ", chunk));
  // Chunks that did not end their prompt: a prompt of three chunks has two of them.
  EXPECT_GE(h->metrics().prefills_chunked.value(), 3);
}

void Equalities::after_prefix_hits() {
  const auto h = harness(1, {.max_seqs = 8, .prefill_chunk = 64});
  expect_same(*h, submit_all(*h), "first time");
  const int64_t before = h->metrics().prefix_hit_tokens.value();
  const std::vector<RequestId> again = submit_all(*h);
  expect_same(*h, again, "after prefix hits");
  EXPECT_GT(h->metrics().prefix_hit_tokens.value() - before, 0);
}

void Equalities::after_preemption() {
  // Room for one sequence of 128 tokens: sixteen fight for it.
  constexpr int32_t kCtx = 128;
  const auto h =
      harness(1, {.max_seqs = 16, .prefill_chunk = 64, .kv_pages = kCtx / 16, .prefix_cache = false});
  for (int round = 0; round < 8 && h->metrics().preemptions.value() < 10; ++round) {
    std::vector<Request> requests = equality_requests(options_, vocab_);
    std::map<size_t, RequestId> ids;
    for (size_t i = 0; i < requests.size(); ++i) {
      const size_t tokens = requests[i].prompt.size() + static_cast<size_t>(requests[i].max_tokens);
      if (tokens <= kCtx) ids[i] = h->submit(std::move(requests[i]));
    }
    h->run();
    for (const auto& [i, id] : ids)
      EXPECT_TRUE(h->outcome(id) == alone_[i]) << "after preemption: request " << i;
  }
  EXPECT_GE(h->metrics().preemptions.value(), 10);
}

void Equalities::with_two_threads() {
  const auto h = harness(2, {.max_seqs = 8, .prefill_chunk = 64});
  const std::vector<RequestId> ids = submit_all(*h);
  expect_same(*h, ids, "two threads");
}

void Equalities::forked_choices() {
  const auto run = [&](int32_t max_seqs, int64_t* forks) {
    const auto h = harness(1, {.max_seqs = max_seqs, .prefill_chunk = 64, .prefix_cache = false});
    std::vector<Outcome> outcomes;
    std::vector<RequestId> ids;
    std::vector<Request> requests = equality_requests(options_, vocab_);
    for (size_t i = 0; i < requests.size() / 3; ++i) {
      requests[i].choices = 3;
      ids.push_back(h->submit(std::move(requests[i])));
    }
    h->run();
    for (const RequestId id : ids) {
      for (int32_t choice = 0; choice < 3; ++choice) outcomes.push_back(h->outcome(id, choice));
    }
    *forks = h->metrics().page_forks.value();
    return outcomes;
  };
  int64_t forks_apart = 0;
  int64_t forks_together = 0;
  const std::vector<Outcome> apart = run(1, &forks_apart);
  const std::vector<Outcome> together = run(12, &forks_together);
  EXPECT_TRUE(apart == together) << "forked choices differ from those computed one after another";
  EXPECT_EQ(forks_apart, 0);
  EXPECT_GT(forks_together, 0);
  // The first choice is the request itself; sampled choices differ among themselves.
  int same = 0;
  for (size_t i = 0; i < together.size(); i += 3) {
    EXPECT_EQ(together[i], alone_[i / 3]);
    same += together[i + 1] == together[i + 2] ? 1 : 0;
  }
  EXPECT_LT(same, static_cast<int>(together.size() / 3));
}

}  // namespace inferd::test
