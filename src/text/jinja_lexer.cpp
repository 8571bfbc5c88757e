#include "text/jinja_lexer.h"

#include <algorithm>

#include "base/utf8.h"
#include "text/jinja_text.h"
#include "text/jinja_unicode.h"

namespace inferd::jinja {
namespace {

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

constexpr int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Line ends become \n, and one at the very end is dropped.
std::string normalize_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out.push_back(source[i]);
      continue;
    }
    out.push_back('\n');
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

// Undoes the escapes of a string literal as Python's unicode-escape codec does: an unknown escape stays as
// written.
Result<std::string> unescape(std::string_view body, int32_t line) {
  std::string out;
  out.reserve(body.size());
  for (size_t i = 0; i < body.size(); ++i) {
    if (body[i] != '\\' || i + 1 == body.size()) {
      out.push_back(body[i]);
      continue;
    }
    const char escape = body[++i];
    size_t digits = 0;
    switch (escape) {
      case '\n':
        continue;
      case '\\':
      case '\'':
      case '"':
        out.push_back(escape);
        continue;
      case 'a':
        out.push_back('\a');
        continue;
      case 'b':
        out.push_back('\b');
        continue;
      case 'f':
        out.push_back('\f');
        continue;
      case 'n':
        out.push_back('\n');
        continue;
      case 'r':
        out.push_back('\r');
        continue;
      case 't':
        out.push_back('\t');
        continue;
      case 'v':
        out.push_back('\v');
        continue;
      case 'x':
        digits = 2;
        break;
      case 'u':
        digits = 4;
        break;
      case 'U':
        digits = 8;
        break;
      case 'N':
        return syntax_error(line, "\\N{...} in a string: character names are not supported");
      default:
        break;
    }
    char32_t code = 0;
    if (digits > 0) {
      for (size_t k = 0; k < digits; ++k) {
        const int digit = i + 1 < body.size() ? hex_value(body[i + 1]) : -1;
        if (digit < 0)
          return syntax_error(line, cat("\\", escape, " in a string needs ", digits, " hexadecimal digits"));
        code = code << 4 | static_cast<char32_t>(digit);
        ++i;
      }
    } else if (escape >= '0' && escape <= '7') {
      code = static_cast<char32_t>(escape - '0');
      for (int k = 0; k < 2 && i + 1 < body.size() && body[i + 1] >= '0' && body[i + 1] <= '7'; ++k) {
        code = code << 3 | static_cast<char32_t>(body[++i] - '0');
      }
    } else {
      out.push_back('\\');
      out.push_back(escape);
      continue;
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) {
      return syntax_error(line, "an escape in a string is no Unicode character");
    }
    append_utf8(out, code);
  }
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  Result<std::vector<Token>> run() {
    while (at_ < source_.size()) {
      if (Status status = lex_text(); !status.ok()) return std::move(status).error();
    }
    add(TokenKind::end, "");
    return std::move(tokens_);
  }

 private:
  enum class Tag { comment, block, variable };

  std::string_view rest() const { return std::string_view(source_).substr(at_); }
  bool looking_at(std::string_view text) const { return rest().starts_with(text); }

  void advance(size_t bytes) {
    const std::string_view taken = std::string_view(source_).substr(at_, bytes);
    line_ += static_cast<int32_t>(std::count(taken.begin(), taken.end(), '\n'));
    at_ += bytes;
  }

  Token& add(TokenKind kind, std::string text) {
    tokens_.push_back({.kind = kind, .line = line_, .text = std::move(text)});
    return tokens_.back();
  }

  size_t space_length(size_t from) const {
    size_t at = from;
    while (at < source_.size()) {
      const CharStep step = char_at(source_, at);
      if (!is_space(step.c)) break;
      at += step.length;
    }
    return at - from;
  }

  // Adds the text before a tag. `sign` is the tag's first character if that is - or +; a `-` takes all white
  // space before the tag, and a block or comment that begins its line takes the line's indentation.
  void add_data(std::string_view text, char sign, bool strips_indentation) {
    size_t end = text.size();
    if (sign == '-') {
      while (end > 0) {
        const CharStep step = char_before(text, end);
        if (!is_space(step.c)) break;
        end -= step.length;
      }
    } else if (sign != '+' && strips_indentation) {
      const size_t line_begin = text.rfind('\n') == std::string_view::npos ? 0 : text.rfind('\n') + 1;
      if (line_begin > 0 || line_starting_) {
        size_t at = line_begin;
        while (at < text.size() && is_space(char_at(text, at).c)) at += char_at(text, at).length;
        if (at == text.size()) end = line_begin;
      }
    }
    if (end > 0) add(TokenKind::data, std::string(text.substr(0, end)));
    advance(text.size());
  }

  char sign_at(size_t at) const {
    return at < source_.size() && (source_[at] == '-' || source_[at] == '+') ? source_[at] : '\0';
  }

  // The length of "raw" as the whole content of the block that begins at at_, with its end tag; 0 when it is
  // not one.
  size_t raw_begin_length() const {
    size_t at = at_ + 2;
    if (sign_at(at) != '\0') ++at;
    at += space_length(at);
    if (!std::string_view(source_).substr(at).starts_with("raw")) return 0;
    at += 3;
    at += space_length(at);
    const std::string_view tail = std::string_view(source_).substr(at);
    if (tail.starts_with("-%}")) {
      at += 3;
      return at + space_length(at) - at_;
    }
    return tail.starts_with("%}") ? at + 2 - at_ : 0;
  }

  // Text up to the next tag, and that tag.
  Status lex_text() {
    size_t tag = source_.find('{', at_);
    while (tag != std::string::npos &&
           (tag + 1 >= source_.size() ||
            std::string_view("%{#").find(source_[tag + 1]) == std::string_view::npos)) {
      tag = source_.find('{', tag + 1);
    }
    if (tag == std::string::npos) {
      add(TokenKind::data, source_.substr(at_));
      advance(source_.size() - at_);
      return {};
    }
    const Tag kind = source_[tag + 1] == '%'   ? Tag::block
                     : source_[tag + 1] == '#' ? Tag::comment
                                               : Tag::variable;
    const char sign = sign_at(tag + 2);
    add_data(std::string_view(source_).substr(at_, tag - at_), sign, kind != Tag::variable);
    const size_t opening = sign == '\0' ? 2 : 3;
    if (kind == Tag::comment) return lex_comment(opening);
    if (kind == Tag::block) {
      if (const size_t raw = raw_begin_length(); raw > 0) return lex_raw(raw);
    }
    add(kind == Tag::block ? TokenKind::block_begin : TokenKind::variable_begin, "");
    advance(opening);
    return lex_tag(kind);
  }

  // Takes the end of a tag at at_, whose closing characters are `close`: "-%}" with the white space after it,
  // "+%}", or
  // "%}" with one newline after it. 0 when there is none.
  size_t end_length(std::string_view close, Tag kind) const {
    const std::string_view text = rest();
    if (text.starts_with('-') && text.substr(1).starts_with(close)) return 3 + space_length(at_ + 3);
    if (kind != Tag::variable && text.starts_with('+') && text.substr(1).starts_with(close)) return 3;
    if (!text.starts_with(close)) return 0;
    return kind != Tag::variable && text.size() > 2 && text[2] == '\n' ? 3 : 2;
  }

  void finish_tag(size_t bytes) {
    line_starting_ = source_[at_ + bytes - 1] == '\n';
    advance(bytes);
  }

  Status lex_comment(size_t opening) {
    const int32_t line = line_;
    advance(opening);
    size_t close = source_.find("#}", at_);
    if (close == std::string::npos) return syntax_error(line, "a comment has no end: #} is missing");
    if (close > at_ && (source_[close - 1] == '-' || source_[close - 1] == '+')) --close;
    advance(close - at_);
    finish_tag(end_length("#}", Tag::comment));
    return {};
  }

  Status lex_raw(size_t opening) {
    const int32_t line = line_;
    finish_tag(opening);
    for (size_t tag = source_.find("{%", at_); tag != std::string::npos; tag = source_.find("{%", tag + 2)) {
      const char sign = sign_at(tag + 2);
      size_t at = tag + (sign == '\0' ? 2 : 3);
      at += space_length(at);
      if (!std::string_view(source_).substr(at).starts_with("endraw")) continue;
      at += 6;
      at += space_length(at);
      const std::string_view tail = std::string_view(source_).substr(at);
      if (!tail.starts_with("%}") && !tail.starts_with("-%}") && !tail.starts_with("+%}")) continue;
      add_data(std::string_view(source_).substr(at_, tag - at_), sign, true);
      advance(at - at_);
      finish_tag(end_length("%}", Tag::block));
      return {};
    }
    return syntax_error(line, "{% raw %} has no {% endraw %}");
  }

  Status lex_tag(Tag kind) {
    const std::string_view close = kind == Tag::block ? "%}" : "}}";
    std::string open_brackets;
    while (at_ < source_.size()) {
      if (open_brackets.empty()) {
        if (const size_t bytes = end_length(close, kind); bytes > 0) {
          add(kind == Tag::block ? TokenKind::block_end : TokenKind::variable_end, "");
          finish_tag(bytes);
          return {};
        }
      }
      if (const size_t space = space_length(at_); space > 0) {
        advance(space);
      } else if (is_digit(source_[at_])) {
        if (Status status = lex_number(); !status.ok()) return status;
      } else if (source_[at_] == '\'' || source_[at_] == '"') {
        if (Status status = lex_string(); !status.ok()) return status;
      } else if (has_property(char_at(source_, at_).c, kIdentifierPart)) {
        if (Status status = lex_name(); !status.ok()) return status;
      } else {
        if (Status status = lex_operator(open_brackets); !status.ok()) return status;
      }
    }
    return {};  // the parser says which tag is open
  }

  // Digits of a base from `at`, with single underscores between them (and before the first when `leading`).
  size_t digits_length(size_t at, int base, bool leading) const {
    const size_t begin = at;
    while (at < source_.size()) {
      const bool underscore = source_[at] == '_';
      if (underscore && at == begin && !leading) break;
      const size_t digit_at = underscore ? at + 1 : at;
      const int digit = digit_at < source_.size() ? hex_value(source_[digit_at]) : -1;
      if (digit < 0 || digit >= base) break;
      at = digit_at + 1;
    }
    return at - begin;
  }

  // The end of a floating point number at at_, or 0 when there is none: it needs a fraction or an exponent.
  size_t real_end() const {
    if (at_ > 0 && source_[at_ - 1] == '.') return 0;
    size_t at = at_ + digits_length(at_, 10, false);
    bool is_real = false;
    if (at < source_.size() && source_[at] == '.') {
      if (const size_t fraction = digits_length(at + 1, 10, false); fraction > 0) {
        at += 1 + fraction;
        is_real = true;
      }
    }
    if (at < source_.size() && (source_[at] == 'e' || source_[at] == 'E')) {
      const size_t sign =
          at + 1 < source_.size() && (source_[at + 1] == '+' || source_[at + 1] == '-') ? 1 : 0;
      if (const size_t exponent = digits_length(at + 1 + sign, 10, false); exponent > 0) {
        at += 1 + sign + exponent;
        is_real = true;
      }
    }
    return is_real ? at : 0;
  }

  Status lex_number() {
    if (const size_t end = real_end(); end > 0) {
      std::string digits(std::string_view(source_).substr(at_, end - at_));
      std::erase(digits, '_');
      const auto value = parse_double(digits);
      if (!value) return syntax_error(line_, cat("the number ", printable(digits), " is too large"));
      add(TokenKind::real, std::move(digits)).real = *value;
      advance(end - at_);
      return {};
    }
    int base = 10;
    size_t length = 0;
    if (source_[at_] == '0') {
      const char mark = at_ + 1 < source_.size() ? static_cast<char>(source_[at_ + 1] | 0x20) : '\0';
      base = mark == 'b' ? 2 : mark == 'o' ? 8 : mark == 'x' ? 16 : 10;
      const size_t digits = base == 10 ? 0 : digits_length(at_ + 2, base, true);
      if (digits > 0) {
        length = 2 + digits;
      } else {
        base = 10;
        length = digits_length(at_, 1, false);  // zeros only: 007 is two numbers, as in the reference
      }
    } else {
      length = digits_length(at_, 10, false);
    }
    const std::string_view digits = std::string_view(source_).substr(at_, length);
    uint64_t value = 0;
    for (const char c : base == 10 ? digits : digits.substr(2)) {
      if (c == '_') continue;
      const auto digit = static_cast<uint64_t>(hex_value(c));
      if (value > (static_cast<uint64_t>(INT64_MAX) - digit) / static_cast<uint64_t>(base)) {
        return syntax_error(line_, cat("the number ", printable(digits), " does not fit 64 bits"));
      }
      value = value * static_cast<uint64_t>(base) + digit;
    }
    add(TokenKind::integer, std::string(digits)).integer = static_cast<int64_t>(value);
    advance(length);
    return {};
  }

  Status lex_string() {
    const char quote = source_[at_];
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2U : 1U;
    if (end >= source_.size()) return syntax_error(line_, "a string has no end");
    INFERD_TRY(std::string value, unescape(std::string_view(source_).substr(at_ + 1, end - at_ - 1), line_));
    add(TokenKind::string, std::move(value));
    advance(end + 1 - at_);
    return {};
  }

  Status lex_name() {
    size_t end = at_;
    while (end < source_.size()) {
      const CharStep step = char_at(source_, end);
      if (!has_property(step.c, kIdentifierPart)) break;
      end += step.length;
    }
    if (!has_property(char_at(source_, at_).c, kIdentifierStart)) {
      return syntax_error(line_, cat("a name cannot begin with ", printable(rest().substr(0, end - at_))));
    }
    add(TokenKind::name, source_.substr(at_, end - at_));
    advance(end - at_);
    return {};
  }

  Status lex_operator(std::string& open_brackets) {
    static constexpr std::string_view kTwo[] = {"//", "**", "==", "!=", ">=", "<="};
    std::string_view text = rest().substr(0, 2);
    if (std::find(std::begin(kTwo), std::end(kTwo), text) == std::end(kTwo)) {
      text = rest().substr(0, 1);
      if (std::string_view("+-/*%~[](){}><=.:|,;").find(text) == std::string_view::npos) {
        return syntax_error(
            line_, cat("unexpected character ", printable(rest().substr(0, char_at(source_, at_).length))));
      }
    }
    if (text == "(" || text == "[" || text == "{") {
      open_brackets.push_back(text == "(" ? ')' : text == "[" ? ']' : '}');
    } else if (text == ")" || text == "]" || text == "}") {
      if (open_brackets.empty()) return syntax_error(line_, cat("unexpected \"", text, "\""));
      if (open_brackets.back() != text[0]) {
        return syntax_error(line_, cat("unexpected \"", text, "\", expected \"", open_brackets.back(), "\""));
      }
      open_brackets.pop_back();
    }
    add(TokenKind::op, std::string(text));
    advance(text.size());
    return {};
  }

  const std::string source_;
  size_t at_ = 0;
  int32_t line_ = 1;
  bool line_starting_ = true;  // what ended before at_ was a newline that a tag took
  std::vector<Token> tokens_;
};

}  // namespace

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::data:
      return "text";
    case TokenKind::variable_begin:
      return "\"{{\"";
    case TokenKind::variable_end:
      return "\"}}\"";
    case TokenKind::block_begin:
      return "\"{%\"";
    case TokenKind::block_end:
      return "\"%}\"";
    case TokenKind::string:
      return cat("the string ", printable(token.text));
    case TokenKind::integer:
    case TokenKind::real:
      return cat("the number ", token.text);
    case TokenKind::name:
    case TokenKind::op:
      return printable(token.text);
    case TokenKind::end:
      return "the end of the template";
  }
  return "token";
}

Error syntax_error(int32_t line, std::string detail) {
  return {
      .code = Code::template_syntax, .detail = std::move(detail), .where = cat("chat template line ", line)};
}

Result<std::vector<Token>> tokenize(std::string_view source) {
  if (source.size() > kMaxSourceBytes) {
    return syntax_error(1, cat("it is ", with_commas(static_cast<int64_t>(source.size())), " bytes long, ",
                               with_commas(int64_t{kMaxSourceBytes}), " allowed"));
  }
  if (const size_t bad = find_invalid_utf8(source); bad != std::string_view::npos) {
    return syntax_error(1, cat("it is not UTF-8 at byte ", bad));
  }
  const std::string normalized = normalize_newlines(source);
  return Lexer(normalized).run();
}

}  // namespace inferd::jinja
