// GgufFile::parse: one pass over the head of the file, every length checked before it is used.

#include <algorithm>
#include <bit>
#include <compare>
#include <numeric>
#include <utility>

#include "base/arithmetic.h"
#include "base/strings.h"
#include "formats/gguf.h"
#include "formats/json_header.h"

namespace inferd {
namespace {

// Bytes of a value or element; 0 for strings and arrays, which carry their length.
constexpr uint64_t fixed_bytes(GgufValueType type) {
  switch (type) {
    case GgufValueType::uint8:
    case GgufValueType::int8:
    case GgufValueType::boolean:
      return 1;
    case GgufValueType::uint16:
    case GgufValueType::int16:
      return 2;
    case GgufValueType::uint32:
    case GgufValueType::int32:
    case GgufValueType::float32:
      return 4;
    case GgufValueType::uint64:
    case GgufValueType::int64:
    case GgufValueType::float64:
      return 8;
    case GgufValueType::string:
    case GgufValueType::array:
      return 0;
  }
  return 0;
}

std::string with_commas_unsigned(uint64_t value) {
  return value <= static_cast<uint64_t>(INT64_MAX) ? with_commas(static_cast<int64_t>(value)) : cat(value);
}

bool is_printable_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

// Indices 0 … count-1, sorted by key(index); equal ones stay in the order of the file.
template <typename Key>
std::vector<uint32_t> sorted_indices(size_t count, Key key) {
  std::vector<uint32_t> indices(count);
  std::iota(indices.begin(), indices.end(), uint32_t{0});
  std::sort(indices.begin(), indices.end(), [&](uint32_t a, uint32_t b) {
    const auto order = key(a) <=> key(b);
    return order != 0 ? order < 0 : a < b;
  });
  return indices;
}

}  // namespace

class GgufParser {
 public:
  explicit GgufParser(GgufFile& file) : file_(file), bytes_(file.bytes_) {}

  Status run() {
    INFERD_TRY_STATUS(read_header());
    for (uint64_t i = 0; i < key_count_; ++i) INFERD_TRY_STATUS(read_key(i));
    INFERD_TRY_STATUS(index_keys());
    INFERD_TRY_STATUS(read_alignment());
    for (uint64_t i = 0; i < tensor_count_; ++i) INFERD_TRY_STATUS(read_tensor(i));
    INFERD_TRY_STATUS(index_tensors());
    INFERD_TRY_STATUS(place_tensors());
    return check_overlaps();
  }

 private:
  // ---- Errors

  // "model.gguf, byte 24, type of key 3 "general.name"".
  Error error(Code code, uint64_t offset, std::string_view field, std::string detail) const {
    std::string where = cat(file_.name_, ", byte ", offset, ", ", field);
    if (!owner_.kind.empty()) where += cat(" of ", owner_.kind, " ", owner_.index);
    if (!owner_.name.empty()) where += cat(" ", printable(owner_.name));
    return {.code = code, .detail = std::move(detail), .where = std::move(where)};
  }

  Error truncated(uint64_t offset, std::string_view field, uint64_t need) const {
    return error(Code::gguf_truncated, offset, field,
                 cat("needs ", with_commas_unsigned(need), " bytes, the file has ",
                     with_commas_unsigned(bytes_.size())));
  }

  Error past_limit(uint64_t offset, std::string_view field, uint64_t got, uint64_t allowed) const {
    return error(Code::gguf_limit, offset, field,
                 cat(field, " is ", with_commas_unsigned(got), ", at most ", with_commas_unsigned(allowed),
                     " allowed"));
  }

  // ---- Reading

  uint64_t left() const { return bytes_.size() - at_; }

  template <typename T>
  Result<T> read(std::string_view field) {
    if (left() < sizeof(T)) return truncated(at_, field, at_ + sizeof(T));
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  // Requires length to be under a limit, so that at_ + length cannot wrap.
  Result<std::span<const std::byte>> take(uint64_t length, std::string_view field) {
    if (left() < length) return truncated(at_, field, at_ + length);
    const auto taken = bytes_.subspan(at_, length);
    at_ += length;
    return taken;
  }

  Result<std::string_view> read_string(uint64_t limit, std::string_view length_field,
                                       std::string_view field) {
    const uint64_t begin = at_;
    INFERD_TRY(const uint64_t length, read<uint64_t>(length_field));
    if (length > limit) return past_limit(begin, length_field, length, limit);
    INFERD_TRY(const auto text, take(length, field));
    return std::string_view(reinterpret_cast<const char*>(text.data()), text.size());
  }

  Result<GgufValueType> read_type(std::string_view field) {
    const uint64_t begin = at_;
    INFERD_TRY(const uint32_t number, read<uint32_t>(field));
    if (number >= kGgufValueTypes) {
      return error(Code::gguf_type, begin, field,
                   cat(field, " is ", number, ", 0 to ", kGgufValueTypes - 1, " allowed"));
    }
    return static_cast<GgufValueType>(number);
  }

  // ---- The parts of the file

  Status read_header() {
    static constexpr std::string_view kMagic = "GGUF";
    const std::string_view start(reinterpret_cast<const char*>(bytes_.data()),
                                 std::min<size_t>(bytes_.size(), 4));
    if (start != kMagic) {
      return error(Code::gguf_magic, 0, "magic",
                   bytes_.empty() ? std::string("it is empty") : cat("it starts with ", printable(start)));
    }
    at_ = kMagic.size();
    INFERD_TRY(file_.version_, read<uint32_t>("version"));
    if (file_.version_ != 2 && file_.version_ != 3) {
      const uint32_t swapped = __builtin_bswap32(file_.version_);
      const bool big_endian = swapped >= 1 && swapped <= 3;
      return error(Code::gguf_version, kMagic.size(), "version",
                   big_endian ? cat(swapped, " in big-endian byte order, only little-endian files are read")
                              : cat(file_.version_, ", 2 and 3 are read"));
    }
    const uint64_t tensors_at = at_;
    INFERD_TRY(tensor_count_, read<uint64_t>("number of tensors"));
    if (tensor_count_ > kGgufMaxTensors) {
      return past_limit(tensors_at, "number of tensors", tensor_count_, kGgufMaxTensors);
    }
    const uint64_t keys_at = at_;
    INFERD_TRY(key_count_, read<uint64_t>("number of keys"));
    if (key_count_ > kGgufMaxKeys) return past_limit(keys_at, "number of keys", key_count_, kGgufMaxKeys);
    return {};
  }

  Status read_key(uint64_t index) {
    GgufValue value;
    value.offset = static_cast<int64_t>(at_);
    owner_ = {"key", index, {}};
    INFERD_TRY(value.key, read_string(kGgufMaxNameBytes, "length of the name", "name"));
    if (value.key.empty()) {
      return error(Code::gguf_key, static_cast<uint64_t>(value.offset), "name",
                   cat("key ", index, " has no name"));
    }
    if (!is_printable_ascii(value.key)) {
      return error(
          Code::gguf_key, static_cast<uint64_t>(value.offset), "name",
          cat("key ", index, " is named ", printable(value.key), ", only printable ASCII is allowed"));
    }
    owner_ = {"key", index, value.key};
    INFERD_TRY(value.type, read_type("type"));
    value.element_type = value.type;
    if (value.type == GgufValueType::string) {
      INFERD_TRY(const std::string_view text,
                 read_string(kGgufMaxStringBytes, "length of the string", "string"));
      value.payload = std::as_bytes(std::span(text));
    } else if (value.type == GgufValueType::array) {
      INFERD_TRY_STATUS(read_array(value));
    } else {
      INFERD_TRY(value.payload, take(fixed_bytes(value.type), "value"));
    }
    if (value.element_type == GgufValueType::boolean) INFERD_TRY_STATUS(check_booleans(value.payload));
    file_.values_.push_back(value);
    return {};
  }

  Status read_array(GgufValue& value) {
    const uint64_t type_at = at_;
    INFERD_TRY(value.element_type, read_type("type of the elements"));
    if (value.element_type == GgufValueType::array) {
      return error(Code::gguf_type, type_at, "type of the elements",
                   "an array of arrays, which is not supported");
    }
    const uint64_t count_at = at_;
    INFERD_TRY(const uint64_t count, read<uint64_t>("number of elements"));
    if (count > kGgufMaxArrayElements)
      return past_limit(count_at, "number of elements", count, kGgufMaxArrayElements);
    value.count = static_cast<int64_t>(count);
    if (value.element_type == GgufValueType::string) return read_string_array(value);
    INFERD_TRY(value.payload, take(count * fixed_bytes(value.element_type), "elements"));
    return {};
  }

  // Only walks over the strings: a vocabulary has some 10⁵ of them, so this is the loop that load time feels.
  Status read_string_array(GgufValue& value) {
    const uint64_t begin = at_;
    for (int64_t i = 0; i < value.count; ++i) {
      uint64_t length = 0;
      if (left() < sizeof(length)) return truncated(at_, cat("length of string ", i), at_ + sizeof(length));
      std::memcpy(&length, bytes_.data() + at_, sizeof(length));
      if (length > kGgufMaxStringBytes) {
        return past_limit(at_, cat("length of string ", i), length, kGgufMaxStringBytes);
      }
      at_ += sizeof(length);
      if (left() < length) return truncated(at_, cat("string ", i), at_ + length);
      at_ += length;
    }
    value.payload = bytes_.subspan(begin, at_ - begin);
    return {};
  }

  Status check_booleans(std::span<const std::byte> values) const {
    for (const std::byte& value : values) {
      if (value > std::byte{1}) {
        return error(Code::gguf_key, static_cast<uint64_t>(&value - bytes_.data()), "value",
                     cat("a bool is ", static_cast<int>(value), ", 0 or 1 allowed"));
      }
    }
    return {};
  }

  Status index_keys() {
    const auto& values = file_.values_;
    file_.values_by_key_ = sorted_indices(values.size(), [&](uint32_t i) { return values[i].key; });
    for (size_t i = 1; i < values.size(); ++i) {
      const uint32_t first = file_.values_by_key_[i - 1];
      const uint32_t second = file_.values_by_key_[i];
      if (values[first].key != values[second].key) continue;
      owner_ = {"key", second, values[second].key};
      return error(
          Code::gguf_key, static_cast<uint64_t>(values[second].offset), "name",
          cat("keys ", first, " and ", second, " have the same name ", printable(values[second].key)));
    }
    return {};
  }

  Status read_alignment() {
    const GgufValue* value = file_.find("general.alignment");
    if (value == nullptr) return {};
    const auto offset = static_cast<uint64_t>(value->offset);
    owner_ = {"key", static_cast<uint64_t>(value - file_.values_.data()), value->key};
    if (value->type != GgufValueType::uint32) {
      return error(Code::gguf_alignment, offset, "type",
                   cat("it has type ", value->type_name(), ", uint32 expected"));
    }
    const int64_t alignment = GgufIntegers(*value)[0];
    if (alignment < kGgufMinAlignment || alignment > kGgufMaxAlignment ||
        !std::has_single_bit(static_cast<uint64_t>(alignment))) {
      return error(Code::gguf_alignment, offset, "value",
                   cat("it is ", alignment, ", a power of two from ", kGgufMinAlignment, " to ",
                       kGgufMaxAlignment, " allowed"));
    }
    file_.alignment_ = alignment;
    return {};
  }

  Status read_tensor(uint64_t index) {
    GgufTensor tensor;
    const uint64_t begin = at_;
    tensor.entry_offset = static_cast<int64_t>(begin);
    owner_ = {"tensor", index, {}};
    INFERD_TRY(tensor.name, read_string(kGgufMaxNameBytes, "length of the name", "name"));
    if (tensor.name.empty())
      return error(Code::gguf_tensor, begin, "name", cat("tensor ", index, " has no name"));
    if (!is_printable_utf8(tensor.name)) {
      return error(
          Code::gguf_tensor, begin, "name",
          cat("tensor ", index, " is named ", printable(tensor.name), ", only printable UTF-8 is allowed"));
    }
    owner_ = {"tensor", index, tensor.name};

    const uint64_t dims_at = at_;
    INFERD_TRY(const uint32_t dims, read<uint32_t>("number of dimensions"));
    if (dims > kGgufMaxDims) return past_limit(dims_at, "number of dimensions", dims, kGgufMaxDims);
    if (dims == 0) {
      return error(Code::gguf_tensor, dims_at, "number of dimensions",
                   cat(printable(tensor.name), " has no dimensions, 1 to ", kGgufMaxDims, " allowed"));
    }
    tensor.dims = static_cast<int32_t>(dims);
    std::array<uint64_t, kGgufMaxDims> shape{};
    const uint64_t shape_at = at_;
    for (uint32_t i = 0; i < dims; ++i) {
      INFERD_TRY(shape[i], read<uint64_t>("dimension"));
    }
    const uint64_t type_at = at_;
    INFERD_TRY(tensor.type, read<uint32_t>("type"));
    Spot spot;
    INFERD_TRY(spot.bytes, size_of(tensor, std::span(shape).first(dims), shape_at, type_at));

    spot.offset_at = at_;
    INFERD_TRY(spot.offset, read<uint64_t>("offset"));
    if (spot.offset % static_cast<uint64_t>(file_.alignment_) != 0) {
      return error(Code::gguf_tensor, spot.offset_at, "offset",
                   cat(printable(tensor.name), " is at ", with_commas_unsigned(spot.offset),
                       ", no multiple of the alignment ", file_.alignment_));
    }
    file_.tensors_.push_back(tensor);
    spots_.push_back(spot);
    return {};
  }

  // Fills in shape and elements; returns the bytes, 0 when the size of the type is not known.
  Result<uint64_t> size_of(GgufTensor& tensor, std::span<const uint64_t> shape, uint64_t shape_at,
                           uint64_t type_at) {
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] == 0) {
        return error(Code::gguf_tensor, shape_at + i * sizeof(uint64_t), "dimension",
                     cat("dimension ", i, " of ", printable(tensor.name), " is 0"));
      }
    }
    const auto elements = tensor_elements(shape);
    if (!elements) {
      return error(Code::gguf_tensor, shape_at, "shape",
                   cat(printable(tensor.name), " has 2^63 elements or more"));
    }
    tensor.elements = *elements;
    // None is larger than their product, which fits.
    for (size_t i = 0; i < shape.size(); ++i) tensor.shape[i] = static_cast<int64_t>(shape[i]);

    const GgmlType* type = find_ggml_type(tensor.type);
    if (type == nullptr || type->block_elements == 0) return uint64_t{0};
    if (shape[0] % static_cast<uint64_t>(type->block_elements) != 0) {
      return error(Code::gguf_tensor, type_at, "type",
                   cat(printable(tensor.name), " has rows of ", shape[0], " elements, ", type->name,
                       " needs a multiple of ", type->block_elements));
    }
    const auto bytes = tensor_bytes(*type, shape);
    if (!bytes) {
      return error(Code::gguf_tensor, shape_at, "shape",
                   cat(printable(tensor.name), " has 2^63 bytes or more"));
    }
    return static_cast<uint64_t>(*bytes);
  }

  Status index_tensors() {
    const auto& tensors = file_.tensors_;
    file_.tensors_by_name_ = sorted_indices(tensors.size(), [&](uint32_t i) { return tensors[i].name; });
    for (size_t i = 1; i < tensors.size(); ++i) {
      const uint32_t first = file_.tensors_by_name_[i - 1];
      const uint32_t second = file_.tensors_by_name_[i];
      if (tensors[first].name != tensors[second].name) continue;
      owner_ = {"tensor", second, tensors[second].name};
      return error(
          Code::gguf_tensor, static_cast<uint64_t>(tensors[second].entry_offset), "name",
          cat("tensors ", first, " and ", second, " have the same name ", printable(tensors[second].name)));
    }
    return {};
  }

  Status place_tensors() {
    const uint64_t data_offset =
        *checked_align(at_, static_cast<uint64_t>(file_.alignment_));  // at_ is a file's size
    file_.data_offset_ = static_cast<int64_t>(data_offset);
    for (size_t i = 0; i < spots_.size(); ++i) {
      GgufTensor& tensor = file_.tensors_[i];
      owner_ = {"tensor", i, tensor.name};
      const auto begin = checked_add(data_offset, spots_[i].offset);
      // Of a type whose size is not known, one byte at least.
      const auto end = begin ? checked_add(*begin, std::max<uint64_t>(spots_[i].bytes, 1)) : std::nullopt;
      if (!end || *end > static_cast<uint64_t>(INT64_MAX)) {
        return error(Code::gguf_tensor, spots_[i].offset_at, "offset",
                     cat(printable(tensor.name), " ends past 2^63 - 1: offset ", spots_[i].offset, ", ",
                         spots_[i].bytes, " bytes"));
      }
      if (*end > bytes_.size()) return truncated(spots_[i].offset_at, "data", *end);
      tensor.offset = static_cast<int64_t>(*begin);
      tensor.data = bytes_.subspan(*begin, spots_[i].bytes);
    }
    return {};
  }

  Status check_overlaps() {
    const auto& tensors = file_.tensors_;
    const auto by_offset = sorted_indices(tensors.size(), [&](uint32_t i) { return tensors[i].offset; });
    int64_t end = 0;
    uint32_t last = 0;  // the tensor that ends there
    for (const uint32_t i : by_offset) {
      if (tensors[i].offset < end) {
        owner_ = {"tensor", i, tensors[i].name};
        return error(Code::gguf_tensor, spots_[i].offset_at, "offset",
                     cat(printable(tensors[i].name), " begins at byte ", with_commas(tensors[i].offset),
                         ", inside ", printable(tensors[last].name), ", which ends at ", with_commas(end)));
      }
      if (tensors[i].data.empty()) continue;
      end = tensors[i].offset + static_cast<int64_t>(tensors[i].data.size());
      last = i;
    }
    return {};
  }

  // The key or tensor being read, for messages.
  struct Owner {
    std::string_view kind;
    uint64_t index = 0;
    std::string_view name;
  };

  struct Spot {
    uint64_t offset = 0;     // as the file has it: from the start of the data
    uint64_t offset_at = 0;  // where the file has it
    uint64_t bytes = 0;      // 0: not known
  };

  GgufFile& file_;
  std::span<const std::byte> bytes_;
  uint64_t at_ = 0;  // at most bytes_.size()
  uint64_t tensor_count_ = 0;
  uint64_t key_count_ = 0;
  Owner owner_;
  std::vector<Spot> spots_;  // one per tensor
};

Result<GgufFile> GgufFile::parse(std::span<const std::byte> bytes, std::string name) {
  GgufFile file;
  file.name_ = std::move(name);
  file.bytes_ = bytes;
  INFERD_TRY_STATUS(GgufParser(file).run());
  return file;
}

}  // namespace inferd
