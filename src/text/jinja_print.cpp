#include "text/jinja_print.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/jinja_loop.h"
#include "text/jinja_operators.h"
#include "text/jinja_unicode.h"

namespace inferd::jinja {
namespace {

constexpr std::string_view kHex = "0123456789abcdef";

void append_hex(std::string& out, char32_t value, int digits) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out.push_back(kHex[value >> shift & 15]);
}

// A string with Python's quotes and escapes, where everything added has the origin of what it stands for.
void append_quoted(TextBuilder& out, const Text& text) {
  const std::string_view all = text.view();
  const bool has_single = all.find('\'') != std::string_view::npos;
  const char quote = has_single && all.find('"') == std::string_view::npos ? '"' : '\'';
  const Origin frame = text.origin() == Origin::data ? Origin::data : Origin::markup;
  if (text.is_safe()) out.append("Markup(", frame);
  out.append(std::string_view(&quote, 1), frame);
  text.for_each_run([&](std::string_view piece, Origin origin) {
    std::string escaped;
    for (size_t at = 0; at < piece.size();) {
      const auto [c, length] = char_at(piece, at);
      if (c == static_cast<unsigned char>(quote) || c == '\\') {
        escaped.push_back('\\');
        escaped.push_back(static_cast<char>(c));
      } else if (c == '\n') {
        escaped.append("\\n");
      } else if (c == '\r') {
        escaped.append("\\r");
      } else if (c == '\t') {
        escaped.append("\\t");
      } else if (has_property(c, kPrintable)) {
        escaped.append(piece.substr(at, length));
      } else if (c < 0x100) {
        escaped.append("\\x");
        append_hex(escaped, c, 2);
      } else if (c < 0x10000) {
        escaped.append("\\u");
        append_hex(escaped, c, 4);
      } else {
        escaped.append("\\U");
        append_hex(escaped, c, 8);
      }
      at += length;
    }
    out.append(escaped, origin);
  });
  out.append(std::string_view(&quote, 1), frame);
  if (text.is_safe()) out.append(")", frame);
}

class Printer {
 public:
  explicit Printer(Runtime& runtime) : runtime_(runtime) {}

  Status repr(const Value& value) {
    const Runtime::Nest nest(runtime_);
    if (!nest.ok()) return nest.error();
    if (!runtime_.spend(1)) return runtime_.exhausted();
    const Origin origin = origin_of(value);
    switch (value.kind()) {
      case Kind::undefined:
        out_.append("Undefined", Origin::markup);
        return {};
      case Kind::none:
        out_.append("None", origin);
        return {};
      case Kind::boolean:
        out_.append(value.whole() != 0 ? "True" : "False", origin);
        return {};
      case Kind::integer:
        out_.append(cat(value.whole()), origin);
        return {};
      case Kind::real: {
        std::string digits;
        append_real(digits, value.real());
        out_.append(digits, origin);
        return {};
      }
      case Kind::text:
        if (!runtime_.spend_bytes(value.text().size() * 8)) return runtime_.exhausted();
        append_quoted(out_, value.text());
        return runtime_.fits_text(out_.size());
      case Kind::list:
        return repr_items(value, "[", "]", origin);
      case Kind::tuple:
        return repr_items(value, "(", value.as<ListObject>().items.size() == 1 ? ",)" : ")", origin);
      case Kind::dict:
        return repr_dict(value.as<DictObject>(), origin);
      case Kind::range: {
        const auto& range = value.as<RangeObject>();
        out_.append(cat("range(", range.start, ", ", range.stop), origin);
        if (range.step != 1) out_.append(cat(", ", range.step), origin);
        out_.append(")", origin);
        return {};
      }
      case Kind::view:
        return repr_view(value, origin);
      case Kind::space:
        return repr_space(value);
      case Kind::macro: {
        const MacroStatement& macro = *value.as<MacroObject>().macro;
        out_.append("<Macro ", Origin::markup);
        if (macro.is_caller) {
          out_.append("anonymous", Origin::markup);
        } else {
          append_quoted(out_, Text::borrowed(macro.name, Origin::markup));
        }
        out_.append(">", Origin::markup);
        return {};
      }
      default:
        return run_error(cat(kind_name(value.kind()), " cannot be printed"));
    }
  }

  TextBuilder take() { return std::move(out_); }

 private:
  Status repr_items(const Value& value, std::string_view open, std::string_view close, Origin origin) {
    out_.append(open, origin);
    bool first = true;
    for (const Value& item : value.as<ListObject>().items) {
      if (!first) out_.append(", ", origin);
      first = false;
      INFERD_TRY_STATUS(repr(item));
    }
    out_.append(close, origin);
    return {};
  }

  Status repr_dict(DictObject& dict, Origin origin) {
    out_.append("{", origin);
    bool first = true;
    for (const auto& [key, item] : dict.entries) {
      if (!first) out_.append(", ", origin);
      first = false;
      INFERD_TRY_STATUS(repr(key));
      out_.append(": ", origin);
      INFERD_TRY_STATUS(repr(item));
    }
    out_.append("}", origin);
    return {};
  }

  Status repr_view(const Value& value, Origin origin) {
    const auto& view = value.as<ViewObject>();
    const bool items = view.what == ViewObject::What::items;
    out_.append(items                                 ? "dict_items(["
                : view.what == ViewObject::What::keys ? "dict_keys(["
                                                      : "dict_values([",
                origin);
    bool first = true;
    for (const auto& [key, item] : view.dict->entries) {
      if (!first) out_.append(", ", origin);
      first = false;
      if (items) out_.append("(", origin);
      if (view.what != ViewObject::What::values) INFERD_TRY_STATUS(repr(key));
      if (items) out_.append(", ", origin);
      if (view.what != ViewObject::What::keys) INFERD_TRY_STATUS(repr(item));
      if (items) out_.append(")", origin);
    }
    out_.append("])", origin);
    return {};
  }

  Status repr_space(const Value& value) {
    out_.append("<Namespace {", Origin::markup);
    bool first = true;
    for (const auto& [name, item] : value.as<NamespaceObject>().members) {
      if (!first) out_.append(", ", Origin::markup);
      first = false;
      append_quoted(out_, name);
      out_.append(": ", Origin::markup);
      INFERD_TRY_STATUS(repr(item));
    }
    out_.append("}>", Origin::markup);
    return {};
  }

  Runtime& runtime_;
  TextBuilder out_;
};

class JsonPrinter {
 public:
  JsonPrinter(Runtime& runtime, const JsonStyle& style) : runtime_(runtime), style_(style) {}

  Status print(const Value& value) {
    const Runtime::Nest nest(runtime_);
    if (!nest.ok()) return nest.error();
    if (!runtime_.spend(1)) return runtime_.exhausted();
    switch (value.kind()) {
      case Kind::text:
        return print_string(value.text());
      case Kind::list:
      case Kind::tuple:
        return print_list(value.as<ListObject>());
      case Kind::dict:
        return print_dict(value.as<DictObject>());
      case Kind::none:
      case Kind::boolean:
      case Kind::integer:
      case Kind::real:
        out_.append(scalar(value), value.scalar_origin());
        return {};
      default:
        return run_error(cat(kind_name(value.kind()), " cannot be written as JSON"));
    }
  }

  TextBuilder take() { return std::move(out_); }

 private:
  static std::string scalar(const Value& value) {
    if (value.is(Kind::none)) return "null";
    if (value.is(Kind::boolean)) return value.whole() != 0 ? "true" : "false";
    if (value.is(Kind::integer)) return cat(value.whole());
    const double number = value.real();
    if (std::isnan(number)) return "NaN";
    if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
    std::string digits;
    append_real(digits, number);
    return digits;
  }

  Status print_string(const Text& text) {
    if (!runtime_.spend_bytes(text.size() * 2)) return runtime_.exhausted();
    const Origin frame = text.origin() == Origin::data ? Origin::data : Origin::markup;
    out_.append("\"", frame);
    text.for_each_run([&](std::string_view piece, Origin origin) { print_piece(piece, origin); });
    out_.append("\"", frame);
    return runtime_.fits_text(out_.size());
  }

  void print_piece(std::string_view piece, Origin origin) {
    size_t plain = 0;  // start of the run that needs no change
    std::string escaped;
    for (size_t at = 0; at < piece.size();) {
      const auto byte = static_cast<unsigned char>(piece[at]);
      if (byte >= 0x20 && byte != '"' && byte != '\\' && (byte < 0x80 || !style_.ensure_ascii)) {
        ++at;
        continue;
      }
      out_.append(piece.substr(plain, at - plain), origin);
      const auto [c, length] = char_at(piece, at);
      escaped.clear();
      switch (c) {
        case '"':
          escaped = "\\\"";
          break;
        case '\\':
          escaped = "\\\\";
          break;
        case '\n':
          escaped = "\\n";
          break;
        case '\r':
          escaped = "\\r";
          break;
        case '\t':
          escaped = "\\t";
          break;
        case '\b':
          escaped = "\\b";
          break;
        case '\f':
          escaped = "\\f";
          break;
        default:
          if (c >= 0x10000) {  // a surrogate pair
            escaped = "\\u";
            append_hex(escaped, 0xD7C0 + (c >> 10), 4);
            escaped += "\\u";
            append_hex(escaped, 0xDC00 + (c & 0x3FF), 4);
          } else {
            escaped = "\\u";
            append_hex(escaped, c, 4);
          }
      }
      out_.append(escaped, origin);
      at += length;
      plain = at;
    }
    out_.append(piece.substr(plain), origin);
  }

  Status new_line(Origin origin) {
    if (!style_.indented) return {};
    out_.append("\n", origin);
    INFERD_TRY_STATUS(runtime_.admit_text(style_.indent.size() * static_cast<size_t>(level_)));
    for (int i = 0; i < level_; ++i) out_.append(style_.indent.view(), origin);
    return runtime_.fits_text(out_.size());
  }

  Status print_list(ListObject& list) {
    const Origin origin = list.from_caller ? Origin::data : Origin::markup;
    if (list.items.empty()) {
      out_.append("[]", origin);
      return {};
    }
    out_.append("[", origin);
    ++level_;
    for (size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) out_.append(style_.item_separator.view(), origin);
      INFERD_TRY_STATUS(new_line(origin));
      INFERD_TRY_STATUS(print(list.items[i]));
    }
    --level_;
    INFERD_TRY_STATUS(new_line(origin));
    out_.append("]", origin);
    return {};
  }

  Status print_dict(DictObject& dict) {
    const Origin origin = dict.from_caller ? Origin::data : Origin::markup;
    if (dict.entries.empty()) {
      out_.append("{}", origin);
      return {};
    }
    std::vector<Value> order;
    if (style_.sort_keys) {
      for (const auto& [key, item] : dict.entries) order.push_back(runtime_.tuple({key, item}));
      INFERD_TRY(order, sorted(runtime_, std::move(order), [](Runtime& rt, const Value& a, const Value& b) {
                   return less(rt, a.as<ListObject>().items[0], b.as<ListObject>().items[0]);
                 }));
    }
    out_.append("{", origin);
    ++level_;
    for (size_t i = 0; i < dict.entries.size(); ++i) {
      const Value& key = style_.sort_keys ? order[i].as<ListObject>().items[0] : dict.entries[i].first;
      const Value& item = style_.sort_keys ? order[i].as<ListObject>().items[1] : dict.entries[i].second;
      if (i > 0) out_.append(style_.item_separator.view(), origin);
      INFERD_TRY_STATUS(new_line(origin));
      if (key.is(Kind::text)) {
        INFERD_TRY_STATUS(print_string(key.text()));
      } else if (key.is(Kind::none) || key.is_number()) {
        out_.append(cat("\"", scalar(key), "\""), key.scalar_origin());
      } else {
        return run_error(cat(kind_name(key.kind()), " cannot be a key in JSON"));
      }
      out_.append(style_.key_separator.view(), origin);
      INFERD_TRY_STATUS(print(item));
    }
    --level_;
    INFERD_TRY_STATUS(new_line(origin));
    out_.append("}", origin);
    return {};
  }

  Runtime& runtime_;
  const JsonStyle& style_;
  int level_ = 0;
  TextBuilder out_;
};

}  // namespace

void append_real(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out.append(std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    return;
  }
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  std::string_view shortest(buffer, static_cast<size_t>(end - buffer));
  if (shortest.starts_with('-')) {
    out.push_back('-');
    shortest.remove_prefix(1);
  }
  const size_t mark = shortest.find('e');
  std::string_view power = shortest.substr(mark + 1);
  if (power.starts_with('+')) power.remove_prefix(1);
  const int exponent = static_cast<int>(parse_int(power).value_or(0));
  std::string digits(shortest.substr(0, mark));
  std::erase(digits, '.');
  const int count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    out.push_back(digits[0]);
    if (count > 1) out.append(".").append(digits, 1);
    out.append(exponent < 0 ? "e-" : "e+");
    if (std::abs(exponent) < 10) out.push_back('0');
    append_any(out, std::abs(exponent));
  } else if (exponent < 0) {
    out.append("0.").append(static_cast<size_t>(-exponent - 1), '0').append(digits);
  } else if (count <= exponent + 1) {
    out.append(digits).append(static_cast<size_t>(exponent + 1 - count), '0').append(".0");
  } else {
    out.append(digits, 0, static_cast<size_t>(exponent) + 1)
        .append(".")
        .append(digits, static_cast<size_t>(exponent) + 1);
  }
}

Result<Text> to_text(Runtime& runtime, const Value& value) {
  if (value.is(Kind::text)) return value.text();
  if (value.is(Kind::undefined)) return Text();
  return to_repr(runtime, value);
}

Result<Text> to_repr(Runtime& runtime, const Value& value) {
  Printer printer(runtime);
  INFERD_TRY_STATUS(printer.repr(value));
  return runtime.finish(printer.take());
}

Result<Text> to_json_text(Runtime& runtime, const Value& value, const JsonStyle& style) {
  JsonPrinter printer(runtime, style);
  INFERD_TRY_STATUS(printer.print(value));
  return runtime.finish(printer.take());
}

Result<Value> from_json(Runtime& runtime, const Json& json, Origin origin) {
  const Runtime::Nest nest(runtime);
  if (!nest.ok()) return nest.error();
  const bool data = origin == Origin::data;
  const auto text_of = [origin](const std::string& text) { return Text::borrowed(text, origin); };
  switch (json.kind()) {
    case Json::Kind::null:
      return Value::none(data);
    case Json::Kind::boolean:
      return Value::boolean(json.as_bool(), data);
    case Json::Kind::integer:
      return Value::integer(json.as_integer(), data);
    case Json::Kind::real:
      return Value::real(json.as_number(), data);
    case Json::Kind::string:
      return Value(text_of(json.as_string()));
    case Json::Kind::array: {
      std::vector<Value> items;
      items.reserve(json.as_array().size());
      for (const Json& item : json.as_array()) {
        INFERD_TRY(Value value, from_json(runtime, item, origin));
        items.push_back(std::move(value));
      }
      return runtime.list(std::move(items), data);
    }
    case Json::Kind::object: {
      auto& dict = runtime.make<DictObject>();
      dict.from_caller = data;
      dict.entries.reserve(json.as_object().size());
      for (const auto& [key, item] : json.as_object()) {
        INFERD_TRY(Value value, from_json(runtime, item, origin));
        dict.entries.emplace_back(text_of(key), std::move(value));
      }
      return Value(Kind::dict, &dict);
    }
  }
  return Value::none(data);
}

}  // namespace inferd::jinja
