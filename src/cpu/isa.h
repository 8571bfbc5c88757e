// Instruction set levels of the CPU backend, and which of them this machine can run.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace inferd {

enum class IsaLevel : int32_t {
  portable,     // plain C++ for the compiler's baseline
  avx2,         // AVX2, FMA, F16C
  avx512,       // AVX-512 F, BW, DQ, VL and VNNI
  avx512_bf16,  // and BF16
};

std::string_view isa_name(IsaLevel level);
std::optional<IsaLevel> parse_isa(std::string_view name);

struct CpuFeatures {
  bool avx2 = false;
  bool avx512 = false;
  bool avx512_bf16 = false;
};

// What the processor has and the operating system saves (CPUID leaves 1 and 7, XGETBV; Intel SDM volume 1,
// chapter 13).
CpuFeatures cpu_features();

// The levels this machine can run, the plainest first.
std::vector<IsaLevel> available_isa_levels();

// The one to use when none is asked for: the highest but for avx512_bf16, whose products were no faster than
// fma where they were measured and whose bytes are no other chip's (docs/decisions.md).
IsaLevel default_isa_level();

// E-CPU-001 when `wanted` is not among them; names those that are.
Status check_isa(IsaLevel wanted, std::span<const IsaLevel> available);

}  // namespace inferd
