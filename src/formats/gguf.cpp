#include "formats/gguf.h"

#include <algorithm>
#include <bit>

#include "base/strings.h"

namespace inferd {
namespace {

static_assert(std::endian::native == std::endian::little, "values are read in the byte order of the file");

constexpr std::array<std::string_view, kGgufValueTypes> kTypeNames = {
    "uint8", "int8",   "uint16", "int16",  "uint32", "int32",  "float32",
    "bool",  "string", "array",  "uint64", "int64",  "float64"};

template <typename T>
T load(std::span<const std::byte> payload, int64_t i) {
  T value;
  std::memcpy(&value, payload.data() + static_cast<size_t>(i) * sizeof(T), sizeof(T));
  return value;
}

bool is_integer(GgufValueType type) {
  switch (type) {
    case GgufValueType::uint8:
    case GgufValueType::int8:
    case GgufValueType::uint16:
    case GgufValueType::int16:
    case GgufValueType::uint32:
    case GgufValueType::int32:
    case GgufValueType::uint64:
    case GgufValueType::int64:
      return true;
    default:
      return false;
  }
}

bool is_real(GgufValueType type) {
  return type == GgufValueType::float32 || type == GgufValueType::float64;
}
bool is_array(const GgufValue& value) {
  return value.type == GgufValueType::array;
}

Error metadata_error(const GgufFile& file, const GgufValue* value, std::string_view key, std::string detail) {
  std::string where = value == nullptr ? file.name() : cat(file.name(), ", byte ", value->offset);
  return {.code = Code::model_metadata,
          .detail = std::move(detail),
          .where = cat(where, ", key ", printable(key))};
}

Error missing(const GgufFile& file, std::string_view key) {
  return metadata_error(file, nullptr, key, cat("the key ", printable(key), " is missing"));
}

Error wrong_type(const GgufFile& file, const GgufValue& value, std::string_view expected) {
  return metadata_error(
      file, &value, value.key,
      cat("the key ", printable(value.key), " has type ", value.type_name(), ", ", expected, " expected"));
}

Error does_not_fit(const GgufFile& file, const GgufValue& value, int64_t bits) {
  return metadata_error(file, &value, value.key,
                        cat("the key ", printable(value.key), " holds ", static_cast<uint64_t>(bits),
                            ", at most ", INT64_MAX, " allowed"));
}

}  // namespace

std::string_view gguf_value_type_name(GgufValueType type) {
  const auto index = static_cast<size_t>(type);
  INFERD_CHECK(index < kTypeNames.size(), "value type ", index);
  return kTypeNames[index];
}

std::string GgufValue::type_name() const {
  if (type != GgufValueType::array) return std::string(gguf_value_type_name(type));
  return cat(gguf_value_type_name(element_type), "[", count, "]");
}

GgufStrings::GgufStrings(const GgufValue& array) : payload_(array.payload), count_(array.count) {
  INFERD_CHECK(is_array(array) && array.element_type == GgufValueType::string, array.type_name());
}

GgufIntegers::GgufIntegers(const GgufValue& value) : value_(value) {
  INFERD_CHECK(is_integer(value.element_type), value.type_name());
}

int64_t GgufIntegers::operator[](int64_t i) const {
  INFERD_CHECK(i >= 0 && i < value_.count, "element ", i, " of ", value_.count);
  switch (value_.element_type) {
    case GgufValueType::uint8:
      return load<uint8_t>(value_.payload, i);
    case GgufValueType::int8:
      return load<int8_t>(value_.payload, i);
    case GgufValueType::uint16:
      return load<uint16_t>(value_.payload, i);
    case GgufValueType::int16:
      return load<int16_t>(value_.payload, i);
    case GgufValueType::uint32:
      return load<uint32_t>(value_.payload, i);
    case GgufValueType::int32:
      return load<int32_t>(value_.payload, i);
    default:
      return load<int64_t>(value_.payload, i);
  }
}

GgufReals::GgufReals(const GgufValue& value) : value_(value) {
  INFERD_CHECK(is_real(value.element_type), value.type_name());
}

double GgufReals::operator[](int64_t i) const {
  INFERD_CHECK(i >= 0 && i < value_.count, "element ", i, " of ", value_.count);
  if (value_.element_type == GgufValueType::float32)
    return static_cast<double>(load<float>(value_.payload, i));
  return load<double>(value_.payload, i);
}

const GgufValue* GgufFile::find(std::string_view key) const {
  const auto by_key = [&](uint32_t index, std::string_view wanted) { return values_[index].key < wanted; };
  const auto found = std::lower_bound(values_by_key_.begin(), values_by_key_.end(), key, by_key);
  return found != values_by_key_.end() && values_[*found].key == key ? &values_[*found] : nullptr;
}

const GgufTensor* GgufFile::find_tensor(std::string_view name) const {
  const auto by_name = [&](uint32_t index, std::string_view wanted) { return tensors_[index].name < wanted; };
  const auto found = std::lower_bound(tensors_by_name_.begin(), tensors_by_name_.end(), name, by_name);
  return found != tensors_by_name_.end() && tensors_[*found].name == name ? &tensors_[*found] : nullptr;
}

Result<int64_t> GgufFile::integer(std::string_view key, std::optional<int64_t> fallback) const {
  const GgufValue* value = find(key);
  if (value == nullptr && fallback) return *fallback;
  if (value == nullptr) return missing(*this, key);
  if (!is_integer(value->type)) return wrong_type(*this, *value, "an integer");
  const int64_t number = GgufIntegers(*value)[0];
  if (value->type == GgufValueType::uint64 && number < 0) return does_not_fit(*this, *value, number);
  return number;
}

Result<double> GgufFile::real(std::string_view key, std::optional<double> fallback) const {
  const GgufValue* value = find(key);
  if (value == nullptr && fallback) return *fallback;
  if (value == nullptr) return missing(*this, key);
  if (!is_real(value->type)) return wrong_type(*this, *value, "float32 or float64");
  return GgufReals(*value)[0];
}

Result<bool> GgufFile::boolean(std::string_view key, std::optional<bool> fallback) const {
  const GgufValue* value = find(key);
  if (value == nullptr && fallback) return *fallback;
  if (value == nullptr) return missing(*this, key);
  if (value->type != GgufValueType::boolean) return wrong_type(*this, *value, "bool");
  return value->payload[0] != std::byte{0};
}

Result<std::string_view> GgufFile::string(std::string_view key,
                                          std::optional<std::string_view> fallback) const {
  const GgufValue* value = find(key);
  if (value == nullptr && fallback) return *fallback;
  if (value == nullptr) return missing(*this, key);
  if (value->type != GgufValueType::string) return wrong_type(*this, *value, "string");
  return std::string_view(reinterpret_cast<const char*>(value->payload.data()), value->payload.size());
}

Result<GgufStrings> GgufFile::strings(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return missing(*this, key);
  if (!is_array(*value) || value->element_type != GgufValueType::string) {
    return wrong_type(*this, *value, "an array of strings");
  }
  return GgufStrings(*value);
}

Result<GgufIntegers> GgufFile::integers(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return missing(*this, key);
  if (!is_array(*value) || !is_integer(value->element_type))
    return wrong_type(*this, *value, "an array of integers");
  const GgufIntegers numbers(*value);
  if (value->element_type == GgufValueType::uint64) {
    for (int64_t i = 0; i < numbers.size(); ++i) {
      if (numbers[i] < 0) return does_not_fit(*this, *value, numbers[i]);
    }
  }
  return numbers;
}

Result<GgufReals> GgufFile::reals(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return missing(*this, key);
  if (!is_array(*value) || !is_real(value->element_type)) {
    return wrong_type(*this, *value, "an array of float32 or float64");
  }
  return GgufReals(*value);
}

Result<const GgufTensor*> GgufFile::tensor(std::string_view name) const {
  if (const GgufTensor* found = find_tensor(name)) return found;
  return Error{.code = Code::model_tensor_missing, .detail = std::string(name), .where = name_};
}

Result<DType> GgufFile::dtype(const GgufTensor& tensor) const {
  if (const auto type = ggml_compute_type(tensor.type)) return *type;
  return Error{.code = Code::model_tensor_type,
               .detail = cat(tensor.name, " has type ", ggml_type_name(tensor.type)),
               .where = cat(name_of_part(tensor.part), ", byte ", tensor.entry_offset, ", type of tensor ",
                            printable(tensor.name))};
}

int64_t GgufFile::total_bytes() const {
  int64_t bytes = std::ssize(bytes_);
  for (const MappedFile& part : other_parts_) bytes += part.size();
  return bytes;
}

const std::string& GgufFile::name_of_part(int32_t part) const {
  return part == 0 ? name_ : other_parts_[static_cast<size_t>(part) - 1].path();
}

void GgufFile::release(const GgufTensor& tensor) const {
  if (!mapping_) return;
  const MappedFile& file = tensor.part == 0 ? *mapping_ : other_parts_[static_cast<size_t>(tensor.part) - 1];
  file.release(tensor.offset, std::ssize(tensor.data));
}

}  // namespace inferd
