#include "ops/ops.h"

#include "base/arithmetic.h"
#include "base/check.h"
#include "base/strings.h"

namespace inferd {

Status check_groups(std::span<const RowGroup> groups) {
  for (const RowGroup& group : groups) {
    const int32_t block = dtype_info(group.dtype).block_elements;
    if (group.cols % block != 0) {
      return Error{.code = Code::model_tensor_type,
                   .detail = cat(group.name, ": rows of ", group.cols, " elements; ", dtype_name(group.dtype),
                                 " needs a multiple of ", block)};
    }
    if (!group.scales.values.empty()) {
      const BlockScales& scales = group.scales;
      INFERD_CHECK(group.dtype == DType::f8_e4m3 && scales.block_rows > 0 && scales.block_cols > 0,
                   group.name);
      const int64_t blocks =
          ceil_div(group.rows, scales.block_rows) * ceil_div(group.cols, scales.block_cols);
      if (std::ssize(scales.values) != blocks) {
        return Error{.code = Code::model_tensor_shape,
                     .detail = cat(group.name, ": (", group.rows, ", ", group.cols, ") with ",
                                   scales.values.size(), " scales for blocks of (", scales.block_rows, ", ",
                                   scales.block_cols, "), needed are ", blocks)};
      }
    }
    INFERD_CHECK(group.cols == groups.front().cols, group.name, " has ", group.cols, " cols, not ",
                 groups.front().cols);
  }
  return {};
}

void Ops::reduce(MatrixView) {}

void Ops::add_rmsnorm(MatrixView y, MatrixView x, ConstMatrixView h, const float* weight, float eps) {
  add(x, h);
  rmsnorm(y, x, weight, eps);
}

void Ops::rope_store_kv(MatrixView qkv, const KvView& kv, const BatchView& b, int32_t group, int32_t layer,
                        const RopeView& rope_table, const AttentionShape& shape) {
  rope(qkv, b, rope_table, shape);
  store_kv(kv, qkv, b, group, layer, shape);
}

}  // namespace inferd
