// Filters of text (jinja_filters.h). A value that is no text is printed first; safe text stays safe.
#include <algorithm>
#include <array>

#include "text/jinja_filters.h"
#include "text/jinja_operators.h"
#include "text/jinja_print.h"
#include "text/jinja_strings.h"
#include "text/jinja_unicode.h"

namespace inferd::jinja {
namespace {

using Change = Result<Text> (*)(Runtime&, const Text&);

template <Change change>
Result<Value> changed(Runtime& runtime, const Value& input, const Arguments& arguments) {
  INFERD_TRY_STATUS(expect_no_arguments("the filter", arguments));
  INFERD_TRY(const Text text, to_text(runtime, input));
  INFERD_TRY(Text result, change(runtime, text));
  return Value(std::move(result));
}

Result<Value> centered(Runtime& runtime, const Value& input, const Arguments& arguments) {
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {"center", 0, {"width"}}));
  INFERD_TRY(const int64_t width, bound.whole(0, 80));
  INFERD_TRY(const Text text, to_text(runtime, input));
  INFERD_TRY(Text result, center(runtime, text, width, Text::borrowed(" ", Origin::markup)));
  return Value(std::move(result));
}

// Each line but the first, and no empty one, gets the indent in front; `first` and `blank` widen that.
Result<Value> indented(Runtime& runtime, const Value& input, const Arguments& arguments) {
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {"indent", 0, {"width", "first", "blank"}}));
  if (!input.is(Kind::text)) return wrong_kind("indent", "a string", input);
  const Text& text = input.text();
  const bool first = bound.flag(1, false);
  const bool blank = bound.flag(2, false);
  Text indent;
  if (bound.has(0) && bound[0].is(Kind::text)) {
    indent = bound[0].text();
  } else {
    INFERD_TRY(const int64_t width, bound.whole(0, 4));
    INFERD_TRY(indent, repeat_text(runtime, Text::borrowed(" ", Origin::markup), width));
  }
  INFERD_TRY(std::vector<Value> lines, split_lines(runtime, text, false));
  // The reference adds \n and then splits: a line end at the very end makes one more, empty, line (but \r\n
  // is one end), and so does empty text.
  const char32_t last = text.empty() ? U'\n' : char_before(text.view(), text.size()).c;
  if (is_line_break(last) && last != U'\r') lines.emplace_back(Text());
  TextBuilder builder;
  for (size_t i = 0; i < lines.size(); ++i) {
    const Text& line = lines[i].text();
    if (!runtime.spend(1)) return runtime.exhausted();
    INFERD_TRY_STATUS(runtime.fits_text(builder.size() + indent.size() + line.size() + 1));
    if (i > 0) builder.append("\n", Origin::markup);
    if (i == 0 ? first : blank || !line.empty()) builder.append(indent);
    builder.append(line);
  }
  INFERD_TRY(const Text result, runtime.finish(std::move(builder)));
  return Value(result.with_safe(text.is_safe()));
}

Result<Value> replaced(Runtime& runtime, const Value& input, const Arguments& arguments) {
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {"replace", 2, {"old", "new", "count"}}));
  INFERD_TRY(const Text text, to_text(runtime, input));
  INFERD_TRY(const Text old, to_text(runtime, bound[0]));
  INFERD_TRY(const Text fresh, to_text(runtime, bound[1]));
  int64_t limit = -1;
  if (bound.has_value(2)) {
    INFERD_TRY(limit, bound.whole(2, -1));
  }
  INFERD_TRY(const Text result, replace_text(runtime, text, old, fresh, limit));
  return Value(result.with_safe(false));
}

// The first character of each word in upper case, the rest lowered; words begin after white space and - ( { [
// <.
Result<Value> titled(Runtime& runtime, const Value& input, const Arguments& arguments) {
  INFERD_TRY_STATUS(expect_no_arguments("title", arguments));
  INFERD_TRY(const Text text, to_text(runtime, input));
  const std::string_view view = text.view();
  const auto separates = [&](size_t at) {
    return is_space(char_at(view, at).c) ||
           std::string_view("-({[<").find(view[at]) != std::string_view::npos;
  };
  std::vector<Text> parts;
  for (size_t at = 0; at < view.size();) {
    if (!runtime.spend(1)) return runtime.exhausted();
    size_t end = at;
    const bool separator = separates(at);
    while (end < view.size() && separates(end) == separator) end += char_at(view, end).length;
    if (separator) {
      parts.push_back(text.slice(at, end));
    } else {
      const size_t second = at + char_at(view, at).length;
      INFERD_TRY(Text head, to_upper(runtime, text.slice(at, second)));
      INFERD_TRY(Text tail, to_lower(runtime, text.slice(second, end)));
      parts.push_back(std::move(head));
      parts.push_back(std::move(tail));
    }
    at = end;
  }
  INFERD_TRY(Text result, join_all(runtime, Text(), parts));
  return Value(std::move(result));
}

Result<Value> trimmed(Runtime& runtime, const Value& input, const Arguments& arguments) {
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {"trim", 0, {"chars"}}));
  INFERD_TRY(const Text text, to_text(runtime, input));
  std::optional<Text> characters;
  if (bound.has_value(0)) {
    INFERD_TRY(characters, bound.text(0, ""));
  }
  INFERD_TRY(Text result, strip(runtime, text, characters, Side::both));
  return Value(std::move(result));
}

Result<Value> truncated(Runtime& runtime, const Value& input, const Arguments& arguments) {
  INFERD_TRY(const Bound bound,
             Bound::bind(arguments, {"truncate", 0, {"length", "killwords", "end", "leeway"}}));
  INFERD_TRY(const int64_t length, bound.whole(0, 255));
  INFERD_TRY(const Text end, bound.text(2, "..."));
  int64_t leeway = 5;
  if (bound.has_value(3)) {
    INFERD_TRY(leeway, bound.whole(3, 5));
  }
  INFERD_TRY(const int64_t end_length, count_characters(runtime, end));
  if (length < end_length || leeway < 0) return run_error("truncate: the length or the leeway is too small");
  INFERD_TRY(const int64_t size, length_of(runtime, input));
  if (size - leeway <= length) return input;
  if (!input.is(Kind::text)) return wrong_kind("truncate", "a string", input);
  INFERD_TRY(Value kept,
             get_slice(runtime, input, Value::none(), Value::integer(length - end_length), Value::none()));
  if (!bound.flag(1, false)) {
    INFERD_TRY(const std::vector<Value> words,
               rsplit_text(runtime, kept.text(), Text::borrowed(" ", Origin::markup), 1));
    kept = words[0];
  }
  INFERD_TRY(Text result, join_texts(runtime, kept.text(), end));
  return Value(std::move(result));
}

Result<Value> word_count(Runtime& runtime, const Value& input, const Arguments& arguments) {
  INFERD_TRY_STATUS(expect_no_arguments("wordcount", arguments));
  INFERD_TRY(const Text text, to_text(runtime, input));
  if (!runtime.spend_bytes(text.size() * 8)) return runtime.exhausted();
  int64_t words = 0;
  bool inside = false;
  for (size_t at = 0; at < text.size();) {
    const CharStep step = char_at(text.view(), at);
    const bool is_word = step.c == '_' || has_property(step.c, kAlnum);
    words += is_word && !inside ? 1 : 0;
    inside = is_word;
    at += step.length;
  }
  return Value::integer(words);
}

constexpr auto kTextFilters = std::to_array<Filter>({
    {"capitalize", changed<to_capitalized>},
    {"center", centered},
    {"indent", indented},
    {"lower", changed<to_lower>},
    {"replace", replaced},
    {"title", titled},
    {"trim", trimmed},
    {"truncate", truncated},
    {"upper", changed<to_upper>},
    {"wordcount", word_count},
});

}  // namespace

std::span<const Filter> text_filters() {
  return kTextFilters;
}

}  // namespace inferd::jinja
