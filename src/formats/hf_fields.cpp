#include "formats/hf_fields.h"

#include "base/strings.h"

namespace inferd {

const Json* HfFields::find(std::string_view key) const {
  const Json* value = object_.find(key);
  return value != nullptr && value->is_null() ? nullptr : value;
}

Error HfFields::error(std::string_view key, std::string_view detail) const {
  return {
      .code = Code::model_metadata,
      .detail = cat(prefix_, key, " ", detail),
      .where = cat(file_, ", key ", prefix_, key),
      .fix = "fetch the model's folder again, or convert the model with a current version of transformers"};
}

Error HfFields::wrong_type(std::string_view key, const Json& value, std::string_view expected) const {
  return error(key, cat("is of type ", value.kind_name(), ", ", expected, " expected"));
}

Result<int64_t> HfFields::as_integer(std::string_view key, const Json& value, int64_t least,
                                     int64_t most) const {
  if (!value.is_integer()) return wrong_type(key, value, "integer");
  const int64_t number = value.as_integer();
  if (number < least || number > most)
    return error(key, cat("is ", number, ", ", least, " to ", most, " allowed"));
  return number;
}

Result<double> HfFields::as_number(std::string_view key, const Json& value, double least, double most) const {
  if (!value.is_number()) return wrong_type(key, value, "number");
  const double number = value.as_number();
  if (number < least || number > most)
    return error(key, cat("is ", number, ", ", least, " to ", most, " allowed"));
  return number;
}

Result<const Json::Array*> HfFields::array(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return static_cast<const Json::Array*>(nullptr);
  if (!value->is_array()) return wrong_type(key, *value, "array");
  return &value->as_array();
}

Result<std::optional<int64_t>> HfFields::integer(std::string_view key, int64_t least, int64_t most) const {
  const Json* value = find(key);
  if (value == nullptr) return std::optional<int64_t>();
  INFERD_TRY(const int64_t number, as_integer(key, *value, least, most));
  return std::optional(number);
}

Result<int64_t> HfFields::required(std::string_view key, int64_t least, int64_t most) const {
  const Json* value = find(key);
  if (value == nullptr) return error(key, "is missing");
  return as_integer(key, *value, least, most);
}

Result<std::optional<double>> HfFields::number(std::string_view key, double least, double most) const {
  const Json* value = find(key);
  if (value == nullptr) return std::optional<double>();
  INFERD_TRY(const double number, as_number(key, *value, least, most));
  return std::optional(number);
}

Result<std::optional<bool>> HfFields::boolean(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::optional<bool>();
  if (!value->is_bool()) return wrong_type(key, *value, "boolean");
  return std::optional(value->as_bool());
}

Result<std::optional<std::string>> HfFields::string(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::optional<std::string>();
  if (!value->is_string()) return wrong_type(key, *value, "string");
  return std::optional(value->as_string());
}

Result<std::vector<std::string>> HfFields::strings(std::string_view key) const {
  std::vector<std::string> all;
  INFERD_TRY(const Json::Array* values, array(key));
  if (values == nullptr) return all;
  for (const Json& value : *values) {
    if (!value.is_string()) return wrong_type(key, value, "an array of strings");
    all.push_back(value.as_string());
  }
  return all;
}

Result<std::vector<int64_t>> HfFields::integers(std::string_view key, int64_t least, int64_t most) const {
  std::vector<int64_t> all;
  INFERD_TRY(const Json::Array* values, array(key));
  if (values == nullptr) return all;
  for (const Json& value : *values) {
    INFERD_TRY(const int64_t number, as_integer(key, value, least, most));
    all.push_back(number);
  }
  return all;
}

Result<std::vector<double>> HfFields::numbers(std::string_view key, double least, double most) const {
  std::vector<double> all;
  INFERD_TRY(const Json::Array* values, array(key));
  if (values == nullptr) return all;
  for (const Json& value : *values) {
    INFERD_TRY(const double number, as_number(key, value, least, most));
    all.push_back(number);
  }
  return all;
}

Result<std::vector<int64_t>> HfFields::one_or_more(std::string_view key, int64_t least, int64_t most) const {
  const Json* value = find(key);
  if (value == nullptr || value->is_array()) return integers(key, least, most);
  if (!value->is_integer()) return wrong_type(key, *value, "an integer or an array of integers");
  INFERD_TRY(const int64_t number, as_integer(key, *value, least, most));
  return std::vector<int64_t>{number};
}

Result<std::optional<HfFields>> HfFields::object(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::optional<HfFields>();
  if (!value->is_object()) return wrong_type(key, *value, "object");
  return std::optional<HfFields>(std::in_place, *value, file_, cat(prefix_, key, "."));
}

}  // namespace inferd
