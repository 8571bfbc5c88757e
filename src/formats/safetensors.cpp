// SafetensorsFile: the header is read as JSON under limits, then every entry is checked against the bytes.
#include "formats/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "base/arithmetic.h"
#include "base/json.h"
#include "base/strings.h"
#include "formats/json_header.h"

namespace inferd {
namespace {

static_assert(std::endian::native == std::endian::little, "the length is read in the byte order of the file");

struct TypeRow {
  std::string_view name;
  int64_t bytes;
};
// In the order of SafetensorsDType.
constexpr auto kTypes = std::to_array<TypeRow>({
    {"BOOL", 1},
    {"U8", 1},
    {"I8", 1},
    {"F8_E5M2", 1},
    {"F8_E4M3", 1},
    {"I16", 2},
    {"U16", 2},
    {"F16", 2},
    {"BF16", 2},
    {"I32", 4},
    {"U32", 4},
    {"F32", 4},
    {"F64", 8},
    {"I64", 8},
    {"U64", 8},
});

const TypeRow& type_row(SafetensorsDType type) {
  const auto index = static_cast<size_t>(type);
  INFERD_CHECK(index < kTypes.size(), "safetensors dtype ", index);
  return kTypes[index];
}

constexpr uint64_t kLengthBytes = 8;
constexpr int kDepth = 3;  // header, tensor, shape

}  // namespace

std::string_view safetensors_dtype_name(SafetensorsDType type) {
  return type_row(type).name;
}

int64_t safetensors_dtype_bytes(SafetensorsDType type) {
  return type_row(type).bytes;
}

std::optional<DType> safetensors_compute_type(SafetensorsDType type) {
  switch (type) {
    case SafetensorsDType::f32:
      return DType::f32;
    case SafetensorsDType::f16:
      return DType::f16;
    case SafetensorsDType::bf16:
      return DType::bf16;
    case SafetensorsDType::f8_e4m3:
      return DType::f8_e4m3;
    default:
      return std::nullopt;
  }
}

class SafetensorsParser {
 public:
  explicit SafetensorsParser(SafetensorsFile& file) : file_(file), bytes_(file.bytes_) {}

  Status run() {
    INFERD_TRY(const Json header, read_header());
    int64_t tensors = 0;
    for (const auto& [name, value] : header.as_object()) {
      if (name == "__metadata__") {
        INFERD_TRY_STATUS(read_metadata(value));
        continue;
      }
      if (++tensors > kSafetensorsMaxTensors) {
        return error(Code::safetensors_limit, "header",
                     cat("more than ", with_commas(kSafetensorsMaxTensors), " tensors"));
      }
      INFERD_TRY_STATUS(read_tensor(name, value));
    }
    INFERD_TRY_STATUS(check_cover());
    index_names();
    return {};
  }

 private:
  Error error(Code code, std::string_view place, std::string detail) const {
    return {.code = code, .detail = std::move(detail), .where = cat(file_.name_, ", ", place)};
  }

  // Of the tensor being read: at "model.safetensors, shape of tensor "a"", and "a", shape, before the detail.
  Error tensor_error(Code code, std::string_view field, std::string_view detail) const {
    const std::string name = printable(name_);
    return error(code, cat(field, field.empty() ? "" : " of ", "tensor ", name),
                 cat(name, field.empty() ? "" : ", ", field, ": ", detail));
  }

  Result<Json> read_header() {
    if (bytes_.size() < kLengthBytes) {
      return error(Code::safetensors_truncated, "byte 0, length of the header",
                   cat("needs ", kLengthBytes, " bytes, the file has ", bytes_.size()));
    }
    uint64_t length = 0;
    std::memcpy(&length, bytes_.data(), sizeof length);
    if (length > kSafetensorsMaxHeaderBytes) {
      return error(Code::safetensors_limit, "byte 0, length of the header",
                   cat("the header is ", length, " bytes long, at most ",
                       with_commas(static_cast<int64_t>(kSafetensorsMaxHeaderBytes)), " allowed"));
    }
    if (length > bytes_.size() - kLengthBytes) {
      return error(Code::safetensors_truncated, "byte 0, length of the header",
                   cat("the header needs ", with_commas(static_cast<int64_t>(kLengthBytes + length)),
                       " bytes, the file has ", with_commas(std::ssize(bytes_))));
    }
    const std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + kLengthBytes, length);
    if (!text.starts_with('{')) {
      return error(Code::safetensors_header, cat("byte ", kLengthBytes),
                   text.empty() ? std::string("it is empty, a JSON object expected")
                                : cat("it begins with ", printable(text.substr(0, 8)), ", '{' expected"));
    }
    file_.data_offset_ = static_cast<int64_t>(kLengthBytes + length);
    return parse_json_header(text, kDepth, Code::safetensors_header, cat(file_.name_, ", header"));
  }

  Status read_metadata(const Json& value) {
    if (!value.is_object()) {
      return error(Code::safetensors_header, "__metadata__",
                   cat("it is of type ", value.kind_name(), ", an object of strings expected"));
    }
    for (const auto& [key, text] : value.as_object()) {
      if (!text.is_string()) {
        return error(Code::safetensors_header, cat("__metadata__, key ", printable(key)),
                     cat("the value is of type ", text.kind_name(), ", string expected"));
      }
      file_.metadata_.emplace_back(key, text.as_string());
    }
    return {};
  }

  Status read_tensor(const std::string& name, const Json& entry) {
    name_ = name;
    if (std::ssize(name) > kSafetensorsMaxNameBytes) {
      return tensor_error(Code::safetensors_limit, "name",
                          cat("it is ", with_commas(std::ssize(name)), " bytes long, at most ",
                              with_commas(kSafetensorsMaxNameBytes), " allowed"));
    }
    if (name.empty() || !is_printable_utf8(name)) {
      return tensor_error(Code::safetensors_tensor, "name",
                          name.empty() ? "it is empty" : "it holds control characters");
    }
    if (!entry.is_object()) {
      return tensor_error(Code::safetensors_tensor, "",
                          cat("the entry is of type ", entry.kind_name(), ", object expected"));
    }
    for (const auto& [field, unused] : entry.as_object()) {
      if (field != "dtype" && field != "shape" && field != "data_offsets") {
        return tensor_error(
            Code::safetensors_tensor, "",
            cat("unknown field ", printable(field), ", dtype, shape and data_offsets allowed"));
      }
    }
    SafetensorsTensor tensor;
    tensor.name = name;
    INFERD_TRY(tensor.dtype, read_dtype(entry));
    INFERD_TRY_STATUS(read_shape(tensor, entry));
    INFERD_TRY_STATUS(read_span(tensor, entry));
    file_.tensors_.push_back(std::move(tensor));
    return {};
  }

  Result<const Json*> field(const Json& entry, std::string_view name) const {
    if (const Json* value = entry.find(name)) return value;
    return tensor_error(Code::safetensors_tensor, name, cat("the field ", name, " is missing"));
  }

  Result<SafetensorsDType> read_dtype(const Json& entry) const {
    INFERD_TRY(const Json* value, field(entry, "dtype"));
    if (!value->is_string()) {
      return tensor_error(Code::safetensors_tensor, "dtype",
                          cat("it is of type ", value->kind_name(), ", string expected"));
    }
    std::string allowed;
    for (size_t i = 0; i < kTypes.size(); ++i) {
      if (kTypes[i].name == value->as_string()) return static_cast<SafetensorsDType>(i);
      allowed += cat(allowed.empty() ? "" : " ", kTypes[i].name);
    }
    return tensor_error(Code::safetensors_dtype, "dtype",
                        cat(printable(value->as_string()), ", allowed are ", allowed));
  }

  // A JSON number as a size: what is negative, past 2^63 - 1 or no integer is refused.
  Result<uint64_t> read_size(const Json& value, std::string_view name, size_t index) const {
    if (value.is_integer() && value.as_integer() >= 0) return static_cast<uint64_t>(value.as_integer());
    const std::string got = value.is_number() ? to_json(value) : cat("of type ", value.kind_name());
    return tensor_error(
        Code::safetensors_tensor, name,
        cat("number ", index, " is ", got, ", an integer from 0 to ", INT64_MAX, " expected"));
  }

  Status read_shape(SafetensorsTensor& tensor, const Json& entry) const {
    INFERD_TRY(const Json* value, field(entry, "shape"));
    if (!value->is_array()) {
      return tensor_error(Code::safetensors_tensor, "shape",
                          cat("it is of type ", value->kind_name(), ", array expected"));
    }
    const Json::Array& dims = value->as_array();
    if (std::ssize(dims) > kSafetensorsMaxDims) {
      return tensor_error(
          Code::safetensors_limit, "shape",
          cat("it has ", dims.size(), " dimensions, at most ", kSafetensorsMaxDims, " allowed"));
    }
    uint64_t elements = 1;
    for (size_t i = 0; i < dims.size(); ++i) {
      INFERD_TRY(const uint64_t dim, read_size(dims[i], "shape", i));
      const auto product = checked_mul(elements, dim);
      if (!product || *product > static_cast<uint64_t>(INT64_MAX)) {
        return tensor_error(Code::safetensors_tensor, "shape", "it has 2^63 elements or more");
      }
      elements = *product;
      tensor.shape.push_back(static_cast<int64_t>(dim));
    }
    tensor.elements = static_cast<int64_t>(elements);
    return {};
  }

  Status read_span(SafetensorsTensor& tensor, const Json& entry) const {
    INFERD_TRY(const Json* value, field(entry, "data_offsets"));
    if (!value->is_array() || value->as_array().size() != 2) {
      return tensor_error(Code::safetensors_tensor, "data_offsets",
                          value->is_array()
                              ? cat("it holds ", value->as_array().size(), " numbers, 2 expected")
                              : cat("it is of type ", value->kind_name(), ", array expected"));
    }
    INFERD_TRY(const uint64_t begin, read_size(value->as_array()[0], "data_offsets", 0));
    INFERD_TRY(const uint64_t end, read_size(value->as_array()[1], "data_offsets", 1));
    if (begin > end) {
      return tensor_error(Code::safetensors_tensor, "data_offsets",
                          cat("it begins at ", begin, " and ends before that, at ", end));
    }
    const auto bytes = checked_mul(static_cast<uint64_t>(tensor.elements),
                                   static_cast<uint64_t>(safetensors_dtype_bytes(tensor.dtype)));
    if (!bytes || *bytes > static_cast<uint64_t>(INT64_MAX)) {
      return tensor_error(Code::safetensors_tensor, "shape", "it has 2^63 bytes or more");
    }
    if (*bytes != end - begin) {
      return tensor_error(Code::safetensors_tensor, "data_offsets",
                          cat("they span ", end - begin, " bytes, ", tensor.elements, " elements of ",
                              safetensors_dtype_name(tensor.dtype), " are ", *bytes));
    }
    const uint64_t data_bytes = bytes_.size() - static_cast<uint64_t>(file_.data_offset_);
    if (end > data_bytes) {
      return tensor_error(Code::safetensors_truncated, "data_offsets",
                          cat("it ends at byte ", end, " of the data, of which the file has ", data_bytes));
    }
    tensor.offset = file_.data_offset_ + static_cast<int64_t>(begin);
    tensor.data = bytes_.subspan(static_cast<size_t>(tensor.offset), end - begin);
    return {};
  }

  // The tensors, one behind another, are the data: no hole, no overlap, nothing behind the last.
  Status check_cover() {
    auto& tensors = file_.tensors_;
    std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
      if (a.offset != b.offset) return a.offset < b.offset;
      if (a.data.size() != b.data.size()) return a.data.size() < b.data.size();
      return a.name < b.name;
    });
    int64_t at = file_.data_offset_;
    std::string_view before;
    for (const SafetensorsTensor& tensor : tensors) {
      name_ = tensor.name;
      if (tensor.offset != at) {
        const std::string after = before.empty() ? "the data begins" : cat(printable(before), " ends");
        return tensor_error(Code::safetensors_tensor, "data_offsets",
                            cat("it begins at ", tensor.offset - file_.data_offset_,
                                tensor.offset < at ? ", inside what comes before it: " : ", behind a hole: ",
                                after, " at ", at - file_.data_offset_));
      }
      at += std::ssize(tensor.data);
      before = tensor.name;
    }
    if (at != std::ssize(bytes_)) {
      return error(Code::safetensors_tensor, cat("byte ", at),
                   cat(with_commas(std::ssize(bytes_) - at), " bytes after the last tensor belong to none"));
    }
    return {};
  }

  void index_names() {
    const auto& tensors = file_.tensors_;
    file_.by_name_.resize(tensors.size());
    std::iota(file_.by_name_.begin(), file_.by_name_.end(), uint32_t{0});
    std::sort(file_.by_name_.begin(), file_.by_name_.end(),
              [&](uint32_t a, uint32_t b) { return tensors[a].name < tensors[b].name; });
  }

  SafetensorsFile& file_;
  std::span<const std::byte> bytes_;
  std::string_view name_;  // of the tensor being read
};

Result<SafetensorsFile> SafetensorsFile::parse(std::span<const std::byte> bytes, std::string name) {
  SafetensorsFile file;
  file.name_ = std::move(name);
  file.bytes_ = bytes;
  INFERD_TRY_STATUS(SafetensorsParser(file).run());
  return file;
}

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  INFERD_TRY(MappedFile mapping, MappedFile::open(path));
  INFERD_TRY(SafetensorsFile file, parse(mapping.bytes(), path));
  file.mapping_ = std::move(mapping);  // the mapped bytes stay where they are
  return file;
}

const SafetensorsTensor* SafetensorsFile::find(std::string_view name) const {
  const auto by_name = [&](uint32_t index, std::string_view wanted) { return tensors_[index].name < wanted; };
  const auto found = std::lower_bound(by_name_.begin(), by_name_.end(), name, by_name);
  return found != by_name_.end() && tensors_[*found].name == name ? &tensors_[*found] : nullptr;
}

}  // namespace inferd
