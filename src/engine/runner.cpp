#include "engine/runner.h"

#include <algorithm>

namespace inferd {

BatchLimits Runner::limits(const RunnerOptions& options, int32_t page_tokens) {
  return {.rows = options.max_seqs,
          .tokens = options.prefill_chunk + options.max_seqs,
          .logit_rows = options.max_seqs,
          .ctx = options.ctx,
          .page_tokens = page_tokens};
}

Runner::Sizes Runner::place(Parts& parts, const DecoderConfig& config, const RunnerOptions& options,
                            const Device& device, Arena& activation_arena, Arena& state_arena,
                            Arena& host_arena) {
  const BatchLimits batch = limits(options, device.kv_page_tokens());
  parts.activations = Activations::place(activation_arena, config, batch.tokens, batch.logit_rows);
  parts.logits = matrix_f32(activation_arena.take<float>(int64_t{batch.logit_rows} * config.vocab),
                            batch.logit_rows, config.vocab);

  const int64_t slots = options.max_seqs;
  parts.state.slots = options.max_seqs;
  parts.state.ctx = options.ctx;
  parts.state.ids = state_arena.take<int32_t>(slots * options.ctx);
  parts.state.known = state_arena.take<int32_t>(slots);
  parts.state.length = state_arena.take<int32_t>(slots);
  parts.state.prompt_tokens = state_arena.take<int32_t>(slots);
  parts.state.stopped = state_arena.take<int32_t>(slots);
  parts.state.params = state_arena.take<SampleParams>(slots);
  parts.banned = state_arena.take<uint32_t>(ceil_div(config.vocab, 32));
  parts.steps.resize(static_cast<size_t>(device.lag()) + 1);
  for (Step& step : parts.steps) {
    step.builder = std::make_unique<BatchBuilder>(batch, state_arena, host_arena);
    step.device_results = state_arena.take<SampleResult>(batch.logit_rows);
    step.host_results = host_arena.take<SampleResult>(batch.logit_rows);
  }
  return {activation_arena.used(), state_arena.used(), host_arena.used()};
}

RunnerBytes Runner::bytes(const DecoderConfig& config, const RunnerOptions& options, const Device& device,
                          const Ops& ops) {
  Parts parts;
  Arena activations;
  Arena state;
  Arena host;
  const Sizes sizes = place(parts, config, options, device, activations, state, host);
  const BatchLimits batch = limits(options, device.kv_page_tokens());
  const KvLayout layout = Decoder::kv_layout(config, options.kv_dtype, device.kv_page_tokens());
  return {.kv = options.kv_pages * layout.page_bytes(),
          .activations = sizes.activations,
          .scratch = ops.scratch_bytes(
              Decoder::ops_limits(config, batch.rows, batch.tokens, batch.logit_rows, options.ctx)),
          .state = sizes.state + sizes.host};
}

Result<std::unique_ptr<Runner>> Runner::create(Backend backend, std::unique_ptr<Decoder> decoder,
                                               const RunnerOptions& options,
                                               std::span<const uint32_t> banned) {
  auto runner = std::unique_ptr<Runner>(new Runner(std::move(backend), std::move(decoder), options));
  Device& device = *runner->backend_.device;
  const DecoderConfig& config = runner->decoder_->config();
  const BatchLimits batch = limits(options, device.kv_page_tokens());
  INFERD_TRY_STATUS(runner->backend_.ops->reserve(
      Decoder::ops_limits(config, batch.rows, batch.tokens, batch.logit_rows, options.ctx)));

  runner->kv_.layout = Decoder::kv_layout(config, options.kv_dtype, device.kv_page_tokens());
  runner->kv_.pages = options.kv_pages;
  INFERD_TRY(runner->kv_buffer_,
             device.allocate(options.kv_pages * runner->kv_.layout.page_bytes(), "the KV pool"));
  runner->kv_.base = static_cast<std::byte*>(runner->kv_buffer_.data());

  Arena no_activations;
  Arena no_state;
  Arena no_host;
  const Sizes sizes = place(runner->parts_, config, options, device, no_activations, no_state, no_host);
  INFERD_TRY(runner->activation_buffer_, device.allocate(sizes.activations, "activations"));
  INFERD_TRY(runner->state_buffer_, device.allocate(sizes.state, "sequence states"));
  runner->host_buffer_.resize(static_cast<size_t>(sizes.host + Arena::kAlignment));
  Arena activations(runner->activation_buffer_);
  Arena state(runner->state_buffer_);
  const auto host_address = reinterpret_cast<uintptr_t>(runner->host_buffer_.data());
  const auto host_begin =
      round_up(static_cast<int64_t>(host_address), Arena::kAlignment) - static_cast<int64_t>(host_address);
  const Buffer host_view(runner->host_buffer_.data() + host_begin, sizes.host, [](void*, int64_t) {});
  Arena host(host_view);
  place(runner->parts_, config, options, device, activations, state, host);

  std::vector<uint32_t> mask(static_cast<size_t>(ceil_div(config.vocab, 32)),
                             banned.empty() ? 0 : ~uint32_t{0});
  std::copy_n(banned.begin(), std::min(banned.size(), mask.size()), mask.begin());
  device.upload(runner->parts_.banned, mask.data(), static_cast<int64_t>(mask.size() * sizeof(uint32_t)));
  device.wait(device.record());
  return runner;
}

void Runner::launch(const StepPlan& plan, const BatchBuilder::ParamsOf& params_of) {
  INFERD_CHECK(in_flight_.size() < parts_.steps.size(), "more steps in flight than the device's lag allows");
  Device& device = *backend_.device;
  Ops& ops = *backend_.ops;
  Step& step = parts_.steps[next_step_];
  const BatchView batch = step.builder->build(device, plan, params_of, parts_.banned);
  ops.begin_step(batch, parts_.state);
  ops.copy_pages(kv_, batch, 0);
  const MatrixView logits = parts_.logits.first_rows(batch.logit_rows);
  decoder_->forward(ops, batch, {&kv_, 1}, parts_.activations.cut(batch.tokens, batch.logit_rows), logits);
  ops.sample(step.device_results, logits, batch, parts_.state, {.vocab = decoder_->config().vocab});
  device.download(step.host_results, step.device_results,
                  batch.logit_rows * static_cast<int64_t>(sizeof(SampleResult)));
  step.mark = device.record();
  step.logits_of_row.clear();
  for (const StepPlan::Row& row : plan.rows) step.logits_of_row.push_back(row.row.logits);
  in_flight_.push_back(next_step_);
  next_step_ = (next_step_ + 1) % parts_.steps.size();
}

std::vector<RowResult> Runner::collect() {
  INFERD_CHECK(!in_flight_.empty(), "no step is in flight");
  const Step& step = parts_.steps[in_flight_.front()];
  in_flight_.pop_front();
  backend_.device->wait(step.mark);
  std::vector<RowResult> results;
  const SampleResult* next = step.host_results;
  for (const int32_t logits : step.logits_of_row) {
    results.push_back({{next, static_cast<size_t>(logits)}});
    next += logits;
  }
  return results;
}

}  // namespace inferd
