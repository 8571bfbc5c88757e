// The tests of `is` (jinja_filters.h).
#include <algorithm>
#include <array>

#include "text/jinja_filters.h"
#include "text/jinja_operators.h"
#include "text/jinja_print.h"
#include "text/jinja_strings.h"

namespace inferd::jinja {
namespace {

template <bool (*holds)(const Value&)>
Result<bool> plainly(Runtime&, const Value& input, const Arguments& arguments) {
  INFERD_TRY_STATUS(expect_no_arguments("the test", arguments));
  return holds(input);
}

template <CompareOp op>
Result<bool> compares(Runtime& runtime, const Value& input, const Arguments& arguments) {
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {"the test", 1, {""}}));
  return compare(runtime, op, input, bound[0]);
}

Result<bool> remainder_is(Runtime& runtime, const Value& input, const Value& divisor, int64_t wanted) {
  INFERD_TRY(const Value remainder, arithmetic(runtime, ArithmeticOp::modulo, input, divisor));
  return equal(runtime, remainder, Value::integer(wanted));
}

template <int64_t wanted>
Result<bool> parity(Runtime& runtime, const Value& input, const Arguments& arguments) {
  INFERD_TRY_STATUS(expect_no_arguments("the test", arguments));
  return remainder_is(runtime, input, Value::integer(2), wanted);
}

Result<bool> divisible_by(Runtime& runtime, const Value& input, const Arguments& arguments) {
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {"divisibleby", 1, {"num"}}));
  return remainder_is(runtime, input, bound[0], 0);
}

Result<bool> same_as(Runtime&, const Value& input, const Arguments& arguments) {
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {"sameas", 1, {"other"}}));
  return identical(input, bound[0]);
}

Result<bool> is_in(Runtime& runtime, const Value& input, const Arguments& arguments) {
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {"in", 1, {"seq"}}));
  return contains(runtime, bound[0], input);
}

template <bool (*holds)(std::string_view)>
Result<bool> printed_is(Runtime& runtime, const Value& input, const Arguments& arguments) {
  INFERD_TRY_STATUS(expect_no_arguments("the test", arguments));
  INFERD_TRY(const Text text, to_text(runtime, input));
  if (!runtime.spend_bytes(text.size() * 8)) return runtime.exhausted();
  return holds(text.view());
}

bool is_boolean(const Value& value) {
  return value.is(Kind::boolean);
}

bool is_callable(const Value& value) {
  return value.is(Kind::builtin) || value.is(Kind::method) || value.is(Kind::macro) || value.is(Kind::loop) ||
         value.is(Kind::joiner) || value.is(Kind::undefined);
}

bool is_defined(const Value& value) {
  return !value.is(Kind::undefined);
}
bool is_undefined(const Value& value) {
  return value.is(Kind::undefined);
}
bool is_escaped(const Value& value) {
  return value.is(Kind::text) && value.text().is_safe();
}
bool is_false(const Value& value) {
  return value.is(Kind::boolean) && value.whole() == 0;
}
bool is_known_filter(const Value& value) {
  return value.is(Kind::text) && find_filter(value.text().view()) != nullptr;
}
bool is_known_test(const Value& value) {
  return value.is(Kind::text) && find_test(value.text().view()) != nullptr;
}
bool is_real(const Value& value) {
  return value.is(Kind::real);
}
bool is_integer(const Value& value) {
  return value.is(Kind::integer);
}
bool is_iterable(const Value& value) {
  return value.is(Kind::loop) || Cursor::over(value).ok();
}
bool is_mapping(const Value& value) {
  return value.is(Kind::dict);
}
bool is_none(const Value& value) {
  return value.is(Kind::none);
}
bool is_number(const Value& value) {
  return value.is_number();
}

bool is_sequence(const Value& value) {  // has a length and items
  return value.is(Kind::text) || value.is_sequence() || value.is(Kind::dict) || value.is(Kind::range) ||
         value.is(Kind::undefined);
}

bool is_string(const Value& value) {
  return value.is(Kind::text);
}
bool is_really_true(const Value& value) {
  return value.is(Kind::boolean) && value.whole() != 0;
}

constexpr auto kTests = std::to_array<Test>({
    {"!=", compares<CompareOp::not_equal>},
    {"<", compares<CompareOp::less>},
    {"<=", compares<CompareOp::less_equal>},
    {"==", compares<CompareOp::equal>},
    {">", compares<CompareOp::greater>},
    {">=", compares<CompareOp::greater_equal>},
    {"boolean", plainly<is_boolean>},
    {"callable", plainly<is_callable>},
    {"defined", plainly<is_defined>},
    {"divisibleby", divisible_by},
    {"eq", compares<CompareOp::equal>},
    {"equalto", compares<CompareOp::equal>},
    {"escaped", plainly<is_escaped>},
    {"even", parity<0>},
    {"false", plainly<is_false>},
    {"filter", plainly<is_known_filter>},
    {"float", plainly<is_real>},
    {"ge", compares<CompareOp::greater_equal>},
    {"greaterthan", compares<CompareOp::greater>},
    {"gt", compares<CompareOp::greater>},
    {"in", is_in},
    {"integer", plainly<is_integer>},
    {"iterable", plainly<is_iterable>},
    {"le", compares<CompareOp::less_equal>},
    {"lessthan", compares<CompareOp::less>},
    {"lower", printed_is<is_lower>},
    {"lt", compares<CompareOp::less>},
    {"mapping", plainly<is_mapping>},
    {"ne", compares<CompareOp::not_equal>},
    {"none", plainly<is_none>},
    {"number", plainly<is_number>},
    {"odd", parity<1>},
    {"sameas", same_as},
    {"sequence", plainly<is_sequence>},
    {"string", plainly<is_string>},
    {"test", plainly<is_known_test>},
    {"true", plainly<is_really_true>},
    {"undefined", plainly<is_undefined>},
    {"upper", printed_is<is_upper>},
});

}  // namespace

const Test* find_test(std::string_view name) {
  const auto found =
      std::lower_bound(kTests.begin(), kTests.end(), name,
                       [](const Test& test, std::string_view wanted) { return test.name < wanted; });
  return found != kTests.end() && found->name == name ? &*found : nullptr;
}

}  // namespace inferd::jinja
