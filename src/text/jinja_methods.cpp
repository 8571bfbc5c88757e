#include "text/jinja_methods.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

#include "text/jinja_loop.h"
#include "text/jinja_operators.h"

namespace inferd::jinja {
namespace {

template <ViewObject::What what>
Result<Value> dict_view(Runtime& runtime, const Value& self, const Arguments& arguments) {
  INFERD_TRY_STATUS(expect_no_arguments("the method", arguments));
  auto& view = runtime.make<ViewObject>();
  view.dict = &self.as<DictObject>();
  view.what = what;
  return Value(Kind::view, &view);
}

Result<Value> dict_get(Runtime& runtime, const Value& self, const Arguments& arguments) {
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {"get()", 1, {"", ""}}));
  if (bound[0].is(Kind::list) || bound[0].is(Kind::dict)) return wrong_kind("get()", "a key", bound[0]);
  INFERD_TRY(const Value* found, find_entry(runtime, self.as<DictObject>(), bound[0]));
  if (found != nullptr) return *found;
  return bound.has(1) ? bound[1] : Value::none();
}

Result<Value> same(Runtime&, const Value& self,
                   const Arguments& arguments) {  // copy(): nothing here ever changes
  INFERD_TRY_STATUS(expect_no_arguments("copy()", arguments));
  return self;
}

Result<Value> count_items(Runtime& runtime, const Value& self, const Arguments& arguments) {
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {"count()", 1, {""}}));
  INFERD_TRY(Cursor cursor, Cursor::over(self));
  int64_t count = 0;
  for (Value item;;) {
    INFERD_TRY(const bool more, cursor.next(runtime, item));
    if (!more) return Value::integer(count);
    INFERD_TRY(const bool found, equal(runtime, item, bound[0]));
    count += found ? 1 : 0;
  }
}

Result<Value> index_of(Runtime& runtime, const Value& self, const Arguments& arguments) {
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {"index()", 1, {"", "", ""}}));
  INFERD_TRY(const int64_t size, length_of(runtime, self));
  const auto place = [&](size_t parameter, int64_t absent) -> Result<int64_t> {
    INFERD_TRY(const int64_t at, bound.whole(parameter, absent));
    return at < 0 ? std::max(at, -size) + size : at;
  };
  INFERD_TRY(const int64_t begin, place(1, 0));
  INFERD_TRY(const int64_t end, place(2, size));
  INFERD_TRY(Cursor cursor, Cursor::over(self));
  Value item;
  for (int64_t at = 0; at < std::min(end, size); ++at) {
    INFERD_TRY(const bool more, cursor.next(runtime, item));
    if (!more) break;
    if (at < begin) continue;
    INFERD_TRY(const bool found, equal(runtime, item, bound[0]));
    if (found) return Value::integer(at);
  }
  return run_error("index(): the item is not found");
}

Result<Value> next_of_cycler(Runtime&, const Value& self, const Arguments& arguments) {
  INFERD_TRY_STATUS(expect_no_arguments("next()", arguments));
  auto& cycler = self.as<CyclerObject>();
  const size_t at = cycler.at;
  cycler.at = (at + 1) % cycler.items.size();
  return cycler.items[at];
}

Result<Value> reset_cycler(Runtime&, const Value& self, const Arguments& arguments) {
  INFERD_TRY_STATUS(expect_no_arguments("reset()", arguments));
  self.as<CyclerObject>().at = 0;
  return Value::none();
}

Result<Value> cycle_of_loop(Runtime&, const Value& self, const Arguments& arguments) {
  const auto& items = arguments.positional;
  if (!arguments.named.empty() || items.empty()) return run_error("loop.cycle() needs items");
  return items[static_cast<size_t>(self.as<LoopObject>().index0) % items.size()];
}

Result<Value> changed_in_loop(Runtime& runtime, const Value& self, const Arguments& arguments) {
  if (!arguments.named.empty()) return run_error("loop.changed() takes values by place");
  auto& last = self.as<LoopObject>().last_changed;
  bool same = last && last->size() == arguments.positional.size();
  for (size_t i = 0; same && i < last->size(); ++i) {
    INFERD_TRY(same, equal(runtime, (*last)[i], arguments.positional[i]));
  }
  last = arguments.positional;
  return Value::boolean(!same);
}

constexpr auto kListMethods =
    std::to_array<Method>({{"copy", same}, {"count", count_items}, {"index", index_of}});
constexpr auto kTupleMethods = std::to_array<Method>({{"count", count_items}, {"index", index_of}});
constexpr auto kRangeMethods = std::to_array<Method>(
    {{"count", count_items}, {"index", index_of}, {"start", nullptr}, {"step", nullptr}, {"stop", nullptr}});
constexpr auto kDictMethods = std::to_array<Method>({
    {"copy", same},
    {"fromkeys", nullptr},
    {"get", dict_get},
    {"items", dict_view<ViewObject::What::items>},
    {"keys", dict_view<ViewObject::What::keys>},
    {"values", dict_view<ViewObject::What::values>},
});
constexpr auto kViewMethods = std::to_array<Method>({{"isdisjoint", nullptr}, {"mapping", nullptr}});
constexpr auto kCyclerMethods = std::to_array<Method>({{"next", next_of_cycler}, {"reset", reset_cycler}});
constexpr auto kLoopMethods = std::to_array<Method>({{"changed", changed_in_loop}, {"cycle", cycle_of_loop}});
constexpr auto kIntegerMethods = std::to_array<Method>({
    {"as_integer_ratio", nullptr},
    {"bit_count", nullptr},
    {"bit_length", nullptr},
    {"conjugate", nullptr},
    {"denominator", nullptr},
    {"from_bytes", nullptr},
    {"imag", nullptr},
    {"numerator", nullptr},
    {"real", nullptr},
    {"to_bytes", nullptr},
});
constexpr auto kRealMethods = std::to_array<Method>({
    {"as_integer_ratio", nullptr},
    {"conjugate", nullptr},
    {"fromhex", nullptr},
    {"hex", nullptr},
    {"imag", nullptr},
    {"is_integer", nullptr},
    {"real", nullptr},
});

std::span<const Method> methods_of(Kind kind) {
  switch (kind) {
    case Kind::list:
      return kListMethods;
    case Kind::tuple:
      return kTupleMethods;
    case Kind::range:
      return kRangeMethods;
    case Kind::dict:
      return kDictMethods;
    case Kind::view:
      return kViewMethods;
    case Kind::cycler:
      return kCyclerMethods;
    case Kind::loop:
      return kLoopMethods;
    case Kind::boolean:
    case Kind::integer:
      return kIntegerMethods;
    case Kind::real:
      return kRealMethods;
    default:
      return {};
  }
}

}  // namespace

const Method* find_method(Kind kind, std::string_view name) {
  if (kind == Kind::text) return find_text_method(name);
  for (const Method& method : methods_of(kind)) {
    if (method.name == name) return &method;
  }
  return nullptr;
}

bool is_mutator(Kind kind, std::string_view name) {
  static constexpr std::string_view kList[] = {"append", "clear",  "extend",  "insert",
                                               "pop",    "remove", "reverse", "sort"};
  static constexpr std::string_view kDict[] = {"clear", "pop", "popitem", "setdefault", "update"};
  if (kind == Kind::list) return std::find(std::begin(kList), std::end(kList), name) != std::end(kList);
  if (kind == Kind::dict) return std::find(std::begin(kDict), std::end(kDict), name) != std::end(kDict);
  return false;
}

Result<Value> call_method(Runtime& runtime, const Method& method, const Value& self,
                          const Arguments& arguments) {
  if (method.call == nullptr) {
    return run_error(
        cat("the attribute ", printable(method.name), " of ", kind_name(self.kind()), " is not supported"));
  }
  return method.call(runtime, self, arguments);
}

}  // namespace inferd::jinja
