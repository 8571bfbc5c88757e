#include "ops/ops.h"

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
