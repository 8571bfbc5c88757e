// The engine over a tiny model on the reference backend: what its interface promises.
#include <gtest/gtest.h>

#include <cmath>

#include "reference/reference_backend.h"
#include "support/decoder_probe.h"
#include "support/engine_harness.h"
#include "support/faulty_ops.h"
#include "support/golden.h"

namespace inferd {
namespace {

std::string tiny_llama() {
  return test::golden_dir() + "/tiny/llama/gguf/tiny-llama-f32.gguf";
}

std::vector<int32_t> prompt_of(int32_t length, int32_t salt = 0) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < length; ++i) ids.push_back(4 + (i * 37 + salt * 11) % 280);
  return ids;
}

Request greedy(std::vector<int32_t> prompt, int32_t max_tokens) {
  Request request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  request.sampling.temperature = 0;
  request.sampling.seed = 1;
  return request;
}

std::shared_ptr<test::EngineHarness> harness(const test::HarnessOptions& options = {}) {
  return test::EngineHarness::create(make_reference_backend(), tiny_llama(), options);
}

TEST(Engine, greedy_ids_are_the_golden_ones) {
  const Json golden = test::read_json(test::golden_dir() + "/tiny/llama/golden.json");
  const Json& variant = *golden.find("variants")->find("f32");
  const auto h = harness({.kv_dtype = KvDType::f32});
  for (size_t p = 0; p < 3; ++p) {
    std::vector<int32_t> prompt;
    for (const Json& id : golden.find("prompts")->as_array()[p].as_array())
      prompt.push_back(static_cast<int32_t>(id.as_integer()));
    const RequestId id = h->submit(greedy(prompt, 32));
    h->run();
    const std::vector<int32_t>& ids = h->outcome(id).ids;
    ASSERT_EQ(ids.size(), 32u);
    for (size_t i = 0; i < 32; ++i) {
      // Below this margin two right programs may part ways (golden README).
      if (variant.find("margin")->as_array()[p].as_array()[i].as_number() < 1e-3) break;
      EXPECT_EQ(ids[i], variant.find("greedy")->as_array()[p].as_array()[i].as_integer())
          << "prompt " << p << " step " << i;
    }
    EXPECT_EQ(h->outcome(id).reason, FinishReason::length);
  }
}

TEST(Engine, a_stop_id_ends_the_choice_and_is_its_last_id) {
  const auto h = harness();
  const RequestId free = h->submit(greedy(prompt_of(9), 20));
  h->run();
  Request request = greedy(prompt_of(9), 20);
  const int32_t stop = h->outcome(free).ids[5];
  const auto first = std::ranges::find(h->outcome(free).ids, stop) - h->outcome(free).ids.begin();
  request.sampling.stop_ids = {stop};
  const RequestId stopped = h->submit(std::move(request));
  h->run();
  EXPECT_EQ(h->outcome(stopped).reason, FinishReason::stop_id);
  EXPECT_EQ(static_cast<std::ptrdiff_t>(h->outcome(stopped).ids.size()), first + 1);
  EXPECT_EQ(h->outcome(stopped).ids.back(), stop);

  Request later = greedy(prompt_of(9), 20);
  later.sampling.stop_ids = {stop};
  later.sampling.min_tokens = 15;
  const RequestId id = h->submit(std::move(later));
  h->run();
  EXPECT_GE(h->outcome(id).ids.size(), 15u);
  for (size_t i = 0; i + 1 < h->outcome(id).ids.size(); ++i) EXPECT_NE(h->outcome(id).ids[i], stop);
}

class StopAfter : public StopCheck {
 public:
  explicit StopAfter(int tokens) : left_(tokens) {}
  bool on_token(int32_t) override { return --left_ == 0; }

 private:
  int left_;
};

TEST(Engine, a_stop_check_ends_each_choice_on_its_own) {
  const auto h = harness();
  Request request = greedy(prompt_of(20), 20);
  request.sampling.temperature = 1;
  request.choices = 3;
  for (const int tokens : {2, 7, 100}) request.stop_checks.push_back(std::make_unique<StopAfter>(tokens));
  const RequestId id = h->submit(std::move(request));
  h->run();
  EXPECT_EQ(h->outcome(id, 0).ids.size(), 2u);
  EXPECT_EQ(h->outcome(id, 0).reason, FinishReason::stop_check);
  EXPECT_EQ(h->outcome(id, 1).ids.size(), 7u);
  EXPECT_EQ(h->outcome(id, 2).ids.size(), 20u);
  EXPECT_EQ(h->outcome(id, 2).reason, FinishReason::length);
  EXPECT_NE(h->outcome(id, 1).ids,
            std::vector<int32_t>(h->outcome(id, 2).ids.begin(), h->outcome(id, 2).ids.begin() + 7));
}

TEST(Engine, log_probabilities_are_those_of_the_raw_model) {
  const auto h = harness({.kv_dtype = KvDType::f32});
  Request request = greedy(prompt_of(12), 1);
  request.sampling.logprobs = 5;
  request.sampling.repetition_penalty = 1.3;
  const RequestId id = h->submit(std::move(request));
  h->run();
  test::DecoderProbe probe(make_reference_backend(), tiny_llama(), {});
  const std::vector<float> logits = probe.feed_last(prompt_of(12));
  double total = 0;
  for (const float x : logits) total += std::exp(static_cast<double>(x));
  ASSERT_EQ(h->outcome(id).top.size(), 5u);
  for (const auto& [token, bits] : h->outcome(id).top) {
    EXPECT_NEAR(static_cast<double>(std::bit_cast<float>(bits)),
                static_cast<double>(logits[static_cast<size_t>(token)]) - std::log(total), 1e-5);
  }
  EXPECT_EQ(h->outcome(id).top.front().first, test::arg_max(logits));
}

TEST(Engine, a_forbidden_vocabulary_is_an_error_of_that_request_alone) {
  test::HarnessOptions options{.max_seqs = 2};
  options.banned = {0, 0};  // ids 0 to 63 are allowed, those past the mask are not
  const auto h = harness(options);
  Request poison = greedy(prompt_of(5), 10);
  for (int32_t id = 0; id < 64; ++id) poison.sampling.stop_ids.push_back(id);
  poison.sampling.min_tokens = 10;
  const RequestId other = h->submit(greedy(prompt_of(5), 10));
  const RequestId id = h->submit(std::move(poison));
  h->run();
  EXPECT_EQ(h->outcome(id).reason, FinishReason::error);
  EXPECT_EQ(h->outcome(id).error, "no token can be drawn: every token is forbidden or has probability zero");
  EXPECT_EQ(h->outcome(other).reason, FinishReason::length);
  EXPECT_EQ(h->outcome(other).ids.size(), 10u);
  for (const int32_t token : h->outcome(other).ids) EXPECT_LT(token, 64);
}

TEST(Engine, refusals_name_both_numbers_and_count) {
  const auto h = harness({.ctx = 64, .max_seqs = 1, .kv_pages = 2, .max_queue = 1});
  const auto refuse = [&](Request request) {
    request.sink = h;
    return h->engine().submit(std::move(request)).error();
  };
  EXPECT_EQ(refuse(greedy(prompt_of(64), 1)).code, Code::req_context);
  EXPECT_EQ(refuse(greedy(prompt_of(40), 8)).detail, "it needs 47 tokens of KV, the pool has 32");
  h->submit(greedy(prompt_of(5), 2));
  h->submit(greedy(prompt_of(5), 2));
  EXPECT_EQ(refuse(greedy(prompt_of(5), 2)).code, Code::engine_full);
  h->run();
  h->submit(greedy(prompt_of(5), 2));
  h->engine().drain();
  EXPECT_EQ(refuse(greedy(prompt_of(5), 2)).code, Code::engine_stopping);
  h->run();
  EXPECT_EQ(h->finished(), 3u);
  EXPECT_EQ(h->metrics().rejected_full.value(), 1);
  EXPECT_EQ(h->engine().requests_in_flight(), 0);
}

TEST(Engine, stopping_ends_open_requests_with_an_error_event) {
  const auto h = harness();
  const RequestId id = h->submit(greedy(prompt_of(5), 100));
  const RequestId waiting = h->submit(greedy(prompt_of(5), 100));
  h->engine().step();
  h->engine().stop();
  EXPECT_EQ(h->outcome(id).reason, FinishReason::error);
  EXPECT_EQ(h->outcome(waiting).error, "the server is shutting down");
}

TEST(Engine, a_fault_in_any_step_ends_every_request_with_an_error_event) {
  for (const int step : {1, 2, 3, 10, 25}) {
    const auto h = test::EngineHarness::create(test::make_faulty(make_reference_backend(), step),
                                               tiny_llama(), {.max_seqs = 3});
    std::vector<RequestId> ids;
    for (int i = 0; i < 5; ++i) ids.push_back(h->submit(greedy(prompt_of(10 + i, i), 60)));
    h->run();
    EXPECT_EQ(h->engine().state(), Engine::State::failed);
    EXPECT_EQ(h->engine().failure(), cat("injected fault in step ", step));
    for (const RequestId id : ids) {
      EXPECT_EQ(h->outcome(id).reason, FinishReason::error);
      EXPECT_EQ(h->outcome(id).error, cat("the engine failed: injected fault in step ", step));
    }
    Request late = greedy(prompt_of(5), 1);
    late.sink = h;
    EXPECT_EQ(h->engine().submit(std::move(late)).error().code, Code::engine_failed);
    EXPECT_FALSE(h->engine().step());
  }
}

TEST(Engine, the_step_thread_serves_submits_and_cancels_from_other_threads) {
  const auto h = harness({.max_seqs = 8});
  h->engine().start();
  std::vector<std::thread> clients;
  std::atomic<int> accepted{0};
  for (int c = 0; c < 3; ++c) {
    clients.emplace_back([&, c] {
      for (int i = 0; i < 20; ++i) {
        Request request = greedy(prompt_of(5 + i, c), 8);
        request.sink = h;
        const RequestId id = h->engine().submit(std::move(request)).value();
        ++accepted;
        if (i % 3 == 0) h->engine().cancel(id);
      }
    });
  }
  for (std::thread& client : clients) client.join();
  while (h->engine().requests_in_flight() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  h->engine().stop();
  EXPECT_EQ(h->finished(), static_cast<size_t>(accepted));
  EXPECT_EQ(h->metrics().kv_blocks_active.value(), 0);
}

}  // namespace
}  // namespace inferd
