// Reader of GGUF files, versions 2 and 3, little-endian: metadata and tensors as views into the bytes of the
// file. Called once when a model is loaded or shown, on any thread. Source: the GGUF specification (ggml,
// docs/gguf.md).
//
// A model may be split into parts NAME-00001-of-0000N.gguf, as llama.cpp's gguf-split writes them. Each part
// is a whole file with keys split.no (from 0), split.count and split.tensors.count (of all parts); the first
// has the model's keys. They are opened as one.
//
// A file is: "GGUF", u32 version, u64 number of tensors, u64 number of keys; the keys (string, u32 type,
// value); the tensors (string, u32 number of dimensions, u64 dimensions with the fastest first, u32 type, u64
// offset); zeros up to a multiple of the alignment; the data, to which the offsets are relative. A string is
// a u64 length and bytes; an array is a u32 element type, a u64 count and the elements; nothing in between is
// padded.
//
// What we decided where the specification is open, or where readers differ:
// - An array of arrays is refused: no known model has one, and recursion on what strangers send is not worth
// it.
// - A boolean other than 0 and 1, an empty or repeated key or name, a key that is not printable ASCII and a
// name with
//   control characters or ill-formed UTF-8 are refused. String values are bytes; whoever prints them escapes
//   them.
// - Tensors may leave holes, come in any order of offsets, and be followed by other bytes; they may not
// overlap.
// - A tensor has 1 to 4 dimensions, none of them 0.
// - A type number that we do not know is kept, so that the file can be shown; dtype() refuses it by name.
//
// Memory: nothing is reserved by a count that the file claims. Arrays and strings are views; what is
// allocated is one entry per key and tensor really read: at most 16 bytes for each byte of the file, and 32
// MiB in all.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mmap.h"
#include "base/result.h"
#include "formats/ggml_types.h"

namespace inferd {

// Limits, checked before the value is used for anything.
inline constexpr uint64_t kGgufMaxKeys = 65536;
inline constexpr uint64_t kGgufMaxTensors = 65536;
inline constexpr uint64_t kGgufMaxNameBytes = 65535;  // keys (the specification's limit) and tensor names
inline constexpr uint64_t kGgufMaxStringBytes = uint64_t{16} << 20;
inline constexpr uint64_t kGgufMaxArrayElements = uint64_t{64} << 20;
inline constexpr uint32_t kGgufMaxDims = 4;
inline constexpr int64_t kGgufMaxParts = 1024;
inline constexpr uint32_t kGgufMinAlignment = 8;
inline constexpr uint32_t kGgufMaxAlignment = 65536;
inline constexpr uint32_t kGgufDefaultAlignment = 32;

enum class GgufValueType : uint32_t {
  uint8 = 0,
  int8 = 1,
  uint16 = 2,
  int16 = 3,
  uint32 = 4,
  int32 = 5,
  float32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  uint64 = 10,
  int64 = 11,
  float64 = 12,
};
inline constexpr uint32_t kGgufValueTypes = 13;

std::string_view gguf_value_type_name(GgufValueType type);  // "uint32"

// One key and its value, checked: the payload has the length and the form that the type says.
struct GgufValue {
  std::string_view key;
  GgufValueType type = GgufValueType::uint8;
  GgufValueType element_type = GgufValueType::uint8;  // of an array; else the type itself
  int64_t count = 1;                                  // elements of an array; else 1
  std::span<const std::byte>
      payload;         // the value as stored, without the length of a string or the head of an array
  int64_t offset = 0;  // where its entry begins in the file, for messages

  // "uint32"; "string[3]" for an array.
  std::string type_name() const;
};

// The strings of an array, one after another: size() of them. They view the file.
class GgufStrings {
 public:
  class Iterator {
   public:
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::forward_iterator_tag;
    using pointer = const std::string_view*;
    using reference = std::string_view;

    Iterator() = default;
    explicit Iterator(const std::byte* at) : at_(at) {}
    std::string_view operator*() const {
      return {reinterpret_cast<const char*>(at_) + sizeof(uint64_t), length()};
    }
    Iterator& operator++() {
      at_ += sizeof(uint64_t) + length();
      return *this;
    }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator&) const = default;

   private:
    uint64_t length() const {
      uint64_t length = 0;
      std::memcpy(&length, at_, sizeof(length));
      return length;
    }
    const std::byte* at_ = nullptr;
  };

  // Requires an array of strings of a parsed file.
  explicit GgufStrings(const GgufValue& array);

  int64_t size() const { return count_; }
  Iterator begin() const { return Iterator(payload_.data()); }
  Iterator end() const { return Iterator(payload_.data() + payload_.size()); }

 private:
  std::span<const std::byte> payload_;
  int64_t count_;
};

// The numbers of an array of any integer type.
class GgufIntegers {
 public:
  // Requires an integer, or an array of integers, of a parsed file.
  explicit GgufIntegers(const GgufValue& value);

  int64_t size() const { return value_.count; }
  // Requires 0 <= i < size(). A uint64 past 2^63 - 1 comes as its bits, negative; GgufFile's getters refuse
  // it.
  int64_t operator[](int64_t i) const;

 private:
  GgufValue value_;
};

// The numbers of an array of float32 or float64.
class GgufReals {
 public:
  // Requires a float, or an array of floats, of a parsed file.
  explicit GgufReals(const GgufValue& value);

  int64_t size() const { return value_.count; }
  double operator[](int64_t i) const;  // requires 0 <= i < size()

 private:
  GgufValue value_;
};

struct GgufTensor {
  std::string_view name;
  uint32_t type = 0;  // GGML number: ggml_type_name() and dtype()
  int32_t dims = 0;   // 1 to 4
  std::array<int64_t, kGgufMaxDims> shape{1, 1, 1,
                                          1};  // fastest first: (cols, rows) of a matrix; 1 past `dims`
  int64_t elements = 0;
  int32_t part = 0;                 // of a split model, from 0
  int64_t offset = 0;               // of the data in its file, a multiple of the alignment
  std::span<const std::byte> data;  // inside the file; empty when the size of the type is not known
  int64_t entry_offset = 0;         // where its entry begins in the file, for messages
};

class GgufFile {
 public:
  // Maps and parses; the mapping lives as long as this. `path` may be any part of a split model: all are
  // opened. E-IO-001 … 003, what parse() says, and E-GGUF-009 when parts are missing, are not named as their
  // keys say, or are not of one model.
  static Result<GgufFile> open(const std::string& path);

  // Parses the bytes of one file, which outlive this; of a split model they are one part. `name` stands for
  // the file in messages. E-GGUF-001 … 008; `where` of the error names file, byte and field.
  static Result<GgufFile> parse(std::span<const std::byte> bytes, std::string name);

  // Of the first part, as are version, alignment, data_offset and values.
  const std::string& name() const { return name_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  int64_t parts() const { return 1 + std::ssize(other_parts_); }
  int64_t total_bytes() const;  // of all parts
  uint32_t version() const { return version_; }
  int64_t alignment() const { return alignment_; }
  int64_t data_offset() const { return data_offset_; }  // may lie past the end when there are no tensors

  // In the order of the file; tensors part after part.
  std::span<const GgufValue> values() const { return values_; }
  std::span<const GgufTensor> tensors() const { return tensors_; }

  // Null when there is none.
  const GgufValue* find(std::string_view key) const;
  const GgufTensor* find_tensor(std::string_view name) const;

  // The value of a key. Absent: the fallback, or E-MODEL-003 where none is given. Of another type:
  // E-MODEL-003, which names file, key, expected and found type.
  Result<int64_t> integer(std::string_view key,
                          std::optional<int64_t> fallback = {}) const;                   // any integer type
  Result<double> real(std::string_view key, std::optional<double> fallback = {}) const;  // float32, float64
  Result<bool> boolean(std::string_view key, std::optional<bool> fallback = {}) const;
  Result<std::string_view> string(std::string_view key, std::optional<std::string_view> fallback = {}) const;
  Result<GgufStrings> strings(std::string_view key) const;    // array of strings
  Result<GgufIntegers> integers(std::string_view key) const;  // array of any integer type, each fits int64_t
  Result<GgufReals> reals(std::string_view key) const;        // array of float32 or float64

  // E-MODEL-004 when there is none.
  Result<const GgufTensor*> tensor(std::string_view name) const;
  // E-MODEL-006, naming tensor and type, when nothing here computes with it.
  Result<DType> dtype(const GgufTensor& tensor) const;

  // Of the first part; null when made by parse().
  const MappedFile* mapping() const { return mapping_ ? &*mapping_ : nullptr; }
  // Gives the pages of a tensor's data back to the kernel; reading them again is allowed. Nothing for
  // parse().
  void release(const GgufTensor& tensor) const;

 private:
  friend class GgufParser;
  friend class GgufJoiner;
  GgufFile() = default;
  const std::string& name_of_part(int32_t part) const;

  std::optional<MappedFile> mapping_;
  std::vector<MappedFile> other_parts_;  // the second and later
  std::string name_;
  std::span<const std::byte> bytes_;
  uint32_t version_ = 0;
  int64_t alignment_ = kGgufDefaultAlignment;
  int64_t data_offset_ = 0;
  std::vector<GgufValue> values_;
  std::vector<GgufTensor> tensors_;
  std::vector<uint32_t> values_by_key_;    // indices into values_, sorted by key
  std::vector<uint32_t> tensors_by_name_;  // indices into tensors_, sorted by name
};

}  // namespace inferd
