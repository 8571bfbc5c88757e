// attention(): which worker takes which queries and segments.
//
// The queries of one row and KV head, tokens times the heads that share it, are cut into slices. A slice
// walks its segments in order and merges as it goes; where slices are too few for the workers (decode over
// long contexts), its segments are computed apart and merged afterwards. Both ways give the same bits: a
// segment's result does not depend on who computed it, and the merge is the same fold. With a window a slice
// begins at the segment of the first position that its first query sees.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/arithmetic.h"
#include "cpu/cpu_ops.h"

namespace inferd::cpu {
namespace {

// Multiplications below which waking the other workers costs more than it saves.
constexpr int64_t kAloneProducts = 1 << 17;

// Stored heads of the positions of one segment.
struct SegmentPages {
  const uint8_t* k[kSegment];
  const uint8_t* v[kSegment];
  float k_scale[kSegment];
  float v_scale[kSegment];
};

// Of positions first … first + tokens − 1. The first `unseen` of them stand in for positions that no query
// sees, whose pages may be gone: they repeat the one after them.
void find_pages(SegmentPages& out, const KvView& kv, const int32_t* table, int32_t layer, int32_t head,
                int32_t first, int32_t unseen, int32_t tokens) {
  const KvLayout& layout = kv.layout;
  const bool scaled = layout.dtype == KvDType::q8_0;
  const int64_t token_bytes = scaled ? layout.head_dim : layout.head_bytes() / layout.page_tokens;
  for (int32_t t = unseen; t < tokens;) {
    const int32_t position = first + t;
    const int32_t offset = position % layout.page_tokens;
    const int32_t run = std::min(tokens - t, layout.page_tokens - offset);
    const int32_t page = table[position / layout.page_tokens];
    const auto* k = reinterpret_cast<const uint8_t*>(kv.k(layer, page, head));
    const auto* v = reinterpret_cast<const uint8_t*>(kv.v(layer, page, head));
    for (int32_t i = 0; i < run; ++i) {
      out.k[t + i] = k + (offset + i) * token_bytes;
      out.v[t + i] = v + (offset + i) * token_bytes;
    }
    if (scaled) {
      const int64_t scales = int64_t{layout.page_tokens} * layout.head_dim + int64_t{offset} * 4;
      std::memcpy(out.k_scale + t, k + scales, static_cast<size_t>(run) * 4);
      std::memcpy(out.v_scale + t, v + scales, static_cast<size_t>(run) * 4);
    }
    t += run;
  }
  std::fill_n(out.k, unseen, out.k[unseen]);
  std::fill_n(out.v, unseen, out.v[unseen]);
  if (scaled) {
    std::fill_n(out.k_scale, unseen, out.k_scale[unseen]);
    std::fill_n(out.v_scale, unseen, out.v_scale[unseen]);
    // the last vector of sixteen is read whole
    const int32_t whole = static_cast<int32_t>(round_up(tokens, 16));
    std::fill(out.k_scale + tokens, out.k_scale + whole, 0.0f);
    std::fill(out.v_scale + tokens, out.v_scale + whole, 0.0f);
  }
}

}  // namespace

// One call of attention(), and how its work is numbered.
struct CpuOps::AttentionCall {
  MatrixView out;
  ConstMatrixView qkv;
  const KvView& kv;
  const BatchView& b;
  int32_t group;
  int32_t layer;
  const AttentionShape& shape;

  int32_t heads_per_kv() const { return shape.heads / shape.kv_heads; }
  // At most so many segments hold what one slice of the row sees.
  int32_t segments_of(int32_t row) const {
    const auto all = static_cast<int32_t>(ceil_div(b.kv_lens[row], kSegment));
    return shape.window == 0 ? all : std::min(all, (shape.window + kSliceQueries) / kSegment + 2);
  }
  int64_t slices_of(int32_t row) const {
    return ceil_div(int64_t{b.row[row].q_len} * heads_per_kv(), kSliceQueries);
  }
};

// Up to kSliceQueries queries of one row and KV head. Query i is token first / heads_per_kv + … of the row.
struct CpuOps::AttentionSlice {
  int32_t row;
  int32_t kv_head;
  int64_t first;  // query number within row and KV head: token · heads_per_kv + head
  int32_t count;
  int32_t begin_segment;  // of the first position that its first query sees
  int32_t end_segment;    // behind the one of its last query's position
};

CpuOps::AttentionSlice CpuOps::slice_of(const AttentionCall& call, int64_t index) {
  int32_t row = 0;
  for (int64_t here = call.slices_of(row) * call.shape.kv_heads; index >= here;
       here = call.slices_of(++row) * call.shape.kv_heads) {
    index -= here;
  }
  const int64_t slices = call.slices_of(row);
  const int64_t queries = int64_t{call.b.row[row].q_len} * call.heads_per_kv();
  const int64_t first = index % slices * kSliceQueries;
  const auto count = static_cast<int32_t>(std::min<int64_t>(kSliceQueries, queries - first));
  const int64_t first_token = call.b.cu_seqlens_q[row] + first / call.heads_per_kv();
  const int64_t last_token = call.b.cu_seqlens_q[row] + (first + count - 1) / call.heads_per_kv();
  return {row,
          static_cast<int32_t>(index / slices),
          first,
          count,
          call.shape.first_seen(call.b.positions[first_token]) / kSegment,
          call.b.positions[last_token] / kSegment + 1};
}

// Lays the slice's queries out for the kernel.
void CpuOps::load_queries(float* queries, const AttentionCall& call, const AttentionSlice& slice) {
  const float* q[kSliceQueries];
  for (int32_t i = 0; i < slice.count; ++i) {
    const int64_t query = slice.first + i;
    const int64_t token = call.b.cu_seqlens_q[slice.row] + query / call.heads_per_kv();
    const int64_t head = int64_t{slice.kv_head} * call.heads_per_kv() + query % call.heads_per_kv();
    q[i] = call.qkv.row_f32(token) + head * call.shape.head_dim;
  }
  kernels_.prepare_queries(queries, q, slice.count, call.shape.head_dim, call.shape.scale);
}

void CpuOps::run_segment(const Scratch::Partial& out, const AttentionCall& call, const AttentionSlice& slice,
                         int32_t segment, int worker) {
  const Scratch::Worker& scratch = scratch_.workers[static_cast<size_t>(worker)];
  int32_t first = segment * kSegment;
  int32_t hidden[kSliceQueries];
  int32_t visible[kSliceQueries];
  for (int32_t i = 0; i < slice.count; ++i) {
    const int64_t token = call.b.cu_seqlens_q[slice.row] + (slice.first + i) / call.heads_per_kv();
    const int32_t position = call.b.positions[token];
    hidden[i] = std::clamp(call.shape.first_seen(position) - first, 0, kSegment);
    visible[i] = std::clamp(position + 1 - first, 0, kSegment);
  }
  // What no query sees is left out, but for what its vector of sixteen has: sums have a lane per position.
  const int32_t unseen = hidden[0] % 16;
  const int32_t skipped = hidden[0] - unseen;
  first += skipped;
  for (int32_t i = 0; skipped > 0 && i < slice.count; ++i) {
    hidden[i] -= skipped;
    visible[i] -= skipped;
  }
  const int32_t tokens = visible[slice.count - 1];
  SegmentPages pages;
  const int32_t* table = call.b.block_table[call.group] + int64_t{slice.row} * call.b.max_blocks[call.group];
  find_pages(pages, call.kv, table, call.layer, slice.kv_head, first, unseen, tokens);
  const bool scaled = call.kv.layout.dtype == KvDType::q8_0;
  kernels_.attention_segment({.queries = scratch.queries,
                              .query_count = slice.count,
                              .head_dim = call.shape.head_dim,
                              .hidden = call.shape.window == 0 ? nullptr : hidden,
                              .visible = visible,
                              .tokens = tokens,
                              .softcap = call.shape.softcap,
                              .kind = static_cast<KvKind>(call.kv.layout.dtype),
                              .k = pages.k,
                              .v = pages.v,
                              .k_scale = scaled ? pages.k_scale : nullptr,
                              .v_scale = scaled ? pages.v_scale : nullptr,
                              .expanded = scratch.expanded,
                              .scores = scratch.scores,
                              .largest = out.largest,
                              .sum = out.sum,
                              .acc = out.acc});
}

// Adds one segment's results to the running ones.
void CpuOps::merge(const Scratch::Partial& running, const Scratch::Partial& segment, int32_t count,
                   int32_t head_dim) {
  const int64_t width = round_up(head_dim, 16);
  for (int32_t i = 0; i < count; ++i) {
    if (segment.sum[i] == 0 && segment.largest[i] == -INFINITY)
      continue;  // the query sees nothing of this segment
    kernels_.merge_segment(&running.largest[i], &running.sum[i], running.acc + i * width, segment.largest[i],
                           segment.sum[i], segment.acc + i * width, head_dim);
  }
}

void CpuOps::clear(const Scratch::Partial& partial, int32_t count, int32_t head_dim) {
  std::fill_n(partial.largest, count, -INFINITY);
  std::fill_n(partial.sum, count, 0.0f);
  std::fill_n(partial.acc, count * round_up(head_dim, 16), 0.0f);
}

void CpuOps::write_out(const AttentionCall& call, const AttentionSlice& slice, const Scratch::Partial& done) {
  const int64_t width = round_up(call.shape.head_dim, 16);
  for (int32_t i = 0; i < slice.count; ++i) {
    const int64_t query = slice.first + i;
    const int64_t token = call.b.cu_seqlens_q[slice.row] + query / call.heads_per_kv();
    const int64_t head = int64_t{slice.kv_head} * call.heads_per_kv() + query % call.heads_per_kv();
    kernels_.finish_query(call.out.row_f32(token) + head * call.shape.head_dim, done.acc + i * width,
                          done.sum[i], call.shape.head_dim);
  }
}

void CpuOps::attention(MatrixView out, ConstMatrixView qkv, const KvView& kv, const BatchView& b,
                       int32_t group, int32_t layer, const AttentionShape& shape) {
  INFERD_CHECK(qkv.cols == shape.qkv_width() && out.cols == int64_t{shape.heads} * shape.head_dim &&
                   out.rows == qkv.rows,
               "attention (", out.rows, ", ", out.cols, ") of (", qkv.rows, ", ", qkv.cols, ")");
  INFERD_CHECK(shape.head_dim == kv.layout.head_dim && shape.head_dim <= limits_.head_dim &&
                   shape.heads % shape.kv_heads == 0 && shape.kv_heads == kv.layout.kv_heads,
               "heads of ", shape.head_dim, ", ", shape.heads, " over ", shape.kv_heads);
  const AttentionCall call{out, qkv, kv, b, group, layer, shape};
  int64_t slices = 0;
  int64_t products = 0;
  int32_t most_segments = 0;
  for (int32_t r = 0; r < b.rows; ++r) {
    if (b.row[r].q_len == 0) continue;
    slices += call.slices_of(r) * shape.kv_heads;
    const int32_t seen = shape.window == 0 ? b.kv_lens[r] : std::min(b.kv_lens[r], shape.window);
    products += int64_t{b.row[r].q_len} * seen * shape.heads * shape.head_dim;
    most_segments = std::max(most_segments, call.segments_of(r));
  }
  const bool alone = products < kAloneProducts;

  if (alone || pool_.size() == 1 || most_segments <= 1 || slices * most_segments > scratch_.partial_count ||
      slices >= Scratch::kSlicesAWorker * pool_.size()) {
    for_each(slices, alone, [&](int worker, int64_t item) {
      const AttentionSlice slice =
          slice_of(call, slices - 1 - item);  // later ones see more: the long ones first
      const Scratch::Worker& scratch = scratch_.workers[static_cast<size_t>(worker)];
      load_queries(scratch.queries, call, slice);
      clear(scratch.running, slice.count, shape.head_dim);
      for (int32_t segment = slice.begin_segment; segment < slice.end_segment; ++segment) {
        run_segment(scratch.segment, call, slice, segment, worker);
        merge(scratch.running, scratch.segment, slice.count, shape.head_dim);
      }
      write_out(call, slice, scratch.running);
    });
    return;
  }

  for_each(slices * most_segments, false, [&](int worker, int64_t item) {
    const AttentionSlice slice = slice_of(call, item / most_segments);
    const auto segment = slice.begin_segment + static_cast<int32_t>(item % most_segments);
    if (segment >= slice.end_segment) return;
    load_queries(scratch_.workers[static_cast<size_t>(worker)].queries, call, slice);
    run_segment(scratch_.partial(item), call, slice, segment, worker);
  });
  for_each(slices, true, [&](int worker, int64_t item) {
    const AttentionSlice slice = slice_of(call, item);
    const Scratch::Worker& scratch = scratch_.workers[static_cast<size_t>(worker)];
    clear(scratch.running, slice.count, shape.head_dim);
    for (int32_t part = 0; part < slice.end_segment - slice.begin_segment; ++part) {
      merge(scratch.running, scratch_.partial(item * most_segments + part), slice.count, shape.head_dim);
    }
    write_out(call, slice, scratch.running);
  });
}

}  // namespace inferd::cpu
