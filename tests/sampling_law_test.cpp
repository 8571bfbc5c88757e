// Is the law of the drawn tokens the one the parameters describe? Checked against exact enumeration over a
// small vocabulary, written here from docs/numerics.md alone, and the check itself is shown to catch four
// planted bugs.
//
// The gate, fixed before it was first run: for every profile kDraws draws, Pearson's χ² over tokens of
// expected count ≥ 5 (the rest pooled); for every pair of neighbouring rows the same over pairs of tokens
// against the product law. A test passes when its p-value is above kAlpha / number of tests (Bonferroni), so
// a right sampler fails with probability below kAlpha once and for all, the seeds being fixed. In addition
// every row must draw the same tokens alone as among others.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <random>

#include "cpu/cpu_backend.h"
#include "reference/reference_backend.h"
#include "support/sampling_bench.h"

namespace inferd {
namespace {

using test::SampleRow;

constexpr int kVocab = 12;
constexpr int kDraws = 20000;
constexpr double kAlpha = 1e-4;

std::vector<SampleRow> profiles() {
  std::vector<float> logits = {2.0f, 1.5f, 1.5f, 1.0f, 0.7f, 0.1f, 0.0f, -0.3f, -1.0f, -1.5f, -2.0f, -4.0f};
  std::vector<SampleRow> rows;
  const auto add = [&](const std::function<void(SampleParams&)>& change) {
    SampleRow row{logits, test::plain_params(0), {3, 3, 5}, {0, 1, 1}};
    change(row.params);
    rows.push_back(row);
    std::rotate(logits.begin(), logits.begin() + 5, logits.end());  // ids and ranks do not agree
  };
  add([](SampleParams&) {});
  add([](SampleParams& p) { p.temperature = 0.6f; });
  add([](SampleParams& p) { p.temperature = 1.8f; });
  add([](SampleParams& p) { p.top_k = 4; });
  add([](SampleParams& p) { p.top_p = 0.75f; });
  add([](SampleParams& p) {
    p.temperature = 1.3f;
    p.top_k = 7;
    p.top_p = 0.8f;
  });
  add([](SampleParams& p) { p.min_p = 0.2f; });
  add([](SampleParams& p) {
    p.temperature = 0.8f;
    p.top_k = 9;
    p.top_p = 0.9f;
    p.min_p = 0.1f;
  });
  add([](SampleParams& p) { p.repetition = 1.6f; });
  add([](SampleParams& p) {
    p.presence = 0.9f;
    p.frequency = 0.4f;
  });
  add([](SampleParams& p) {
    p.bias_count = 2;
    p.bias[0] = {4, 2.5f};
    p.bias[1] = {0, -3.0f};
    p.top_p = 0.9f;
  });
  add([](SampleParams& p) {
    p.min_tokens = 10;
    p.stop_count = 2;
    p.stop_ids[0] = 2;
    p.stop_ids[1] = 7;
  });
  return rows;
}

// The exact law of one row, by the order of steps in docs/numerics.md, in double.
std::vector<double> exact_law(const SampleRow& row) {
  const SampleParams& p = row.params;
  std::vector<double> x(row.logits.begin(), row.logits.end());
  for (int i = 0; i < p.bias_count; ++i)
    x[static_cast<size_t>(p.bias[i].id)] += static_cast<double>(p.bias[i].bias);
  if (static_cast<int32_t>(row.output.size()) < p.min_tokens) {
    for (int i = 0; i < p.stop_count; ++i) x[static_cast<size_t>(p.stop_ids[i])] = -INFINITY;
  }
  for (int id = 0; id < kVocab; ++id) {
    const auto in_prompt = std::ranges::count(row.prompt, id);
    const auto in_output = std::ranges::count(row.output, id);
    double& v = x[static_cast<size_t>(id)];
    if (in_prompt + in_output > 0)
      v = v > 0 ? v / static_cast<double>(p.repetition) : v * static_cast<double>(p.repetition);
    v -= static_cast<double>(p.frequency) * static_cast<double>(in_output) +
         (in_output > 0 ? static_cast<double>(p.presence) : 0.0);
  }
  for (double& v : x) v /= static_cast<double>(p.temperature);
  std::vector<size_t> order(kVocab);
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, [&](size_t a, size_t b) { return x[a] != x[b] ? x[a] > x[b] : a < b; });
  std::vector<double> law(kVocab, 0.0);
  const auto total = [&] { return std::accumulate(law.begin(), law.end(), 0.0); };
  for (size_t rank = 0; rank < kVocab; ++rank) {
    if (p.top_k == 0 || rank < static_cast<size_t>(p.top_k)) law[order[rank]] = std::exp(x[order[rank]]);
  }
  const double after_top_k = total();
  double before = 0;
  for (const size_t id : order) {
    const double share = law[id] / after_top_k;
    if (before >= static_cast<double>(p.top_p)) law[id] = 0;  // the token that crosses the threshold stays
    before += share;
  }
  const double largest = *std::ranges::max_element(law);
  for (double& v : law) {
    if (v < static_cast<double>(p.min_p) * largest) v = 0;
  }
  const double kept = total();
  for (double& v : law) v /= kept;
  return law;
}

// One step over all rows; row i's params carry its own seed.
using Sampler = std::function<std::vector<int32_t>(const std::vector<SampleRow>&)>;

// Upper tail of χ² with k degrees of freedom: the regularised incomplete gamma function Q(k/2, x/2), by its
// series or continued fraction (Abramowitz and Stegun, 6.5).
double chi_squared_p(double x, double k) {
  const double a = k / 2;
  const double z = x / 2;
  if (z <= 0) return 1;
  const double scale = std::exp(-z + a * std::log(z) - std::lgamma(a));
  if (z < a + 1) {
    double term = 1 / a;
    double sum = term;
    for (int n = 1; n < 1000; ++n) sum += term *= z / (a + n);
    return 1 - sum * scale;
  }
  double b = z + 1 - a;
  double c = 1e300;
  double d = 1 / b;
  double h = d;
  for (int i = 1; i < 1000; ++i) {
    const double an = -i * (i - a);
    b += 2;
    d = 1 / (an * d + b);
    c = b + an / c;
    h *= d * c;
  }
  return scale * h;
}

double p_value(const std::map<int, double>& expected, const std::map<int, int>& counts) {
  double statistic = 0;
  int cells = 0;
  double rest_expected = 0;
  double rest_count = 0;
  for (const auto& [cell, count] : counts) {
    if (!expected.contains(cell) || expected.at(cell) == 0)
      return 0;  // a token that cannot be drawn was drawn
  }
  for (const auto& [cell, mean] : expected) {
    const double count = counts.contains(cell) ? counts.at(cell) : 0;
    if (mean < 5) {
      rest_expected += mean;
      rest_count += count;
      continue;
    }
    statistic += (count - mean) * (count - mean) / mean;
    ++cells;
  }
  if (rest_expected >= 5) {
    statistic += (rest_count - rest_expected) * (rest_count - rest_expected) / rest_expected;
    ++cells;
  }
  return cells < 2 ? 1 : chi_squared_p(statistic, cells - 1);
}

// Everything the gate finds wrong; empty: passed.
std::vector<std::string> law_violations(const Sampler& sampler) {
  std::vector<SampleRow> rows = profiles();
  const size_t n = rows.size();
  std::vector<std::map<int, int>> single(n);
  std::vector<std::map<int, int>> pairs(n);
  std::vector<std::string> violations;
  for (int draw = 0; draw < kDraws; ++draw) {
    for (size_t r = 0; r < n; ++r) rows[r].params.seed = static_cast<uint64_t>(draw) * 1000 + r;
    const std::vector<int32_t> ids = sampler(rows);
    for (size_t r = 0; r < n; ++r) {
      ++single[r][ids[r]];
      ++pairs[r][ids[r] * kVocab + ids[(r + 1) % n]];
    }
    if (draw % 100 == 0) {
      const size_t r = static_cast<size_t>(draw / 100) % n;
      if (sampler({rows[r]}).front() != ids[r] && violations.empty()) {
        violations.push_back(cat("row ", r, " draws another token alone than among others"));
      }
    }
  }
  std::vector<std::vector<double>> law;
  for (const SampleRow& row : rows) law.push_back(exact_law(row));
  const double threshold = kAlpha / static_cast<double>(2 * n);
  for (size_t r = 0; r < n; ++r) {
    std::map<int, double> expected;
    std::map<int, double> expected_pairs;
    for (int a = 0; a < kVocab; ++a) {
      const double pa = law[r][static_cast<size_t>(a)];
      if (pa > 0) expected[a] = pa * kDraws;
      for (int b = 0; b < kVocab; ++b) {
        const double joint = pa * law[(r + 1) % n][static_cast<size_t>(b)];
        if (joint > 0) expected_pairs[a * kVocab + b] = joint * kDraws;
      }
    }
    if (const double p = p_value(expected, single[r]); p < threshold)
      violations.push_back(cat("profile ", r, ": p ", p));
    if (const double p = p_value(expected_pairs, pairs[r]); p < threshold) {
      violations.push_back(cat("profiles ", r, " and ", (r + 1) % n, " together: p ", p));
    }
  }
  return violations;
}

enum class Bug {
  none,
  drops_the_crossing_token,
  does_not_scale_by_temperature,
  renormalises_over_everything,
  one_number_for_all_rows,
  global_generator
};

// A sampler of the test's own, with a bug to order.
Sampler planted(Bug bug) {
  auto global = std::make_shared<std::mt19937_64>(5);
  return [bug, global](const std::vector<SampleRow>& rows) {
    std::vector<int32_t> ids;
    for (const SampleRow& original : rows) {
      SampleRow row = original;
      if (bug == Bug::does_not_scale_by_temperature) row.params.temperature = 1;
      std::vector<double> law = exact_law(row);
      if (bug == Bug::drops_the_crossing_token && row.params.top_p < 1) {
        size_t last = 0;
        int kept = 0;
        for (size_t i = 0; i < law.size(); ++i) {
          if (law[i] == 0) continue;
          if (kept++ == 0 || law[i] < law[last]) last = i;
        }
        if (kept > 1) law[last] = 0;
        const double total = std::accumulate(law.begin(), law.end(), 0.0);
        for (double& v : law) v /= total;
      }
      if (bug == Bug::renormalises_over_everything) {
        // Divides by the sum before anything was cut, so the walk runs past the end: the last survivor takes
        // the rest.
        SampleRow uncut = row;
        uncut.params.top_k = 0;
        uncut.params.top_p = 1;
        uncut.params.min_p = 0;
        const std::vector<double> full = exact_law(uncut);
        for (size_t i = 0; i < law.size(); ++i) law[i] = law[i] > 0 ? full[i] : 0;
      }
      const auto key = bug == Bug::one_number_for_all_rows ? rows.front().params.seed : row.params.seed;
      std::mt19937_64 own(key * 0x9E3779B97F4A7C15 + 1);
      std::mt19937_64& generator = bug == Bug::global_generator ? *global : own;
      const double u = static_cast<double>(generator() >> 11) * 0x1p-53;
      double cumulative = 0;
      int32_t id = -1;
      for (int32_t i = 0; i < kVocab; ++i) {
        if (law[static_cast<size_t>(i)] == 0) continue;
        if (cumulative > u) break;
        cumulative += law[static_cast<size_t>(i)];
        id = i;
      }
      ids.push_back(id);
    }
    return ids;
  };
}

Sampler of_backend(Backend backend) {
  auto bench = std::make_shared<test::SamplingBench>(std::move(backend), kVocab, 16);
  return [bench](const std::vector<SampleRow>& rows) {
    std::vector<int32_t> ids;
    for (const SampleResult& result : bench->sample(rows)) ids.push_back(result.id);
    return ids;
  };
}

TEST(SamplingLaw, the_reference_backend_draws_by_the_exact_law) {
  EXPECT_EQ(law_violations(of_backend(make_reference_backend())), std::vector<std::string>());
}

class CpuSamplingLaw : public testing::TestWithParam<IsaLevel> {};

TEST_P(CpuSamplingLaw, is_exact_on_this_level) {
  Result<Backend> backend = make_cpu_backend({.threads = 1, .isa = GetParam(), .pin = false});
  ASSERT_TRUE(backend.ok());
  EXPECT_EQ(law_violations(of_backend(std::move(backend).value())), std::vector<std::string>());
}

INSTANTIATE_TEST_SUITE_P(Levels, CpuSamplingLaw, testing::ValuesIn(available_isa_levels()),
                         [](const auto& instance) { return std::string(isa_name(instance.param)); });

TEST(SamplingLaw, the_gate_passes_a_right_sampler_and_catches_each_planted_bug) {
  EXPECT_EQ(law_violations(planted(Bug::none)), std::vector<std::string>());
  for (const Bug bug :
       {Bug::drops_the_crossing_token, Bug::does_not_scale_by_temperature, Bug::renormalises_over_everything,
        Bug::one_number_for_all_rows, Bug::global_generator}) {
    EXPECT_FALSE(law_violations(planted(bug)).empty()) << "bug " << static_cast<int>(bug);
  }
}

}  // namespace
}  // namespace inferd
