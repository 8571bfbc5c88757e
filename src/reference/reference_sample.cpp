// Sampling of the reference backend: every step over the whole vocabulary, in the order of docs/numerics.md.
#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "base/rng.h"
#include "reference/reference_ops.h"

namespace inferd::reference {
namespace {

struct Candidate {
  int32_t id;
  float x;  // logit, later probability
};

bool likelier(const Candidate& a, const Candidate& b) {
  return a.x != b.x ? a.x > b.x : a.id < b.id;
}

void apply_penalties(float* x, const SampleParams& p, const int32_t* ids, int32_t prompt, int32_t known) {
  struct Count {
    bool seen = false;
    int32_t in_output = 0;
  };
  std::map<int32_t, Count> counts;
  for (int32_t i = 0; i < known; ++i) {
    Count& count = counts[ids[i]];
    count.seen = true;
    count.in_output += i >= prompt ? 1 : 0;
  }
  for (const auto& [id, count] : counts) {
    float& logit = x[id];
    logit = logit > 0 ? logit / p.repetition : logit * p.repetition;
    if (count.in_output > 0) logit -= p.frequency * static_cast<float>(count.in_output) + p.presence;
  }
}

// Log-softmax of all entries.
std::vector<float> log_probabilities(const std::vector<float>& x) {
  const float largest = *std::max_element(x.begin(), x.end());
  double total = 0;
  for (const float value : x) total += std::exp(static_cast<double>(value) - largest);
  std::vector<float> logs(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    logs[i] = static_cast<float>(static_cast<double>(x[i]) - largest - std::log(total));
  return logs;
}

// Log-probabilities of logits x; −infinity: not listed. Ordered by the logits, as close ones may round to the
// same log-probability.
void report(SampleResult& out, const std::vector<float>& x, int32_t count) {
  const std::vector<float> logs = log_probabilities(x);
  out.logprob = logs[static_cast<size_t>(out.id)];
  std::vector<Candidate> order;
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] > -INFINITY) order.push_back({static_cast<int32_t>(i), x[i]});
  }
  std::sort(order.begin(), order.end(), likelier);
  out.top_count = std::min(count, static_cast<int32_t>(order.size()));
  for (int32_t i = 0; i < out.top_count; ++i) {
    out.top_ids[i] = order[static_cast<size_t>(i)].id;
    out.top_logprobs[i] = logs[static_cast<size_t>(out.top_ids[i])];
  }
}

// Turns sorted logits into the candidates that may be drawn; x becomes an unnormalised probability.
void keep_candidates(std::vector<Candidate>& order, const SampleParams& p) {
  if (p.top_k > 0 && order.size() > static_cast<size_t>(p.top_k)) order.resize(static_cast<size_t>(p.top_k));
  const float largest = order.front().x;
  double total = 0;
  for (Candidate& c : order) {
    c.x = std::exp(c.x - largest);
    total += static_cast<double>(c.x);
  }
  if (p.top_p < 1) {
    double cumulative = 0;
    size_t kept = 0;
    while (kept < order.size() && (kept == 0 || cumulative < static_cast<double>(p.top_p) * total)) {
      cumulative += static_cast<double>(order[kept++].x);
    }
    order.resize(kept);
  }
  if (p.min_p > 0) std::erase_if(order, [&](const Candidate& c) { return c.x < p.min_p * order.front().x; });
}

int32_t draw(std::vector<Candidate> kept, double u) {
  std::sort(kept.begin(), kept.end(), [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
  // Sums in tiles of 1,024 ids, merged in order.
  std::map<int32_t, double> tile_sum;
  for (const Candidate& c : kept) tile_sum[c.id / 1024] += static_cast<double>(c.x);
  double total = 0;
  for (const auto& [tile, sum] : tile_sum) total += sum;
  const double target = u * total;
  double before = 0;
  for (const auto& [tile, sum] : tile_sum) {
    double inside = 0;
    for (const Candidate& c : kept) {
      if (c.id / 1024 != tile) continue;
      inside += static_cast<double>(c.x);
      if (before + inside > target) return c.id;
    }
    before += sum;
  }
  return kept.back().id;  // u · total rounded up to the whole sum
}

}  // namespace

void ReferenceOps::sample(SampleResult* out, MatrixView logits, const BatchView& b, const SeqState& state,
                          const SampleOptions& options) {
  for (int64_t l = 0; l < logits.rows; ++l) {
    if (b.logit_token[l] < 0) continue;
    const int32_t slot = b.row[b.token_row[b.logit_token[l]]].slot;
    const SampleParams& p = state.params[slot];
    const int32_t* ids = state.ids + int64_t{slot} * state.ctx;
    const int32_t known = state.known[slot];
    const int32_t output = known - state.prompt_tokens[slot];
    SampleResult& result = out[l];
    result = {};
    result.id = -1;

    const std::vector<float> raw(logits.row_f32(l), logits.row_f32(l) + options.vocab);
    if (std::any_of(raw.begin(), raw.end(), [](float x) { return std::isnan(x) || x == INFINITY; })) {
      result.status = SampleResult::not_a_number;
      continue;
    }
    std::vector<float> x = raw;
    for (int32_t i = 0; i < p.bias_count; ++i) x[static_cast<size_t>(p.bias[i].id)] += p.bias[i].bias;
    if (b.banned != nullptr) {
      for (size_t id = 0; id < x.size(); ++id) {
        if ((b.banned[id / 32] >> (id % 32) & 1) != 0) x[id] = -INFINITY;
      }
    }
    if (output < p.min_tokens) {
      for (int32_t i = 0; i < p.stop_count; ++i) x[static_cast<size_t>(p.stop_ids[i])] = -INFINITY;
    }
    apply_penalties(x.data(), p, ids, state.prompt_tokens[slot], known);

    std::vector<Candidate> order;
    for (size_t id = 0; id < x.size(); ++id) {
      if (x[id] > -INFINITY)
        order.push_back({static_cast<int32_t>(id), p.temperature > 0 ? x[id] / p.temperature : x[id]});
    }
    if (order.empty()) {
      result.status = SampleResult::nothing_allowed;
      continue;
    }
    std::sort(order.begin(), order.end(), likelier);
    const std::vector<Candidate> sorted = order;
    if (p.temperature > 0) {
      keep_candidates(order, p);
    } else {
      order.resize(1);
      order.front().x = 1;
    }
    result.id = draw(order, uniform_draw(p.seed, static_cast<uint32_t>(output), 0, p.choice));

    if (p.logprobs >= 0 && p.processed_logprobs != 0) {
      // From the logits and not from the probabilities, which may be too small for a float; those kept are
      // the first of the sorted ones.
      std::vector<float> kept(x.size(), -INFINITY);
      for (size_t i = 0; i < order.size(); ++i) kept[static_cast<size_t>(sorted[i].id)] = sorted[i].x;
      report(result, kept, p.logprobs);
    } else if (p.logprobs >= 0) {
      report(result, raw, p.logprobs);
    }
    state.ids[int64_t{slot} * state.ctx + known] = result.id;
    state.known[slot] = known + 1;
    for (int32_t i = 0; i < p.stop_count; ++i) {
      if (p.stop_ids[i] == result.id) state.stopped[slot] = 1;
    }
  }
  for (int32_t r = 0; r < b.rows; ++r) {
    if (b.row[r].slot >= 0) state.length[b.row[r].slot] += b.row[r].q_len;
  }
}

}  // namespace inferd::reference
