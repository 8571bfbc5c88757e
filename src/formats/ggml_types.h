// The numbers that GGUF files give to tensor types: names of all of them, block sizes where they are settled,
// and which of them this program computes with. Source: `enum ggml_type` of the GGUF specification and of
// ggml.h (2026).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tensor/dtype.h"

namespace inferd {

struct GgmlType {
  std::string_view name;   // as GGUF tools print it: "IQ4_XS"
  int32_t block_elements;  // 0: the size is not known here, so that of a tensor is not either
  int32_t block_bytes;
};

// The type of that number, or null when none was assigned. Types taken out of the format keep their names,
// without a size. Q8_1 and Q2_0 have none because two are in use: Q8_1 of 36 bytes (ggml) and 40 (gguf-py),
// Q2_0 of blocks of 64 and of 128 elements.
const GgmlType* find_ggml_type(uint32_t number);

// "Q4_K"; "unknown (99)" for a number that was not assigned.
std::string ggml_type_name(uint32_t number);

// The type that kernels know it by, or nullopt when nothing here computes with it.
std::optional<DType> ggml_compute_type(uint32_t number);
uint32_t ggml_type_number(DType type);  // requires a type that GGUF files have: not F8_E4M3

// Product of the dimensions; nullopt when one of them is 0 or the product does not fit int64_t.
std::optional<int64_t> tensor_elements(std::span<const uint64_t> dims);

// Bytes of a tensor; nullopt when dims[0] is no multiple of the block, the size of the type is not known, a
// dimension is 0, or elements or bytes do not fit int64_t.
std::optional<int64_t> tensor_bytes(const GgmlType& type, std::span<const uint64_t> dims);

}  // namespace inferd
