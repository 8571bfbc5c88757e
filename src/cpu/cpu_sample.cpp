// sample(): which worker draws for which rows. Rows of logits of one sequence follow each other, since what
// was drawn for one belongs to the history of the next; different sequences go side by side, or, when there
// are fewer than workers, one after another with every pass over the vocabulary cut among the workers.
#include <algorithm>

#include "base/arithmetic.h"
#include "cpu/cpu_ops.h"
#include "cpu/row_sampler.h"

namespace inferd::cpu {
namespace {

constexpr int64_t kPartTiles = 8;  // tiles of 1,024 ids that a worker takes at a time

}  // namespace

// Draws for the rows of logits begin … end, all of one sequence.
void CpuOps::sample_sequence(RowSampler& sampler, SampleResult* out, const MatrixView& logits,
                             const BatchView& b, const SeqState& state, int64_t begin, int64_t end) {
  const int32_t slot = b.row[b.token_row[b.logit_token[begin]]].slot;
  const SampleParams& params = state.params[slot];
  int32_t* ids = state.ids + int64_t{slot} * state.ctx;
  int32_t& known = state.known[slot];
  for (int64_t l = begin; l < end; ++l) {
    sampler.sample(out[l], logits.row_f32(l), params, {ids, static_cast<size_t>(known)},
                   state.prompt_tokens[slot], b.banned);
    if (out[l].status != SampleResult::ok) continue;
    INFERD_CHECK(known < state.ctx, "slot ", slot, " is full: ", known, " ids");
    ids[known++] = out[l].id;
    const auto stops = std::span(params.stop_ids).first(static_cast<size_t>(params.stop_count));
    if (std::find(stops.begin(), stops.end(), out[l].id) != stops.end()) state.stopped[slot] = 1;
  }
}

void CpuOps::sample(SampleResult* out, MatrixView logits, const BatchView& b, const SeqState& state,
                    const SampleOptions& options) {
  INFERD_CHECK(logits.cols >= options.vocab && options.vocab <= limits_.vocab && options.vocab > 0,
               "vocabulary of ", options.vocab, ", logits of ", logits.cols);
  INFERD_CHECK(logits.rows <= limits_.logit_rows, logits.rows, " rows of logits, ", limits_.logit_rows,
               " reserved");
  // Sequences: runs of logit rows of the same row of the batch.
  const auto row_of = [&b](int64_t l) { return b.token_row[b.logit_token[l]]; };
  const auto end_of = [&](int64_t l) {
    int64_t end = l;
    while (end < logits.rows && b.logit_token[end] >= 0 && row_of(end) == row_of(l)) ++end;
    return end;
  };
  const auto starts_here = [&](int64_t l) {
    return b.logit_token[l] >= 0 && (l == 0 || b.logit_token[l - 1] < 0 || row_of(l - 1) != row_of(l));
  };
  int64_t sequences = 0;
  for (int64_t l = 0; l < logits.rows; ++l) sequences += starts_here(l) ? 1 : 0;

  if (sequences >= pool_.size()) {
    const auto whole = [](int64_t count, FunctionRef<void(int64_t, int64_t)> body) { body(0, count); };
    for_each(logits.rows, false, [&](int worker, int64_t l) {
      if (!starts_here(l)) return;
      RowSampler sampler(kernels_, scratch_.samplers[static_cast<size_t>(worker)], whole, options.vocab);
      sample_sequence(sampler, out, logits, b, state, l, end_of(l));
    });
  } else {
    const auto cut = [this](int64_t count, FunctionRef<void(int64_t, int64_t)> body) {
      for_each(ceil_div(count, kPartTiles), count <= 2 * kPartTiles,
               [&](int, int64_t part) { body(part * kPartTiles, std::min(count, (part + 1) * kPartTiles)); });
    };
    for (int64_t l = 0; l < logits.rows; ++l) {
      if (!starts_here(l)) continue;
      RowSampler sampler(kernels_, scratch_.samplers.front(), cut, options.vocab);
      sample_sequence(sampler, out, logits, b, state, l, end_of(l));
    }
  }
  for (int32_t r = 0; r < b.rows; ++r) {
    if (b.row[r].slot >= 0) state.length[b.row[r].slot] += b.row[r].q_len;
  }
}

}  // namespace inferd::cpu
