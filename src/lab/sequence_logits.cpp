#include "lab/sequence_logits.h"

#include <numeric>

namespace inferd {

Result<std::unique_ptr<SequenceLogits>> SequenceLogits::load(Backend backend, const GgufFile& file,
                                                             const DecoderConfig& config,
                                                             const Options& options,
                                                             const Decoder::Progress& progress) {
  std::unique_ptr<SequenceLogits> self(new SequenceLogits(std::move(backend), options));
  Device& device = *self->backend_.device;
  Ops& ops = *self->backend_.ops;
  INFERD_TRY(self->decoder_, Decoder::load(file, config, options.ctx, device, ops, progress));
  INFERD_TRY_STATUS(
      ops.reserve(Decoder::ops_limits(config, 1, options.step_tokens, options.step_tokens, options.ctx)));

  const int32_t page_tokens = device.kv_page_tokens();
  const BatchLimits limits{1, options.step_tokens, options.step_tokens, options.ctx, page_tokens};
  self->kv_.layout = Decoder::kv_layout(config, options.kv_dtype, page_tokens);
  self->kv_.pages = limits.max_blocks();
  INFERD_TRY(self->kv_buffer_, device.allocate(self->kv_.pages * self->kv_.layout.page_bytes(), "KV"));
  self->kv_.base = static_cast<std::byte*>(self->kv_buffer_.data());
  // Pages in an order of their own, so that a mix-up of page and position shows.
  self->pages_.resize(static_cast<size_t>(self->kv_.pages));
  std::iota(self->pages_.rbegin(), self->pages_.rend(), 0);

  const auto place = [&](Arena& arena, Arena& host) {
    self->activations_ = Activations::place(arena, config, options.step_tokens, options.step_tokens);
    self->logits_ = matrix_f32(arena.take<float>(int64_t{options.step_tokens} * config.vocab),
                               options.step_tokens, config.vocab);
    SeqState& state = self->state_;
    state.slots = 1;
    state.ctx = options.ctx;
    state.ids = arena.take<int32_t>(options.ctx);
    state.known = arena.take<int32_t>(1);
    state.length = arena.take<int32_t>(1);
    state.prompt_tokens = arena.take<int32_t>(1);
    state.stopped = arena.take<int32_t>(1);
    state.params = arena.take<SampleParams>(1);
    self->builder_ = std::make_unique<BatchBuilder>(limits, arena, host);
  };
  Arena sizes;
  Arena host_sizes;
  place(sizes, host_sizes);
  INFERD_TRY(self->buffer_, device.allocate(sizes.used(), "activations"));
  self->host_.resize(static_cast<size_t>(host_sizes.used()));
  Arena arena(self->buffer_);
  const Buffer host_view(self->host_.data(), host_sizes.used(), [](void*, int64_t) {});
  Arena host(host_view);
  place(arena, host);
  return self;
}

std::span<const float> SequenceLogits::feed(std::span<const int32_t> ids, int32_t rows) {
  const auto count = static_cast<int32_t>(ids.size());
  INFERD_CHECK(count > 0 && count <= options_.step_tokens && rows <= count && length_ + count <= options_.ctx,
               count, " ids behind ", length_, ", ", rows, " rows");
  known_.resize(static_cast<size_t>(length_));
  known_.insert(known_.end(), ids.begin(), ids.end());
  StepPlan plan;
  plan.entries.push_back({.sequence = 1, .slot = 0, .length = length_, .prompt_tokens = 0, .ids = known_});
  plan.rows.push_back(
      {1, {.slot = 0, .q_len = count, .kind = RowKind::prefill, .logits = rows, .adapter = -1}, pages_});
  plan.tokens = count;
  plan.logit_rows = rows;
  const BatchView batch =
      builder_->build(*backend_.device, plan, [](SequenceId) { return SampleParams{}; }, nullptr);
  backend_.ops->begin_step(batch, state_);
  const MatrixView logits = logits_.first_rows(rows);
  decoder_->forward(*backend_.ops, batch, {&kv_, 1}, activations_.cut(count, rows), logits);
  out_.resize(static_cast<size_t>(int64_t{rows} * vocab()));
  backend_.device->download(out_.data(), logits.data, static_cast<int64_t>(out_.size() * sizeof(float)));
  backend_.device->wait(backend_.device->record());
  length_ += count;
  return out_;
}

}  // namespace inferd
