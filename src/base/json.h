// JSON values, a strict reader with limits, and a writer. The reader is nlohmann's, behind this plain
// interface, so that its header is compiled once; the limits are ours.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace inferd {

class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;  // in the order of the text; keys are unique
  enum class Kind { null, boolean, integer, real, string, array, object };

  Json() = default;
  Json(bool value) : value_(value) {}                           // NOLINT: implicit by design
  Json(int value) : value_(int64_t{value}) {}                   // NOLINT
  Json(int64_t value) : value_(value) {}                        // NOLINT
  Json(double value) : value_(value) {}                         // NOLINT
  Json(std::string value) : value_(std::move(value)) {}         // NOLINT
  Json(std::string_view value) : value_(std::string(value)) {}  // NOLINT
  Json(const char* value) : value_(std::string(value)) {}       // NOLINT
  Json(Array value) : value_(std::move(value)) {}               // NOLINT
  Json(Object value) : value_(std::move(value)) {}              // NOLINT

  Kind kind() const { return static_cast<Kind>(value_.index()); }
  bool is_null() const { return kind() == Kind::null; }
  bool is_bool() const { return kind() == Kind::boolean; }
  bool is_integer() const { return kind() == Kind::integer; }
  bool is_number() const { return kind() == Kind::integer || kind() == Kind::real; }
  bool is_string() const { return kind() == Kind::string; }
  bool is_array() const { return kind() == Kind::array; }
  bool is_object() const { return kind() == Kind::object; }
  std::string_view kind_name() const;  // "null" "boolean" "integer" "number" "string" "array" "object"

  // Each requires that kind.
  bool as_bool() const { return std::get<bool>(value_); }
  int64_t as_integer() const { return std::get<int64_t>(value_); }
  double as_number() const {
    return kind() == Kind::integer ? static_cast<double>(std::get<int64_t>(value_))
                                   : std::get<double>(value_);
  }
  const std::string& as_string() const { return std::get<std::string>(value_); }
  const Array& as_array() const { return std::get<Array>(value_); }
  Array& as_array() { return std::get<Array>(value_); }
  const Object& as_object() const { return std::get<Object>(value_); }
  Object& as_object() { return std::get<Object>(value_); }

  // The member of that name, or null when this is no object or has none.
  const Json* find(std::string_view key) const;

  bool operator==(const Json&) const = default;

 private:
  std::variant<std::monostate, bool, int64_t, double, std::string, Array, Object> value_;
};

struct JsonLimits {
  int depth = 64;  // nesting of arrays and objects
  int64_t values =
      2000000;  // numbers, strings, literals, arrays and objects together; bounds the memory of a parse
};

// RFC 8259, whole text, UTF-8. Refused with E-REQ-001 and the byte offset: anything after the value, a
// duplicate key, a lone surrogate escape, ill-formed UTF-8, NaN and Infinity, a number past the range of
// double, a limit exceeded. An integer that does not fit int64 is read as a real number.
Result<Json> parse_json(std::string_view text, const JsonLimits& limits = {});

// Compact, members in order, text in UTF-8 (ill-formed bytes become U+FFFD); reals in the shortest form that
// reads back as the same double, with ".0" when it would look like an integer. Not finite: null.
std::string to_json(const Json& value);

void append_json_string(std::string& out, std::string_view text);  // with the quotes
void append_json_number(std::string& out, double value);           // as to_json writes reals

}  // namespace inferd
