#include "cpu/isa.h"

#include <algorithm>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace inferd {
namespace {

#if defined(__x86_64__)

struct Leaf {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Leaf leaf_of(uint32_t leaf, uint32_t subleaf) {
  Leaf r;
  if (__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx) == 0) return {};
  return r;
}

bool bit(uint32_t word, int index) {
  return (word >> index & 1) != 0;
}

// XCR0: which register files the operating system saves.
uint32_t enabled_states() {
  uint32_t low = 0;
  uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

#endif

}  // namespace

std::string_view isa_name(IsaLevel level) {
  switch (level) {
    case IsaLevel::portable:
      return "portable";
    case IsaLevel::avx2:
      return "avx2";
    case IsaLevel::avx512:
      return "avx512";
    case IsaLevel::avx512_bf16:
      return "avx512_bf16";
  }
  return "?";
}

std::optional<IsaLevel> parse_isa(std::string_view name) {
  for (const IsaLevel level : {IsaLevel::portable, IsaLevel::avx2, IsaLevel::avx512, IsaLevel::avx512_bf16}) {
    if (isa_name(level) == name) return level;
  }
  return std::nullopt;
}

CpuFeatures cpu_features() {
  CpuFeatures features;
#if defined(__x86_64__)
  const Leaf basic = leaf_of(1, 0);
  const bool fma = bit(basic.ecx, 12);
  const bool osxsave = bit(basic.ecx, 27);
  const bool avx = bit(basic.ecx, 28);
  const bool f16c = bit(basic.ecx, 29);
  if (!osxsave || !avx) return features;
  const uint32_t states = enabled_states();
  constexpr uint32_t kYmm = 0x06;  // XMM and the upper halves of YMM
  constexpr uint32_t kZmm = 0xE6;  // those, mask registers, and both parts of ZMM
  const Leaf extended = leaf_of(7, 0);
  const bool bmi2 = bit(extended.ebx, 8);
  features.avx2 = (states & kYmm) == kYmm && fma && f16c && bmi2 && bit(extended.ebx, 5);
  const bool f_dq_bw_vl =
      bit(extended.ebx, 16) && bit(extended.ebx, 17) && bit(extended.ebx, 30) && bit(extended.ebx, 31);
  features.avx512 = features.avx2 && (states & kZmm) == kZmm && f_dq_bw_vl && bit(extended.ecx, 11);
  features.avx512_bf16 = features.avx512 && bit(leaf_of(7, 1).eax, 5);
#endif
  return features;
}

std::vector<IsaLevel> available_isa_levels() {
  const CpuFeatures features = cpu_features();
  std::vector<IsaLevel> levels = {IsaLevel::portable};
  if (features.avx2) levels.push_back(IsaLevel::avx2);
  if (features.avx512) levels.push_back(IsaLevel::avx512);
  if (features.avx512_bf16) levels.push_back(IsaLevel::avx512_bf16);
  return levels;
}

IsaLevel default_isa_level() {
  std::vector<IsaLevel> levels = available_isa_levels();
  std::erase(levels, IsaLevel::avx512_bf16);
  return levels.back();
}

Status check_isa(IsaLevel wanted, std::span<const IsaLevel> available) {
  if (std::find(available.begin(), available.end(), wanted) != available.end()) return {};
  std::vector<std::string> names;
  for (const IsaLevel level : available) names.emplace_back(isa_name(level));
  return Error{.code = Code::cpu_isa,
               .detail = cat(isa_name(wanted), "; this machine has ", join(names, ", "))};
}

}  // namespace inferd
