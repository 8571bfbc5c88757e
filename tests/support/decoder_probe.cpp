#include "support/decoder_probe.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace inferd::test {
namespace {

template <typename T>
T must(Result<T> result) {
  INFERD_CHECK(result.ok(), result.error().terminal_text());
  return std::move(result).value();
}

}  // namespace

DecoderProbe::DecoderProbe(Backend backend, const std::string& gguf_path, const Options& options)
    : backend_(std::move(backend)), options_(options) {
  const GgufFile file = must(GgufFile::open(gguf_path));
  const DecoderConfig config = must(read_decoder_config(file));
  decoder_ = must(Decoder::load(file, config, options.ctx, *backend_.device, *backend_.ops));
  const Status reserved = backend_.ops->reserve(
      Decoder::ops_limits(config, 1, options.max_tokens, options.max_tokens, options.ctx));
  INFERD_CHECK(reserved.ok(), reserved.error().terminal_text());

  Device& device = *backend_.device;
  const int32_t page_tokens = device.kv_page_tokens();
  const BatchLimits limits{1, options.max_tokens, options.max_tokens, options.ctx, page_tokens};
  kv_.layout = Decoder::kv_layout(config, options.kv_dtype, page_tokens);
  kv_.pages = limits.max_blocks();
  kv_buffer_ = must(device.allocate(kv_.pages * kv_.layout.page_bytes(), "KV"));
  kv_.base = static_cast<std::byte*>(kv_buffer_.data());
  // Pages in an order of their own, so that a mix-up of page and position shows.
  pages_.resize(static_cast<size_t>(kv_.pages));
  std::iota(pages_.rbegin(), pages_.rend(), 0);

  const auto place = [&](Arena& arena, Arena& host) {
    activations_ = Activations::place(arena, config, options.max_tokens, options.max_tokens);
    logits_ = matrix_f32(arena.take<float>(int64_t{options.max_tokens} * config.vocab), options.max_tokens,
                         config.vocab);
    state_.slots = 1;
    state_.ctx = options.ctx;
    state_.ids = arena.take<int32_t>(options.ctx);
    state_.known = arena.take<int32_t>(1);
    state_.length = arena.take<int32_t>(1);
    state_.prompt_tokens = arena.take<int32_t>(1);
    state_.stopped = arena.take<int32_t>(1);
    state_.params = arena.take<SampleParams>(1);
    builder_ = std::make_unique<BatchBuilder>(limits, arena, host);
  };
  Arena sizes;
  Arena host_sizes;
  place(sizes, host_sizes);
  buffer_ = must(device.allocate(sizes.used(), "test buffers"));
  host_.resize(static_cast<size_t>(host_sizes.used()));
  Arena arena(buffer_);
  const Buffer host_view(host_.data(), host_sizes.used(), [](void*, int64_t) {});
  Arena host(host_view);
  place(arena, host);
}

std::vector<float> DecoderProbe::run(std::span<const int32_t> ids, int32_t logit_rows) {
  const auto count = static_cast<int32_t>(ids.size());
  known_.resize(static_cast<size_t>(length_));
  known_.insert(known_.end(), ids.begin(), ids.end());
  StepPlan plan;
  plan.entries.push_back({.sequence = 1, .slot = 0, .length = length_, .prompt_tokens = 0, .ids = known_});
  plan.rows.push_back(
      {1,
       {.slot = 0, .q_len = count, .kind = RowKind::prefill, .logits = logit_rows, .adapter = -1},
       pages_});
  plan.tokens = count;
  plan.logit_rows = logit_rows;
  const BatchView batch =
      builder_->build(*backend_.device, plan, [](SequenceId) { return SampleParams{}; }, nullptr);
  backend_.ops->begin_step(batch, state_);
  const MatrixView logits = logits_.first_rows(logit_rows);
  decoder_->forward(*backend_.ops, batch, {&kv_, 1}, activations_.cut(count, logit_rows), logits);
  std::vector<float> out(static_cast<size_t>(int64_t{logit_rows} * vocab()));
  backend_.device->download(out.data(), logits.data, static_cast<int64_t>(out.size() * sizeof(float)));
  backend_.device->wait(backend_.device->record());
  length_ += count;
  return out;
}

std::vector<float> DecoderProbe::feed(std::span<const int32_t> ids) {
  std::vector<float> all;
  for (size_t at = 0; at < ids.size(); at += static_cast<size_t>(options_.max_tokens)) {
    const auto part = ids.subspan(at, std::min(ids.size() - at, static_cast<size_t>(options_.max_tokens)));
    const std::vector<float> logits = run(part, static_cast<int32_t>(part.size()));
    all.insert(all.end(), logits.begin(), logits.end());
  }
  return all;
}

std::vector<float> DecoderProbe::feed_last(std::span<const int32_t> ids) {
  while (ids.size() > static_cast<size_t>(options_.max_tokens)) {
    run(ids.first(static_cast<size_t>(options_.max_tokens)), 0);
    ids = ids.subspan(static_cast<size_t>(options_.max_tokens));
  }
  return run(ids, 1);
}

int32_t arg_max(std::span<const float> logits) {
  return static_cast<int32_t>(std::ranges::max_element(logits) - logits.begin());
}

std::vector<double> token_nll(DecoderProbe& probe, std::span<const int32_t> ids) {
  constexpr size_t kPart = 128;
  const auto vocab = static_cast<size_t>(probe.vocab());
  std::vector<double> nll;
  probe.reset();
  for (size_t at = 0; at < ids.size(); at += kPart) {
    const std::vector<float> logits = probe.feed(ids.subspan(at, std::min(kPart, ids.size() - at)));
    for (size_t i = 0; i * vocab < logits.size() && at + i + 1 < ids.size(); ++i) {
      const std::span<const float> row(logits.data() + i * vocab, vocab);
      const double largest = static_cast<double>(row[static_cast<size_t>(arg_max(row))]);
      double total = 0;
      for (const float x : row) total += std::exp(static_cast<double>(x) - largest);
      nll.push_back(largest + std::log(total) -
                    static_cast<double>(row[static_cast<size_t>(ids[at + i + 1])]));
    }
  }
  return nll;
}

double perplexity(std::span<const double> nll) {
  return std::exp(std::accumulate(nll.begin(), nll.end(), 0.0) / static_cast<double>(nll.size()));
}

}  // namespace inferd::test
