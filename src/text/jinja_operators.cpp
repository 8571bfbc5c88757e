#include "text/jinja_operators.h"

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "text/jinja_format.h"
#include "text/jinja_print.h"

namespace inferd::jinja {
namespace {

std::string_view symbol_of(ArithmeticOp op) {
  switch (op) {
    case ArithmeticOp::add:
      return "+";
    case ArithmeticOp::subtract:
      return "-";
    case ArithmeticOp::multiply:
      return "*";
    case ArithmeticOp::divide:
      return "/";
    case ArithmeticOp::floor_divide:
      return "//";
    case ArithmeticOp::modulo:
      return "%";
    case ArithmeticOp::power:
      return "**";
  }
  return "?";
}

Error unsupported(std::string_view op, const Value& left, const Value& right) {
  if (left.is(Kind::undefined)) return undefined_error(left);
  if (right.is(Kind::undefined)) return undefined_error(right);
  return run_error(cat(kind_name(left.kind()), " ", op, " ", kind_name(right.kind()), " is not possible"));
}

Error too_large() {
  return run_error("an integer result does not fit 64 bits");
}

Result<Value> power(int64_t base, int64_t exponent, bool data) {
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) return too_large();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) return too_large();
  }
  return Value::integer(result, data);
}

Result<Value> whole_arithmetic(ArithmeticOp op, int64_t a, int64_t b, bool data) {
  int64_t result = 0;
  switch (op) {
    case ArithmeticOp::add:
      if (__builtin_add_overflow(a, b, &result)) return too_large();
      return Value::integer(result, data);
    case ArithmeticOp::subtract:
      if (__builtin_sub_overflow(a, b, &result)) return too_large();
      return Value::integer(result, data);
    case ArithmeticOp::multiply:
      if (__builtin_mul_overflow(a, b, &result)) return too_large();
      return Value::integer(result, data);
    case ArithmeticOp::divide:
      if (b == 0) return run_error("division by zero");
      return Value::real(static_cast<double>(a) / static_cast<double>(b), data);
    case ArithmeticOp::floor_divide:
    case ArithmeticOp::modulo: {
      if (b == 0) return run_error("division by zero");
      if (b == -1) {  // the one quotient that can overflow
        if (op == ArithmeticOp::modulo) return Value::integer(0, data);
        if (__builtin_sub_overflow(int64_t{0}, a, &result)) return too_large();
        return Value::integer(result, data);
      }
      const bool inexact_and_negative =
          a % b != 0 && (a < 0) != (b < 0);  // Python rounds down, C++ towards zero
      if (op == ArithmeticOp::floor_divide)
        return Value::integer(a / b - (inexact_and_negative ? 1 : 0), data);
      return Value::integer(a % b + (inexact_and_negative ? b : 0), data);
    }
    case ArithmeticOp::power:
      break;
  }
  if (b >= 0) return power(a, b, data);
  if (a == 0) return run_error("zero to a negative power");
  return Value::real(std::pow(static_cast<double>(a), static_cast<double>(b)), data);
}

Result<Value> real_arithmetic(ArithmeticOp op, double a, double b, bool data) {
  switch (op) {
    case ArithmeticOp::add:
      return Value::real(a + b, data);
    case ArithmeticOp::subtract:
      return Value::real(a - b, data);
    case ArithmeticOp::multiply:
      return Value::real(a * b, data);
    case ArithmeticOp::divide:
      if (b == 0) return run_error("division by zero");
      return Value::real(a / b, data);
    case ArithmeticOp::floor_divide:
    case ArithmeticOp::modulo: {
      if (b == 0) return run_error("division by zero");
      // The remainder takes the sign of the divisor, and the quotient is rounded down to fit it.
      double remainder = std::fmod(a, b);
      double quotient = (a - remainder) / b;
      if (remainder == 0) {
        remainder = std::copysign(0.0, b);
      } else if ((remainder < 0) != (b < 0)) {
        remainder += b;
        quotient -= 1;
      }
      if (op == ArithmeticOp::modulo) return Value::real(remainder, data);
      if (quotient == 0) return Value::real(std::copysign(0.0, a / b), data);
      const double down = std::floor(quotient);
      return Value::real(quotient - down > 0.5 ? down + 1 : down, data);
    }
    case ArithmeticOp::power:
      break;
  }
  if (a == 0 && b < 0) return run_error("zero to a negative power");
  if (a < 0 && std::isfinite(a) && std::isfinite(b) && b != std::floor(b)) {
    return run_error("a negative number to a fractional power has no real value");
  }
  const double result = std::pow(a, b);
  if (std::isinf(result) && std::isfinite(a) && std::isfinite(b))
    return run_error("a float result is too large");
  return Value::real(result, data);
}

Result<Value> repeat_items(Runtime& runtime, const Value& sequence, int64_t times) {
  const auto& items = sequence.as<ListObject>().items;
  std::vector<Value> repeated;
  if (times > 0 && !items.empty()) {
    size_t count = 0;
    if (__builtin_mul_overflow(items.size(), static_cast<size_t>(times), &count)) return runtime.exhausted();
    INFERD_TRY_STATUS(runtime.admit_items(count));
    repeated.reserve(count);
    for (int64_t i = 0; i < times; ++i) repeated.insert(repeated.end(), items.begin(), items.end());
  }
  return sequence.is(Kind::list) ? runtime.list(std::move(repeated)) : runtime.tuple(std::move(repeated));
}

// -1, 0, 1; or nullopt when one is NaN. Exact also where a double cannot hold the integer.
std::optional<int> compare_numbers(const Value& left, const Value& right) {
  if (left.is_whole() && right.is_whole()) {
    return left.whole() < right.whole() ? -1 : left.whole() > right.whole() ? 1 : 0;
  }
  if (left.is(Kind::real) && right.is(Kind::real)) {
    if (std::isnan(left.real()) || std::isnan(right.real())) return std::nullopt;
    return left.real() < right.real() ? -1 : left.real() > right.real() ? 1 : 0;
  }
  if (left.is(Kind::real)) {
    const auto turned = compare_numbers(right, left);
    return turned ? std::optional<int>(-*turned) : std::nullopt;
  }
  const int64_t whole = left.whole();
  const double real = right.real();
  if (std::isnan(real)) return std::nullopt;
  if (real >= 0x1p63) return -1;
  if (real < -0x1p63) return 1;
  const double down = std::floor(real);
  const auto floor = static_cast<int64_t>(down);
  if (whole != floor) return whole < floor ? -1 : 1;
  return down < real ? -1 : 0;
}

Result<bool> equal_items(Runtime& runtime, const std::vector<Value>& a, const std::vector<Value>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    INFERD_TRY(const bool same, equal(runtime, a[i], b[i]));
    if (!same) return false;
  }
  return true;
}

Result<bool> equal_dicts(Runtime& runtime, DictObject& a, DictObject& b) {
  if (a.entries.size() != b.entries.size()) return false;
  for (const auto& [key, value] : a.entries) {
    INFERD_TRY(const Value* other, find_entry(runtime, b, key));
    if (other == nullptr) return false;
    INFERD_TRY(const bool same, equal(runtime, value, *other));
    if (!same) return false;
  }
  return true;
}

Status check_hashable(const Value& key) {
  if (key.is(Kind::list) || key.is(Kind::dict))
    return run_error(cat(kind_name(key.kind()), " cannot be a key"));
  if (key.is(Kind::tuple)) {
    for (const Value& item : key.as<ListObject>().items) {
      if (item.is(Kind::list) || item.is(Kind::dict))
        return run_error(cat(kind_name(item.kind()), " cannot be a key"));
    }
  }
  return {};
}

}  // namespace

Result<Value> arithmetic(Runtime& runtime, ArithmeticOp op, const Value& left, const Value& right) {
  if (left.is_number() && right.is_number()) {
    const bool data = left.from_caller() || right.from_caller();
    if (left.is_whole() && right.is_whole()) return whole_arithmetic(op, left.whole(), right.whole(), data);
    return real_arithmetic(op, left.number(), right.number(), data);
  }
  if (op == ArithmeticOp::add) {
    if (left.is(Kind::text) && right.is(Kind::text)) {
      INFERD_TRY(Text text, join_texts(runtime, left.text(), right.text()));
      return Value(std::move(text));
    }
    if (left.is_sequence() && left.kind() == right.kind()) {
      const auto& first = left.as<ListObject>().items;
      const auto& second = right.as<ListObject>().items;
      INFERD_TRY_STATUS(runtime.admit_items(first.size() + second.size()));
      std::vector<Value> items;
      items.reserve(first.size() + second.size());
      items.insert(items.end(), first.begin(), first.end());
      items.insert(items.end(), second.begin(), second.end());
      return left.is(Kind::list) ? runtime.list(std::move(items)) : runtime.tuple(std::move(items));
    }
  }
  if (op == ArithmeticOp::multiply) {
    const bool turned = left.is_whole();
    const Value& times = turned ? left : right;
    const Value& what = turned ? right : left;
    if (times.is_whole() && what.is(Kind::text)) {
      INFERD_TRY(Text text, repeat_text(runtime, what.text(), times.whole()));
      return Value(std::move(text));
    }
    if (times.is_whole() && what.is_sequence()) return repeat_items(runtime, what, times.whole());
  }
  if (op == ArithmeticOp::modulo && left.is(Kind::text)) return format_percent(runtime, left.text(), right);
  return unsupported(symbol_of(op), left, right);
}

Result<Value> negate(const Value& value) {
  if (value.is(Kind::real)) return Value::real(-value.real(), value.from_caller());
  if (value.is_whole())
    return whole_arithmetic(ArithmeticOp::subtract, 0, value.whole(), value.from_caller());
  if (value.is(Kind::undefined)) return undefined_error(value);
  return run_error(cat(kind_name(value.kind()), " has no negative"));
}

Result<Value> unary_plus(const Value& value) {
  if (value.is(Kind::real)) return value;
  if (value.is_whole()) return Value::integer(value.whole(), value.from_caller());
  if (value.is(Kind::undefined)) return undefined_error(value);
  return run_error(cat("+", kind_name(value.kind()), " is not possible"));
}

Result<bool> equal(Runtime& runtime, const Value& left, const Value& right) {
  if (left.is(Kind::text) && right.is(Kind::text)) {
    if (left.text().size() != right.text().size()) return false;
    if (!runtime.spend_bytes(left.text().size())) return runtime.exhausted();
    return left.text().view() == right.text().view();
  }
  if (left.is_number() && right.is_number()) return compare_numbers(left, right) == 0;
  if (left.kind() != right.kind()) return false;
  const Runtime::Nest nest(runtime);
  if (!nest.ok()) return nest.error();
  if (!runtime.spend(1)) return runtime.exhausted();
  switch (left.kind()) {
    case Kind::undefined:
    case Kind::none:
      return true;
    case Kind::list:
    case Kind::tuple:
      return equal_items(runtime, left.as<ListObject>().items, right.as<ListObject>().items);
    case Kind::dict:
      return equal_dicts(runtime, left.as<DictObject>(), right.as<DictObject>());
    case Kind::range: {
      const auto& a = left.as<RangeObject>();
      const auto& b = right.as<RangeObject>();
      const int64_t size = a.size();
      return size == b.size() && (size == 0 || (a.start == b.start && (size == 1 || a.step == b.step)));
    }
    case Kind::view: {
      const auto& a = left.as<ViewObject>();
      const auto& b = right.as<ViewObject>();
      if (a.dict == b.dict && a.what == b.what) return true;
      return run_error("comparing views of two dicts is not supported");
    }
    default:
      return left.object() == right.object();
  }
}

Result<bool> less(Runtime& runtime, const Value& left, const Value& right) {
  if (left.is(Kind::text) && right.is(Kind::text)) {
    if (!runtime.spend_bytes(std::min(left.text().size(), right.text().size()))) return runtime.exhausted();
    return left.text().view() < right.text().view();  // UTF-8 sorts as code points do
  }
  if (left.is_number() && right.is_number()) return compare_numbers(left, right) == -1;
  if (!left.is_sequence() || left.kind() != right.kind()) return unsupported("<", left, right);
  const Runtime::Nest nest(runtime);
  if (!nest.ok()) return nest.error();
  const auto& a = left.as<ListObject>().items;
  const auto& b = right.as<ListObject>().items;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (!runtime.spend(1)) return runtime.exhausted();
    INFERD_TRY(const bool same, equal(runtime, a[i], b[i]));
    if (!same) return less(runtime, a[i], b[i]);
  }
  return a.size() < b.size();
}

Result<bool> compare(Runtime& runtime, CompareOp op, const Value& left, const Value& right) {
  const auto inverse = [](Result<bool> result) -> Result<bool> {
    if (!result.ok()) return result;
    return !*result;
  };
  switch (op) {
    case CompareOp::equal:
      return equal(runtime, left, right);
    case CompareOp::not_equal:
      return inverse(equal(runtime, left, right));
    case CompareOp::in:
      return contains(runtime, right, left);
    case CompareOp::not_in:
      return inverse(contains(runtime, right, left));
    default:
      break;
  }
  if (left.is_number() && right.is_number()) {  // with NaN, no order holds
    const auto order = compare_numbers(left, right);
    if (!order) return false;
    switch (op) {
      case CompareOp::less:
        return *order < 0;
      case CompareOp::less_equal:
        return *order <= 0;
      case CompareOp::greater:
        return *order > 0;
      default:
        return *order >= 0;
    }
  }
  switch (op) {
    case CompareOp::less:
      return less(runtime, left, right);
    case CompareOp::greater:
      return less(runtime, right, left);
    case CompareOp::less_equal:
      return inverse(less(runtime, right, left));
    default:
      return inverse(less(runtime, left, right));
  }
}

Result<bool> contains(Runtime& runtime, const Value& container, const Value& item) {
  switch (container.kind()) {
    case Kind::undefined:
      return false;
    case Kind::text:
      if (!item.is(Kind::text)) {
        if (item.is(Kind::undefined)) return undefined_error(item);
        return run_error(cat(kind_name(item.kind()), " cannot be looked for in a string"));
      }
      if (!runtime.spend_bytes(container.text().size())) return runtime.exhausted();
      return find_text(container.text().view(), item.text().view()) != std::string_view::npos;
    case Kind::dict: {
      INFERD_TRY_STATUS(check_hashable(item));
      INFERD_TRY(const Value* found, find_entry(runtime, container.as<DictObject>(), item));
      return found != nullptr;
    }
    case Kind::range:
      if (item.is_whole()) {
        const auto& range = container.as<RangeObject>();
        const int64_t size = range.size();
        if (size == 0) return false;
        const int64_t low = std::min(range.start, range.at(size - 1));
        const int64_t high = std::max(range.start, range.at(size - 1));
        if (item.whole() < low || item.whole() > high) return false;
        return (static_cast<uint64_t>(item.whole()) - static_cast<uint64_t>(low)) %
                   static_cast<uint64_t>(std::abs(range.step)) ==
               0;
      }
      break;
    default:
      break;
  }
  INFERD_TRY(Cursor cursor, Cursor::over(container));
  for (Value member;;) {
    INFERD_TRY(const bool more, cursor.next(runtime, member));
    if (!more) return false;
    INFERD_TRY(const bool same, equal(runtime, member, item));
    if (same || identical(member, item)) return true;
  }
}

bool identical(const Value& left, const Value& right) {
  if (left.kind() != right.kind()) return false;
  switch (left.kind()) {
    case Kind::none:
      return true;
    case Kind::boolean:
    case Kind::integer:
      return left.whole() == right.whole();
    case Kind::real:
      return left.real() == right.real();
    case Kind::undefined:
      return false;
    case Kind::text:
      return left.text().view() == right.text().view();
    default:
      return left.object() == right.object();
  }
}

Result<int64_t> length_of(Runtime& runtime, const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
      return 0;
    case Kind::text:
      return count_characters(runtime, value.text());
    case Kind::list:
    case Kind::tuple:
      return static_cast<int64_t>(value.as<ListObject>().items.size());
    case Kind::dict:
      return static_cast<int64_t>(value.as<DictObject>().entries.size());
    case Kind::range:
      return value.as<RangeObject>().size();
    case Kind::view:
      return static_cast<int64_t>(value.as<ViewObject>().dict->entries.size());
    default:
      return run_error(cat(kind_name(value.kind()), " has no length"));
  }
}

Result<int64_t> count_characters(Runtime& runtime, const Text& text) {
  if (!runtime.spend_bytes(text.size())) return runtime.exhausted();
  return static_cast<int64_t>(count_code_points(text.view()));
}

Result<const Value*> find_entry(Runtime& runtime, DictObject& dict, const Value& key) {
  if (key.is(Kind::text)) {
    if (!runtime.spend_bytes(key.text().size())) return runtime.exhausted();
    return dict.find_text(key.text().view());
  }
  if (!runtime.spend(static_cast<int64_t>(dict.entries.size() / 32))) return runtime.exhausted();
  for (const auto& [other, value] : dict.entries) {
    if (other.is(Kind::text)) continue;
    INFERD_TRY(const bool same, equal(runtime, other, key));
    if (same) return &value;
  }
  return nullptr;
}

Status put_entry(Runtime& runtime, DictObject& dict, Value key, Value value) {
  INFERD_TRY_STATUS(check_hashable(key));
  // Found by walking: the dict is being built, and those built by templates are small.
  if (!runtime.spend(1 + static_cast<int64_t>(dict.entries.size() / 8))) return runtime.exhausted();
  for (auto& [other, slot] : dict.entries) {
    if (other.kind() != key.kind() && !(other.is_number() && key.is_number())) continue;
    INFERD_TRY(const bool same, equal(runtime, other, key));
    if (!same) continue;
    slot = std::move(value);
    return {};
  }
  dict.entries.emplace_back(std::move(key), std::move(value));
  return {};
}

Result<Text> join_texts(Runtime& runtime, const Text& left, const Text& right) {
  if (left.is_safe() != right.is_safe()) {
    INFERD_TRY(const Text first, escape_html(runtime, left));
    INFERD_TRY(const Text second, escape_html(runtime, right));
    return join_texts(runtime, first, second);
  }
  if (left.empty()) return right;
  if (right.empty()) return left;
  INFERD_TRY_STATUS(runtime.admit_text(left.size() + right.size()));
  TextBuilder builder;
  builder.reserve(left.size() + right.size());
  builder.append(left);
  builder.append(right);
  if (!runtime.spend(static_cast<int64_t>(builder.run_count()))) return runtime.exhausted();
  return std::move(builder).finish().with_safe(left.is_safe());
}

Result<Text> repeat_text(Runtime& runtime, const Text& text, int64_t times) {
  if (times <= 0 || text.empty()) return Text().with_safe(text.is_safe());
  if (times == 1) return text;
  size_t bytes = 0;
  if (__builtin_mul_overflow(text.size(), static_cast<size_t>(times), &bytes)) bytes = SIZE_MAX;
  INFERD_TRY_STATUS(runtime.admit_text(bytes));
  if (!runtime.spend(static_cast<int64_t>(text.run_count()) * times / 8)) return runtime.exhausted();
  TextBuilder builder;
  builder.reserve(bytes);
  for (int64_t i = 0; i < times; ++i) builder.append(text);
  return std::move(builder).finish().with_safe(text.is_safe());
}

Result<Text> escape_html(Runtime& runtime, const Text& text) {
  if (text.is_safe()) return text;
  INFERD_TRY_STATUS(runtime.admit_text(text.size()));
  TextBuilder builder;
  text.for_each_run([&builder](std::string_view piece, Origin origin) {
    size_t plain = 0;
    for (size_t at = 0; at < piece.size(); ++at) {
      std::string_view entity;
      switch (piece[at]) {
        case '&':
          entity = "&amp;";
          break;
        case '<':
          entity = "&lt;";
          break;
        case '>':
          entity = "&gt;";
          break;
        case '"':
          entity = "&#34;";
          break;
        case '\'':
          entity = "&#39;";
          break;
        default:
          continue;
      }
      builder.append(piece.substr(plain, at - plain), origin);
      builder.append(entity, origin);
      plain = at + 1;
    }
    builder.append(piece.substr(plain), origin);
  });
  INFERD_TRY(Text escaped, runtime.finish(std::move(builder)));
  return escaped.with_safe(true);
}

Result<std::vector<Value>> sorted(Runtime& runtime, std::vector<Value> items, const Less& is_less) {
  INFERD_TRY_STATUS(runtime.admit_items(items.size()));
  std::vector<Value> merged(items.size());
  for (size_t width = 1; width < items.size(); width *= 2) {
    for (size_t begin = 0; begin < items.size(); begin += 2 * width) {
      const size_t middle = std::min(begin + width, items.size());
      const size_t end = std::min(begin + 2 * width, items.size());
      size_t left = begin;
      size_t right = middle;
      for (size_t out = begin; out < end; ++out) {
        bool take_right = left == middle;
        if (!take_right && right < end) {
          if (!runtime.spend(2)) return runtime.exhausted();
          INFERD_TRY(take_right, is_less(runtime, items[right], items[left]));
        }
        merged[out] = std::move(items[take_right ? right++ : left++]);
      }
    }
    std::swap(items, merged);
  }
  return items;
}

}  // namespace inferd::jinja
