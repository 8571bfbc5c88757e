#include "support/sampling_bench.h"

#include <algorithm>
#include <numeric>

namespace inferd::test {

SampleParams plain_params(uint64_t seed) {
  SampleParams p{};
  p.seed = seed;
  p.temperature = 1;
  p.top_p = 1;
  p.repetition = 1;
  p.logprobs = -1;
  return p;
}

SamplingBench::SamplingBench(Backend backend, int32_t vocab, int32_t max_rows, int32_t ctx)
    : backend_(std::move(backend)), vocab_(vocab), ctx_(ctx) {
  OpsLimits limits;
  limits.rows = limits.tokens = limits.logit_rows = max_rows;
  limits.ctx = ctx;
  limits.heads = limits.kv_heads = 1;
  limits.head_dim = 32;
  limits.linear_cols = limits.linear_rows = 32;
  limits.vocab = vocab;
  const Status status = backend_.ops->reserve(limits);
  INFERD_CHECK(status.ok(), status.error().terminal_text());
}

std::vector<SampleResult> SamplingBench::sample(const std::vector<SampleRow>& rows, const uint32_t* banned) {
  const auto count = static_cast<int32_t>(rows.size());
  ids_.assign(rows.size() * static_cast<size_t>(ctx_), 0);
  known_.clear();
  length_.clear();
  prompt_.clear();
  params_.clear();
  stopped_.assign(rows.size(), 0);
  std::vector<float> logits;
  std::vector<BatchRow> batch_rows;
  for (int32_t r = 0; r < count; ++r) {
    const SampleRow& row = rows[static_cast<size_t>(r)];
    int32_t* ids = ids_.data() + r * ctx_;
    std::ranges::copy(row.prompt, ids);
    std::ranges::copy(row.output, ids + row.prompt.size());
    known_.push_back(static_cast<int32_t>(row.prompt.size() + row.output.size()));
    length_.push_back(known_.back() - 1);
    prompt_.push_back(static_cast<int32_t>(row.prompt.size()));
    params_.push_back(row.params);
    logits.insert(logits.end(), row.logits.begin(), row.logits.end());
    batch_rows.push_back({.slot = r, .q_len = 1, .kind = RowKind::decode, .logits = 1, .adapter = -1});
  }
  const SeqState state{count,          ctx_,           ids_.data(),     known_.data(),
                       length_.data(), prompt_.data(), stopped_.data(), params_.data()};
  std::vector<int32_t> index(rows.size());
  std::iota(index.begin(), index.end(), 0);
  std::vector<int32_t> cumulative(rows.size() + 1);
  std::iota(cumulative.begin(), cumulative.end(), 0);
  BatchView b;
  b.rows = b.tokens = b.logit_rows = count;
  b.row = batch_rows.data();
  b.banned = banned;
  b.cu_seqlens_q = cumulative.data();
  b.token_row = index.data();
  b.logit_token = index.data();
  std::vector<SampleResult> results(rows.size());
  backend_.ops->sample(results.data(), matrix_f32(logits.data(), count, vocab_), b, state, {.vocab = vocab_});
  return results;
}

std::vector<int32_t> SamplingBench::known(size_t row) const {
  const int32_t* ids = ids_.data() + static_cast<int32_t>(row) * ctx_;
  return {ids, ids + known_[row]};
}

}  // namespace inferd::test
