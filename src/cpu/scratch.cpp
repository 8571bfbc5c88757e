#include "cpu/scratch.h"

#include <algorithm>

namespace inferd::cpu {

void Scratch::place(Arena& arena, const OpsLimits& limits, int threads, bool bf16_dot) {
  // A last panel may be up to twice as wide as its columns.
  const int64_t columns =
      round_up(std::max(limits.tokens, limits.logit_rows), int64_t{1} << (kPanelWidths - 1));
  records_32 = arena.take<std::byte>(columns * ceil_div(limits.linear_cols, 32) * kRecord32Bytes);
  records_256 = arena.take<std::byte>(columns * ceil_div(limits.linear_cols, 256) * kRecord256Bytes);
  if (bf16_dot) bf16_pairs = arena.take<uint32_t>(columns * ceil_div(limits.linear_cols, 2));

  const int64_t head_width = round_up(limits.head_dim, 16);
  partial_floats = kSliceQueries * (2 + head_width);
  const auto take_partial = [&] {
    float* floats = arena.take<float>(partial_floats);
    return floats == nullptr ? Partial() : cut(floats);
  };
  workers.resize(static_cast<size_t>(threads));
  for (Worker& worker : workers) {
    worker.values = arena.take<uint8_t>(kTileRows * round_up(limits.linear_cols, 256));
    worker.queries = arena.take<float>(kSliceQueries * head_width);
    worker.expanded = arena.take<float>(kKvTokens * head_width);
    worker.scores = arena.take<float>(kSliceQueries * kSegment);
    worker.running = take_partial();
    worker.segment = take_partial();
  }
  partial_count = threads > 1 ? kSlicesAWorker * threads * ceil_div(limits.ctx, kSegment) : 0;
  partials = arena.take<float>(partial_count * partial_floats);

  samplers.resize(static_cast<size_t>(std::min(threads, limits.logit_rows)));
  for (Sampler& sampler : samplers) {
    sampler.x = arena.take<float>(limits.vocab);
    sampler.p = arena.take<float>(limits.vocab);
    sampler.counts = arena.take<int32_t>(limits.vocab);
    sampler.ids = arena.take<int32_t>(limits.vocab);
    sampler.candidates = arena.take<Candidate>(limits.vocab);
    sampler.sorted = arena.take<Candidate>(limits.vocab);
    sampler.block_largest = arena.take<float>(ceil_div(limits.vocab, 64));
    sampler.tile_sums = arena.take<double>(ceil_div(limits.vocab, 1024));
  }
}

}  // namespace inferd::cpu
