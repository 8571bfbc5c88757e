#include "tensor/dtype.h"

#include "base/check.h"
#include "tensor/quant_blocks.h"

namespace inferd {
namespace {

template <typename Block>
constexpr DTypeInfo block_info(std::string_view name) {
  return {name, Block::kElements, static_cast<int32_t>(sizeof(Block))};
}

constexpr std::array<DTypeInfo, kDTypes> kInfo = {{
    {"F32", 1, 4},
    {"F16", 1, 2},
    {"BF16", 1, 2},
    block_info<BlockQ4_0>("Q4_0"),
    block_info<BlockQ4_1>("Q4_1"),
    block_info<BlockQ5_0>("Q5_0"),
    block_info<BlockQ5_1>("Q5_1"),
    block_info<BlockQ8_0>("Q8_0"),
    block_info<BlockQ4_K>("Q4_K"),
    block_info<BlockQ5_K>("Q5_K"),
    block_info<BlockQ6_K>("Q6_K"),
    block_info<BlockQ2_K>("Q2_K"),
    block_info<BlockQ3_K>("Q3_K"),
    block_info<BlockQ8_K>("Q8_K"),
    block_info<BlockIQ4_NL>("IQ4_NL"),
    block_info<BlockIQ4_XS>("IQ4_XS"),
    block_info<BlockMXFP4>("MXFP4"),
    {"F8_E4M3", 1, 1},
}};

}  // namespace

const DTypeInfo& dtype_info(DType type) {
  const auto index = static_cast<size_t>(type);
  INFERD_CHECK(index < kInfo.size(), "dtype ", index);
  return kInfo[index];
}

std::optional<DType> parse_dtype(std::string_view name) {
  for (size_t i = 0; i < kInfo.size(); ++i) {
    if (to_lower_ascii(kInfo[i].name) == to_lower_ascii(name)) return static_cast<DType>(i);
  }
  return std::nullopt;
}

int64_t row_bytes(DType type, int64_t elements) {
  const DTypeInfo& info = dtype_info(type);
  INFERD_CHECK(elements % info.block_elements == 0, info.name, " row of ", elements, " elements");
  return elements / info.block_elements * info.block_bytes;
}

}  // namespace inferd
