#include "formats/ggml_types.h"

#include <array>

#include "base/arithmetic.h"
#include "base/check.h"

namespace inferd {
namespace {

constexpr auto kTypes = std::to_array<GgmlType>({
    {"F32", 1, 4},         // 0
    {"F16", 1, 2},         // 1
    {"Q4_0", 32, 18},      // 2
    {"Q4_1", 32, 20},      // 3
    {"Q4_2", 0, 0},        // 4, removed
    {"Q4_3", 0, 0},        // 5, removed
    {"Q5_0", 32, 22},      // 6
    {"Q5_1", 32, 24},      // 7
    {"Q8_0", 32, 34},      // 8
    {"Q8_1", 0, 0},        // 9
    {"Q2_K", 256, 84},     // 10
    {"Q3_K", 256, 110},    // 11
    {"Q4_K", 256, 144},    // 12
    {"Q5_K", 256, 176},    // 13
    {"Q6_K", 256, 210},    // 14
    {"Q8_K", 256, 292},    // 15
    {"IQ2_XXS", 256, 66},  // 16
    {"IQ2_XS", 256, 74},   // 17
    {"IQ3_XXS", 256, 98},  // 18
    {"IQ1_S", 256, 50},    // 19
    {"IQ4_NL", 32, 18},    // 20
    {"IQ3_S", 256, 110},   // 21
    {"IQ2_S", 256, 82},    // 22
    {"IQ4_XS", 256, 136},  // 23
    {"I8", 1, 1},          // 24
    {"I16", 1, 2},         // 25
    {"I32", 1, 4},         // 26
    {"I64", 1, 8},         // 27
    {"F64", 1, 8},         // 28
    {"IQ1_M", 256, 56},    // 29
    {"BF16", 1, 2},        // 30
    {"Q4_0_4_4", 0, 0},    // 31, removed
    {"Q4_0_4_8", 0, 0},    // 32, removed
    {"Q4_0_8_8", 0, 0},    // 33, removed
    {"TQ1_0", 256, 54},    // 34
    {"TQ2_0", 256, 66},    // 35
    {"IQ4_NL_4_4", 0, 0},  // 36, removed
    {"IQ4_NL_4_8", 0, 0},  // 37, removed
    {"IQ4_NL_8_8", 0, 0},  // 38, removed
    {"MXFP4", 32, 17},     // 39
    {"NVFP4", 64, 36},     // 40
    {"Q1_0", 128, 18},     // 41
    {"Q2_0", 0, 0},        // 42
});

struct ComputeType {
  uint32_t number;
  DType type;
};
constexpr auto kComputeTypes = std::to_array<ComputeType>({
    {0, DType::f32},
    {1, DType::f16},
    {30, DType::bf16},
    {2, DType::q4_0},
    {3, DType::q4_1},
    {6, DType::q5_0},
    {7, DType::q5_1},
    {8, DType::q8_0},
    {12, DType::q4_k},
    {13, DType::q5_k},
    {14, DType::q6_k},
    {10, DType::q2_k},
    {11, DType::q3_k},
    {15, DType::q8_k},
    {20, DType::iq4_nl},
    {23, DType::iq4_xs},
    {39, DType::mxfp4},
});
static_assert(kComputeTypes.size() == kDTypes - 1);  // all but F8_E4M3

}  // namespace

const GgmlType* find_ggml_type(uint32_t number) {
  return number < kTypes.size() ? &kTypes[number] : nullptr;
}

std::string ggml_type_name(uint32_t number) {
  const GgmlType* type = find_ggml_type(number);
  return type != nullptr ? std::string(type->name) : cat("unknown (", number, ")");
}

std::optional<DType> ggml_compute_type(uint32_t number) {
  for (const ComputeType& known : kComputeTypes) {
    if (known.number == number) return known.type;
  }
  return std::nullopt;
}

uint32_t ggml_type_number(DType type) {
  for (const ComputeType& known : kComputeTypes) {
    if (known.type == type) return known.number;
  }
  INFERD_CHECK(false, "dtype ", static_cast<int>(type));
}

std::optional<int64_t> tensor_elements(std::span<const uint64_t> dims) {
  uint64_t elements = 1;
  for (const uint64_t dim : dims) {
    const auto product = checked_mul(elements, dim);
    if (!product || *product == 0 || *product > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
    elements = *product;
  }
  return static_cast<int64_t>(elements);
}

std::optional<int64_t> tensor_bytes(const GgmlType& type, std::span<const uint64_t> dims) {
  if (type.block_elements == 0 || dims.empty()) return std::nullopt;
  const auto block = static_cast<uint64_t>(type.block_elements);
  if (dims[0] % block != 0) return std::nullopt;
  const auto elements = tensor_elements(dims);
  if (!elements) return std::nullopt;
  const auto bytes =
      checked_mul(static_cast<uint64_t>(*elements) / block, static_cast<uint64_t>(type.block_bytes));
  if (!bytes || *bytes > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
  return static_cast<int64_t>(*bytes);
}

}  // namespace inferd
