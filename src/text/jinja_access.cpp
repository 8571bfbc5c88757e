// Attributes, items and slices (jinja_operators.h).
#include <algorithm>

#include "text/jinja_methods.h"
#include "text/jinja_operators.h"
#include "text/jinja_print.h"
#include "text/jinja_unicode.h"

namespace inferd::jinja {
namespace {

Value missing_attribute(const Value& value, const Text& name) {
  return Value::undefined(Missing::attribute, name, value.kind());
}

Value unsafe_attribute(const Value& value, const Text& name) {
  return Value::undefined(Missing::unsafe_attribute, name, value.kind());
}

// The name of a missing element, for the message.
Text element_name(const Value& key) {
  if (key.is(Kind::text)) return key.text();
  if (key.is_whole()) return Text::owned(cat(key.whole()), key.scalar_origin());
  return Text::borrowed(kind_name(key.kind()), Origin::markup);
}

// A Python index into something of `size` items: negative counts from the end.
std::optional<size_t> resolve_index(int64_t index, size_t size) {
  const auto length = static_cast<int64_t>(size);
  if (index < -length || index >= length) return std::nullopt;
  return static_cast<size_t>(index < 0 ? index + length : index);
}

Result<Value> text_item(Runtime& runtime, const Value& value, const Value& key) {
  const Text& text = value.text();
  const int64_t index = key.whole();
  const std::string_view view = text.view();
  size_t at = 0;
  if (index >= 0) {
    at = skip_forward(view, 0, static_cast<size_t>(index));
    if (!runtime.spend_bytes(std::min(at, view.size()))) return runtime.exhausted();
  } else {
    at = skip_backward(view, view.size(), size_t{0} - static_cast<size_t>(index));
    if (!runtime.spend_bytes(at == std::string_view::npos ? view.size() : view.size() - at))
      return runtime.exhausted();
  }
  if (at == std::string_view::npos || at >= view.size()) return missing_attribute(value, element_name(key));
  return Value(text.slice(at, skip_forward(view, at, 1)));
}

Result<std::optional<int64_t>> slice_bound(const Value& bound) {
  if (bound.is(Kind::none)) return std::optional<int64_t>();
  if (bound.is_whole()) return std::optional<int64_t>(bound.whole());
  if (bound.is(Kind::undefined)) return undefined_error(bound);
  return run_error(cat("a slice needs integers, got ", kind_name(bound.kind())));
}

struct Slice {
  std::optional<int64_t> start;
  std::optional<int64_t> stop;
  int64_t step = 1;
};

struct Positions {
  int64_t first = 0;
  int64_t stop = 0;
  int64_t count = 0;
  int64_t step = 1;
};

// Python's slice.indices for `size` items.
Positions positions_of(const Slice& slice, int64_t size) {
  const bool forward = slice.step > 0;
  const int64_t low = forward ? 0 : -1;
  const int64_t high = forward ? size : size - 1;
  const auto clamp = [&](std::optional<int64_t> bound, int64_t absent) {
    if (!bound) return absent;
    const int64_t at = *bound < 0 ? std::max(*bound, -size - 1) + size : *bound;
    return std::clamp(at, low, high);
  };
  const int64_t start = clamp(slice.start, forward ? low : high);
  const int64_t stop = clamp(slice.stop, forward ? high : low);
  const int64_t distance = forward ? stop - start : start - stop;
  if (distance <= 0) return {start, stop, 0, slice.step};
  // A step longer than the sequence takes one item, whatever its length.
  const int64_t stride = slice.step == INT64_MIN ? INT64_MAX : std::abs(slice.step);
  return {start, stop, (distance - 1) / stride + 1, slice.step};
}

// Bytes of text[start:stop]; only the part from the nearer end is walked.
Result<Value> text_run(Runtime& runtime, const Text& text, const Slice& slice) {
  const std::string_view view = text.view();
  const auto offset_of = [&](std::optional<int64_t> bound, size_t absent) -> Result<size_t> {
    if (!bound) return absent;
    size_t at = 0;
    if (*bound >= 0) {
      at = std::min(skip_forward(view, 0, static_cast<size_t>(*bound)), view.size());
      if (!runtime.spend_bytes(at)) return runtime.exhausted();
    } else {
      at = skip_backward(view, view.size(), size_t{0} - static_cast<size_t>(*bound));
      if (at == std::string_view::npos) at = 0;
      if (!runtime.spend_bytes(view.size() - at)) return runtime.exhausted();
    }
    return at;
  };
  INFERD_TRY(const size_t begin, offset_of(slice.start, 0));
  INFERD_TRY(const size_t end, offset_of(slice.stop, view.size()));
  return Value(begin < end ? text.slice(begin, end) : Text().with_safe(text.is_safe()));
}

Result<Value> text_slice(Runtime& runtime, const Text& text, const Slice& slice) {
  if (slice.step == 1) return text_run(runtime, text, slice);
  INFERD_TRY_STATUS(runtime.admit_text(text.size() * 8));
  std::vector<size_t> offsets;
  for (size_t at = 0; at < text.size(); at = skip_forward(text.view(), at, 1)) offsets.push_back(at);
  const auto size = static_cast<int64_t>(offsets.size());
  offsets.push_back(text.size());
  const Positions positions = positions_of(slice, size);
  TextBuilder builder;
  for (int64_t i = 0; i < positions.count; ++i) {
    const auto at = static_cast<size_t>(positions.first + i * positions.step);
    builder.append(text.slice(offsets[at], offsets[at + 1]));
  }
  INFERD_TRY(Text sliced, runtime.finish(std::move(builder)));
  return Value(sliced.with_safe(text.is_safe()));
}

}  // namespace

std::optional<Value> get_own_attribute(Runtime& runtime, const Value& value, const Text& name) {
  const std::string_view word = name.view();
  if (word.starts_with("__") && word.ends_with("__")) return unsafe_attribute(value, name);
  if (value.is(Kind::space)) {
    const Value* member = value.as<NamespaceObject>().find(word);
    if (member == nullptr) return std::nullopt;
    return word.starts_with('_') ? unsafe_attribute(value, name) : *member;
  }
  if (const Method* method = find_method(value.kind(), word)) {
    auto& bound = runtime.make<MethodObject>();
    bound.self = value;
    bound.method = method;
    return Value(Kind::method, &bound);
  }
  if (is_mutator(value.kind(), word)) return unsafe_attribute(value, name);
  if (value.is(Kind::tuple) && value.as<ListObject>().group) {
    if (word == "grouper") return value.as<ListObject>().items[0];
    if (word == "list") return value.as<ListObject>().items[1];
  }
  if (value.is(Kind::cycler) && word == "current") {
    const auto& cycler = value.as<CyclerObject>();
    return cycler.items[cycler.at];
  }
  return std::nullopt;
}

Result<Value> get_attribute(Runtime& runtime, const Value& value, const Text& name) {
  if (value.is(Kind::undefined)) return undefined_error(value);
  if (auto own = get_own_attribute(runtime, value, name)) return *own;
  if (value.is(Kind::dict)) {
    INFERD_TRY(const Value* found, find_entry(runtime, value.as<DictObject>(), Value(name)));
    if (found != nullptr) return *found;
  }
  return missing_attribute(value, name);
}

Result<Value> get_item(Runtime& runtime, const Value& value, const Value& key) {
  switch (value.kind()) {
    case Kind::undefined:
      return undefined_error(value);
    case Kind::list:
    case Kind::tuple:
      if (key.is_whole()) {
        const auto& items = value.as<ListObject>().items;
        if (const auto at = resolve_index(key.whole(), items.size())) return items[*at];
      }
      break;
    case Kind::text:
      if (key.is_whole()) return text_item(runtime, value, key);
      break;
    case Kind::range:
      if (key.is_whole()) {
        const auto& range = value.as<RangeObject>();
        if (const auto at = resolve_index(key.whole(), static_cast<size_t>(range.size()))) {
          return Value::integer(range.at(static_cast<int64_t>(*at)));
        }
      }
      break;
    case Kind::dict: {
      if (key.is(Kind::list) || key.is(Kind::dict)) break;
      INFERD_TRY(const Value* found, find_entry(runtime, value.as<DictObject>(), key));
      if (found != nullptr) return *found;
      break;
    }
    default:
      break;
  }
  if (key.is(Kind::text)) {
    if (auto own = get_own_attribute(runtime, value, key.text())) return *own;
  }
  return missing_attribute(value, element_name(key));
}

Result<Value> get_slice(Runtime& runtime, const Value& value, const Value& start, const Value& stop,
                        const Value& step) {
  if (value.is(Kind::undefined)) return undefined_error(value);
  if (!value.is(Kind::text) && !value.is_sequence() && !value.is(Kind::range)) {
    return run_error(cat(kind_name(value.kind()), " cannot be sliced"));
  }
  Slice slice;
  INFERD_TRY(slice.start, slice_bound(start));
  INFERD_TRY(slice.stop, slice_bound(stop));
  INFERD_TRY(const std::optional<int64_t> stride, slice_bound(step));
  slice.step = stride.value_or(1);
  if (slice.step == 0) return run_error("the step of a slice is zero");
  if (value.is(Kind::text)) return text_slice(runtime, value.text(), slice);
  if (value.is(Kind::range)) {
    const auto& range = value.as<RangeObject>();
    const Positions positions = positions_of(slice, range.size());
    auto& part = runtime.make<RangeObject>();
    part.start = range.at(positions.first);
    part.stop = range.at(positions.stop);
    if (__builtin_mul_overflow(range.step, positions.step, &part.step)) {
      return run_error("the step of a slice does not fit 64 bits");
    }
    return Value(Kind::range, &part);
  }
  const auto& list = value.as<ListObject>();
  const Positions positions = positions_of(slice, static_cast<int64_t>(list.items.size()));
  INFERD_TRY_STATUS(runtime.admit_items(static_cast<size_t>(positions.count)));
  std::vector<Value> items;
  items.reserve(static_cast<size_t>(positions.count));
  for (int64_t i = 0; i < positions.count; ++i) {
    items.push_back(list.items[static_cast<size_t>(positions.first + i * positions.step)]);
  }
  Value part = value.is(Kind::list) ? runtime.list(std::move(items)) : runtime.tuple(std::move(items));
  part.as<ListObject>().from_caller = list.from_caller;
  return part;
}

}  // namespace inferd::jinja
