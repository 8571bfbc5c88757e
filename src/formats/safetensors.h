// Reader of safetensors files, one or several with an index: tensors as views into the bytes of the files.
// Called once when a model is loaded or shown, on any thread. Source: the format's own page (safetensors,
// README, "Format") and what its first implementation refuses.
//
// A file is: u64 length of the header, little-endian; the header, one JSON object in UTF-8 that begins with
// '{' and may end in white space; the data. The header has for every tensor its name and
// {"dtype": "F32", "shape": [rows, cols], "data_offsets": [begin, end]}, offsets relative to the data, the
// slowest dimension first; and maybe "__metadata__", an object of strings.
//
// Refused: a repeated key, offsets that leave a hole, overlap, or do not end where the file does, a shape
// whose bytes are not those of the offsets. The header may name tensors in any order. A tensor may have no
// dimensions (one element), or one of them 0 (none).
//
// Memory: nothing is reserved by a number that a file claims. While a header is read, at most 64 bytes for
// each of its bytes; afterwards one entry a tensor.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mmap.h"
#include "base/result.h"
#include "tensor/dtype.h"

namespace inferd {

// Limits, checked before the value is used for anything. The first is the format's, the others are ours.
inline constexpr uint64_t kSafetensorsMaxHeaderBytes = 100'000'000;
inline constexpr int64_t kSafetensorsMaxTensors = 131072;  // of one file
inline constexpr int64_t kSafetensorsMaxNameBytes = 1024;
inline constexpr int64_t kSafetensorsMaxDims = 8;
inline constexpr int64_t kSafetensorsMaxFiles = 4096;  // that one index names

enum class SafetensorsDType : uint8_t {
  boolean,
  u8,
  i8,
  f8_e5m2,
  f8_e4m3,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  f64,
  i64,
  u64,
};

std::string_view safetensors_dtype_name(SafetensorsDType type);  // as files spell it: "BF16", "BOOL"
int64_t safetensors_dtype_bytes(SafetensorsDType type);          // of one element

// The type that kernels know it by, or nullopt when nothing here computes with it.
std::optional<DType> safetensors_compute_type(SafetensorsDType type);

struct SafetensorsTensor {
  std::string name;
  SafetensorsDType dtype = SafetensorsDType::f32;
  std::vector<int64_t> shape;       // slowest first: (rows, cols) of a matrix
  int64_t elements = 1;             // their product
  int64_t offset = 0;               // of the data in its file; maybe no multiple of an element's size
  std::span<const std::byte> data;  // inside the file
};

class SafetensorsFile {
 public:
  // Maps and parses; the mapping lives as long as this. E-IO-001 … 003, and what parse() says.
  static Result<SafetensorsFile> open(const std::string& path);

  // Parses bytes that outlive this. `name` stands for the file in messages. E-ST-001 … 005; `where` of the
  // error names the file and byte or tensor.
  static Result<SafetensorsFile> parse(std::span<const std::byte> bytes, std::string name);

  const std::string& name() const { return name_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  int64_t data_offset() const { return data_offset_; }

  std::span<const SafetensorsTensor> tensors() const { return tensors_; }  // in the order of their data
  const SafetensorsTensor* find(std::string_view name) const;              // null when there is none
  // Of "__metadata__", in the order of the file.
  std::span<const std::pair<std::string, std::string>> metadata() const { return metadata_; }

  // To prefetch or release the pages of tensors; null when made by parse().
  const MappedFile* mapping() const { return mapping_ ? &*mapping_ : nullptr; }

 private:
  friend class SafetensorsParser;
  SafetensorsFile() = default;

  std::optional<MappedFile> mapping_;
  std::string name_;
  std::span<const std::byte> bytes_;
  int64_t data_offset_ = 0;
  std::vector<SafetensorsTensor> tensors_;
  std::vector<uint32_t> by_name_;  // indices into tensors_, sorted by name
  std::vector<std::pair<std::string, std::string>> metadata_;
};

// The tensors of a model that lie in one file, or in several named by model.safetensors.index.json:
// {"metadata": …, "weight_map": {tensor: file}}. The index decides what belongs to the model; other tensors
// of its files do not.
class SafetensorsModel {
 public:
  struct Entry {
    int32_t file = 0;  // index into files()
    const SafetensorsTensor* tensor = nullptr;
  };

  // `path` is a .safetensors file, an index (.json), or a folder with model.safetensors or, without it,
  // model.safetensors.index.json. What SafetensorsFile::open() says; E-ST-006 names what in the index is
  // wrong: no such file, a file outside the index's folder, a tensor that its file lacks or that two have.
  static Result<SafetensorsModel> open(const std::string& path);

  std::span<const SafetensorsFile> files() const { return files_; }
  std::span<const Entry> tensors() const { return entries_; }  // sorted by name
  const Entry* find(std::string_view name) const;              // null when there is none

 private:
  SafetensorsModel() = default;
  static Result<SafetensorsModel> open_one(const std::string& path);
  static Result<SafetensorsModel> open_index(const std::string& path);

  std::vector<SafetensorsFile> files_;
  std::vector<Entry> entries_;
};

}  // namespace inferd
