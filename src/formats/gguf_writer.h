// Writer of GGUF version 3 files, little-endian: for tests and for tools that make models. Not thread-safe.
//
//   GgufWriter writer;
//   writer.add("general.architecture", "llama");
//   writer.add("llama.block_count", uint32_t{2});
//   writer.add_array<int32_t>("tokenizer.ggml.token_type", types);
//   writer.add_tensor("token_embd.weight", DType::f32, {64, 288}, data);
//   INFERD_TRY_STATUS(writer.write("model.gguf"));
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.h"
#include "formats/gguf.h"

namespace inferd {

template <typename T>
constexpr GgufValueType gguf_type_of() {
  if constexpr (std::is_same_v<T, bool>) return GgufValueType::boolean;
  if constexpr (std::is_same_v<T, uint8_t>) return GgufValueType::uint8;
  if constexpr (std::is_same_v<T, int8_t>) return GgufValueType::int8;
  if constexpr (std::is_same_v<T, uint16_t>) return GgufValueType::uint16;
  if constexpr (std::is_same_v<T, int16_t>) return GgufValueType::int16;
  if constexpr (std::is_same_v<T, uint32_t>) return GgufValueType::uint32;
  if constexpr (std::is_same_v<T, int32_t>) return GgufValueType::int32;
  if constexpr (std::is_same_v<T, uint64_t>) return GgufValueType::uint64;
  if constexpr (std::is_same_v<T, int64_t>) return GgufValueType::int64;
  if constexpr (std::is_same_v<T, float>) return GgufValueType::float32;
  if constexpr (std::is_same_v<T, double>) return GgufValueType::float64;
}

// Keys and names are unique and not empty, and inside the limits of the reader (checked).
class GgufWriter {
 public:
  // Writes general.alignment when it is not the default.
  explicit GgufWriter(uint32_t alignment = kGgufDefaultAlignment);

  void add(std::string_view key, std::string_view value);
  void add(std::string_view key, const char* value) { add(key, std::string_view(value)); }

  template <typename T>
    requires std::is_arithmetic_v<T>
  void add(std::string_view key, T value) {
    begin_value(key, gguf_type_of<T>());
    append(&value, sizeof(value));
  }

  void add_strings(std::string_view key, std::span<const std::string> values);

  template <typename T>
    requires std::is_arithmetic_v<T>
  void add_array(std::string_view key, std::span<const T> values) {
    begin_array(key, gguf_type_of<T>(), values.size());
    append(values.data(), values.size_bytes());
  }

  // `data` has the bytes of that shape (fastest dimension first) and must live until the file is written.
  void add_tensor(std::string_view name, DType type, std::vector<int64_t> shape,
                  std::span<const std::byte> data) {
    add_tensor(name, ggml_type_number(type), std::move(shape), data);
  }
  // By GGML number, also of types that nothing here computes with. Any number of bytes where the size is not
  // known.
  void add_tensor(std::string_view name, uint32_t ggml_type, std::vector<int64_t> shape,
                  std::span<const std::byte> data);

  // The whole file.
  std::vector<std::byte> bytes() const;

  // Writes `path`.part and renames it, so that `path` is whole or as before. E-IO-002, E-IO-004, E-IO-006.
  Status write(const std::string& path) const;

 private:
  struct Tensor {
    std::string name;
    uint32_t type;
    std::vector<int64_t> shape;
    std::span<const std::byte> data;
  };

  void append(const void* data, size_t bytes);
  void begin_value(std::string_view key, GgufValueType type);
  void begin_array(std::string_view key, GgufValueType type, size_t count);
  std::vector<std::byte> head() const;  // all up to the data, padded

  uint64_t alignment_;
  uint64_t key_count_ = 0;
  std::vector<std::byte> keys_;  // as they stand in the file
  std::vector<Tensor> tensors_;
  std::set<std::string, std::less<>> key_names_;
  std::set<std::string, std::less<>> tensor_names_;
};

}  // namespace inferd
