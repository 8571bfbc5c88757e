// What each kernel file of one instruction set level adds to that level's table.
#pragma once

#include "cpu/kernels.h"
#include "cpu/kernels/simd.h"

namespace inferd::cpu::INFERD_ISA_NAMESPACE {

void add_quant_kernels(Kernels& kernels);
void add_float_kernels(Kernels& kernels);
void add_quantise_kernels(Kernels& kernels);
void add_row_kernels(Kernels& kernels);
void add_attention_kernels(Kernels& kernels);
void add_sample_kernels(Kernels& kernels);

}  // namespace inferd::cpu::INFERD_ISA_NAMESPACE
