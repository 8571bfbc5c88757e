// Filters of single values (jinja_filters.h).
#include "text/jinja_filters.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "text/jinja_format.h"
#include "text/jinja_operators.h"
#include "text/jinja_print.h"
#include "text/jinja_strings.h"
#include "text/jinja_unicode.h"

namespace inferd::jinja {
namespace {

Result<Value> absolute(Runtime&, const Value& input, const Arguments& arguments) {
  INFERD_TRY_STATUS(expect_no_arguments("abs", arguments));
  if (input.is(Kind::real)) return Value::real(std::fabs(input.real()), input.from_caller());
  if (!input.is_whole()) return wrong_kind("abs", "a number", input);
  return input.whole() < 0 ? negate(input) : unary_plus(input);
}

Result<Value> attribute(Runtime& runtime, const Value& input, const Arguments& arguments) {
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {"attr", 1, {"name"}}));
  INFERD_TRY(const Text name, bound.text(0, ""));
  if (input.is(Kind::undefined)) return undefined_error(input);
  if (auto own = get_own_attribute(runtime, input, name)) return *own;
  return Value::undefined(Missing::attribute, name, input.kind());
}

Result<Value> fallback(Runtime&, const Value& input, const Arguments& arguments) {
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {"default", 0, {"default_value", "boolean"}}));
  if (!input.is(Kind::undefined) && !(bound.flag(1, false) && !is_true(input))) return input;
  return bound.has(0) ? bound[0] : Value(Text());
}

// A number written as Python reads it: white space around it, single underscores between digits.
std::optional<std::string> number_text(std::string_view text) {
  while (!text.empty() && is_space(char_at(text, 0).c)) text.remove_prefix(char_at(text, 0).length);
  while (!text.empty() && is_space(char_before(text, text.size()).c)) {
    text.remove_suffix(char_before(text, text.size()).length);
  }
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      plain.push_back(text[i]);
      continue;
    }
    const auto alphanumeric = [&](size_t at) {
      return at < text.size() && std::isalnum(static_cast<unsigned char>(text[at])) != 0;
    };
    if (i == 0 || !alphanumeric(i - 1) || !alphanumeric(i + 1)) return std::nullopt;
  }
  return plain;
}

std::optional<double> read_real(std::string_view text) {
  const auto plain = number_text(text);
  if (!plain || plain->empty()) return std::nullopt;
  const std::string lower = to_lower_ascii(*plain);
  const size_t sign = lower[0] == '-' || lower[0] == '+' ? 1 : 0;
  const std::string_view body = std::string_view(lower).substr(sign);
  double value = 0;
  if (body == "inf" || body == "infinity") {
    value = INFINITY;
  } else if (body == "nan") {
    value = NAN;
  } else {
    if (body.empty() || body.find_first_not_of("0123456789.e+-") != std::string_view::npos ||
        body[0] == '-' || body[0] == '+') {
      return std::nullopt;
    }
    char* end = nullptr;
    value = std::strtod(lower.c_str() + sign, &end);
    if (end != lower.c_str() + lower.size()) return std::nullopt;
  }
  return lower[0] == '-' ? -value : value;
}

// int(text, base): nullopt when it is no integer, an error when it does not fit.
Result<std::optional<int64_t>> read_whole(std::string_view text, int64_t base) {
  const auto plain = number_text(text);
  if (!plain) return std::optional<int64_t>();
  std::string digits = to_lower_ascii(*plain);
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.erase(0, 1);
  for (const auto& [prefix, radix] : {std::pair<std::string_view, int64_t>{"0x", 16}, {"0o", 8}, {"0b", 2}}) {
    if (digits.starts_with(prefix) && (base == radix || base == 0)) {
      digits.erase(0, 2);
      base = radix;
      break;
    }
  }
  if (base == 0) base = 10;
  if (digits.empty()) return std::optional<int64_t>();
  int64_t value = 0;
  bool fits = true;
  for (const char c : digits) {
    const int64_t digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'z' ? c - 'a' + 10 : 99;
    if (digit >= base) return std::optional<int64_t>();
    fits =
        fits && !__builtin_mul_overflow(value, base, &value) && !__builtin_sub_overflow(value, digit, &value);
  }
  if (!fits || (!negative && value == INT64_MIN)) return run_error("int: the number does not fit 64 bits");
  return std::optional<int64_t>(negative ? value : -value);
}

Result<Value> to_whole(Runtime& runtime, const Value& input, const Arguments& arguments) {
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {"int", 0, {"default", "base"}}));
  INFERD_TRY(const int64_t base, bound.whole(1, 10));
  if (base != 0 && (base < 2 || base > 36)) return run_error("int: the base must be 0 or 2 to 36");
  const Value otherwise = bound.has(0) ? bound[0] : Value::integer(0);
  if (input.is(Kind::undefined)) return undefined_error(input);
  if (input.is_whole()) return Value::integer(input.whole(), input.from_caller());
  bool data = input.from_caller();
  std::optional<double> real;
  if (input.is(Kind::real)) {
    real = input.real();
  } else if (input.is(Kind::text)) {
    if (!runtime.spend_bytes(input.text().size() * 4)) return runtime.exhausted();
    data = input.text().origin() != Origin::markup;
    INFERD_TRY(const auto whole, read_whole(input.text().view(), base));
    if (whole) return Value::integer(*whole, data);
    real = read_real(input.text().view());
  }
  if (!real || !std::isfinite(*real)) return otherwise;
  if (std::fabs(*real) >= 0x1p63) return run_error("int: the number does not fit 64 bits");
  return Value::integer(static_cast<int64_t>(*real), data);
}

Result<Value> to_real(Runtime& runtime, const Value& input, const Arguments& arguments) {
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {"float", 0, {"default"}}));
  if (input.is(Kind::undefined)) return undefined_error(input);
  if (input.is_number()) return Value::real(input.number(), input.from_caller());
  if (input.is(Kind::text)) {
    if (!runtime.spend_bytes(input.text().size() * 4)) return runtime.exhausted();
    if (const auto real = read_real(input.text().view())) {
      return Value::real(*real, input.text().origin() != Origin::markup);
    }
  }
  return bound.has(0) ? bound[0] : Value::real(0);
}

Result<Value> rounded(Runtime& runtime, const Value& input, const Arguments& arguments) {
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {"round", 0, {"precision", "method"}}));
  INFERD_TRY(const int64_t precision, bound.whole(0, 0));
  INFERD_TRY(const Text method, bound.text(1, "common"));
  if (!input.is_number()) return wrong_kind("round", "a number", input);
  if (precision < 0) return run_error("round: a negative precision is not supported");
  const bool data = input.from_caller();
  if (method.view() == "common") {
    if (input.is_whole()) return Value::integer(input.whole(), data);
    constexpr int64_t kEnough = 323;  // a double has no more digits
    if (precision > kEnough || !std::isfinite(input.real())) return input;
    char buffer[1024];  // C rounds the exact value half to even, as Python does
    std::snprintf(buffer, sizeof buffer, "%.*f", static_cast<int>(precision), input.real());
    return Value::real(std::strtod(buffer, nullptr), data);
  }
  if (method.view() != "ceil" && method.view() != "floor")
    return run_error("round: the method is common, ceil or floor");
  INFERD_TRY(const Value scale,
             arithmetic(runtime, ArithmeticOp::power, Value::integer(10), Value::integer(precision)));
  INFERD_TRY(const Value scaled, arithmetic(runtime, ArithmeticOp::multiply, input, scale));
  const double number = scaled.number();
  if (!std::isfinite(number)) return run_error("round: the number is not finite");
  return Value::real((method.view() == "ceil" ? std::ceil(number) : std::floor(number)) / scale.number(),
                     data);
}

Result<Value> length(Runtime& runtime, const Value& input, const Arguments& arguments) {
  INFERD_TRY_STATUS(expect_no_arguments("length", arguments));
  INFERD_TRY(const int64_t size, length_of(runtime, input));
  return Value::integer(size);
}

Result<Value> percent_format(Runtime& runtime, const Value& input, const Arguments& arguments) {
  if (!arguments.positional.empty() && !arguments.named.empty()) {
    return run_error("format takes arguments by place or by name, not both");
  }
  INFERD_TRY(const Text format, to_text(runtime, input));
  if (arguments.named.empty()) return format_percent(runtime, format, runtime.tuple(arguments.positional));
  auto& dict = runtime.make<DictObject>();
  for (const auto& [name, value] : arguments.named)
    dict.entries.emplace_back(Text::borrowed(name, Origin::markup), value);
  return format_percent(runtime, format, Value(Kind::dict, &dict));
}

Result<Value> as_string(Runtime& runtime, const Value& input, const Arguments& arguments) {
  INFERD_TRY_STATUS(expect_no_arguments("string", arguments));
  INFERD_TRY(Text text, to_text(runtime, input));
  return Value(std::move(text));
}

Result<Value> mark_safe(Runtime& runtime, const Value& input, const Arguments& arguments) {
  INFERD_TRY_STATUS(expect_no_arguments("safe", arguments));
  INFERD_TRY(const Text text, to_text(runtime, input));
  return Value(text.with_safe(true));
}

Result<Value> escape(Runtime& runtime, const Value& input, const Arguments& arguments) {
  INFERD_TRY_STATUS(expect_no_arguments("escape", arguments));
  INFERD_TRY(const Text text, to_text(runtime, input));
  INFERD_TRY(Text escaped, escape_html(runtime, text));
  return Value(std::move(escaped));
}

Result<Value> force_escape(Runtime& runtime, const Value& input, const Arguments& arguments) {
  INFERD_TRY_STATUS(expect_no_arguments("forceescape", arguments));
  INFERD_TRY(const Text text, to_text(runtime, input));
  INFERD_TRY(Text escaped, escape_html(runtime, text.with_safe(false)));
  return Value(std::move(escaped));
}

Result<Value> to_json(Runtime& runtime, const Value& input, const Arguments& arguments) {
  INFERD_TRY(const Bound bound,
             Bound::bind(arguments, {"tojson", 0, {"ensure_ascii", "indent", "separators", "sort_keys"}}));
  JsonStyle style;
  style.ensure_ascii = bound.flag(0, false);
  style.sort_keys = bound.flag(3, false);
  style.indented = bound.has_value(1);
  if (style.indented) {
    if (bound[1].is(Kind::text)) {
      style.indent = bound[1].text();
    } else {
      INFERD_TRY(const int64_t width, bound.whole(1, 0));
      INFERD_TRY(style.indent, repeat_text(runtime, Text::borrowed(" ", Origin::markup), width));
    }
  }
  style.item_separator = Text::borrowed(style.indented ? "," : ", ", Origin::markup);
  style.key_separator = Text::borrowed(": ", Origin::markup);
  if (bound.has_value(2)) {
    const Value& pair = bound[2];
    if (!pair.is_sequence() || pair.as<ListObject>().items.size() != 2 ||
        !pair.as<ListObject>().items[0].is(Kind::text) || !pair.as<ListObject>().items[1].is(Kind::text)) {
      return run_error("tojson: separators needs two strings");
    }
    style.item_separator = pair.as<ListObject>().items[0].text();
    style.key_separator = pair.as<ListObject>().items[1].text();
  }
  INFERD_TRY(Text text, to_json_text(runtime, input, style));
  return Value(std::move(text));
}

constexpr auto kValueFilters = std::to_array<Filter>({
    {"abs", absolute},
    {"attr", attribute},
    {"count", length},
    {"d", fallback},
    {"default", fallback},
    {"e", escape},
    {"escape", escape},
    {"float", to_real},
    {"forceescape", force_escape},
    {"format", percent_format},
    {"int", to_whole},
    {"length", length},
    {"round", rounded},
    {"safe", mark_safe},
    {"string", as_string},
    {"tojson", to_json},
});

}  // namespace

std::span<const Filter> value_filters() {
  return kValueFilters;
}

const Filter* find_filter(std::string_view name) {
  for (const std::span<const Filter> filters : {value_filters(), text_filters(), sequence_filters()}) {
    const auto found =
        std::lower_bound(filters.begin(), filters.end(), name,
                         [](const Filter& filter, std::string_view wanted) { return filter.name < wanted; });
    if (found != filters.end() && found->name == name) return &*found;
  }
  return nullptr;
}

}  // namespace inferd::jinja
