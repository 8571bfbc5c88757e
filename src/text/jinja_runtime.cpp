#include "text/jinja_runtime.h"

#include "text/jinja_unicode.h"

namespace inferd::jinja {

Error Runtime::exhausted() const {
  return {.code = Code::template_budget, .detail = cat("more than ", with_commas(limits_.steps), " steps")};
}

Error Runtime::Nest::error() const {
  return {.code = Code::template_budget, .detail = cat("calls and values nested deeper than ", kMaxDepth)};
}

Status Runtime::fits_text(size_t bytes) const {
  if (bytes > limits_.text_bytes) {
    return Error{.code = Code::template_budget,
                 .detail = cat("a text of ", bytes, " bytes, ",
                               with_commas(static_cast<int64_t>(limits_.text_bytes)), " allowed")};
  }
  return {};
}

Status Runtime::admit_text(size_t bytes) {
  INFERD_TRY_STATUS(fits_text(bytes));
  if (!spend_bytes(bytes)) return exhausted();
  return {};
}

Result<Text> Runtime::finish(TextBuilder&& builder) {
  INFERD_TRY_STATUS(admit_text(builder.size()));
  if (!spend(static_cast<int64_t>(builder.run_count()))) return exhausted();
  return std::move(builder).finish();
}

Status Runtime::admit_items(size_t items) {
  if (steps_left_ < 0 || items > static_cast<size_t>(steps_left_)) return exhausted();
  steps_left_ -= static_cast<int64_t>(items);
  return {};
}

Value Runtime::list(std::vector<Value> items, bool from_caller) {
  auto& object = make<ListObject>();
  object.items = std::move(items);
  object.from_caller = from_caller;
  return {Kind::list, &object};
}

Value Runtime::tuple(std::vector<Value> items) {
  auto& object = make<ListObject>();
  object.items = std::move(items);
  return {Kind::tuple, &object};
}

Result<Cursor> Cursor::over(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
    case Kind::text:
    case Kind::list:
    case Kind::tuple:
    case Kind::dict:
    case Kind::range:
    case Kind::view:
    case Kind::iterator:
      break;
    default:
      return run_error(cat(kind_name(value.kind()), " cannot be iterated"));
  }
  Cursor cursor;
  cursor.source_ = value;
  return cursor;
}

Result<bool> Cursor::next(Runtime& runtime, Value& item) {
  if (!runtime.spend(1)) return runtime.exhausted();
  switch (source_.kind()) {
    case Kind::text: {
      const Text& text = source_.text();
      if (at_ >= text.size()) return false;
      const size_t end = skip_forward(text.view(), at_, 1);
      item = text.slice(at_, end).with_safe(false);  // Python's Markup gives plain characters
      at_ = end;
      return true;
    }
    case Kind::list:
    case Kind::tuple: {
      const auto& items = source_.as<ListObject>().items;
      if (at_ >= items.size()) return false;
      item = items[at_++];
      return true;
    }
    case Kind::dict: {
      const auto& entries = source_.as<DictObject>().entries;
      if (at_ >= entries.size()) return false;
      item = entries[at_++].first;
      return true;
    }
    case Kind::range: {
      const auto& range = source_.as<RangeObject>();
      if (static_cast<int64_t>(at_) >= range.size()) return false;
      item = Value::integer(range.at(static_cast<int64_t>(at_++)));
      return true;
    }
    case Kind::view: {
      const auto& view = source_.as<ViewObject>();
      const auto& entries = view.dict->entries;
      if (at_ >= entries.size()) return false;
      const DictObject::Entry& entry = entries[at_++];
      switch (view.what) {
        case ViewObject::What::keys:
          item = entry.first;
          break;
        case ViewObject::What::values:
          item = entry.second;
          break;
        case ViewObject::What::items:
          item = runtime.tuple({entry.first, entry.second});
          item.as<ListObject>().from_caller = view.dict->from_caller;
          break;
      }
      return true;
    }
    case Kind::iterator: {
      auto& iterator = source_.as<IteratorObject>();
      if (iterator.next < iterator.items.size()) {
        item = iterator.items[iterator.next++];
        return true;
      }
      if (iterator.failure) return *iterator.failure;
      return false;
    }
    default:
      return false;
  }
}

std::optional<int64_t> Cursor::left() const {
  const auto rest = [this](size_t size) { return static_cast<int64_t>(size - at_); };
  switch (source_.kind()) {
    case Kind::undefined:
      return 0;
    case Kind::list:
    case Kind::tuple:
      return rest(source_.as<ListObject>().items.size());
    case Kind::dict:
      return rest(source_.as<DictObject>().entries.size());
    case Kind::view:
      return rest(source_.as<ViewObject>().dict->entries.size());
    case Kind::range:
      return source_.as<RangeObject>().size() - static_cast<int64_t>(at_);
    default:
      return std::nullopt;
  }
}

Result<std::vector<Value>> items_of(Runtime& runtime, const Value& value) {
  if (value.is_sequence()) {
    const auto& items = value.as<ListObject>().items;
    INFERD_TRY_STATUS(runtime.admit_items(items.size()));
    return items;
  }
  INFERD_TRY(Cursor cursor, Cursor::over(value));
  std::vector<Value> items;
  for (Value item;;) {
    INFERD_TRY(const bool more, cursor.next(runtime, item));
    if (!more) return items;
    items.push_back(std::move(item));
  }
}

}  // namespace inferd::jinja
