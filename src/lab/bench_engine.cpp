#include "lab/bench_engine.h"

#include <algorithm>
#include <set>

namespace inferd {
namespace {

// Counts what comes out; the benchmark steps the engine itself.
class CountingSink : public EventSink {
 public:
  void on_events(std::vector<Event> events) override {
    for (const Event& event : events) {
      (event.kind == Event::Kind::token ? tokens : finished) += 1;
      if (event.kind == Event::Kind::token) begun.insert(event.request);
      INFERD_CHECK(event.kind == Event::Kind::token || event.reason == FinishReason::length,
                   "a benchmark sequence ended early: ", event.error ? event.error->message() : "stopped");
    }
  }
  int64_t tokens = 0;
  int64_t finished = 0;
  std::set<RequestId> begun;  // requests with a token
};

Request made_up_request(int32_t prompt_tokens, int32_t max_tokens, int32_t vocab, uint64_t salt) {
  Request request;
  uint64_t state = salt * 0x9E3779B97F4A7C15 + 1;
  for (int32_t i = 0; i < prompt_tokens; ++i) {
    state = state * 6364136223846793005 + 1442695040888963407;
    request.prompt.push_back(static_cast<int32_t>((state >> 33) % static_cast<uint64_t>(vocab)));
  }
  request.max_tokens = max_tokens;
  request.sampling.temperature = 0;
  request.sampling.seed = salt;
  return request;
}

// Requests of a repetition have salts of their own, so no prompt is found in the prefix cache but where that
// is meant.
double run_once(Engine& engine, const EngineBenchCase& test, uint64_t salt) {
  const auto sink = std::make_shared<CountingSink>();
  const bool decode = test.kind == EngineBenchCase::Kind::decode;
  const int32_t vocab = engine.runner().decoder().config().vocab;
  const Clock& clock = *engine.options().clock;
  const auto submit_all = [&](int32_t prompt_tokens, int32_t max_tokens) {
    for (int32_t i = 0; i < test.batch; ++i) {
      Request request =
          made_up_request(prompt_tokens, max_tokens, vocab, salt * 4096 + static_cast<uint64_t>(i));
      request.sink = sink;
      const Result<RequestId> id = engine.submit(std::move(request));
      INFERD_CHECK(id.ok(), id.error().message());
    }
  };
  const auto run_to_end = [&engine] {
    while (engine.step()) {
    }
  };
  int64_t start = 0;
  int64_t tokens = 0;
  if (decode) {
    // Once for the prefix cache: then all sequences begin to decode within a step or two of each other,
    // however long they are, and no prefill is counted.
    const int32_t depth = std::max(1, test.depth);
    submit_all(depth, 1);
    run_to_end();
    sink->begun.clear();
    submit_all(depth, test.tokens + 1);
    while (std::ssize(sink->begun) < test.batch) engine.step();
    tokens = -sink->tokens;
    start = clock.now_ns();
    run_to_end();
    tokens += sink->tokens;
  } else {
    if (test.depth > 0) {  // leaves its pages in the prefix cache
      submit_all(test.depth, 1);
      run_to_end();
    }
    const int64_t hits = engine.metrics().prefix_hit_tokens.value();
    start = clock.now_ns();
    submit_all(test.depth + test.tokens, 1);
    run_to_end();
    tokens = int64_t{test.batch} * (test.depth + test.tokens) -
             (engine.metrics().prefix_hit_tokens.value() - hits);
  }
  return static_cast<double>(tokens) / clock.seconds_since(start);
}

}  // namespace

std::string EngineBenchCase::name() const {
  return cat(kind == Kind::prefill ? "pp" : "tg", tokens);
}

double EngineBenchResult::median() const {
  std::vector<double> sorted = tokens_per_s;
  std::ranges::sort(sorted);
  const size_t n = sorted.size();
  return n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}
double EngineBenchResult::lowest() const {
  return *std::ranges::min_element(tokens_per_s);
}
double EngineBenchResult::highest() const {
  return *std::ranges::max_element(tokens_per_s);
}

EngineBenchResult run_engine_bench(Engine& engine, const EngineBenchCase& test, int threads, int repeat,
                                   uint64_t salt) {
  EngineBenchResult result{test, threads, {}};
  for (int i = 0; i <= repeat; ++i) {
    const double rate = run_once(engine, test, salt + static_cast<uint64_t>(i));
    if (i > 0) result.tokens_per_s.push_back(rate);
  }
  return result;
}

Json to_json_value(const EngineBenchResult& result) {
  Json::Array samples;
  for (const double rate : result.tokens_per_s) samples.emplace_back(rate);
  return Json::Object{{"test", result.test.name()},           {"threads", result.threads},
                      {"batch", result.test.batch},           {"depth", result.test.depth},
                      {"tokens_per_s", result.median()},      {"tokens_per_s_min", result.lowest()},
                      {"tokens_per_s_max", result.highest()}, {"samples", std::move(samples)}};
}

}  // namespace inferd
