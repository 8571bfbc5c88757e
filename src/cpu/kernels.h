// The border between the code compiled for the baseline and the kernels compiled for one instruction set
// level each: a table of function pointers per level, over raw pointers and plain structs. What each function
// computes is said here; that all levels give the same bits is tested.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/tile_layout.h"

namespace inferd::cpu {

// One tile of quantised weights times one panel of activations: y[c][0 … rows) = tile · x[c] + bias.
struct TileJob {
  const uint8_t* tile = nullptr;  // packed
  const uint8_t* values =
      nullptr;  // the tile's quants spread to a byte each by `spread`; only for `spread_panel`
  int64_t blocks = 0;
  const void* x = nullptr;  // records of the panel
  float* y = nullptr;       // column c at y + c · y_stride
  int64_t y_stride = 0;
  const float* bias = nullptr;  // of these rows; may be null
  int32_t columns = 1;          // of the panel that exist
  int32_t rows = kTileRows;     // rows that exist
};

struct QuantKernels {
  // panel[i]: a panel of 2^i columns. Weights are unpacked in registers, so the packed tile is read once.
  void (*panel[kPanelWidths])(const TileJob& job) = {};
  // The same over `values`; null where the packed form is the spread form. Same bits as panel.
  void (*spread_panel[kPanelWidths])(const TileJob& job) = {};
  // values = the tile's quants, one byte each, in the order in which the kernel walks them.
  void (*spread)(uint8_t* values, const uint8_t* tile, int64_t blocks) = nullptr;
};

enum QuantType { kQ4_0, kQ4_1, kQ5_0, kQ5_1, kQ8_0, kI8, kQ4_K, kQ5_K, kQ6_K, kQ2_K, kQuantTypes };

// Consecutive tiles of float weights times rows of x.
struct FloatJob {
  const uint8_t* tiles = nullptr;
  int64_t tile_bytes = 0;
  int64_t tile_count = 0;
  int64_t cols = 0;
  const float* x = nullptr;           // (columns, cols)
  const uint32_t* x_pairs = nullptr;  // linear_bf16_dot: instead of x, (columns, cols / 2 rounded up)
  int64_t x_stride = 0;               // of the one that is there
  int64_t columns = 0;
  float* y = nullptr;
  int64_t y_stride = 0;
  const float* bias = nullptr;
  int64_t rows = 0;  // rows that exist, of all the tiles
};

// ---- Attention ----

// As kv_view.h's KvDType; a copy, because that header's functions may not be compiled at a higher level.
enum class KvKind : int32_t { f32, f16, bf16, q8_0 };

inline constexpr int kSegment = 256;  // KV positions whose scores share one maximum, counted from position 0
inline constexpr int kSliceQueries = 32;  // queries of one KV head that go through a segment together
inline constexpr int kKvTokens = 64;      // positions whose K or V lie expanded at a time

// Attention of up to kSliceQueries queries, all of one KV head, over positions of one segment, the first of
// which is a multiple of 16. Query i sees positions hidden[i] … visible[i] − 1 of them; neither falls from
// one query to the next, and the last one's `visible` is `tokens`.
struct SegmentJob {
  const float* queries = nullptr;  // from prepare_queries
  int32_t query_count = 0;
  int32_t head_dim = 0;
  const int32_t* hidden = nullptr;   // (query_count); null: 0 of each
  const int32_t* visible = nullptr;  // (query_count)
  int32_t tokens = 0;                // 1 … kSegment
  float softcap = 0;                 // scores become softcap · tanh(score / softcap); 0: they stay
  KvKind kind = KvKind::f32;
  const uint8_t* const* k = nullptr;  // (tokens) the stored head of each position
  const uint8_t* const* v = nullptr;
  const float* k_scale = nullptr;  // (tokens) q8_0 only
  const float* v_scale = nullptr;
  float* expanded = nullptr;  // scratch: kKvTokens · padded head_dim
  float* scores = nullptr;    // scratch: query_count · kSegment
  // Out, per query: the largest score, the sum of exp(score − largest), and those weights times V; head_dim
  // filled up with zeros to a multiple of 16. A query that sees nothing gets −infinity, 0, 0.
  float* largest = nullptr;  // (query_count)
  float* sum = nullptr;      // (query_count)
  float* acc = nullptr;      // (query_count, padded head_dim)
};

struct Kernels {
  int32_t panel_widths = 1;  // of QuantKernels: panels of 1 … 2^(panel_widths − 1) columns
  QuantKernels quant[kQuantTypes];

  // Writes the records of one panel of `width` columns: `columns` rows of x at x + c · x_stride, `cols` long,
  // and zeros for the columns after them.
  void (*quantise_32)(void* records, const float* x, int64_t x_stride, int32_t columns, int32_t width,
                      int64_t cols) = nullptr;
  void (*quantise_256)(void* records, const float* x, int64_t x_stride, int32_t columns, int32_t width,
                       int64_t cols) = nullptr;

  void (*linear_f32)(const FloatJob& job) = nullptr;
  void (*linear_f16)(const FloatJob& job) = nullptr;
  void (*linear_bf16)(const FloatJob& job) = nullptr;
  void (*linear_f8)(const FloatJob& job) = nullptr;
  // The same by bf16 dot products, and x rounded for it: n floats to bf16, ties to even, in pairs of
  // neighbours, the last one filled up with zero. Null where the level has no such instruction.
  void (*linear_bf16_dot)(const FloatJob& job) = nullptr;
  void (*round_to_bf16)(uint32_t* pairs, const float* x, int64_t n) = nullptr;

  // ---- Rows of activations, n elements; verbs as ops.h defines them ----
  void (*rmsnorm)(float* y, const float* x, const float* weight, float eps, int64_t n) = nullptr;
  void (*add_rmsnorm)(float* y, float* x, const float* h, const float* weight, float eps,
                      int64_t n) = nullptr;
  void (*add)(float* x, const float* h, int64_t n) = nullptr;
  void (*silu_mul)(float* y, const float* gate, const float* up, int64_t n) = nullptr;
  void (*gelu_mul)(float* y, const float* gate, const float* up, int64_t n) = nullptr;
  void (*scale)(float* x, float factor, int64_t n) = nullptr;
  void (*softcap)(float* x, float cap, int64_t n) = nullptr;
  // Rotates `heads` heads that lie one after another at x.
  void (*rope)(float* x, int32_t heads, int32_t head_dim, const float* cos_sin, int32_t pairs,
               bool neighbours) = nullptr;
  // One head of one position as the pool stores it; *scale is written for q8_0 only.
  void (*store_kv)(uint8_t* values, float* scale, const float* x, int32_t n, KvKind kind) = nullptr;

  // ---- Attention ----
  // out = query i's head at q[i], times `scale`, laid out as SegmentJob wants it.
  void (*prepare_queries)(float* out, const float* const* q, int32_t count, int32_t head_dim,
                          float scale) = nullptr;
  void (*attention_segment)(const SegmentJob& job) = nullptr;
  // Adds a segment's (largest, sum, acc) to a query's running ones, which may be (−infinity, 0, …) at first.
  void (*merge_segment)(float* largest, float* sum, float* acc, float segment_largest, float segment_sum,
                        const float* segment_acc, int32_t head_dim) = nullptr;
  // out = acc / sum
  void (*finish_query)(float* out, const float* acc, float sum, int32_t head_dim) = nullptr;

  // ---- Sampling, over n logits ----
  // *largest = the largest; returns whether one is NaN or +infinity (then *largest means nothing).
  bool (*scan_logits)(float* largest, const float* x, int64_t n) = nullptr;
  // The index of the first element that equals `value`, −1 if none does.
  int64_t (*find_value)(const float* x, int64_t n, float value) = nullptr;
  void (*divide)(float* x, int64_t n, float divisor) = nullptr;
  // p = exp(x − largest), 0 where that is under `least`.
  void (*exponentials)(float* p, const float* x, int64_t n, float largest, float least) = nullptr;
  // out[i] = the largest of x[64·i … 64·i + 63].
  void (*block_largest)(float* out, const float* x, int64_t n) = nullptr;
  // ids = first + the indices of the elements ≥ threshold, ascending; returns how many. Room for n.
  int64_t (*collect)(int32_t* ids, const float* x, int64_t n, int32_t first, float threshold) = nullptr;
};

const Kernels& portable_kernels();
#if defined(__x86_64__)
const Kernels& avx2_kernels();
const Kernels& avx512_kernels();
const Kernels& avx512_bf16_kernels();
#endif

}  // namespace inferd::cpu
