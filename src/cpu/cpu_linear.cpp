// linear() and the reads of packed weights. A linear is two phases: activations to 8 bits, once per form that
// the weight's groups need; then tiles of weights, handed out in chunks, each chunk against all columns of x
// or a range of them.
#include <algorithm>
#include <bit>

#include "base/arithmetic.h"
#include "cpu/cpu_ops.h"
#include "cpu/packed_weight.h"

namespace inferd::cpu {
namespace {

// A chunk of weights is what a worker takes at a time: long enough to stream, short enough that a worker that
// lost its core does not hold up the others for long.
constexpr int64_t kChunkBytes = int64_t{64} << 10;

// Multiplications below which waking the other workers costs more than it saves.
constexpr int64_t kAloneProducts = 1 << 15;

const CpuWeight& as_cpu(const PackedWeight& weight) {
  const auto* w = dynamic_cast<const CpuWeight*>(&weight);
  INFERD_CHECK(w != nullptr, "a weight that another backend packed");
  return *w;
}

// Columns cut into panels of 2^(widths − 1); the last one's width is the power of two that its columns need.
struct Panels {
  int64_t columns;
  int64_t widest;
  int64_t count;

  Panels(int64_t all, int32_t widths)
      : columns(all), widest(int64_t{1} << (widths - 1)), count(ceil_div(all, widest)) {}
  int64_t begin(int64_t panel) const { return std::min(columns, panel * widest); }
  int32_t size(int64_t panel) const { return static_cast<int32_t>(begin(panel + 1) - begin(panel)); }
  int32_t width_log2(int64_t panel) const {
    return static_cast<int32_t>(std::bit_width(static_cast<uint32_t>(size(panel)) - 1));
  }
};

// The packed form; of Q3_K it is that of Q6_K.
QuantType quant_type(DType type) {
  switch (type) {
    case DType::q4_0:
      return kQ4_0;
    case DType::q4_1:
      return kQ4_1;
    case DType::q5_0:
      return kQ5_0;
    case DType::q5_1:
      return kQ5_1;
    case DType::q8_0:
      return kQ8_0;
    case DType::q4_k:
      return kQ4_K;
    case DType::q5_k:
      return kQ5_K;
    case DType::q6_k:
    case DType::q3_k:
      return kQ6_K;
    case DType::q2_k:
      return kQ2_K;
    case DType::q8_k:
    case DType::iq4_nl:
    case DType::iq4_xs:
    case DType::mxfp4:
      return kI8;
    case DType::f32:
    case DType::f16:
    case DType::bf16:
    case DType::f8_e4m3:
      break;
  }
  INFERD_CHECK(false, dtype_name(type), " is not quantised in blocks");
}

// What a weight of that type multiplies: activations that share a scale by 32 or by 256.
bool in_blocks_of_256(DType type) {
  if (!is_quantised(type)) return false;
  const QuantType packed = quant_type(type);
  return packed == kQ4_K || packed == kQ5_K || packed == kQ6_K || packed == kQ2_K;
}
bool in_blocks_of_32(DType type) {
  return is_quantised(type) && !in_blocks_of_256(type);
}

}  // namespace

void CpuOps::quantise(const ConstMatrixView& x, bool blocks_32, bool blocks_256) {
  const Panels panels(x.rows, kernels_.panel_widths);
  for_each(panels.count, x.rows * x.cols < kAloneProducts, [&](int, int64_t panel) {
    const int64_t begin = panels.begin(panel);
    const float* rows = x.row_f32(begin);
    const int32_t size = panels.size(panel);
    const int32_t width = 1 << panels.width_log2(panel);
    if (blocks_32) {
      std::byte* records = scratch_.records_32 + begin * (x.cols / 32) * kRecord32Bytes;
      kernels_.quantise_32(records, rows, x.stride, size, width, x.cols);
    }
    if (blocks_256) {
      std::byte* records = scratch_.records_256 + begin * (x.cols / 256) * kRecord256Bytes;
      kernels_.quantise_256(records, rows, x.stride, size, width, x.cols);
    }
  });
}

void CpuOps::round_to_bf16(const ConstMatrixView& x) {
  for_each_row(x.rows, x.cols, [&](int64_t row) {
    kernels_.round_to_bf16(scratch_.bf16_pairs + row * ceil_div(x.cols, 2), x.row_f32(row), x.cols);
  });
}

void CpuOps::linear(MatrixView y, ConstMatrixView x, const PackedWeight& weight, const float* bias) {
  const CpuWeight& w = as_cpu(weight);
  INFERD_CHECK(x.cols == w.cols() && y.cols == w.rows() && y.rows == x.rows, "linear (", y.rows, ", ", y.cols,
               ") = (", x.rows, ", ", x.cols, ") · (", w.rows(), ", ", w.cols(), ")ᵀ");
  INFERD_CHECK(x.dtype == DType::f32 && y.dtype == DType::f32, "activations are F32");
  INFERD_CHECK(x.rows <= std::max(limits_.tokens, limits_.logit_rows) && x.cols <= limits_.linear_cols,
               "linear of (", x.rows, ", ", x.cols, ") is past what was reserved");
  if (x.rows == 0 || w.rows() == 0) return;

  const std::span<const CpuWeight::Tiles> groups = w.tiles();
  const auto any = [groups](bool (*is)(DType)) {
    return std::any_of(groups.begin(), groups.end(), [is](const CpuWeight::Tiles& g) { return is(g.dtype); });
  };
  const bool blocks_32 = any(in_blocks_of_32);
  const bool blocks_256 = any(in_blocks_of_256);
  if (blocks_32 || blocks_256) quantise(x, blocks_32, blocks_256);
  const bool bf16_dot =
      kernels_.linear_bf16_dot != nullptr && any([](DType type) { return type == DType::bf16; });
  if (bf16_dot) round_to_bf16(x);

  const Panels panels(x.rows, kernels_.panel_widths);
  const int64_t chunk_bytes = std::clamp<int64_t>(w.bytes() / (4 * pool_.size()), 1,
                                                  kChunkBytes);  // small weights: still a few chunks a worker
  const auto tiles_a_chunk = [chunk_bytes](const CpuWeight::Tiles& g) {
    return std::max<int64_t>(1, chunk_bytes / std::max<int64_t>(1, g.tile_bytes));
  };
  int64_t chunks = 0;
  for (const CpuWeight::Tiles& g : groups) chunks += ceil_div(g.count, tiles_a_chunk(g));
  // Where chunks are few, the columns are cut too.
  const int64_t ranges = std::clamp<int64_t>(ceil_div(2 * pool_.size(), chunks), 1, panels.count);

  for_each(chunks * ranges, w.rows() * w.cols() * x.rows < kAloneProducts, [&](int worker, int64_t item) {
    int64_t chunk = item / ranges;
    const int64_t range = item % ranges;
    const int64_t first_panel = range * panels.count / ranges;
    const int64_t last_panel = (range + 1) * panels.count / ranges;
    const auto* group = groups.data();
    for (; chunk >= ceil_div(group->count, tiles_a_chunk(*group)); ++group) {
      chunk -= ceil_div(group->count, tiles_a_chunk(*group));
    }
    const int64_t first = chunk * tiles_a_chunk(*group);
    const int64_t last = std::min(group->count, first + tiles_a_chunk(*group));

    if (!is_quantised(group->dtype)) {
      const int64_t column = panels.begin(first_panel);
      const int64_t row = group->first_row + first * kTileRows;
      FloatJob job{.tiles = group->data + first * group->tile_bytes,
                   .tile_bytes = group->tile_bytes,
                   .tile_count = last - first,
                   .cols = w.cols(),
                   .x = x.row_f32(column),
                   .x_stride = x.stride,
                   .columns = panels.begin(last_panel) - column,
                   .y = y.row_f32(column) + row,
                   .y_stride = y.stride,
                   .bias = bias == nullptr ? nullptr : bias + row,
                   .rows = std::min(group->rows, last * kTileRows) - first * kTileRows};
      if (bf16_dot && group->dtype == DType::bf16) {
        job.x = nullptr;
        job.x_stride = ceil_div(w.cols(), 2);
        job.x_pairs = scratch_.bf16_pairs + column * job.x_stride;
        return kernels_.linear_bf16_dot(job);
      }
      (group->dtype == DType::f32    ? kernels_.linear_f32
       : group->dtype == DType::f16  ? kernels_.linear_f16
       : group->dtype == DType::bf16 ? kernels_.linear_bf16
                                     : kernels_.linear_f8)(job);
      return;
    }

    const QuantKernels& kernel = kernels_.quant[quant_type(group->dtype)];
    const bool of_256 = in_blocks_of_256(group->dtype);
    const int64_t blocks = w.cols() / (of_256 ? 256 : 32);
    const std::byte* records = of_256 ? scratch_.records_256 : scratch_.records_32;
    const int64_t record_bytes = blocks * (of_256 ? kRecord256Bytes : kRecord32Bytes);
    const bool spread = kernel.spread != nullptr && last_panel - first_panel > 1;
    uint8_t* values = scratch_.workers[static_cast<size_t>(worker)].values;
    for (int64_t tile = first; tile < last; ++tile) {
      const int64_t row = group->first_row + tile * kTileRows;
      TileJob job{.tile = group->data + tile * group->tile_bytes,
                  .values = values,
                  .blocks = blocks,
                  .y_stride = y.stride,
                  .bias = bias == nullptr ? nullptr : bias + row,
                  .rows = static_cast<int32_t>(std::min<int64_t>(kTileRows, group->rows - tile * kTileRows))};
      if (spread) kernel.spread(values, job.tile, blocks);
      for (int64_t panel = first_panel; panel < last_panel; ++panel) {
        const int64_t column = panels.begin(panel);
        job.x = records + column * record_bytes;
        job.y = y.row_f32(column) + row;
        job.columns = panels.size(panel);
        (spread ? kernel.spread_panel : kernel.panel)[panels.width_log2(panel)](job);
      }
    }
  });
}

void CpuOps::gather_rows(MatrixView x, const PackedWeight& table, const int32_t* ids) {
  const CpuWeight& w = as_cpu(table);
  INFERD_CHECK(x.cols == w.cols(), "rows of ", w.cols(), " into rows of ", x.cols);
  for_each(x.rows, x.rows < 8, [&](int, int64_t i) {
    if (ids[i] >= 0) w.read_row(x.row_f32(i), ids[i]);
  });
}

Result<std::unique_ptr<PackedWeight>> CpuOps::pack(std::span<const RowGroup> groups) {
  INFERD_TRY_STATUS(check_groups(groups));
  for (const RowGroup& group : groups) {
    const BlockScales& scales = group.scales;
    if (scales.values.empty() || scales.block_cols >= group.cols || scales.block_cols % kScaleCols == 0)
      continue;
    return Error{
        .code = Code::model_tensor_type,
        .detail = cat(group.name, ": scales for blocks of ", scales.block_cols, " columns; ",
                      dtype_name(group.dtype), " needs a multiple of ", kScaleCols, ", or all ", group.cols)};
  }
  INFERD_TRY(SlabPart memory,
             slabs_.take(CpuWeight::bytes_of(groups), groups.empty() ? "weights" : groups.front().name));
  return std::unique_ptr<PackedWeight>(std::make_unique<CpuWeight>(groups, std::move(memory), pool_));
}

int64_t CpuOps::packed_bytes(std::span<const RowGroup> groups) const {
  return CpuWeight::bytes_of(groups);
}

}  // namespace inferd::cpu
