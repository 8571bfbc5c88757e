#include "text/jinja_value.h"

#include <algorithm>

#include "base/strings.h"

namespace inferd::jinja {
namespace {

__extension__ typedef __int128 Wide;

}  // namespace

const Value* DictObject::find_text(std::string_view key) {
  constexpr size_t kSmall = 16;
  if (entries.size() <= kSmall) {
    for (const Entry& entry : entries) {
      if (entry.first.is(Kind::text) && entry.first.text().view() == key) return &entry.second;
    }
    return nullptr;
  }
  if (indexed_ != entries.size()) {
    by_text_.clear();
    for (size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].first.is(Kind::text)) by_text_.push_back(static_cast<uint32_t>(i));
    }
    std::sort(by_text_.begin(), by_text_.end(), [this](uint32_t a, uint32_t b) {
      return entries[a].first.text().view() < entries[b].first.text().view();
    });
    indexed_ = entries.size();
  }
  const auto found =
      std::lower_bound(by_text_.begin(), by_text_.end(), key,
                       [this](uint32_t i, std::string_view k) { return entries[i].first.text().view() < k; });
  if (found == by_text_.end() || entries[*found].first.text().view() != key) return nullptr;
  return &entries[*found].second;
}

int64_t RangeObject::size() const {
  const Wide length = step > 0 ? Wide{stop} - start : Wide{start} - stop;
  const Wide stride = step > 0 ? Wide{step} : -Wide{step};
  const Wide count = length > 0 ? (length - 1) / stride + 1 : 0;
  return static_cast<int64_t>(std::min(count, Wide{INT64_MAX}));
}

Value* NamespaceObject::find(std::string_view name) {
  for (auto& [key, value] : members) {
    if (key.view() == name) return &value;
  }
  return nullptr;
}

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::undefined:
      return "an undefined value";
    case Kind::none:
      return "None";
    case Kind::boolean:
      return "a boolean";
    case Kind::integer:
      return "an integer";
    case Kind::real:
      return "a float";
    case Kind::text:
      return "a string";
    case Kind::list:
      return "a list";
    case Kind::tuple:
      return "a tuple";
    case Kind::dict:
      return "a dict";
    case Kind::range:
      return "a range";
    case Kind::view:
      return "a dict view";
    case Kind::iterator:
      return "a lazy sequence";
    case Kind::space:
      return "a namespace";
    case Kind::builtin:
      return "a function";
    case Kind::method:
      return "a method";
    case Kind::macro:
      return "a macro";
    case Kind::loop:
      return "a loop";
    case Kind::cycler:
      return "a cycler";
    case Kind::joiner:
      return "a joiner";
  }
  return "a value";
}

Error run_error(std::string detail) {
  return {.code = Code::template_run, .detail = std::move(detail)};
}

Error undefined_error(const Value& value) {
  const std::string name = printable(value.text().view());
  switch (value.missing()) {
    case Missing::variable:
      return run_error(cat("the variable ", name, " is undefined"));
    case Missing::attribute:
      return run_error(cat(kind_name(value.owner()), " has no attribute or element ", name));
    case Missing::unsafe_attribute:
      return run_error(
          cat("the attribute ", name, " of ", kind_name(value.owner()), " is not for templates"));
    case Missing::parameter:
      return run_error(cat("the parameter ", name, " was not given"));
    case Missing::inline_if:
      return run_error("an inline if without else gave no value");
    case Missing::empty_sequence:
      return run_error("an empty sequence has no such item");
    case Missing::caller:
      return run_error("no caller: the macro was not called by a call block");
    case Missing::neighbour:
      return run_error("the loop has no item there");
  }
  return run_error("an undefined value");
}

bool is_true(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
    case Kind::none:
      return false;
    case Kind::boolean:
    case Kind::integer:
      return value.whole() != 0;
    case Kind::real:
      return value.real() != 0;
    case Kind::text:
      return !value.text().empty();
    case Kind::list:
    case Kind::tuple:
      return !value.as<ListObject>().items.empty();
    case Kind::dict:
      return !value.as<DictObject>().entries.empty();
    case Kind::range:
      return value.as<RangeObject>().size() != 0;
    case Kind::view:
      return !value.as<ViewObject>().dict->entries.empty();
    default:
      return true;
  }
}

Origin origin_of(const Value& value) {
  switch (value.kind()) {
    case Kind::text:
      return value.text().origin();
    case Kind::list:
    case Kind::tuple:
      return value.as<ListObject>().from_caller ? Origin::data : Origin::markup;
    case Kind::dict:
      return value.as<DictObject>().from_caller ? Origin::data : Origin::markup;
    case Kind::view:
      return value.as<ViewObject>().dict->from_caller ? Origin::data : Origin::markup;
    default:
      return value.scalar_origin();
  }
}

}  // namespace inferd::jinja
