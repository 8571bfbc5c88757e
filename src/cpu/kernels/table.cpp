// The table of one instruction set level. Compiled once per level.
#include "cpu/kernels/level_kernels.h"

#define INFERD_TABLE_NAME_IMPL(level) level##_kernels
#define INFERD_TABLE_NAME(level) INFERD_TABLE_NAME_IMPL(level)

namespace inferd::cpu {
namespace INFERD_ISA_NAMESPACE {
namespace {

Kernels all_kernels() {
  Kernels kernels = {};
  add_quant_kernels(kernels);
  add_float_kernels(kernels);
  add_quantise_kernels(kernels);
  add_row_kernels(kernels);
  add_attention_kernels(kernels);
  add_sample_kernels(kernels);
  return kernels;
}

}  // namespace
}  // namespace INFERD_ISA_NAMESPACE

const Kernels& INFERD_TABLE_NAME(INFERD_ISA_NAMESPACE)() {
  static const Kernels kTable = INFERD_ISA_NAMESPACE::all_kernels();
  return kTable;
}

}  // namespace inferd::cpu
