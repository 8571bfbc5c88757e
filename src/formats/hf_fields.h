// Fields of one JSON object of a Hugging Face folder, typed and in range; errors name file and key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace inferd {

// null counts as absent everywhere. Holds references: the object and the name outlive it.
class HfFields {
 public:
  // `prefix` is what stands before a key in messages: "", "text_config.", "rope_parameters.".
  HfFields(const Json& object, const std::string& file, std::string prefix = {})
      : object_(object), file_(file), prefix_(std::move(prefix)) {}

  const Json* find(std::string_view key) const;  // null when absent

  Error error(std::string_view key, std::string_view detail) const;  // E-MODEL-003

  Result<std::optional<int64_t>> integer(std::string_view key, int64_t least = 1,
                                         int64_t most = INT32_MAX) const;
  Result<std::optional<double>> number(std::string_view key, double least, double most) const;
  Result<std::optional<bool>> boolean(std::string_view key) const;
  Result<std::optional<std::string>> string(std::string_view key) const;
  Result<std::vector<std::string>> strings(std::string_view key) const;
  Result<std::vector<int64_t>> integers(std::string_view key, int64_t least, int64_t most) const;
  Result<std::vector<double>> numbers(std::string_view key, double least, double most) const;
  // An integer, or a list of them.
  Result<std::vector<int64_t>> one_or_more(std::string_view key, int64_t least, int64_t most) const;
  Result<int64_t> required(std::string_view key, int64_t least = 1, int64_t most = INT32_MAX) const;

  // The object under `key`, nullopt when absent.
  Result<std::optional<HfFields>> object(std::string_view key) const;

 private:
  Error wrong_type(std::string_view key, const Json& value, std::string_view expected) const;
  Result<int64_t> as_integer(std::string_view key, const Json& value, int64_t least, int64_t most) const;
  Result<double> as_number(std::string_view key, const Json& value, double least, double most) const;
  Result<const Json::Array*> array(std::string_view key) const;  // null when absent

  const Json& object_;
  const std::string& file_;
  std::string prefix_;
};

}  // namespace inferd
