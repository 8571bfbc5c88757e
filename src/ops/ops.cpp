#include "ops/ops.h"

namespace inferd {

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
