// Element types of tensors, and how many bytes a row of each takes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace inferd {

enum class DType : uint8_t {
  f32,
  f16,
  bf16,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q8_0,
  q4_k,
  q5_k,
  q6_k,
  q2_k,
  q3_k,
  q8_k,
  iq4_nl,
  iq4_xs,
  mxfp4,
  f8_e4m3,  // not of GGUF files; may have scales beside it (ops.h, BlockScales)
};
inline constexpr int kDTypes = 18;

struct DTypeInfo {
  std::string_view name;   // as GGUF tools print it: "Q4_K"
  int32_t block_elements;  // elements that share their scales; 1 for plain floats
  int32_t block_bytes;
};

const DTypeInfo& dtype_info(DType type);
inline std::string_view dtype_name(DType type) {
  return dtype_info(type).name;
}
inline bool is_quantised(DType type) {
  return dtype_info(type).block_elements > 1;
}

// "q4_k", "Q4_K": the type of that name.
std::optional<DType> parse_dtype(std::string_view name);

// Bytes of a row. Requires elements to be a multiple of the block.
int64_t row_bytes(DType type, int64_t elements);

}  // namespace inferd
