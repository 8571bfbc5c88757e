#include "server/request_fields.h"

#include <algorithm>

#include "base/strings.h"

namespace inferd {
namespace {

// "messages[3].content" to "/messages/3/content".
std::string pointer_of(std::string_view path) {
  std::string pointer = "/";
  for (const char c : path) {
    if (c == '.' || c == '[') {
      pointer.push_back('/');
    } else if (c != ']') {
      pointer.push_back(c);
    }
  }
  return pointer;
}

// Nested values are found faster by their pointer; a plain field's pointer would only repeat its name.
std::string at_pointer(std::string_view path) {
  return path.find_first_of(".[") == std::string_view::npos ? std::string()
                                                            : cat(" (at ", pointer_of(path), ")");
}

std::string_view kind_with_article(Json::Kind kind) {
  switch (kind) {
    case Json::Kind::null:
      return "null";
    case Json::Kind::boolean:
      return "a boolean";
    case Json::Kind::integer:
      return "an integer";
    case Json::Kind::real:
      return "a number";
    case Json::Kind::string:
      return "a string";
    case Json::Kind::array:
      return "an array";
    case Json::Kind::object:
      return "an object";
  }
  return "a value";
}

bool has_type(const Field& field, const Json& value) {
  switch (field.type) {
    case Field::Type::boolean:
      return value.is_bool();
    case Field::Type::integer:
      return value.is_integer();
    case Field::Type::number:
      return value.is_number();
    case Field::Type::string:
      return value.is_string();
    case Field::Type::other:
      return true;
  }
  return false;
}

bool in_range(const Field& field, const Json& value) {
  switch (field.type) {
    case Field::Type::integer:
      return value.as_integer() >= field.low && value.as_integer() <= field.high;
    case Field::Type::number: {
      const double number = value.as_number();
      return (field.low_open ? number > field.low_number : number >= field.low_number) &&
             number <= field.high_number;
    }
    case Field::Type::string: {
      const auto bytes = static_cast<int64_t>(value.as_string().size());
      return bytes >= field.low && bytes <= field.high;
    }
    case Field::Type::boolean:
    case Field::Type::other:
      return true;
  }
  return false;
}

}  // namespace

std::string allowed_text(const Field& field) {
  switch (field.type) {
    case Field::Type::boolean:
      return "true or false";
    case Field::Type::integer:
      return field.high == INT64_MAX ? cat("an integer from ", field.low, " to 2^63 - 1")
                                     : cat("an integer from ", field.low, " to ", field.high);
    case Field::Type::number:
      return cat("a number ", field.low_open ? "above " : "from ", field.low_number,
                 field.low_open ? " up to " : " to ", field.high_number);
    case Field::Type::string:
      return cat("a string of ", field.low, " to ", field.high, " bytes");
    case Field::Type::other:
      return std::string(field.allowed);
  }
  return {};
}

std::string describe(const Json& value) {
  switch (value.kind()) {
    case Json::Kind::string:
      return cat("the string ", printable(value.as_string(), 40));
    case Json::Kind::array:
      return cat("an array of ", value.as_array().size());
    case Json::Kind::object:
      return "an object";
    default:
      return to_json(value);
  }
}

Error type_error(std::string_view path, const Json& got, std::string_view allowed) {
  std::string shown;
  if (got.is_string()) shown = cat(" (", printable(got.as_string(), 40), ")");
  if (got.is_number() || got.is_bool()) shown = cat(" (", to_json(got), ")");
  return {.code = Code::req_type,
          .detail = cat(path, " is ", kind_with_article(got.kind()), shown, ", allowed is ", allowed,
                        at_pointer(path)),
          .param = std::string(path)};
}

Error value_error(std::string_view path, std::string_view got, std::string_view allowed) {
  return {.code = Code::req_value,
          .detail = cat(path, " is ", got, ", allowed is ", allowed, at_pointer(path)),
          .param = std::string(path)};
}

Error missing_error(std::string_view path, std::string_view allowed) {
  return {.code = Code::req_missing,
          .detail = cat(path, " must be ", allowed, at_pointer(path)),
          .param = std::string(path)};
}

Error unknown_member_error(std::string_view path, std::string_view name, std::span<const std::string> known) {
  const std::optional<std::string> nearest = nearest_name(name, known);
  return {.code = Code::req_field,
          .detail = cat(printable(name), " is not a field of ", path,
                        nearest ? cat("; did you mean \"", *nearest, "\"?") : ""),
          .param = std::string(name.substr(0, 64))};
}

Status read_fields(RequestFields& fields, Json& body, std::span<const FieldTable> tables,
                   std::string_view route) {
  if (!body.is_object()) {
    return Error{.code = Code::req_json,
                 .detail = cat("the body is ", kind_with_article(body.kind()), ", allowed is an object")};
  }
  for (auto& [name, value] : body.as_object()) {
    const Field* field = nullptr;
    for (const FieldTable table : tables) {
      const auto found = std::ranges::find(table, std::string_view(name), &Field::name);
      if (found != table.end()) field = &*found;
    }
    if (field == nullptr) {
      std::vector<std::string> known;
      for (const FieldTable table : tables) {
        for (const Field& each : table) known.emplace_back(each.name);
      }
      return unknown_member_error(route, name, known);
    }
    if (value.is_null()) continue;
    if (!has_type(*field, value)) return type_error(name, value, allowed_text(*field));
    if (!in_range(*field, value)) {
      const std::string got =
          value.is_string() ? cat("a string of ", value.as_string().size(), " bytes") : describe(value);
      return value_error(name, got, allowed_text(*field));
    }
    INFERD_TRY_STATUS(field->set(fields, value));
  }
  return {};
}

Result<std::vector<int32_t>> read_ids(std::string_view path, const Json& value, size_t most) {
  if (!value.is_array()) return type_error(path, value, "a list of token ids");
  const Json::Array& items = value.as_array();
  if (items.size() > most)
    return value_error(path, cat("a list of ", items.size()), cat("at most ", most, " token ids"));
  std::vector<int32_t> ids;
  ids.reserve(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    const Json& id = items[i];
    if (!id.is_integer()) return type_error(cat(path, "[", i, "]"), id, "a token id");
    if (id.as_integer() < 0 || id.as_integer() > INT32_MAX) {
      return value_error(cat(path, "[", i, "]"), cat(id.as_integer()),
                         "a token id of this model's vocabulary");
    }
    ids.push_back(static_cast<int32_t>(id.as_integer()));
  }
  return ids;
}

std::string field_table_markdown(std::span<const FieldTable> tables) {
  std::string out = "| field | allowed | default | meaning |\n| --- | --- | --- | --- |\n";
  for (const FieldTable table : tables) {
    for (const Field& field : table) {
      out += cat("| `", field.name, "` | ", allowed_text(field), " | ", field.default_text, " | ",
                 field.meaning, " |\n");
    }
  }
  return out;
}

}  // namespace inferd
