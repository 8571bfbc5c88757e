#include "text/jinja_format.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "text/jinja_operators.h"
#include "text/jinja_print.h"
#include "text/jinja_strings.h"
#include "text/jinja_unicode.h"

namespace inferd::jinja {
namespace {

constexpr int64_t kMaxPrecision = 400;  // more digits than any double has

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// [[fill]align][sign][#][0][width][,][.precision][type]
struct Specification {
  std::string fill = " ";
  char align = '\0';  // < > ^ = or none
  char sign = '-';
  bool alternate = false;
  char grouping = '\0';
  int64_t width = 0;
  std::optional<int64_t> precision;
  char type = '\0';
};

Result<int64_t> read_count(std::string_view text, size_t& at) {
  constexpr int64_t kLimit = int64_t{1} << 40;
  int64_t count = 0;
  while (at < text.size() && is_digit(text[at])) {
    count = count * 10 + (text[at++] - '0');
    if (count > kLimit) return run_error("a format's width or precision is too large");
  }
  return count;
}

Result<Specification> parse_specification(std::string_view text) {
  Specification spec;
  size_t at = 0;
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  const auto bad = [&] {
    return run_error(cat("a format specification that is not supported: ", printable(text)));
  };
  if (!text.empty()) {
    const size_t fill = char_at(text, 0).length;
    if (fill < text.size() && is_align(text[fill])) {
      spec.fill = text.substr(0, fill);
      spec.align = text[fill];
      at = fill + 1;
    } else if (is_align(text[0])) {
      spec.align = text[0];
      at = 1;
    }
  }
  if (at < text.size() && (text[at] == '+' || text[at] == '-' || text[at] == ' ')) spec.sign = text[at++];
  if (at < text.size() && text[at] == '#') {
    spec.alternate = true;
    ++at;
  }
  if (at < text.size() && text[at] == '0') {
    if (spec.align == '\0') {
      spec.fill = "0";
      spec.align = '0';  // "=" for numbers, "<" for strings
    }
    ++at;
  }
  INFERD_TRY(spec.width, read_count(text, at));
  if (at < text.size() && (text[at] == ',' || text[at] == '_')) spec.grouping = text[at++];
  if (at < text.size() && text[at] == '.') {
    ++at;
    if (at == text.size() || !is_digit(text[at])) return bad();
    INFERD_TRY(spec.precision, read_count(text, at));
  }
  if (at < text.size()) spec.type = text[at++];
  if (at != text.size()) return bad();
  return spec;
}

std::string whole_digits(uint64_t magnitude, unsigned base, bool upper) {
  std::string digits;
  do {
    const auto digit = static_cast<unsigned>(magnitude % base);
    digits.push_back(static_cast<char>(digit < 10 ? '0' + digit : (upper ? 'A' : 'a') + (digit - 10)));
    magnitude /= base;
  } while (magnitude > 0);
  std::reverse(digits.begin(), digits.end());
  return digits;
}

uint64_t magnitude_of(int64_t value) {
  return value < 0 ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
}

// C's printf conversion of a finite or infinite double, as Python's formats have it too.
Result<std::string> real_digits(double magnitude, char type, int64_t precision, bool alternate) {
  if (precision > kMaxPrecision) return run_error(cat("a precision of more than ", kMaxPrecision, " digits"));
  const std::string format = cat("%", alternate ? "#" : "", ".*", type);
  char buffer[1024];
  const int length =
      std::snprintf(buffer, sizeof buffer, format.c_str(), static_cast<int>(precision), magnitude);
  return std::string(buffer, static_cast<size_t>(length));
}

// The digits of a float under a type of a specification, without sign.
Result<std::string> real_text(double magnitude, const Specification& spec) {
  const bool finite = std::isfinite(magnitude);
  switch (spec.type) {
    case '\0': {
      std::string digits;
      if (!spec.precision) {
        append_real(digits, magnitude);
        return digits;
      }
      INFERD_TRY(digits, real_digits(magnitude, 'g', std::max<int64_t>(*spec.precision, 1), spec.alternate));
      if (finite && digits.find_first_of(".e") == std::string::npos) digits += ".0";
      return digits;
    }
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
      return real_digits(magnitude, spec.type, spec.precision.value_or(6), spec.alternate);
    case '%': {
      INFERD_TRY(std::string digits,
                 real_digits(magnitude * 100, 'f', spec.precision.value_or(6), spec.alternate));
      return digits + "%";
    }
    default:
      return run_error(
          cat("the format type ", printable(std::string_view(&spec.type, 1)), " is not for floats"));
  }
}

Result<std::string> whole_text(uint64_t magnitude, const Specification& spec) {
  if (spec.precision) return run_error("a precision is not for integers");
  switch (spec.type) {
    case '\0':
    case 'd':
      return whole_digits(magnitude, 10, false);
    case 'b':
      return (spec.alternate ? "0b" : "") + whole_digits(magnitude, 2, false);
    case 'o':
      return (spec.alternate ? "0o" : "") + whole_digits(magnitude, 8, false);
    case 'x':
      return (spec.alternate ? "0x" : "") + whole_digits(magnitude, 16, false);
    case 'X':
      return (spec.alternate ? "0X" : "") + whole_digits(magnitude, 16, true);
    default:
      return run_error(
          cat("the format type ", printable(std::string_view(&spec.type, 1)), " is not for integers"));
  }
}

// Separators between groups of three digits left of the point.
std::string grouped(const std::string& digits, char separator) {
  const size_t end = std::min(digits.find_first_not_of("0123456789"), digits.size());
  std::string out;
  for (size_t i = 0; i < end; ++i) {
    if (i > 0 && (end - i) % 3 == 0) out.push_back(separator);
    out.push_back(digits[i]);
  }
  return out.append(digits, end);
}

Result<Text> fill_to_width(Runtime& runtime, const Text& text, const Specification& spec, char align) {
  INFERD_TRY(const int64_t length, count_characters(runtime, text));
  const int64_t room = spec.width - length;
  if (room <= 0) return text;
  const Text fill = Text::owned(spec.fill, Origin::markup);
  if (align == '<') return pad(runtime, text, 0, room, fill);
  if (align == '^') return pad(runtime, text, room / 2, room - room / 2, fill);
  return pad(runtime, text, room, 0, fill);
}

Result<Text> format_number(Runtime& runtime, const Value& value, const Specification& spec) {
  const std::string_view real_types = "eEfFgG%";
  const bool as_real =
      value.is(Kind::real) || (spec.type != '\0' && real_types.find(spec.type) != std::string_view::npos);
  const bool negative =
      as_real ? std::signbit(value.number()) && !std::isnan(value.number()) : value.whole() < 0;
  std::string digits;
  if (as_real) {
    INFERD_TRY(digits, real_text(std::fabs(value.number()), spec));
  } else {
    INFERD_TRY(digits, whole_text(magnitude_of(value.whole()), spec));
  }
  if (spec.grouping != '\0') {
    if (spec.align == '0' || (spec.type != '\0' && spec.type != 'd' && !as_real)) {
      return run_error("grouping of zero-filled or non-decimal numbers is not supported");
    }
    digits = grouped(digits, spec.grouping);
  }
  const std::string sign = negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
  const Origin origin = value.scalar_origin();
  if (spec.align == '=' || spec.align == '0') {
    const auto used = static_cast<int64_t>(sign.size() + digits.size());
    INFERD_TRY(const Text padded, pad(runtime, Text::owned(digits, origin), spec.width - used, 0,
                                      Text::owned(spec.fill, Origin::markup)));
    return join_texts(runtime, Text::owned(sign, origin), padded);
  }
  return fill_to_width(runtime, Text::owned(sign + digits, origin), spec,
                       spec.align == '\0' ? '>' : spec.align);
}

Result<Text> format_string(Runtime& runtime, const Text& text, const Specification& spec) {
  if ((spec.type != '\0' && spec.type != 's') || spec.sign != '-' || spec.alternate || spec.align == '=' ||
      spec.grouping != '\0') {
    return run_error("the format specification is not for strings");
  }
  Text shown = text;
  if (spec.precision) {
    INFERD_TRY(const Value cut,
               get_slice(runtime, text, Value::none(), Value::integer(*spec.precision), Value::none()));
    shown = cut.text();
  }
  return fill_to_width(runtime, shown, spec, spec.align == '\0' || spec.align == '0' ? '<' : spec.align);
}

// ---- "%"

class PercentFormatter {
 public:
  PercentFormatter(Runtime& runtime, const Text& format, const Value& argument)
      : runtime_(runtime), format_(format), argument_(argument), safe_(format.is_safe()) {}

  Result<Value> run() {
    const std::string_view view = format_.view();
    size_t copied = 0;
    for (size_t at = view.find('%'); at != std::string_view::npos; at = view.find('%', copied)) {
      out_.append(format_.slice(copied, at));
      copied = at + 1;
      if (!runtime_.spend(1)) return runtime_.exhausted();
      INFERD_TRY_STATUS(convert(copied));
      INFERD_TRY_STATUS(runtime_.fits_text(out_.size()));
    }
    out_.append(format_.slice(copied, view.size()));
    if (!takes_one_by_one() ? !used_single_ && !is_mapping()
                            : next_ < argument_.as<ListObject>().items.size()) {
      return run_error("not all values were used by the % format");
    }
    INFERD_TRY(const Text text, runtime_.finish(std::move(out_)));
    return Value(text.with_safe(safe_));
  }

 private:
  bool takes_one_by_one() const { return argument_.is(Kind::tuple); }
  // What Python takes for a mapping: it need not be used up.
  bool is_mapping() const {
    return argument_.is(Kind::dict) || argument_.is(Kind::list) || argument_.is(Kind::range) ||
           argument_.is(Kind::undefined);
  }

  Result<Value> next_value() {
    if (takes_one_by_one()) {
      const auto& items = argument_.as<ListObject>().items;
      if (next_ < items.size()) return items[next_++];
    } else if (!used_single_) {
      used_single_ = true;
      return argument_;
    }
    return run_error("too few values for the % format");
  }

  Status convert(size_t& at) {
    const std::string_view view = format_.view();
    Specification spec;
    std::optional<Value> named;
    if (at < view.size() && view[at] == '(') {
      const size_t close = view.find(')', at);
      if (close == std::string_view::npos) return run_error("a name in a % format has no end");
      if (!argument_.is(Kind::dict)) return run_error("a % format with names needs a dict");
      INFERD_TRY(const Value* found,
                 find_entry(runtime_, argument_.as<DictObject>(), Value(format_.slice(at + 1, close))));
      if (found == nullptr)
        return run_error(
            cat("no value for ", printable(view.substr(at + 1, close - at - 1)), " in a % format"));
      named = *found;
      at = close + 1;
    }
    for (; at < view.size() && std::string_view("#0- +").find(view[at]) != std::string_view::npos; ++at) {
      switch (view[at]) {
        case '#':
          spec.alternate = true;
          break;
        case '-':
          spec.align = '<';
          break;
        case '0':
          if (spec.align == '\0') spec.align = '0';
          break;
        case '+':
          spec.sign = '+';
          break;
        default:
          if (spec.sign == '-') spec.sign = ' ';
      }
    }
    INFERD_TRY(spec.width, read_star_or_count(at));
    if (spec.width < 0) {
      spec.align = '<';
      spec.width = -spec.width;
    }
    if (at < view.size() && view[at] == '.') {
      ++at;
      INFERD_TRY(spec.precision, read_star_or_count(at));
    }
    while (at < view.size() && (view[at] == 'h' || view[at] == 'l' || view[at] == 'L')) ++at;
    if (at == view.size()) return run_error("a % format ends in the middle");
    spec.type = view[at++];
    if (spec.type == '%') {
      out_.append(format_.slice(at - 1, at));
      return {};
    }
    if (!named) {
      INFERD_TRY(named, next_value());
    }
    INFERD_TRY(const Text text, convert_value(*named, spec));
    out_.append(text);
    return {};
  }

  Result<int64_t> read_star_or_count(size_t& at) {
    if (at >= format_.size() || format_.view()[at] != '*') return read_count(format_.view(), at);
    ++at;
    INFERD_TRY(const Value count, next_value());
    if (!count.is_whole()) return run_error("* in a % format needs an integer");
    return std::clamp<int64_t>(count.whole(), -(int64_t{1} << 40), int64_t{1} << 40);
  }

  Result<Text> convert_value(const Value& value, Specification spec) {
    switch (spec.type) {
      case 's':
      case 'r': {
        INFERD_TRY(Text text, spec.type == 's' ? to_text(runtime_, value) : to_repr(runtime_, value));
        if (safe_) {
          if (!value.is(Kind::text)) text = text.with_safe(false);
          INFERD_TRY(text, escape_html(runtime_, text));
        }
        return padded_string(text, spec);
      }
      case 'c': {
        if (value.is(Kind::text)) {
          INFERD_TRY(const int64_t length, count_characters(runtime_, value.text()));
          if (length == 1) return padded_string(value.text(), spec);
        }
        return run_error("%c needs one character");
      }
      case 'd':
      case 'i':
      case 'u':
      case 'x':
      case 'X':
      case 'o': {
        const bool decimal = spec.type == 'd' || spec.type == 'i' || spec.type == 'u';
        if (decimal) spec.type = 'd';
        Value whole = value;
        if (decimal && value.is(Kind::real)) {
          if (!(std::fabs(value.real()) < 0x1p63))
            return run_error("%d of a float that is no 64-bit integer");
          whole = Value::integer(static_cast<int64_t>(value.real()), value.from_caller());
        }
        if (!whole.is_whole()) return wrong_kind("the % format", "a number", value);
        if (spec.precision) return run_error("a precision of integers in a % format is not supported");
        if (spec.align == '0') spec.fill = "0";
        return format_number(runtime_, whole, spec);
      }
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        if (!value.is_number()) return wrong_kind("the % format", "a number", value);
        if (spec.align == '0') spec.fill = "0";
        return format_number(runtime_, Value::real(value.number(), value.from_caller()), spec);
      default:
        return run_error(cat("%", spec.type, " is not supported"));
    }
  }

  Result<Text> padded_string(const Text& text, Specification spec) {
    spec.type = 's';
    spec.sign = '-';
    spec.alternate = false;
    if (spec.align != '<') spec.align = '>';
    return format_string(runtime_, text, spec);
  }

  Runtime& runtime_;
  const Text& format_;
  const Value& argument_;
  const bool safe_;
  TextBuilder out_;
  size_t next_ = 0;
  bool used_single_ = false;
};

// ---- "{}"

class BraceFormatter {
 public:
  BraceFormatter(Runtime& runtime, const Arguments& arguments, bool safe)
      : runtime_(runtime), arguments_(arguments), safe_(safe) {}

  // `depth`: a specification may hold fields of its own, once.
  Result<Text> run(const Text& format, int depth) {
    if (depth == 0) return run_error("fields nested too deeply in a format");
    const std::string_view view = format.view();
    TextBuilder out;
    size_t at = 0;
    while (at < view.size()) {
      const size_t brace = std::min(view.find_first_of("{}", at), view.size());
      out.append(format.slice(at, brace));
      at = brace;
      if (at == view.size()) break;
      if (!runtime_.spend(1)) return runtime_.exhausted();
      if (at + 1 < view.size() && view[at + 1] == view[at]) {
        out.append(format.slice(at, at + 1));
        at += 2;
        continue;
      }
      if (view[at] == '}') return run_error("a single } in a format");
      size_t end = at + 1;
      for (int open = 1; end < view.size(); ++end) {
        open += view[end] == '{' ? 1 : view[end] == '}' ? -1 : 0;
        if (open == 0) break;
      }
      if (end == view.size()) return run_error("a { in a format has no end");
      INFERD_TRY(const Text field, format_field(format.slice(at + 1, end), depth));
      INFERD_TRY_STATUS(runtime_.fits_text(out.size() + field.size()));
      out.append(field);
      at = end + 1;
    }
    return runtime_.finish(std::move(out));
  }

 private:
  Result<Text> format_field(const Text& field, int depth) {
    const std::string_view view = field.view();
    const size_t name_end = std::min(view.find_first_of("!:"), view.size());
    INFERD_TRY(Value value, resolve(field.slice(0, name_end)));
    size_t at = name_end;
    if (at < view.size() && view[at] == '!') {
      const char conversion = at + 1 < view.size() ? view[at + 1] : '\0';
      if (conversion != 's' && conversion != 'r')
        return run_error("only !s and !r are supported in a format");
      INFERD_TRY(Text text, conversion == 's' ? to_text(runtime_, value) : to_repr(runtime_, value));
      value = Value(text.with_safe(false));
      at += 2;
      if (at < view.size() && view[at] != ':') return run_error("expected : after a conversion in a format");
    }
    Text specification;
    if (at < view.size()) {
      INFERD_TRY(specification, run(field.slice(at + 1, view.size()), depth - 1));
    }
    if (safe_ && value.is(Kind::text) && value.text().is_safe() && !specification.empty()) {
      return run_error("a format specification is not for safe text");
    }
    INFERD_TRY(Text text, format_value(runtime_, value, specification.view()));
    return safe_ ? escape_html(runtime_, text) : Result<Text>(text);
  }

  // "name.attribute[item]", where the name may be a number or, for the next one, empty.
  Result<Value> resolve(const Text& name) {
    const std::string_view view = name.view();
    size_t at = std::min(view.find_first_of(".["), view.size());
    INFERD_TRY(Value value, first_value(view.substr(0, at)));
    while (at < view.size()) {
      if (view[at] == '.') {
        const size_t end = std::min(view.find_first_of(".[", at + 1), view.size());
        INFERD_TRY(value, get_attribute(runtime_, value, name.slice(at + 1, end)));
        at = end;
      } else if (view[at] == '[') {
        const size_t end = view.find(']', at);
        if (end == std::string_view::npos) return run_error("a [ in a format has no end");
        const auto index = parse_int(view.substr(at + 1, end - at - 1));
        INFERD_TRY(value, get_item(runtime_, value,
                                   index ? Value::integer(*index) : Value(name.slice(at + 1, end))));
        at = end + 1;
      } else {
        return run_error("expected . or [ after ] in a format");
      }
    }
    return value;
  }

  Result<Value> first_value(std::string_view name) {
    const bool automatic = name.empty();
    const bool numbered = automatic || std::all_of(name.begin(), name.end(), is_digit);
    if (!numbered) {
      for (const auto& [key, value] : arguments_.named) {
        if (key == name) return value;
      }
      return run_error(cat("no value for ", printable(name), " in a format"));
    }
    if (uses_numbers_ && *uses_numbers_ == automatic)
      return run_error("a format mixes {} with numbered fields");
    uses_numbers_ = !automatic;
    const auto index = automatic ? static_cast<int64_t>(next_++) : parse_int(name).value_or(INT64_MAX);
    if (index >= static_cast<int64_t>(arguments_.positional.size()))
      return run_error("too few values for the format");
    return arguments_.positional[static_cast<size_t>(index)];
  }

  Runtime& runtime_;
  const Arguments& arguments_;
  const bool safe_;
  size_t next_ = 0;
  std::optional<bool> uses_numbers_;
};

}  // namespace

Result<Value> format_percent(Runtime& runtime, const Text& format, const Value& argument) {
  return PercentFormatter(runtime, format, argument).run();
}

Result<Value> format_braces(Runtime& runtime, const Text& format, const Arguments& arguments) {
  BraceFormatter formatter(runtime, arguments, format.is_safe());
  INFERD_TRY(const Text text, formatter.run(format, 2));
  return Value(text.with_safe(format.is_safe()));
}

Result<Text> format_value(Runtime& runtime, const Value& value, std::string_view specification) {
  if (specification.empty()) return to_text(runtime, value);
  INFERD_TRY(const Specification spec, parse_specification(specification));
  if (value.is(Kind::text)) return format_string(runtime, value.text(), spec);
  if (value.is_number()) return format_number(runtime, value, spec);
  return run_error(cat(kind_name(value.kind()), " takes no format specification"));
}

}  // namespace inferd::jinja
