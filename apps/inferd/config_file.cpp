#include "config_file.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/strings.h"
#include "base/utf8.h"

namespace inferd {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_bare(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-';
}
// TOML allows no control character but the tab, neither in strings nor in comments.
bool is_control(char c) {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
}

class ConfigParser {
 public:
  ConfigParser(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  Result<std::vector<ConfigEntry>> parse() {
    if (const size_t bad = find_invalid_utf8(text_); bad != std::string_view::npos) {
      return fail("it is not UTF-8", bad);
    }
    while (at_ < text_.size()) {
      skip_blanks();
      if (peek() == '[') {
        INFERD_TRY_STATUS(read_table());
      } else if (is_bare(peek()) || peek() == '"' || peek() == '\'') {
        INFERD_TRY_STATUS(read_entry());
      }
      INFERD_TRY_STATUS(end_line("a key, a [table] or a comment"));
    }
    return std::move(entries_);
  }

 private:
  // NUL at the end; a NUL in the text is refused wherever it stands.
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool starts(std::string_view with) const { return text_.substr(at_).starts_with(with); }

  // Line and column of a place, from 1.
  std::pair<int, int> place(size_t at) const {
    const std::string_view before = text_.substr(0, at);
    const size_t feed = before.rfind('\n');
    const std::string_view line = feed == std::string_view::npos ? before : before.substr(feed + 1);
    const auto characters = std::ranges::count_if(line, [](char c) { return (c & 0xc0) != 0x80; });
    return {static_cast<int>(std::ranges::count(before, '\n')) + 1, static_cast<int>(characters) + 1};
  }

  Error fail(std::string_view what, size_t at) const {
    const auto [line, column] = place(at);
    return Error{.code = Code::config_syntax,
                 .detail = std::string(what),
                 .where = cat(path_, ":", line, ":", column)};
  }
  Error expected(std::string_view what) const {
    if (at_ >= text_.size()) return fail(cat("expected ", what, ", the file ends"), at_);
    if (peek() == '\n') return fail(cat("expected ", what, ", the line ends"), at_);
    const std::string_view rest = text_.substr(at_);
    return fail(cat("expected ", what, ", got ", printable(rest.substr(0, decode_utf8(rest).length))), at_);
  }
  Error not_read(std::string_view what, size_t at) const { return fail(cat(what, " is not read here"), at); }

  void skip_blanks() {
    while (peek() == ' ' || peek() == '\t') ++at_;
  }

  Status skip_comment() {
    if (peek() != '#') return {};
    while (at_ < text_.size() && peek() != '\n' && !starts("\r\n")) {
      if (is_control(peek())) return expected("no control character in a comment");
      ++at_;
    }
    return {};
  }

  // Blanks and a comment, then the end of the line or of the file.
  Status end_line(std::string_view wanted) {
    skip_blanks();
    INFERD_TRY_STATUS(skip_comment());
    if (at_ >= text_.size()) return {};
    if (starts("\r\n")) ++at_;
    if (peek() != '\n') return expected(wanted);
    ++at_;
    return {};
  }

  Status read_table() {
    if (starts("[[")) return not_read("an array of tables", at_);
    ++at_;
    skip_blanks();
    const size_t begin = at_;
    INFERD_TRY(section_, read_key());
    skip_blanks();
    if (peek() != ']') return expected("]");
    ++at_;
    INFERD_TRY_STATUS(add({.section = section_}, begin));
    return end_of_value();
  }

  Status read_entry() {
    const size_t begin = at_;
    INFERD_TRY(std::string key, read_key());
    skip_blanks();
    if (peek() != '=') return expected("=");
    ++at_;
    skip_blanks();
    ConfigEntry entry{.section = section_, .key = std::move(key)};
    entry.is_boolean = peek() == 't' || peek() == 'f';
    entry.is_array = peek() == '[';
    if (entry.is_array) {
      INFERD_TRY(entry.values, read_array());
    } else {
      INFERD_TRY(std::string value, read_scalar());
      entry.values.push_back(std::move(value));
    }
    INFERD_TRY_STATUS(add(std::move(entry), begin));
    return end_of_value();
  }

  // Only a comment may follow on the line.
  Status end_of_value() {
    skip_blanks();
    if (at_ < text_.size() && peek() != '#' && peek() != '\n' && !starts("\r\n")) {
      return expected("the end of the line");
    }
    return {};
  }

  Status add(ConfigEntry entry, size_t at) {
    std::tie(entry.line, entry.column) = place(at);
    const bool again = std::ranges::any_of(entries_, [&](const ConfigEntry& other) {
      return other.section == entry.section && other.key == entry.key;
    });
    if (again) {
      return fail(entry.key.empty() ? cat("[", entry.section, "] stands here for the second time")
                                    : cat(entry.key, " is set for the second time"),
                  at);
    }
    // A key and a table share their names.
    const bool clash = std::ranges::any_of(entries_, [&](const ConfigEntry& other) {
      return entry.key.empty() && other.section.empty() && other.key == entry.section;
    });
    if (clash) return fail(cat(entry.section, " is a key already"), at);
    entries_.push_back(std::move(entry));
    return {};
  }

  Result<std::string> read_key() {
    if (peek() == '"' || peek() == '\'') return not_read("a key in quotes", at_);
    const size_t begin = at_;
    while (is_bare(peek())) ++at_;
    if (at_ == begin) return expected("a name");
    const std::string key(text_.substr(begin, at_ - begin));
    skip_blanks();
    if (peek() == '.') return not_read("a name with dots", begin);
    return key;
  }

  Result<std::vector<std::string>> read_array() {
    std::vector<std::string> values;
    ++at_;
    while (true) {
      INFERD_TRY_STATUS(skip_lines());
      if (peek() == ']') break;
      if (peek() == '[') return not_read("an array in an array", at_);
      INFERD_TRY(std::string value, read_scalar());
      values.push_back(std::move(value));
      INFERD_TRY_STATUS(skip_lines());
      if (peek() == ',') {
        ++at_;
      } else if (peek() != ']') {
        return expected(", or ]");
      }
    }
    ++at_;
    return values;
  }

  // Blanks, ends of lines and comments, as they may stand in an array.
  Status skip_lines() {
    while (true) {
      skip_blanks();
      INFERD_TRY_STATUS(skip_comment());
      if (starts("\r\n")) ++at_;
      if (peek() != '\n') return {};
      ++at_;
    }
  }

  Result<std::string> read_scalar() {
    if (starts("\"\"\"") || starts("'''")) return not_read("a string of several lines", at_);
    if (peek() == '"') return read_string();
    if (peek() == '\'') return read_literal();
    if (peek() == '{') return not_read("a table in braces", at_);
    for (const std::string_view word : {"true", "false"}) {
      if (!starts(word)) continue;
      at_ += word.size();
      return std::string(word);
    }
    return read_number();
  }

  Result<std::string> read_literal() {
    ++at_;
    const size_t begin = at_;
    while (peek() != '\'') {
      if (at_ >= text_.size() || is_control(peek())) return expected("the closing '");
      ++at_;
    }
    return std::string(text_.substr(begin, at_++ - begin));
  }

  Result<std::string> read_string() {
    static constexpr std::string_view kEscapes = "btnfr\"\\";
    static constexpr std::string_view kMeant = "\b\t\n\f\r\"\\";
    ++at_;
    std::string value;
    while (peek() != '"') {
      if (at_ >= text_.size() || is_control(peek())) return expected("the closing \"");
      if (peek() != '\\') {
        value.push_back(text_[at_++]);
        continue;
      }
      const size_t escape = kEscapes.find(peek(1));
      if (escape != std::string_view::npos && peek(1) != '\0') {
        value.push_back(kMeant[escape]);
        at_ += 2;
      } else if (peek(1) == 'u' || peek(1) == 'U') {
        INFERD_TRY_STATUS(read_code_point(value));
      } else {
        return fail("expected one of \\b \\t \\n \\f \\r \\\" \\\\ \\uXXXX \\UXXXXXXXX", at_);
      }
    }
    ++at_;
    return value;
  }

  Status read_code_point(std::string& value) {
    const size_t begin = at_;
    const int digits = peek(1) == 'u' ? 4 : 8;
    at_ += 2;
    char32_t code_point = 0;
    for (int i = 0; i < digits; ++i, ++at_) {
      static constexpr std::string_view kDigits = "0123456789abcdef";
      const char c = peek();
      const size_t digit = kDigits.find(c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c);
      if (digit == std::string_view::npos || c == '\0') return expected("a hexadecimal digit");
      code_point = code_point * 16 + static_cast<char32_t>(digit);
    }
    if (code_point > 0x10ffff || (code_point >= 0xd800 && code_point <= 0xdfff)) {
      return fail("this is no character", begin);
    }
    if (code_point == 0) return not_read("a NUL character", begin);
    append_utf8(value, code_point);
    return {};
  }

  // [+-]DIGITS[.DIGITS][e[+-]DIGITS], with _ between digits; given on without + and _.
  Result<std::string> read_number() {
    const size_t begin = at_;
    std::string number;
    if (peek() == '+' || peek() == '-') {
      if (peek() == '-') number.push_back('-');
      ++at_;
    }
    if (starts("inf") || starts("nan")) return not_read("a number without end", begin);
    if (!is_digit(peek())) return expected("a string, a number, true, false or an array");
    if (peek() == '0' && (peek(1) == 'x' || peek(1) == 'o' || peek(1) == 'b')) {
      return not_read("a number that is not decimal", begin);
    }
    const bool zero = peek() == '0';
    const size_t first = at_;
    INFERD_TRY_STATUS(read_digits(number));
    if (peek() == '-' || peek() == ':') return not_read("a date or time", begin);
    if (zero && at_ - first > 1) return fail("a number does not begin with 0", begin);
    if (peek() == '.') {
      number.push_back(text_[at_++]);
      INFERD_TRY_STATUS(read_digits(number));
    }
    if (peek() == 'e' || peek() == 'E') {
      number.push_back('e');
      ++at_;
      if (peek() == '+' || peek() == '-') number.push_back(text_[at_++]);
      INFERD_TRY_STATUS(read_digits(number));
    }
    if (is_bare(peek())) {
      Error error = expected("the end of the number");
      error.fix = "put a value with a unit in quotes: \"4k\", \"1.5GiB\", \"30s\"";
      return error;
    }
    return number;
  }

  Status read_digits(std::string& number) {
    if (!is_digit(peek())) return expected("a digit");
    while (true) {
      while (is_digit(peek())) number.push_back(text_[at_++]);
      if (peek() != '_') return {};
      ++at_;
      if (!is_digit(peek())) return expected("a digit after _");
    }
  }

  const std::string_view text_;
  const std::string& path_;
  size_t at_ = 0;
  std::string section_;
  std::vector<ConfigEntry> entries_;
};

}  // namespace

Result<std::vector<ConfigEntry>> parse_config(std::string_view text, const std::string& path) {
  return ConfigParser(text, path).parse();
}

}  // namespace inferd
