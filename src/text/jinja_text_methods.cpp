// The methods of str (jinja_methods.h), after the documentation of Python 3.11's text sequence type.
#include <algorithm>
#include <array>

#include "base/utf8.h"
#include "text/jinja_format.h"
#include "text/jinja_methods.h"
#include "text/jinja_operators.h"
#include "text/jinja_strings.h"
#include "text/jinja_unicode.h"

namespace inferd::jinja {
namespace {

Result<Value> value_of(Result<Text> text) {
  if (!text.ok()) return std::move(text).error();
  return Value(*std::move(text));
}

Result<Value> list_of(Runtime& runtime, Result<std::vector<Value>> items) {
  if (!items.ok()) return std::move(items).error();
  return runtime.list(*std::move(items));
}

using Change = Result<Text> (*)(Runtime&, const Text&);

template <Change change>
Result<Value> changed(Runtime& runtime, const Value& self, const Arguments& arguments) {
  INFERD_TRY_STATUS(expect_no_arguments("the method", arguments));
  return value_of(change(runtime, self.text()));
}

Result<std::optional<Text>> optional_text(const Bound& bound, size_t index) {
  if (!bound.has_value(index)) return std::optional<Text>();
  INFERD_TRY(Text text, bound.text(index, ""));
  return std::optional<Text>(std::move(text));
}

template <Side side>
Result<Value> stripped(Runtime& runtime, const Value& self, const Arguments& arguments) {
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {"strip()", 0, {""}}));
  INFERD_TRY(const auto characters, optional_text(bound, 0));
  return value_of(strip(runtime, self.text(), characters, side));
}

Result<Value> split_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {"split()", 0, {"sep", "maxsplit"}}));
  INFERD_TRY(const auto separator, optional_text(bound, 0));
  INFERD_TRY(const int64_t limit, bound.whole(1, -1));
  return list_of(runtime, split_text(runtime, self.text(), separator, limit));
}

Result<Value> rsplit_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {"rsplit()", 0, {"sep", "maxsplit"}}));
  INFERD_TRY(const auto separator, optional_text(bound, 0));
  INFERD_TRY(const int64_t limit, bound.whole(1, -1));
  return list_of(runtime, rsplit_text(runtime, self.text(), separator, limit));
}

Result<Value> splitlines_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {"splitlines()", 0, {"keepends"}}));
  return list_of(runtime, split_lines(runtime, self.text(), bound.flag(0, false)));
}

template <bool from_right>
Result<Value> partitioned(Runtime& runtime, const Value& self, const Arguments& arguments) {
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {"partition()", 1, {""}}));
  INFERD_TRY(const Text separator, bound.text(0, ""));
  if (separator.empty()) return run_error("partition() needs a separator that is not empty");
  const Text& text = self.text();
  if (!runtime.spend_bytes(text.size())) return runtime.exhausted();
  const size_t found =
      from_right ? rfind_text(text.view(), separator.view()) : find_text(text.view(), separator.view());
  const Value nothing(Text().with_safe(text.is_safe()));
  if (found == std::string_view::npos) {
    if (from_right) return runtime.tuple({nothing, nothing, self});
    return runtime.tuple({self, nothing, nothing});
  }
  const size_t end = found + separator.size();
  return runtime.tuple({text.slice(0, found), text.slice(found, end), text.slice(end, text.size())});
}

// The part [start, end) of a text that find, count, startswith and their like look at; nullopt when start is
// past the end, where nothing is found, not even nothing.
struct Part {
  Text text;
  int64_t offset = 0;  // characters before it
};
Result<std::optional<Part>> part_of(Runtime& runtime, const Text& text, const Bound& bound, size_t first) {
  if (!bound.has_value(first) && !bound.has_value(first + 1)) return std::optional<Part>({text, 0});
  INFERD_TRY(const int64_t size, count_characters(runtime, text));
  const auto place = [&](size_t index, int64_t absent) -> Result<int64_t> {
    if (!bound.has_value(index)) return absent;
    INFERD_TRY(const int64_t at, bound.whole(index, absent));
    return at < 0 ? std::max<int64_t>(std::max(at, -size) + size, 0) : at;
  };
  INFERD_TRY(const int64_t begin, place(first, 0));
  INFERD_TRY(const int64_t end, place(first + 1, size));
  if (begin > size || end < begin) return std::optional<Part>();
  INFERD_TRY(const Value part,
             get_slice(runtime, text, Value::integer(begin), Value::integer(end), Value::none()));
  return std::optional<Part>({part.text(), begin});
}

template <bool from_right, bool must>
Result<Value> found_at(Runtime& runtime, const Value& self, const Arguments& arguments) {
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {"find()", 1, {"", "", ""}}));
  INFERD_TRY(const Text wanted, bound.text(0, ""));
  INFERD_TRY(const auto part, part_of(runtime, self.text(), bound, 1));
  if (part) {
    const std::string_view view = part->text.view();
    if (!runtime.spend_bytes(view.size())) return runtime.exhausted();
    const size_t found = from_right ? rfind_text(view, wanted.view()) : find_text(view, wanted.view());
    if (found != std::string_view::npos) {
      return Value::integer(part->offset + static_cast<int64_t>(count_code_points(view.substr(0, found))));
    }
  }
  if (must) return run_error("index(): the text is not found");
  return Value::integer(-1);
}

Result<Value> counted(Runtime& runtime, const Value& self, const Arguments& arguments) {
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {"count()", 1, {"", "", ""}}));
  INFERD_TRY(const Text wanted, bound.text(0, ""));
  INFERD_TRY(const auto part, part_of(runtime, self.text(), bound, 1));
  if (!part) return Value::integer(0);
  const std::string_view view = part->text.view();
  if (!runtime.spend_bytes(view.size())) return runtime.exhausted();
  if (wanted.empty()) return Value::integer(static_cast<int64_t>(count_code_points(view)) + 1);
  int64_t count = 0;
  for (size_t at = find_text(view, wanted.view()); at != std::string_view::npos;
       at = find_text(view, wanted.view(), at + wanted.size())) {
    ++count;
  }
  if (!runtime.spend(count / 8)) return runtime.exhausted();
  return Value::integer(count);
}

template <bool at_end>
Result<Value> has_affix(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const std::string_view name = at_end ? "endswith()" : "startswith()";
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {name, 1, {"", "", ""}}));
  std::vector<Value> affixes = {bound[0]};
  if (bound[0].is(Kind::tuple)) affixes = bound[0].as<ListObject>().items;
  INFERD_TRY(const auto part, part_of(runtime, self.text(), bound, 1));
  for (const Value& affix : affixes) {
    if (!affix.is(Kind::text)) return wrong_kind(name, "a string or a tuple of strings", affix);
    if (!runtime.spend(1) || !runtime.spend_bytes(affix.text().size())) return runtime.exhausted();
    if (!part) continue;
    const std::string_view view = part->text.view();
    if (at_end ? view.ends_with(affix.text().view()) : view.starts_with(affix.text().view()))
      return Value::boolean(true);
  }
  return Value::boolean(false);
}

template <bool at_end>
Result<Value> without_affix(Runtime&, const Value& self, const Arguments& arguments) {
  INFERD_TRY(const Bound bound,
             Bound::bind(arguments, {at_end ? "removesuffix()" : "removeprefix()", 1, {""}}));
  INFERD_TRY(const Text affix, bound.text(0, ""));
  const Text& text = self.text();
  if (at_end ? !text.view().ends_with(affix.view()) : !text.view().starts_with(affix.view())) return self;
  return Value(at_end ? text.slice(0, text.size() - affix.size()) : text.slice(affix.size(), text.size()));
}

Result<Value> replaced(Runtime& runtime, const Value& self, const Arguments& arguments) {
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {"replace()", 2, {"", "", ""}}));
  INFERD_TRY(const Text old, bound.text(0, ""));
  INFERD_TRY(Text fresh, bound.text(1, ""));
  INFERD_TRY(const int64_t limit, bound.whole(2, -1));
  if (self.text().is_safe()) {
    INFERD_TRY(fresh, escape_html(runtime, fresh));
  }
  return value_of(replace_text(runtime, self.text(), old, fresh, limit));
}

Result<Value> joined(Runtime& runtime, const Value& self, const Arguments& arguments) {
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {"join()", 1, {""}}));
  INFERD_TRY(const std::vector<Value> items, items_of(runtime, bound[0]));
  const bool safe = self.text().is_safe();
  std::vector<Text> parts;
  for (const Value& item : items) {
    if (!item.is(Kind::text)) return wrong_kind("join()", "strings", item);
    if (safe) {
      INFERD_TRY(Text escaped, escape_html(runtime, item.text()));
      parts.push_back(std::move(escaped));
    } else {
      parts.push_back(item.text());
    }
  }
  INFERD_TRY(const Text text, join_all(runtime, self.text(), parts));
  return Value(text.with_safe(safe));
}

enum class Justify : uint8_t { left, right, middle };

template <Justify justify>
Result<Value> justified(Runtime& runtime, const Value& self, const Arguments& arguments) {
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {"the method", 1, {"", ""}}));
  INFERD_TRY(const int64_t width, bound.whole(0, 0));
  INFERD_TRY(Text fill, bound.text(1, " "));
  if (self.text().is_safe()) {
    INFERD_TRY(fill, escape_html(runtime, fill));
  }
  if (justify == Justify::middle) return value_of(center(runtime, self.text(), width, fill));
  INFERD_TRY(const int64_t length, count_characters(runtime, self.text()));
  const int64_t room = width > length ? width - length : 0;
  if (justify == Justify::left) return value_of(pad(runtime, self.text(), 0, room, fill));
  return value_of(pad(runtime, self.text(), room, 0, fill));
}

Result<Value> zero_filled(Runtime& runtime, const Value& self, const Arguments& arguments) {
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {"zfill()", 1, {""}}));
  INFERD_TRY(const int64_t width, bound.whole(0, 0));
  INFERD_TRY(const int64_t length, count_characters(runtime, self.text()));
  if (width <= length) return self;
  const Text& text = self.text();
  const size_t sign = text.view().starts_with('+') || text.view().starts_with('-') ? 1 : 0;
  INFERD_TRY(const Text digits, pad(runtime, text.slice(sign, text.size()), width - length, 0,
                                    Text::borrowed("0", Origin::markup)));
  INFERD_TRY(const Text filled, join_texts(runtime, text.slice(0, sign), digits));
  return Value(filled);
}

Result<Value> expanded_tabs(Runtime& runtime, const Value& self, const Arguments& arguments) {
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {"expandtabs()", 0, {"tabsize"}}));
  INFERD_TRY(const int64_t size, bound.whole(0, 8));
  const Text& text = self.text();
  if (!runtime.spend_bytes(text.size() * 4)) return runtime.exhausted();
  TextBuilder builder;
  int64_t column = 0;
  for (size_t at = 0; at < text.size();) {
    const CharStep step = char_at(text.view(), at);
    if (step.c == '\t') {
      const int64_t spaces = size > 0 ? size - column % size : 0;
      INFERD_TRY_STATUS(runtime.fits_text(builder.size() + static_cast<size_t>(spaces)));
      INFERD_TRY(const Text gap, repeat_text(runtime, Text::borrowed(" ", Origin::markup), spaces));
      builder.append(gap);
      column += spaces;
    } else {
      builder.append(text.slice(at, at + step.length));
      column = step.c == '\n' || step.c == '\r' ? 0 : column + 1;
    }
    at += step.length;
  }
  INFERD_TRY(const Text expanded, runtime.finish(std::move(builder)));
  return Value(expanded.with_safe(text.is_safe()));
}

Result<Value> format_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return format_braces(runtime, self.text(), arguments);
}

// True when the text is not empty and every character has one of the properties.
template <unsigned properties>
Result<Value> all_have(Runtime& runtime, const Value& self, const Arguments& arguments) {
  INFERD_TRY_STATUS(expect_no_arguments("the method", arguments));
  const std::string_view text = self.text().view();
  if (!runtime.spend_bytes(text.size() * 8)) return runtime.exhausted();
  for (size_t at = 0; at < text.size();) {
    const CharStep step = char_at(text, at);
    if (!has_property(step.c, properties)) return Value::boolean(false);
    at += step.length;
  }
  return Value::boolean(!text.empty() || properties == kPrintable);
}

Result<Value> is_all_space(Runtime& runtime, const Value& self, const Arguments& arguments) {
  INFERD_TRY_STATUS(expect_no_arguments("isspace()", arguments));
  const std::string_view text = self.text().view();
  if (!runtime.spend_bytes(text.size())) return runtime.exhausted();
  for (size_t at = 0; at < text.size();) {
    const CharStep step = char_at(text, at);
    if (!is_space(step.c)) return Value::boolean(false);
    at += step.length;
  }
  return Value::boolean(!text.empty());
}

Result<Value> is_identifier(Runtime& runtime, const Value& self, const Arguments& arguments) {
  INFERD_TRY_STATUS(expect_no_arguments("isidentifier()", arguments));
  const std::string_view text = self.text().view();
  if (!runtime.spend_bytes(text.size() * 8)) return runtime.exhausted();
  for (size_t at = 0; at < text.size();) {
    const CharStep step = char_at(text, at);
    if (!has_property(step.c, at == 0 ? kIdentifierStart : kIdentifierPart)) return Value::boolean(false);
    at += step.length;
  }
  return Value::boolean(!text.empty());
}

template <bool (*predicate)(std::string_view)>
Result<Value> whole_text_is(Runtime& runtime, const Value& self, const Arguments& arguments) {
  INFERD_TRY_STATUS(expect_no_arguments("the method", arguments));
  if (!runtime.spend_bytes(self.text().size() * 8)) return runtime.exhausted();
  return Value::boolean(predicate(self.text().view()));
}

constexpr auto kTextMethods = std::to_array<Method>({
    {"capitalize", changed<to_capitalized>},
    {"casefold", nullptr},
    {"center", justified<Justify::middle>},
    {"count", counted},
    {"encode", nullptr},
    {"endswith", has_affix<true>},
    {"expandtabs", expanded_tabs},
    {"find", found_at<false, false>},
    {"format", format_method},
    {"format_map", nullptr},
    {"index", found_at<false, true>},
    {"isalnum", all_have<kAlnum>},
    {"isalpha", all_have<kAlpha>},
    {"isascii", whole_text_is<is_ascii>},
    {"isdecimal", all_have<kDecimal>},
    {"isdigit", all_have<kDigit>},
    {"isidentifier", is_identifier},
    {"islower", whole_text_is<is_lower>},
    {"isnumeric", all_have<kNumeric>},
    {"isprintable", all_have<kPrintable>},
    {"isspace", is_all_space},
    {"istitle", whole_text_is<is_title>},
    {"isupper", whole_text_is<is_upper>},
    {"join", joined},
    {"ljust", justified<Justify::left>},
    {"lower", changed<to_lower>},
    {"lstrip", stripped<Side::left>},
    {"maketrans", nullptr},
    {"partition", partitioned<false>},
    {"removeprefix", without_affix<false>},
    {"removesuffix", without_affix<true>},
    {"replace", replaced},
    {"rfind", found_at<true, false>},
    {"rindex", found_at<true, true>},
    {"rjust", justified<Justify::right>},
    {"rpartition", partitioned<true>},
    {"rsplit", rsplit_method},
    {"rstrip", stripped<Side::right>},
    {"split", split_method},
    {"splitlines", splitlines_method},
    {"startswith", has_affix<false>},
    {"strip", stripped<Side::both>},
    {"swapcase", changed<swap_case>},
    {"title", changed<to_title>},
    {"translate", nullptr},
    {"upper", changed<to_upper>},
    {"zfill", zero_filled},
});

}  // namespace

const Method* find_text_method(std::string_view name) {
  const auto found =
      std::lower_bound(kTextMethods.begin(), kTextMethods.end(), name,
                       [](const Method& method, std::string_view wanted) { return method.name < wanted; });
  return found != kTextMethods.end() && found->name == name ? &*found : nullptr;
}

}  // namespace inferd::jinja
