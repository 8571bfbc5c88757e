// Filters of sequences and dicts (jinja_filters.h). Those that are generators in jinja2 give a lazy sequence:
// it can be walked once, has no length, and its errors appear when it is walked.
#include <algorithm>
#include <array>

#include "text/jinja_filters.h"
#include "text/jinja_operators.h"
#include "text/jinja_print.h"
#include "text/jinja_strings.h"
#include "text/jinja_unicode.h"

namespace inferd::jinja {
namespace {

// A lazy sequence of what `fill` adds to it.
template <typename Fill>
Result<Value> lazily(Runtime& runtime, Fill fill) {
  std::vector<Value> items;
  Status status = fill(items);
  if (!status.ok() && status.error().code == Code::template_budget) return std::move(status).error();
  auto& iterator = runtime.make<IteratorObject>();
  iterator.items = std::move(items);
  if (!status.ok()) iterator.failure = std::move(status).error();
  return Value(Kind::iterator, &iterator);
}

// Calls visit(item) for each item of an iterable.
template <typename Visit>
Status for_each(Runtime& runtime, const Value& value, Visit visit) {
  INFERD_TRY(Cursor cursor, Cursor::over(value));
  for (Value item;;) {
    INFERD_TRY(const bool more, cursor.next(runtime, item));
    if (!more) return {};
    INFERD_TRY_STATUS(visit(item));
  }
}

Result<Value> folded(Runtime& runtime, Value value, bool case_sensitive) {
  if (case_sensitive || !value.is(Kind::text)) return value;
  INFERD_TRY(Text lower, to_lower(runtime, value.text()));
  return Value(std::move(lower));
}

// ---- one item, order

Result<Value> first_item(Runtime& runtime, const Value& input, const Arguments& arguments) {
  INFERD_TRY_STATUS(expect_no_arguments("first", arguments));
  INFERD_TRY(Cursor cursor, Cursor::over(input));
  Value item;
  INFERD_TRY(const bool more, cursor.next(runtime, item));
  return more ? item : Value::undefined(Missing::empty_sequence);
}

// Python's reversed(): what cannot be walked backwards gives nullopt.
Result<std::optional<std::vector<Value>>> backwards(Runtime& runtime, const Value& input) {
  switch (input.kind()) {
    case Kind::undefined:
    case Kind::text:
    case Kind::list:
    case Kind::tuple:
    case Kind::dict:
    case Kind::range:
    case Kind::view:
      break;
    default:
      return std::optional<std::vector<Value>>();
  }
  INFERD_TRY(std::vector<Value> items, items_of(runtime, input));
  std::reverse(items.begin(), items.end());
  return std::optional<std::vector<Value>>(std::move(items));
}

Result<Value> last_item(Runtime& runtime, const Value& input, const Arguments& arguments) {
  INFERD_TRY_STATUS(expect_no_arguments("last", arguments));
  if (input.is(Kind::text) || input.is_sequence()) {  // without walking all of it
    INFERD_TRY(const Value last, get_item(runtime, input, Value::integer(-1)));
    return last.is(Kind::undefined) && !is_true(input) ? Value::undefined(Missing::empty_sequence) : last;
  }
  INFERD_TRY(const auto items, backwards(runtime, input));
  if (!items) return run_error(cat("last: ", kind_name(input.kind()), " cannot be walked backwards"));
  return items->empty() ? Value::undefined(Missing::empty_sequence) : items->front();
}

Result<Value> reversed(Runtime& runtime, const Value& input, const Arguments& arguments) {
  INFERD_TRY_STATUS(expect_no_arguments("reverse", arguments));
  if (input.is(Kind::text))
    return get_slice(runtime, input, Value::none(), Value::none(), Value::integer(-1));
  INFERD_TRY(auto items, backwards(runtime, input));
  if (items) {
    return lazily(runtime, [&](std::vector<Value>& out) -> Status {
      out = std::move(*items);
      return {};
    });
  }
  INFERD_TRY(std::vector<Value> walked, items_of(runtime, input));
  std::reverse(walked.begin(), walked.end());
  return runtime.list(std::move(walked));
}

Result<Value> as_list(Runtime& runtime, const Value& input, const Arguments& arguments) {
  INFERD_TRY_STATUS(expect_no_arguments("list", arguments));
  INFERD_TRY(std::vector<Value> items, items_of(runtime, input));
  return runtime.list(std::move(items), origin_of(input) == Origin::data && !input.is(Kind::text));
}

// Sorts by `key`, keeping the order of equal items also when reversed.
Result<std::vector<Value>> sorted_by(Runtime& runtime, std::vector<Value> items, bool reverse,
                                     const std::function<Result<Value>(const Value&)>& key) {
  std::vector<Value> keyed;
  keyed.reserve(items.size());
  for (Value& item : items) {
    INFERD_TRY(Value item_key, key(item));
    keyed.push_back(runtime.tuple({std::move(item_key), std::move(item)}));
  }
  INFERD_TRY(keyed, sorted(runtime, std::move(keyed), [reverse](Runtime& rt, const Value& a, const Value& b) {
               const Value& left = a.as<ListObject>().items[0];
               const Value& right = b.as<ListObject>().items[0];
               return reverse ? less(rt, right, left) : less(rt, left, right);
             }));
  for (size_t i = 0; i < items.size(); ++i) items[i] = keyed[i].as<ListObject>().items[1];
  return items;
}

Result<Value> sort(Runtime& runtime, const Value& input, const Arguments& arguments) {
  INFERD_TRY(const Bound bound,
             Bound::bind(arguments, {"sort", 0, {"reverse", "case_sensitive", "attribute"}}));
  const bool case_sensitive = bound.flag(1, false);
  std::vector<Value> paths = {bound.has(2) ? bound[2] : Value::none()};
  if (paths[0].is(Kind::text)) {  // "age,name": by age, then by name
    INFERD_TRY(paths, split_text(runtime, paths[0].text(), Text::borrowed(",", Origin::markup), -1));
  }
  INFERD_TRY(std::vector<Value> items, items_of(runtime, input));
  INFERD_TRY(items, sorted_by(runtime, std::move(items), bound.flag(0, false),
                              [&](const Value& item) -> Result<Value> {
                                std::vector<Value> keys;
                                for (const Value& path : paths) {
                                  INFERD_TRY(Value key, follow_path(runtime, item, path, nullptr));
                                  INFERD_TRY(key, folded(runtime, std::move(key), case_sensitive));
                                  keys.push_back(std::move(key));
                                }
                                return runtime.list(std::move(keys));
                              }));
  return runtime.list(std::move(items));
}

Result<Value> dict_sort(Runtime& runtime, const Value& input, const Arguments& arguments) {
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {"dictsort", 0, {"case_sensitive", "by", "reverse"}}));
  INFERD_TRY(const Text by, bound.text(1, "key"));
  if (by.view() != "key" && by.view() != "value")
    return run_error("dictsort sorts by \"key\" or by \"value\"");
  if (!input.is(Kind::dict)) return wrong_kind("dictsort", "a dict", input);
  auto& view = runtime.make<ViewObject>();
  view.dict = &input.as<DictObject>();
  INFERD_TRY(std::vector<Value> items, items_of(runtime, Value(Kind::view, &view)));
  const size_t part = by.view() == "key" ? 0 : 1;
  INFERD_TRY(items, sorted_by(runtime, std::move(items), bound.flag(2, false), [&](const Value& item) {
               return folded(runtime, item.as<ListObject>().items[part], bound.flag(0, false));
             }));
  return runtime.list(std::move(items), view.dict->from_caller);
}

template <bool greatest>
Result<Value> extreme(Runtime& runtime, const Value& input, const Arguments& arguments) {
  INFERD_TRY(const Bound bound,
             Bound::bind(arguments, {greatest ? "max" : "min", 0, {"case_sensitive", "attribute"}}));
  const Value path = bound.has(1) ? bound[1] : Value::none();
  std::optional<Value> best;
  Value best_key;
  INFERD_TRY_STATUS(for_each(runtime, input, [&](const Value& item) -> Status {
    INFERD_TRY(Value key, follow_path(runtime, item, path, nullptr));
    INFERD_TRY(key, folded(runtime, std::move(key), bound.flag(0, false)));
    if (best) {
      INFERD_TRY(const bool better, greatest ? less(runtime, best_key, key) : less(runtime, key, best_key));
      if (!better) return {};
    }
    best = item;
    best_key = std::move(key);
    return {};
  }));
  return best ? *best : Value::undefined(Missing::empty_sequence);
}

// ---- selecting and mapping

Result<Value> unique(Runtime& runtime, const Value& input, const Arguments& arguments) {
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {"unique", 0, {"case_sensitive", "attribute"}}));
  const Value path = bound.has(1) ? bound[1] : Value::none();
  return lazily(runtime, [&](std::vector<Value>& out) -> Status {
    DictObject seen;
    return for_each(runtime, input, [&](const Value& item) -> Status {
      INFERD_TRY(Value key, follow_path(runtime, item, path, nullptr));
      INFERD_TRY(key, folded(runtime, std::move(key), bound.flag(0, false)));
      const size_t known = seen.entries.size();
      INFERD_TRY_STATUS(put_entry(runtime, seen, std::move(key), Value()));
      if (seen.entries.size() > known) out.push_back(item);
      return {};
    });
  });
}

Result<Value> map(Runtime& runtime, const Value& input, const Arguments& arguments) {
  return lazily(runtime, [&](std::vector<Value>& out) -> Status {
    if (!is_true(input)) return {};
    if (arguments.positional.empty()) {
      const Value* path = nullptr;
      const Value* fallback = nullptr;
      for (const auto& [name, value] : arguments.named) {
        if (name == "attribute") {
          path = &value;
        } else if (name == "default") {
          fallback = value.is(Kind::none) ? nullptr : &value;
        } else {
          return run_error(cat("map has no argument named ", printable(name)));
        }
      }
      if (path == nullptr) return run_error("map needs a filter or an attribute");
      return for_each(runtime, input, [&](const Value& item) -> Status {
        INFERD_TRY(Value mapped, follow_path(runtime, item, *path, fallback));
        out.push_back(std::move(mapped));
        return {};
      });
    }
    const Value& name = arguments.positional[0];
    const Filter* filter = name.is(Kind::text) ? find_filter(name.text().view()) : nullptr;
    if (filter == nullptr) return run_error("map: no such filter");
    Arguments rest = arguments;
    rest.positional.erase(rest.positional.begin());
    return for_each(runtime, input, [&](const Value& item) -> Status {
      INFERD_TRY(Value mapped, filter->apply(runtime, item, rest));
      out.push_back(std::move(mapped));
      return {};
    });
  });
}

template <bool by_attribute, bool wanted>
Result<Value> select(Runtime& runtime, const Value& input, const Arguments& arguments) {
  return lazily(runtime, [&](std::vector<Value>& out) -> Status {
    if (!is_true(input)) return {};
    Value path = Value::none();
    Arguments rest = arguments;
    if (by_attribute) {
      if (rest.positional.empty()) return run_error("selectattr and rejectattr need an attribute");
      path = rest.positional[0];
      rest.positional.erase(rest.positional.begin());
    }
    const Test* test = nullptr;
    if (!rest.positional.empty()) {
      const Value& name = rest.positional[0];
      test = name.is(Kind::text) ? find_test(name.text().view()) : nullptr;
      if (test == nullptr) return run_error("select and reject: no such test");
      rest.positional.erase(rest.positional.begin());
    }
    return for_each(runtime, input, [&](const Value& item) -> Status {
      INFERD_TRY(const Value subject, follow_path(runtime, item, path, nullptr));
      bool holds = is_true(subject);
      if (test != nullptr) {
        INFERD_TRY(holds, test->holds(runtime, subject, rest));
      }
      if (holds == wanted) out.push_back(item);
      return {};
    });
  });
}

Result<Value> dict_items(Runtime& runtime, const Value& input, const Arguments& arguments) {
  INFERD_TRY_STATUS(expect_no_arguments("items", arguments));
  return lazily(runtime, [&](std::vector<Value>& out) -> Status {
    if (input.is(Kind::undefined)) return {};
    if (!input.is(Kind::dict)) return wrong_kind("items", "a dict", input);
    auto& view = runtime.make<ViewObject>();
    view.dict = &input.as<DictObject>();
    INFERD_TRY(out, items_of(runtime, Value(Kind::view, &view)));
    return {};
  });
}

// ---- grouping and folding

Result<Value> batch(Runtime& runtime, const Value& input, const Arguments& arguments) {
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {"batch", 1, {"linecount", "fill_with"}}));
  INFERD_TRY(const int64_t size, bound.whole(0, 1));
  return lazily(runtime, [&](std::vector<Value>& out) -> Status {
    std::vector<Value> row;
    INFERD_TRY_STATUS(for_each(runtime, input, [&](const Value& item) -> Status {
      if (static_cast<int64_t>(row.size()) == size) out.push_back(runtime.list(std::exchange(row, {})));
      row.push_back(item);
      return {};
    }));
    if (row.empty()) return {};
    if (bound.has_value(1) && static_cast<int64_t>(row.size()) < size) {
      INFERD_TRY_STATUS(runtime.admit_items(static_cast<size_t>(size) - row.size()));
      row.resize(static_cast<size_t>(size), bound[1]);
    }
    out.push_back(runtime.list(std::move(row)));
    return {};
  });
}

Result<Value> slice(Runtime& runtime, const Value& input, const Arguments& arguments) {
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {"slice", 1, {"slices", "fill_with"}}));
  INFERD_TRY(const int64_t slices, bound.whole(0, 1));
  return lazily(runtime, [&](std::vector<Value>& out) -> Status {
    INFERD_TRY(const std::vector<Value> items, items_of(runtime, input));
    if (slices == 0) return run_error("slice: division by zero");
    if (slices < 0) return {};
    INFERD_TRY_STATUS(runtime.admit_items(static_cast<size_t>(slices)));
    const auto size = static_cast<int64_t>(items.size());
    for (int64_t number = 0, begin = 0; number < slices; ++number) {
      const bool longer = number < size % slices;
      const int64_t end = begin + size / slices + (longer ? 1 : 0);
      std::vector<Value> part(items.begin() + begin, items.begin() + end);
      if (bound.has_value(1) && !longer) part.push_back(bound[1]);
      out.push_back(runtime.list(std::move(part)));
      begin = end;
    }
    return {};
  });
}

Result<Value> group_by(Runtime& runtime, const Value& input, const Arguments& arguments) {
  INFERD_TRY(const Bound bound,
             Bound::bind(arguments, {"groupby", 1, {"attribute", "default", "case_sensitive"}}));
  const Value* fallback = bound.has_value(1) ? &bound[1] : nullptr;
  const auto key_of = [&](const Value& item) -> Result<Value> {
    INFERD_TRY(Value key, follow_path(runtime, item, bound[0], fallback));
    return folded(runtime, std::move(key), bound.flag(2, false));
  };
  INFERD_TRY(std::vector<Value> items, items_of(runtime, input));
  INFERD_TRY(items, sorted_by(runtime, std::move(items), false, key_of));
  std::vector<Value> groups;
  for (size_t begin = 0; begin < items.size();) {
    INFERD_TRY(const Value key, key_of(items[begin]));
    size_t end = begin + 1;
    for (; end < items.size(); ++end) {
      INFERD_TRY(const Value other, key_of(items[end]));
      INFERD_TRY(const bool same, equal(runtime, key, other));
      if (!same) break;
    }
    INFERD_TRY(const Value shown, follow_path(runtime, items[begin], bound[0], fallback));
    const auto at = [&](size_t index) { return items.begin() + static_cast<std::ptrdiff_t>(index); };
    const Value group = runtime.tuple({shown, runtime.list(std::vector<Value>(at(begin), at(end)))});
    group.as<ListObject>().group = true;
    groups.push_back(group);
    begin = end;
  }
  return runtime.list(std::move(groups));
}

Result<Value> join(Runtime& runtime, const Value& input, const Arguments& arguments) {
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {"join", 0, {"d", "attribute"}}));
  INFERD_TRY(const Text separator, bound.has(0) ? to_text(runtime, bound[0]) : Result<Text>(Text()));
  const Value path = bound.has(1) ? bound[1] : Value::none();
  std::vector<Text> parts;
  INFERD_TRY_STATUS(for_each(runtime, input, [&](const Value& item) -> Status {
    INFERD_TRY(const Value shown, follow_path(runtime, item, path, nullptr));
    INFERD_TRY(Text text, to_text(runtime, shown));
    parts.push_back(std::move(text));
    return {};
  }));
  INFERD_TRY(Text joined, join_all(runtime, separator, parts));
  return Value(std::move(joined));
}

Result<Value> sum(Runtime& runtime, const Value& input, const Arguments& arguments) {
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {"sum", 0, {"attribute", "start"}}));
  const Value path = bound.has(0) ? bound[0] : Value::none();
  Value total = bound.has(1) ? bound[1] : Value::integer(0);
  if (total.is(Kind::text)) return run_error("sum cannot add strings; use join");
  INFERD_TRY_STATUS(for_each(runtime, input, [&](const Value& item) -> Status {
    INFERD_TRY(const Value term, follow_path(runtime, item, path, nullptr));
    INFERD_TRY(total, arithmetic(runtime, ArithmeticOp::add, total, term));
    return {};
  }));
  return total;
}

constexpr auto kSequenceFilters = std::to_array<Filter>({
    {"batch", batch},
    {"dictsort", dict_sort},
    {"first", first_item},
    {"groupby", group_by},
    {"items", dict_items},
    {"join", join},
    {"last", last_item},
    {"list", as_list},
    {"map", map},
    {"max", extreme<true>},
    {"min", extreme<false>},
    {"reject", select<false, false>},
    {"rejectattr", select<true, false>},
    {"reverse", reversed},
    {"select", select<false, true>},
    {"selectattr", select<true, true>},
    {"slice", slice},
    {"sort", sort},
    {"sum", sum},
    {"unique", unique},
});

}  // namespace

std::span<const Filter> sequence_filters() {
  return kSequenceFilters;
}

Result<Value> follow_path(Runtime& runtime, const Value& value, const Value& path, const Value* fallback) {
  if (path.is(Kind::none)) return value;
  std::vector<Value> steps = {path};
  if (path.is(Kind::text)) {
    INFERD_TRY(steps, split_text(runtime, path.text(), Text::borrowed(".", Origin::markup), -1));
  }
  Value at = value;
  for (const Value& step : steps) {
    Value key = step;
    if (step.is(Kind::text)) {
      const std::string_view word = step.text().view();
      const bool number = !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
      if (const auto index = number ? parse_int(word) : std::nullopt) key = Value::integer(*index);
    }
    INFERD_TRY(at, get_item(runtime, at, key));
    if (fallback != nullptr && at.is(Kind::undefined)) at = *fallback;
  }
  return at;
}

}  // namespace inferd::jinja
