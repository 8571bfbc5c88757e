#include "text/jinja_strings.h"

#include <algorithm>

#include "text/jinja_operators.h"
#include "text/jinja_unicode.h"

namespace inferd::jinja {
namespace {

// Python lowers a capital sigma to the final form when a cased character comes before it and none after it,
// looking through characters that the rule ignores (Unicode 3.13, Final_Sigma).
bool is_final_sigma(std::string_view text, size_t begin, size_t end) {
  size_t at = begin;
  for (;;) {
    if (at == 0) return false;
    const CharStep before = char_before(text, at);
    if (!has_property(before.c, kCaseIgnorable)) {
      if (!has_property(before.c, kCased)) return false;
      break;
    }
    at -= before.length;
  }
  for (at = end; at < text.size();) {
    const CharStep after = char_at(text, at);
    if (!has_property(after.c, kCaseIgnorable)) return !has_property(after.c, kCased);
    at += after.length;
  }
  return true;
}

constexpr char32_t kCapitalSigma = 0x3A3;

void append_lower_at(std::string& out, std::string_view text, size_t at, CharStep step) {
  if (step.c == kCapitalSigma) {
    out.append(is_final_sigma(text, at, at + step.length) ? "\u03c2" : "\u03c3");
  } else {
    append_lower(out, step.c);
  }
}

// Maps each character with `map(out, whole text, offset, step)`.
template <typename Map>
Result<Text> map_characters(Runtime& runtime, const Text& text, Map map) {
  INFERD_TRY_STATUS(runtime.admit_text(text.size()));
  const bool ascii = is_ascii(text.view());
  if (!ascii && !runtime.spend_bytes(text.size() * 8)) return runtime.exhausted();
  TextBuilder builder;
  builder.reserve(text.size());
  size_t offset = 0;  // of the run
  std::string mapped;
  text.for_each_run([&](std::string_view piece, Origin origin) {
    mapped.clear();
    for (size_t at = 0; at < piece.size();) {
      const CharStep step = char_at(piece, at);
      map(mapped, text.view(), offset + at, step);
      at += step.length;
    }
    builder.append(mapped, origin);
    offset += piece.size();
  });
  INFERD_TRY(Text result, runtime.finish(std::move(builder)));
  return result.with_safe(text.is_safe());
}

size_t space_at(std::string_view text, size_t at) {
  const CharStep step = char_at(text, at);
  return is_space(step.c) ? step.length : 0;
}

// Offsets of the next word at or after `at`: end is begin when there is none.
std::pair<size_t, size_t> next_word(std::string_view text, size_t at) {
  while (at < text.size()) {
    const size_t space = space_at(text, at);
    if (space == 0) break;
    at += space;
  }
  size_t end = at;
  while (end < text.size() && space_at(text, end) == 0) end += char_at(text, end).length;
  return {at, end};
}

Result<std::vector<Value>> split_words(Runtime& runtime, const Text& text, int64_t limit) {
  if (!runtime.spend_bytes(text.size() * 2)) return runtime.exhausted();
  std::vector<Value> parts;
  size_t at = 0;
  for (;;) {
    const auto [begin, end] = next_word(text.view(), at);
    if (begin == end) return parts;
    INFERD_TRY_STATUS(runtime.admit_items(1));
    if (limit >= 0 && static_cast<int64_t>(parts.size()) == limit) {
      parts.emplace_back(text.slice(begin, text.size()));
      return parts;
    }
    parts.emplace_back(text.slice(begin, end));
    at = end;
  }
}

Result<std::vector<Value>> rsplit_words(Runtime& runtime, const Text& text, int64_t limit) {
  if (!runtime.spend_bytes(text.size() * 2)) return runtime.exhausted();
  const std::string_view view = text.view();
  std::vector<Value> parts;
  size_t end = view.size();
  for (;;) {
    while (end > 0 && is_space(char_before(view, end).c)) end -= char_before(view, end).length;
    if (end == 0) break;
    INFERD_TRY_STATUS(runtime.admit_items(1));
    size_t begin = end;
    if (limit >= 0 && static_cast<int64_t>(parts.size()) == limit) {
      begin = 0;
    } else {
      while (begin > 0 && !is_space(char_before(view, begin).c)) begin -= char_before(view, begin).length;
    }
    parts.emplace_back(text.slice(begin, end));
    end = begin;
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

bool has_case(std::string_view text, unsigned wanted, unsigned refused) {
  bool found = false;
  for (size_t at = 0; at < text.size();) {
    const CharStep step = char_at(text, at);
    const unsigned properties = char_properties(step.c);
    if ((properties & refused) != 0) return false;
    found = found || (properties & wanted) != 0;
    at += step.length;
  }
  return found;
}

}  // namespace

Result<Text> to_upper(Runtime& runtime, const Text& text) {
  return map_characters(runtime, text, [](std::string& out, std::string_view, size_t, CharStep step) {
    append_upper(out, step.c);
  });
}

Result<Text> to_lower(Runtime& runtime, const Text& text) {
  return map_characters(runtime, text, [](std::string& out, std::string_view all, size_t at, CharStep step) {
    append_lower_at(out, all, at, step);
  });
}

Result<Text> to_title(Runtime& runtime, const Text& text) {
  bool after_cased = false;
  return map_characters(runtime, text,
                        [&after_cased](std::string& out, std::string_view all, size_t at, CharStep step) {
                          if (after_cased) {
                            append_lower_at(out, all, at, step);
                          } else {
                            append_title(out, step.c);
                          }
                          after_cased = has_property(step.c, kCased);
                        });
}

Result<Text> to_capitalized(Runtime& runtime, const Text& text) {
  return map_characters(runtime, text, [](std::string& out, std::string_view all, size_t at, CharStep step) {
    if (at == 0) {
      append_title(out, step.c);
    } else {
      append_lower_at(out, all, at, step);
    }
  });
}

Result<Text> swap_case(Runtime& runtime, const Text& text) {
  return map_characters(runtime, text, [](std::string& out, std::string_view all, size_t at, CharStep step) {
    if (has_property(step.c, kUpper)) {
      append_lower_at(out, all, at, step);
    } else if (has_property(step.c, kLower)) {
      append_upper(out, step.c);
    } else {
      out.append(all.substr(at, step.length));
    }
  });
}

Result<Text> strip(Runtime& runtime, const Text& text, const std::optional<Text>& characters, Side side) {
  const std::string_view view = text.view();
  const size_t cost = characters ? characters->size() : 0;
  const auto goes = [&](size_t at, CharStep step) {
    if (!characters) return is_space(step.c);
    return characters->view().find(view.substr(at, step.length)) != std::string_view::npos;
  };
  size_t begin = 0;
  size_t end = view.size();
  while (side != Side::right && begin < end) {
    const CharStep step = char_at(view, begin);
    if (!runtime.spend_bytes(cost)) return runtime.exhausted();
    if (!goes(begin, step)) break;
    begin += step.length;
  }
  while (side != Side::left && end > begin) {
    const CharStep step = char_before(view, end);
    if (!runtime.spend_bytes(cost)) return runtime.exhausted();
    if (!goes(end - step.length, step)) break;
    end -= step.length;
  }
  if (!runtime.spend_bytes(begin + view.size() - end)) return runtime.exhausted();
  return text.slice(begin, end);
}

Result<std::vector<Value>> split_text(Runtime& runtime, const Text& text,
                                      const std::optional<Text>& separator, int64_t limit) {
  if (!separator) return split_words(runtime, text, limit);
  if (separator->empty()) return run_error("split() needs a separator that is not empty");
  if (!runtime.spend_bytes(text.size())) return runtime.exhausted();
  std::vector<Value> parts;
  size_t at = 0;
  while (limit < 0 || static_cast<int64_t>(parts.size()) < limit) {
    const size_t found = find_text(text.view(), separator->view(), at);
    if (found == std::string_view::npos) break;
    INFERD_TRY_STATUS(runtime.admit_items(1));
    parts.emplace_back(text.slice(at, found));
    at = found + separator->size();
  }
  parts.emplace_back(text.slice(at, text.size()));
  return parts;
}

Result<std::vector<Value>> rsplit_text(Runtime& runtime, const Text& text,
                                       const std::optional<Text>& separator, int64_t limit) {
  if (!separator) return rsplit_words(runtime, text, limit);
  if (separator->empty()) return run_error("rsplit() needs a separator that is not empty");
  if (!runtime.spend_bytes(text.size())) return runtime.exhausted();
  std::vector<Value> parts;
  size_t end = text.size();
  while (limit < 0 || static_cast<int64_t>(parts.size()) < limit) {
    const size_t found = rfind_text(text.view().substr(0, end), separator->view());
    if (found == std::string_view::npos) break;
    if (!runtime.spend(1 + static_cast<int64_t>(separator->size() / 16))) return runtime.exhausted();
    parts.emplace_back(text.slice(found + separator->size(), end));
    end = found;
  }
  parts.emplace_back(text.slice(0, end));
  std::reverse(parts.begin(), parts.end());
  return parts;
}

Result<std::vector<Value>> split_lines(Runtime& runtime, const Text& text, bool keep_ends) {
  if (!runtime.spend_bytes(text.size() * 2)) return runtime.exhausted();
  const std::string_view view = text.view();
  std::vector<Value> lines;
  size_t begin = 0;
  for (size_t at = 0; at < view.size();) {
    const CharStep step = char_at(view, at);
    if (!is_line_break(step.c)) {
      at += step.length;
      continue;
    }
    INFERD_TRY_STATUS(runtime.admit_items(1));
    const size_t next = at + (step.c == '\r' && view.substr(at).starts_with("\r\n") ? 2 : step.length);
    lines.emplace_back(text.slice(begin, keep_ends ? next : at));
    begin = at = next;
  }
  if (begin < view.size()) lines.emplace_back(text.slice(begin, view.size()));
  return lines;
}

Result<Text> replace_text(Runtime& runtime, const Text& text, const Text& old, const Text& fresh,
                          int64_t limit) {
  const std::string_view view = text.view();
  if (!runtime.spend_bytes(view.size())) return runtime.exhausted();
  TextBuilder builder;
  size_t copied = 0;
  size_t at = 0;
  for (int64_t done = 0; limit < 0 || done < limit; ++done) {
    const size_t found = find_text(view, old.view(), at);
    if (found == std::string_view::npos) break;
    if (!runtime.spend(1 + static_cast<int64_t>(fresh.run_count()))) return runtime.exhausted();
    INFERD_TRY_STATUS(runtime.fits_text(builder.size() + (found - copied) + fresh.size()));
    builder.append(text.slice(copied, found));
    builder.append(fresh);
    copied = found + old.size();
    at = copied;
    if (old.empty()) {  // between all characters, and at both ends
      if (found == view.size()) break;
      at = found + char_at(view, found).length;
    }
  }
  if (copied == 0 && builder.size() == 0) return text;
  builder.append(text.slice(copied, view.size()));
  INFERD_TRY(Text replaced, runtime.finish(std::move(builder)));
  return replaced.with_safe(text.is_safe());
}

Result<Text> pad(Runtime& runtime, const Text& text, int64_t left, int64_t right, const Text& fill) {
  INFERD_TRY(const int64_t length, count_characters(runtime, fill));
  if (length != 1) return run_error("the fill must be one character");
  if (left <= 0 && right <= 0) return text;
  INFERD_TRY(const Text before, repeat_text(runtime, fill, left));
  INFERD_TRY(const Text after, repeat_text(runtime, fill, right));
  INFERD_TRY_STATUS(runtime.admit_text(before.size() + text.size() + after.size()));
  TextBuilder builder;
  builder.append(before);
  builder.append(text);
  builder.append(after);
  return std::move(builder).finish().with_safe(text.is_safe());
}

Result<Text> center(Runtime& runtime, const Text& text, int64_t width, const Text& fill) {
  INFERD_TRY(const int64_t length, count_characters(runtime, text));
  if (width <= length) return text;
  const int64_t room = width - length;
  const int64_t left =
      room / 2 + (room & width & 1);  // the odd place goes left only when the width is odd too
  return pad(runtime, text, left, room - left, fill);
}

Result<Text> join_all(Runtime& runtime, const Text& separator, const std::vector<Text>& parts) {
  TextBuilder builder;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!runtime.spend(1 + static_cast<int64_t>(separator.run_count()))) return runtime.exhausted();
    INFERD_TRY_STATUS(runtime.fits_text(builder.size() + separator.size() + parts[i].size()));
    if (i > 0) builder.append(separator);
    builder.append(parts[i]);
  }
  return runtime.finish(std::move(builder));
}

bool is_upper(std::string_view text) {
  return has_case(text, kUpper, kLower | kTitle);
}

bool is_lower(std::string_view text) {
  return has_case(text, kLower, kUpper | kTitle);
}

bool is_title(std::string_view text) {
  bool after_cased = false;
  bool found = false;
  for (size_t at = 0; at < text.size();) {
    const CharStep step = char_at(text, at);
    const unsigned properties = char_properties(step.c);
    if ((properties & (kUpper | kTitle)) != 0) {
      if (after_cased) return false;
      after_cased = found = true;
    } else if ((properties & kLower) != 0) {
      if (!after_cased) return false;
      found = true;
    } else {
      after_cased = false;
    }
    at += step.length;
  }
  return found;
}

}  // namespace inferd::jinja
