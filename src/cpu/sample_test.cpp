// Sampling on the CPU against a plain oracle that sorts the whole vocabulary and works in double, token for
// token over many seeds.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/rng.h"
#include "cpu/cpu_backend.h"
#include "ops_sampling.h"

namespace inferd {
namespace {

using test::GuardedMatrix;
using test::LogitKind;
using test::Random;
using test::random_logits;
using test::random_params;
using test::Step;

struct Token {
  int32_t id;
  double p;        // after the steps, normalised
  double logprob;  // its logarithm, also where p is too small for a float
};

struct Oracle {
  std::vector<Token> kept;  // likeliest first
  int32_t drawn = -1;
  std::vector<double> raw;  // log-probabilities of the raw logits
};

// docs/numerics.md, "Order of the sampling steps", written down once more with nothing shared.
Oracle oracle(const std::vector<float>& logits, const SampleParams& p, const std::vector<int32_t>& prompt,
              const std::vector<int32_t>& output, const std::vector<bool>& banned) {
  Oracle result;
  double raw_total = 0;
  for (const float x : logits) raw_total += std::exp(static_cast<double>(x));
  for (const float x : logits) result.raw.push_back(static_cast<double>(x) - std::log(raw_total));

  std::vector<float> z = logits;
  for (int32_t i = 0; i < p.bias_count; ++i) z[static_cast<size_t>(p.bias[i].id)] += p.bias[i].bias;
  for (size_t id = 0; id < z.size(); ++id) {
    if (banned[id]) z[id] = -INFINITY;
  }
  if (static_cast<int32_t>(output.size()) < p.min_tokens) {
    for (int32_t i = 0; i < p.stop_count; ++i) z[static_cast<size_t>(p.stop_ids[i])] = -INFINITY;
  }
  std::set<int32_t> seen(prompt.begin(), prompt.end());
  seen.insert(output.begin(), output.end());
  for (const int32_t id : seen) {
    float& x = z[static_cast<size_t>(id)];
    x = x > 0 ? x / p.repetition : x * p.repetition;
    const auto count = static_cast<float>(std::count(output.begin(), output.end(), id));
    if (count > 0) x -= p.frequency * count + p.presence;
  }
  struct Entry {
    int32_t id;
    float z;
    float p;
  };
  std::vector<Entry> order;
  for (size_t id = 0; id < z.size(); ++id) {
    if (z[id] == -INFINITY) continue;
    order.push_back({static_cast<int32_t>(id), p.temperature > 0 ? z[id] / p.temperature : z[id], 0});
  }
  if (order.empty()) return result;
  std::ranges::sort(order,
                    [](const Entry& a, const Entry& b) { return a.z != b.z ? a.z > b.z : a.id < b.id; });
  if (p.temperature == 0) order.resize(1);
  if (p.temperature > 0 && p.top_k > 0 && static_cast<size_t>(p.top_k) < order.size()) {
    order.resize(static_cast<size_t>(p.top_k));
  }
  double total = 0;
  const float largest = order.front().z;
  for (Entry& e : order) total += static_cast<double>(e.p = std::exp(e.z - largest));
  if (p.temperature > 0 && p.top_p < 1) {
    double cumulative = 0;
    size_t kept = 0;
    while (kept < order.size()) {
      cumulative += static_cast<double>(order[kept++].p);
      if (cumulative >= static_cast<double>(p.top_p) * total)
        break;  // the token that crosses the threshold stays
    }
    order.resize(kept);
  }
  if (p.temperature > 0) {
    while (order.back().p < p.min_p * order.front().p) order.pop_back();
  }
  total = 0;
  for (const Entry& e : order) total += static_cast<double>(e.p);
  for (const Entry& e : order) {
    result.kept.push_back(
        {e.id, static_cast<double>(e.p) / total, static_cast<double>(e.z - largest) - std::log(total)});
  }
  std::vector<Token> by_id = result.kept;
  std::sort(by_id.begin(), by_id.end(), [](const Token& a, const Token& b) { return a.id < b.id; });
  const double u = uniform_draw(p.seed, static_cast<uint32_t>(output.size()), 0, p.choice);
  double cumulative = 0;
  result.drawn = by_id.back().id;
  for (const Token& t : by_id) {
    cumulative += t.p;
    if (cumulative > u) {
      result.drawn = t.id;
      break;
    }
  }
  return result;
}

Backend backend_of(IsaLevel level, int threads, int64_t vocab, int32_t logit_rows = 40) {
  auto backend = make_cpu_backend({.threads = threads, .isa = level, .pin = false});
  EXPECT_TRUE(backend.ok());
  EXPECT_TRUE((*backend)
                  .ops
                  ->reserve({.rows = 40,
                             .tokens = 40,
                             .logit_rows = logit_rows,
                             .ctx = 64,
                             .heads = 1,
                             .kv_heads = 1,
                             .head_dim = 16,
                             .linear_cols = 32,
                             .linear_rows = 32,
                             .vocab = vocab})
                  .ok());
  return std::move(backend).value();
}

struct Case {
  SampleParams params;
  std::vector<float> logits;
  std::vector<bool> banned;
};

class Sample : public testing::TestWithParam<IsaLevel> {
 protected:
  // Draws with 32 seeds at once and compares every token, log-probability and piece of state.
  void expect_oracle(const Backend& backend, const Case& c, Random& random) {
    const auto vocab = static_cast<int64_t>(c.logits.size());
    constexpr int32_t kDraws = 32;
    Step step(std::vector<test::StepRow>(kDraws, {8, 1, 1}), 64, 16, random, 2);
    const std::vector<uint32_t> banned = test::mask_words(c.banned);
    step.batch().banned = banned.data();
    const SeqState state = step.state();
    std::vector<Oracle> wanted;
    for (size_t i = 0; i < kDraws; ++i) {
      step.params(i) = c.params;
      step.params(i).seed = random.bits() + (uint64_t{random.bits()} << 32);
      const int32_t slot = step.slot(i);
      for (int32_t t = 0; t < 9; ++t)
        state.ids[slot * state.ctx + t] = random.below(30) % static_cast<int32_t>(vocab);
      state.prompt_tokens[slot] = 9 - static_cast<int32_t>(i % 5);
      const int32_t* ids = state.ids + slot * state.ctx;
      wanted.push_back(oracle(c.logits, step.params(i), {ids, ids + state.prompt_tokens[slot]},
                              {ids + state.prompt_tokens[slot], ids + 9}, c.banned));
    }
    backend.ops->begin_step(step.batch(), state);
    GuardedMatrix logits(kDraws + 2, vocab);
    for (int64_t r = 0; r < kDraws; ++r) std::copy(c.logits.begin(), c.logits.end(), logits.row(r));
    std::vector<SampleResult> out(kDraws + 2);
    for (SampleResult& r : out) r.id = -77;
    backend.ops->sample(out.data(), logits.view(), step.batch(), state, {vocab});
    EXPECT_TRUE(logits.guards_intact());
    EXPECT_EQ(out[kDraws].id, -77);  // padding
    for (size_t i = 0; i < kDraws; ++i) {
      const Oracle& o = wanted[i];
      const int32_t slot = step.slot(i);
      EXPECT_EQ(state.length[slot], 9);
      if (o.drawn < 0) {
        ASSERT_EQ(out[i].status, SampleResult::nothing_allowed);
        EXPECT_EQ(out[i].id, -1);
        EXPECT_EQ(state.known[slot], 9);
        continue;
      }
      ASSERT_EQ(out[i].status, SampleResult::ok);
      ASSERT_EQ(out[i].id, o.drawn) << "T " << c.params.temperature << " k " << c.params.top_k << " p "
                                    << c.params.top_p << " min_p " << c.params.min_p << " vocab " << vocab;
      EXPECT_EQ(state.known[slot], 10);
      EXPECT_EQ(state.ids[slot * state.ctx + 9], o.drawn);
      const int32_t* stops = c.params.stop_ids;
      EXPECT_EQ(state.stopped[slot], std::count(stops, stops + c.params.stop_count, o.drawn) > 0 ? 1 : 0);
      expect_logprobs(out[i], o, step.params(i));
    }
  }

  void expect_logprobs(const SampleResult& out, const Oracle& o, const SampleParams& p) {
    if (p.logprobs < 0) {
      EXPECT_EQ(out.top_count, 0);
      return;
    }
    std::vector<double> logprobs = o.raw;
    if (p.processed_logprobs != 0) {
      logprobs.assign(o.raw.size(), static_cast<double>(-INFINITY));
      for (const Token& t : o.kept) logprobs[static_cast<size_t>(t.id)] = t.logprob;
    }
    const auto logprob = [&](int32_t id) { return logprobs[static_cast<size_t>(id)]; };
    // Float exponentials summed in double, one rounding to float at the end: 2e-6 of numbers up to 60.
    const auto near = [](double a, double b) { return std::fabs(a - b) <= 2e-6 + 2e-7 * std::fabs(b); };
    EXPECT_TRUE(near(static_cast<double>(out.logprob), logprob(out.id)))
        << out.logprob << " " << logprob(out.id);
    std::vector<double> all;
    for (size_t id = 0; id < o.raw.size(); ++id) {
      if (std::isfinite(logprob(static_cast<int32_t>(id)))) all.push_back(logprob(static_cast<int32_t>(id)));
    }
    std::sort(all.begin(), all.end(), std::greater<>());
    ASSERT_EQ(out.top_count, std::min<int64_t>(p.logprobs, std::ssize(all)));
    for (int32_t i = 0; i < out.top_count; ++i) {
      EXPECT_TRUE(near(static_cast<double>(out.top_logprobs[i]), all[static_cast<size_t>(i)]));
      EXPECT_TRUE(near(static_cast<double>(out.top_logprobs[i]), logprob(out.top_ids[i])));
      if (i > 0 && out.top_logprobs[i] == out.top_logprobs[i - 1]) {
        EXPECT_GT(out.top_ids[i], out.top_ids[i - 1]);
      }
    }
  }
};

TEST_P(Sample, draws_the_oracles_token_for_every_mix_of_parameters) {
  Random random(3);
  // Vocabularies around vectors, blocks of 64 and tiles of 1,024.
  for (const int64_t vocab : {1, 5, 63, 64, 65, 300, 1023, 1025, 2500}) {
    const Backend backend = backend_of(GetParam(), 2, vocab);
    for (int i = 0; i < 40; ++i) {
      const auto kind = static_cast<LogitKind>(random.below(4));
      Case c{random_params(random, vocab), random_logits(kind, vocab, random),
             std::vector<bool>(static_cast<size_t>(vocab))};
      if (random.below(3) == 0) {
        for (size_t id = 0; id < c.banned.size(); ++id) c.banned[id] = random.below(3) != 0;
      }
      ASSERT_NO_FATAL_FAILURE(expect_oracle(backend, c, random))
          << "case " << i << ", logits " << static_cast<int>(kind);
    }
  }
}

TEST_P(Sample, keeps_to_the_oracle_where_the_nucleus_outgrows_the_short_lists) {
  Random random(4);
  const int64_t vocab = 20000;
  const Backend backend = backend_of(GetParam(), 2, vocab);
  for (const LogitKind kind : {LogitKind::flat, LogitKind::ties}) {
    for (const float top_p : {0.3f, 0.05f, 0.999f}) {
      Case c{Step::plain_params(), random_logits(kind, vocab, random),
             std::vector<bool>(static_cast<size_t>(vocab))};
      c.params.top_p = top_p;
      c.params.logprobs = 20;
      c.params.processed_logprobs = 1;
      ASSERT_NO_FATAL_FAILURE(expect_oracle(backend, c, random)) << top_p;
    }
  }
}

TEST_P(Sample, several_rows_of_logits_of_one_sequence_see_each_others_tokens) {
  const Backend backend = backend_of(GetParam(), 3, 100);
  Random random(6);
  Step step({{2, 4, 3}, {2, 1, 1}}, 64, 16, random);
  step.params(0).temperature = 0;
  step.params(0).presence = 2;  // what was drawn once will not win again
  const SeqState state = step.state();
  backend.ops->begin_step(step.batch(), state);
  state.prompt_tokens[step.slot(0)] = 6;
  for (int32_t t = 0; t < 6; ++t) state.ids[step.slot(0) * state.ctx + t] = 90;
  GuardedMatrix logits(4, 100, std::vector<float>(400, 0.0f));
  for (int64_t r = 0; r < 3; ++r) {
    logits.row(r)[50] = 1.0f;
    logits.row(r)[20] = 0.5f;
  }
  std::vector<SampleResult> out(4);
  backend.ops->sample(out.data(), logits.view(), step.batch(), state, {100});
  EXPECT_EQ(out[0].id, 50);
  EXPECT_EQ(out[1].id, 20);
  EXPECT_EQ(out[2].id, 0);  // a tie of zeros goes to the lowest id
  EXPECT_EQ(state.known[step.slot(0)], 9);
  EXPECT_EQ(state.length[step.slot(0)], 6);
}

INSTANTIATE_TEST_SUITE_P(EveryLevel, Sample, testing::ValuesIn(available_isa_levels()),
                         [](const auto& instance) { return std::string(isa_name(instance.param)); });

}  // namespace
}  // namespace inferd
