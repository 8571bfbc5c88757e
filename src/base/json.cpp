#include "base/json.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/utf8.h"

namespace inferd {
namespace {

using Sax = nlohmann::json_sax<nlohmann::json>;

// Builds a Json from the reader's events; every refusal is remembered as text.
class Builder final : public Sax {
 public:
  explicit Builder(const JsonLimits& limits) : limits_(limits) {}

  bool null() override { return add(Json()); }
  bool boolean(bool value) override { return add(Json(value)); }
  bool number_integer(number_integer_t value) override { return add(Json(int64_t{value})); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value <= static_cast<uint64_t>(INT64_MAX)) return add(Json(static_cast<int64_t>(value)));
    return add(Json(static_cast<double>(value)));
  }
  bool number_float(number_float_t value, const string_t&) override { return add(Json(value)); }
  bool string(string_t& value) override { return add(Json(std::move(value))); }
  bool binary(binary_t&) override { return refuse("binary value"); }
  bool start_object(std::size_t) override { return open(Json(Json::Object())); }
  bool start_array(std::size_t) override { return open(Json(Json::Array())); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& value) override {
    if (!open_.back().keys.insert(value).second) return refuse(cat("duplicate key ", printable(value)));
    open_.back().key = std::move(value);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    // nlohmann: "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while ...".
    std::string_view text = error.what();
    if (const size_t at = text.find("column "); at != std::string_view::npos) {
      if (const size_t colon = text.find(": ", at); colon != std::string_view::npos)
        text = text.substr(colon + 2);
    } else if (const size_t bracket = text.find("] "); bracket != std::string_view::npos) {
      text = text.substr(bracket + 2);
    }
    position_ = position;
    // The reader quotes what it read last; a hostile body would come back whole.
    return refuse(replace_invalid_utf8(text.substr(0, 160)));
  }

  Json take() { return std::move(root_); }
  const std::string& refusal() const { return refusal_; }
  size_t position() const { return position_; }

 private:
  struct Level {
    Json value;
    std::string key;
    std::unordered_set<std::string> keys;
  };

  bool refuse(std::string why) {
    if (refusal_.empty()) refusal_ = std::move(why);
    return false;
  }

  bool add(Json value) {
    if (++values_ > limits_.values) return refuse(cat("more than ", with_commas(limits_.values), " values"));
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (Level& level = open_.back(); level.value.is_array()) {
      level.value.as_array().push_back(std::move(value));
    } else {
      level.value.as_object().emplace_back(std::move(level.key), std::move(value));
    }
    return true;
  }

  bool open(Json container) {
    if (static_cast<int>(open_.size()) >= limits_.depth)
      return refuse(cat("nested deeper than ", limits_.depth));
    open_.push_back({std::move(container), {}, {}});
    return true;
  }

  bool close() {
    Json value = std::move(open_.back().value);
    open_.pop_back();
    return add(std::move(value));
  }

  const JsonLimits limits_;
  int64_t values_ = 0;
  std::vector<Level> open_;
  Json root_;
  std::string refusal_;
  size_t position_ = 0;
};

void append_value(std::string& out, const Json& value) {
  switch (value.kind()) {
    case Json::Kind::null:
      out.append("null");
      break;
    case Json::Kind::boolean:
      out.append(value.as_bool() ? "true" : "false");
      break;
    case Json::Kind::integer:
      append_any(out, value.as_integer());
      break;
    case Json::Kind::real:
      append_json_number(out, value.as_number());
      break;
    case Json::Kind::string:
      append_json_string(out, value.as_string());
      break;
    case Json::Kind::array: {
      char separator = '[';
      for (const Json& item : value.as_array()) {
        out.push_back(separator);
        append_value(out, item);
        separator = ',';
      }
      out.append(separator == '[' ? "[]" : "]");
      break;
    }
    case Json::Kind::object: {
      char separator = '{';
      for (const auto& [key, member] : value.as_object()) {
        out.push_back(separator);
        append_json_string(out, key);
        out.push_back(':');
        append_value(out, member);
        separator = ',';
      }
      out.append(separator == '{' ? "{}" : "}");
      break;
    }
  }
}

}  // namespace

std::string_view Json::kind_name() const {
  switch (kind()) {
    case Kind::null:
      return "null";
    case Kind::boolean:
      return "boolean";
    case Kind::integer:
      return "integer";
    case Kind::real:
      return "number";
    case Kind::string:
      return "string";
    case Kind::array:
      return "array";
    case Kind::object:
      return "object";
  }
  return "value";
}

const Json* Json::find(std::string_view key) const {
  if (!is_object()) return nullptr;
  for (const Member& member : as_object()) {
    if (member.first == key) return &member.second;
  }
  return nullptr;
}

Result<Json> parse_json(std::string_view text, const JsonLimits& limits) {
  if (text.starts_with("\xEF\xBB\xBF")) {
    return Error{.code = Code::req_json, .detail = "it starts with a byte order mark", .where = "byte 0"};
  }
  // The reader takes a NUL for the end of its input; in JSON there is no place for one.
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return Error{.code = Code::req_json, .detail = "it holds a NUL byte", .where = cat("byte ", nul)};
  }
  Builder builder(limits);
  if (nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) return builder.take();
  Error error{.code = Code::req_json, .detail = builder.refusal()};
  if (builder.position() > 0) error.where = cat("byte ", builder.position());
  return error;
}

void append_json_string(std::string& out, std::string_view text) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  out.push_back('"');
  size_t plain = 0;  // start of the run that needs no change
  size_t at = 0;
  const auto flush = [&] { out.append(text.substr(plain, at - plain)); };
  while (at < text.size()) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte >= 0x20 && byte != '"' && byte != '\\' && byte < 0x80) {
      ++at;
      continue;
    }
    if (byte >= 0x80) {
      const Utf8Step step = decode_utf8(text.substr(at));
      if (step.valid) {
        at += step.length;
        continue;
      }
      flush();
      append_utf8(out, kReplacement);
      at += step.length;
      plain = at;
      continue;
    }
    flush();
    switch (byte) {
      case '"':
        out.append("\\\"");
        break;
      case '\\':
        out.append("\\\\");
        break;
      case '\n':
        out.append("\\n");
        break;
      case '\r':
        out.append("\\r");
        break;
      case '\t':
        out.append("\\t");
        break;
      default:
        out.append("\\u00");
        out.push_back(kHex[byte >> 4]);
        out.push_back(kHex[byte & 15]);
    }
    ++at;
    plain = at;
  }
  flush();
  out.push_back('"');
}

void append_json_number(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out.append("null");
    return;
  }
  const size_t begin = out.size();
  append_piece(out, value);
  if (out.find_first_of(".e", begin) == std::string::npos) out.append(".0");
}

std::string to_json(const Json& value) {
  std::string out;
  append_value(out, value);
  return out;
}

}  // namespace inferd
