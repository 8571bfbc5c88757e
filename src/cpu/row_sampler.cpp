#include "cpu/row_sampler.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>

#include "base/arithmetic.h"
#include "base/rng.h"

namespace inferd::cpu {
namespace {

constexpr int64_t kTileIds = 1024;
constexpr int64_t kBlockIds = 64;

// Candidates that are sorted by comparing; more go through the radix sort.
constexpr int64_t kShortList = 4096;

bool likelier(const Candidate& a, const Candidate& b) {
  return a.x != b.x ? a.x > b.x : a.id < b.id;
}

// A key whose ascending order is the floats' descending order; the two zeros are one.
uint32_t descending_key(float x) {
  const auto bits = std::bit_cast<uint32_t>(x + 0.0f);
  return (bits & 0x80000000) != 0 ? bits : ~bits & 0x7FFFFFFF;
}

// Stable: what comes with ascending ids leaves with ascending ids among equals. Returns where the result
// lies.
std::span<Candidate> radix_sort(std::span<Candidate> from, Candidate* other) {
  constexpr int kBits = 11;
  Candidate* to = other;
  Candidate* at = from.data();
  for (int shift = 0; shift < 32; shift += kBits) {
    std::array<uint32_t, 1 << kBits> starts = {};
    const auto digit = [shift](const Candidate& c) {
      return descending_key(c.x) >> shift & ((1u << kBits) - 1);
    };
    for (size_t i = 0; i < from.size(); ++i) ++starts[digit(at[i])];
    uint32_t sum = 0;
    for (uint32_t& start : starts) sum += std::exchange(start, sum);
    for (size_t i = 0; i < from.size(); ++i) to[starts[digit(at[i])]++] = at[i];
    std::swap(at, to);
  }
  return {at, from.size()};
}

// Sums of up to four tiles at once: a tile's sum is one chain of additions, and chains hide each other's
// latency.
void sum_tiles(double* sums, const float* p, int64_t count) {
  int64_t tile = 0;
  for (; (tile + 4) * kTileIds <= count; tile += 4) {
    const float* at = p + tile * kTileIds;
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (int64_t i = 0; i < kTileIds; ++i) {
      s0 += static_cast<double>(at[i]);
      s1 += static_cast<double>(at[i + kTileIds]);
      s2 += static_cast<double>(at[i + 2 * kTileIds]);
      s3 += static_cast<double>(at[i + 3 * kTileIds]);
    }
    sums[tile] = s0;
    sums[tile + 1] = s1;
    sums[tile + 2] = s2;
    sums[tile + 3] = s3;
  }
  for (; tile * kTileIds < count; ++tile) {
    double sum = 0;
    for (int64_t i = tile * kTileIds; i < std::min(count, (tile + 1) * kTileIds); ++i)
      sum += static_cast<double>(p[i]);
    sums[tile] = sum;
  }
}

float log_of_ratio(float x, float largest, double log_total) {
  return static_cast<float>(static_cast<double>(x) - static_cast<double>(largest) - log_total);
}

}  // namespace

int64_t RowSampler::tiles() const {
  return ceil_div(vocab_, kTileIds);
}

float RowSampler::largest_of(const float* x, bool& bad) const {
  // Parts may end in any order; both results do not depend on it.
  std::atomic<float> largest{-INFINITY};
  std::atomic<bool> any_bad{false};
  parts_(tiles(), [&](int64_t begin, int64_t end) {
    const int64_t first = begin * kTileIds;
    float here = 0;
    if (kernels_.scan_logits(&here, x + first, std::min(vocab_, end * kTileIds) - first)) any_bad = true;
    for (float seen = largest; here > seen && !largest.compare_exchange_weak(seen, here);) {
    }
  });
  bad = any_bad;
  return largest;
}

void RowSampler::forbid_and_penalise(float* x, const SampleParams& p, std::span<const int32_t> history,
                                     int32_t prompt, const uint32_t* banned) const {
  for (int32_t i = 0; i < p.bias_count; ++i) x[p.bias[i].id] += p.bias[i].bias;
  if (banned != nullptr) {
    for (int64_t word = 0; word < ceil_div(vocab_, 32); ++word) {
      for (uint32_t bits = banned[word]; bits != 0; bits &= bits - 1) {
        const int64_t id = 32 * word + std::countr_zero(bits);
        if (id < vocab_) x[id] = -INFINITY;
      }
    }
  }
  const auto output = static_cast<int32_t>(history.size()) - prompt;
  if (output < p.min_tokens) {
    for (int32_t i = 0; i < p.stop_count; ++i) x[p.stop_ids[i]] = -INFINITY;
  }
  if (p.repetition == 1 && p.frequency == 0 && p.presence == 0) return;
  // counts[id] = 1 + uses in the output, for every id of the history.
  int32_t* counts = scratch_.counts;
  for (size_t i = 0; i < history.size(); ++i) {
    int32_t& count = counts[history[i]];
    if (count == 0) count = 1;
    if (static_cast<int32_t>(i) >= prompt) ++count;
  }
  for (const int32_t id : history) {
    if (counts[id] == 0) continue;  // done
    x[id] = x[id] > 0 ? x[id] / p.repetition : x[id] * p.repetition;
    if (counts[id] > 1) x[id] -= p.frequency * static_cast<float>(counts[id] - 1) + p.presence;
    counts[id] = 0;
  }
}

std::span<Candidate> RowSampler::sort_all(const float* x) const {
  int64_t count = 0;
  for (int64_t id = 0; id < vocab_; ++id) {
    if (x[id] > -INFINITY) scratch_.candidates[count++] = {static_cast<int32_t>(id), x[id]};
  }
  return radix_sort({scratch_.candidates, static_cast<size_t>(count)}, scratch_.sorted);
}

std::span<Candidate> RowSampler::top(const float* x, int64_t wanted) const {
  // The wanted-th largest of the blocks' largest is a bound: at least `wanted` logits reach it.
  const int64_t blocks = ceil_div(vocab_, kBlockIds);
  if (wanted > blocks / 2) {
    const std::span<Candidate> all = sort_all(x);
    return all.first(std::min(all.size(), static_cast<size_t>(wanted)));
  }
  parts_(tiles(), [&](int64_t begin, int64_t end) {
    const int64_t first = begin * kTileIds;
    kernels_.block_largest(scratch_.block_largest + first / kBlockIds, x + first,
                           std::min(vocab_, end * kTileIds) - first);
  });
  float* largest = scratch_.block_largest;
  std::nth_element(largest, largest + wanted - 1, largest + blocks, std::greater<>());
  const float bound = std::max(largest[wanted - 1], std::numeric_limits<float>::lowest());
  const int64_t count = kernels_.collect(scratch_.ids, x, vocab_, 0, bound);
  for (int64_t i = 0; i < count; ++i) scratch_.candidates[i] = {scratch_.ids[i], x[scratch_.ids[i]]};
  std::span<Candidate> found(scratch_.candidates, static_cast<size_t>(count));
  if (count > kShortList) {
    found = radix_sort(found, scratch_.sorted);
  } else {
    std::sort(found.begin(), found.end(), likelier);
  }
  return found.first(std::min(found.size(), static_cast<size_t>(wanted)));
}

double RowSampler::weigh_all(const float* x, float largest, float least) const {
  parts_(tiles(), [&](int64_t begin, int64_t end) {
    const int64_t first = begin * kTileIds;
    const int64_t count = std::min(vocab_, end * kTileIds) - first;
    kernels_.exponentials(scratch_.p + first, x + first, count, largest, least);
    sum_tiles(scratch_.tile_sums + begin, scratch_.p + first, count);
  });
  double total = 0;
  for (int64_t tile = 0; tile < tiles(); ++tile) total += scratch_.tile_sums[tile];
  return total;
}

// The candidates that top-k, top-p and min-p leave, likeliest first; x becomes the unnormalised probability.
std::span<Candidate> RowSampler::keep(const float* x, float largest, const SampleParams& p) const {
  const bool top_k = p.top_k > 0 && p.top_k < vocab_;
  const auto weigh = [&](std::span<Candidate> list) {
    // Through the same vector code as whole rows, so that a probability has the same bits on every path.
    constexpr size_t kPart = 64;
    for (size_t i = 0; i < list.size(); i += kPart) {
      float values[kPart];
      const size_t count = std::min(kPart, list.size() - i);
      for (size_t j = 0; j < count; ++j) values[j] = list[i + j].x;
      kernels_.exponentials(values, values, static_cast<int64_t>(count), largest, 0);
      for (size_t j = 0; j < count; ++j) list[i + j].x = values[j];
    }
  };
  // How many of the list, weighed and likeliest first, top-p keeps; more than there are when the list is too
  // short.
  const auto nucleus = [&p](std::span<const Candidate> list, double total) {
    double cumulative = 0;
    for (size_t kept = 0; kept < list.size(); ++kept) {
      if (kept > 0 && cumulative >= static_cast<double>(p.top_p) * total) return kept;
      cumulative += static_cast<double>(list[kept].x);
    }
    return cumulative >= static_cast<double>(p.top_p) * total ? list.size() : list.size() + 1;
  };

  std::span<Candidate> list;
  if (top_k) {
    list = top(x, p.top_k);
    weigh(list);
    if (p.top_p < 1) {
      double total = 0;
      for (const Candidate& c : list) total += static_cast<double>(c.x);
      list = list.first(std::min(list.size(), nucleus(list, total)));
    }
  } else {
    const double total = weigh_all(x, largest, 0);
    for (const int64_t guess : {int64_t{64}, int64_t{1024}, vocab_}) {
      list = top(x, std::min(guess, vocab_));
      weigh(list);
      const size_t kept = nucleus(list, total);
      if (kept <= list.size() || guess >= vocab_) {
        list = list.first(std::min(list.size(), kept));
        break;
      }
    }
  }
  if (p.min_p > 0) {
    const auto end =
        std::find_if(list.begin(), list.end(), [&p](const Candidate& c) { return c.x < p.min_p; });
    list = list.first(static_cast<size_t>(end - list.begin()));
  }
  return list;
}

int32_t RowSampler::draw_from(std::span<Candidate> kept, double u, double& total) const {
  std::sort(kept.begin(), kept.end(), [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
  // body(begin, end, sum) for every tile that has candidates; stops when it returns true.
  const auto each_tile = [kept](auto&& body) {
    for (size_t begin = 0; begin < kept.size();) {
      size_t end = begin;
      double sum = 0;
      for (; end < kept.size() && kept[end].id / kTileIds == kept[begin].id / kTileIds; ++end) {
        sum += static_cast<double>(kept[end].x);
      }
      if (body(begin, end, sum)) return;
      begin = end;
    }
  };
  total = 0;
  each_tile([&](size_t, size_t, double sum) {
    total += sum;
    return false;
  });
  int32_t drawn = kept.back().id;
  double before = 0;
  each_tile([&](size_t begin, size_t end, double sum) {
    if (before + sum <= u * total) {
      before += sum;
      return false;
    }
    double inside = 0;
    for (size_t i = begin; i < end; ++i) {
      inside += static_cast<double>(kept[i].x);
      if (before + inside > u * total) {
        drawn = kept[i].id;
        break;
      }
    }
    return true;
  });
  return drawn;
}

int32_t RowSampler::draw_from_all(double u, double total) const {
  double before = 0;
  for (int64_t tile = 0; tile < tiles(); ++tile) {
    if (before + scratch_.tile_sums[tile] <= u * total) {
      before += scratch_.tile_sums[tile];
      continue;
    }
    double inside = 0;
    for (int64_t id = tile * kTileIds; id < std::min(vocab_, (tile + 1) * kTileIds); ++id) {
      inside += static_cast<double>(scratch_.p[id]);
      if (before + inside > u * total) return static_cast<int32_t>(id);
    }
  }
  INFERD_CHECK(false, "u ", u, " of a total of ", total);  // u < 1, and the last sum is the total
}

void RowSampler::sample(SampleResult& out, float* logits, const SampleParams& params,
                        std::span<const int32_t> history, int32_t prompt, const uint32_t* banned) {
  out = {};
  out.id = -1;
  bool bad = false;
  const float raw_largest = largest_of(logits, bad);
  if (bad) {
    out.status = SampleResult::not_a_number;
    return;
  }

  // Raw log-probabilities are read before the steps change the logits; the drawn token's once it is known.
  const bool raw_logprobs = params.logprobs >= 0 && params.processed_logprobs == 0;
  double raw_log_total = 0;
  float* x = logits;
  if (raw_logprobs && raw_largest > -INFINITY) {
    raw_log_total = std::log(weigh_all(logits, raw_largest, 0));
    if (params.logprobs > 0) {
      const std::span<const Candidate> likeliest = top(logits, params.logprobs);
      for (const Candidate& c : likeliest) {
        out.top_ids[out.top_count] = c.id;
        out.top_logprobs[out.top_count++] = log_of_ratio(c.x, raw_largest, raw_log_total);
      }
    }
    x = scratch_.x;
    parts_(tiles(), [&](int64_t begin, int64_t end) {
      std::copy(logits + begin * kTileIds, logits + std::min(vocab_, end * kTileIds), x + begin * kTileIds);
    });
  }

  forbid_and_penalise(x, params, history, prompt, banned);
  if (params.temperature > 0 && params.temperature != 1) {
    parts_(tiles(), [&](int64_t begin, int64_t end) {
      const int64_t first = begin * kTileIds;
      kernels_.divide(x + first, std::min(vocab_, end * kTileIds) - first, params.temperature);
    });
  }
  const float largest = largest_of(x, bad);
  if (largest == -INFINITY) {
    out = {};  // without the raw log-probabilities
    out.id = -1;
    out.status = SampleResult::nothing_allowed;
    return;
  }

  const bool processed_logprobs = params.logprobs >= 0 && params.processed_logprobs != 0;
  // From the logits and not from the probabilities, which may be too small for a float.
  const auto report = [&](std::span<const Candidate> likeliest_first, double total) {
    const double log_total = std::log(total);
    out.logprob = log_of_ratio(x[out.id], largest, log_total);
    for (const Candidate& c :
         likeliest_first.first(std::min(likeliest_first.size(), static_cast<size_t>(params.logprobs)))) {
      out.top_ids[out.top_count] = c.id;
      out.top_logprobs[out.top_count++] = log_of_ratio(x[c.id], largest, log_total);
    }
  };

  const double u = uniform_draw(
      params.seed, static_cast<uint32_t>(static_cast<int32_t>(history.size()) - prompt), 0, params.choice);
  if (params.temperature == 0) {
    out.id = static_cast<int32_t>(kernels_.find_value(x, vocab_, largest));
    if (processed_logprobs) report(std::array{Candidate{out.id, 1.0f}}, 1);
  } else if ((params.top_k > 0 && params.top_k < vocab_) || params.top_p < 1) {
    std::span<Candidate> kept = keep(x, largest, params);
    std::array<Candidate, kMaxTopLogprobs> likeliest;
    const size_t listed = std::min(kept.size(), likeliest.size());
    std::copy_n(kept.begin(), listed, likeliest.begin());
    double total = 0;
    out.id = draw_from(kept, u, total);
    if (processed_logprobs) report(std::span(likeliest).first(listed), total);
  } else {
    const double total = weigh_all(x, largest, params.min_p);
    out.id = draw_from_all(u, total);
    if (processed_logprobs) {
      std::span<const Candidate> likeliest;
      if (params.logprobs > 0) likeliest = top(x, params.logprobs);
      if (params.min_p > 0) {
        const auto end = std::find_if(likeliest.begin(), likeliest.end(),
                                      [&](const Candidate& c) { return scratch_.p[c.id] == 0; });
        likeliest = likeliest.first(static_cast<size_t>(end - likeliest.begin()));
      }
      report(likeliest, total);
    }
  }
  if (raw_logprobs) out.logprob = log_of_ratio(logits[out.id], raw_largest, raw_log_total);
}

}  // namespace inferd::cpu
