#include "base/json_pull.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/check.h"
#include "base/strings.h"
#include "base/utf8.h"

namespace inferd {
namespace {

constexpr size_t kDepth = 64;
constexpr size_t kBlock = size_t{1} << 16;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

}  // namespace

JsonPull::JsonPull(std::string_view text) : text_(text) {
  if (const size_t at = find_invalid_utf8(text); at != std::string_view::npos) {
    at_ = at;
    fail("ill-formed UTF-8");
  }
}

bool JsonPull::fail(std::string what) {
  if (!error_) {
    error_ = std::move(what);
    error_at_ = at_;
  }
  at_ = text_.size();
  return false;
}

std::string JsonPull::error() const {
  INFERD_CHECK(failed());
  return cat(*error_, " at byte ", error_at_);
}

void JsonPull::skip_space() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) {
    ++at_;
  }
}

std::optional<JsonPull::Kind> JsonPull::peek() {
  skip_space();
  if (failed() || at_ == text_.size()) return std::nullopt;
  switch (text_[at_]) {
    case '{':
      return Kind::object;
    case '[':
      return Kind::array;
    case '"':
      return Kind::string;
    case 't':
    case 'f':
      return Kind::boolean;
    case 'n':
      return Kind::null;
    default:
      if (text_[at_] == '-' || is_digit(text_[at_])) return Kind::number;
      return std::nullopt;
  }
}

bool JsonPull::expect(char c) {
  skip_space();
  if (failed()) return false;
  if (at_ == text_.size()) return fail(cat("the text ends where '", c, "' is expected"));
  if (text_[at_] != c) return fail(cat("'", c, "' expected"));
  ++at_;
  return true;
}

bool JsonPull::literal(std::string_view word) {
  skip_space();
  if (failed()) return false;
  if (!text_.substr(at_).starts_with(word)) return fail(cat(word, " expected"));
  at_ += word.size();
  return true;
}

bool JsonPull::null() {
  return literal("null");
}

bool JsonPull::boolean(bool& value) {
  skip_space();
  if (text_.substr(at_).starts_with("true")) {
    value = true;
    return literal("true");
  }
  value = false;
  if (text_.substr(at_).starts_with("false")) return literal("false");
  return fail("true or false expected");
}

// Four hexadecimal digits.
bool JsonPull::unit(uint32_t& value) {
  value = 0;
  const std::string_view digits = text_.substr(at_, 4);
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (problem != std::errc() || end != digits.data() + 4) return fail("four hexadecimal digits expected");
  at_ += 4;
  return true;
}

// What stands behind a backslash.
bool JsonPull::escaped(std::string& out) {
  if (at_ == text_.size()) return fail("the text ends inside a string");
  const char c = text_[at_++];
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  if (const size_t found = kLetters.find(c); found != std::string_view::npos) {
    out += kMeanings[found];
    return true;
  }
  if (c != 'u') return fail("an escape that JSON does not have");
  uint32_t first = 0;
  if (!unit(first)) return false;
  if (first >= 0xD800 && first <= 0xDFFF) {
    uint32_t second = 0;
    if (first >= 0xDC00 || !text_.substr(at_).starts_with("\\u")) return fail("a lone surrogate");
    at_ += 2;
    if (!unit(second)) return false;
    if (second < 0xDC00 || second > 0xDFFF) return fail("a lone surrogate");
    first = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
  }
  append_utf8(out, first);
  return true;
}

bool JsonPull::string(std::string_view& value) {
  value = {};
  if (!expect('"')) return false;
  const size_t begin = at_;
  const auto plain_end = [&] {
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' &&
           static_cast<unsigned char>(text_[at_]) >= 0x20) {
      ++at_;
    }
    if (at_ == text_.size()) return fail("the text ends inside a string");
    if (static_cast<unsigned char>(text_[at_]) < 0x20) return fail("a control character inside a string");
    return true;
  };
  if (!plain_end()) return false;
  if (text_[at_] == '"') {
    value = text_.substr(begin, at_++ - begin);
    return true;
  }
  std::string resolved;
  for (size_t from = begin;;) {
    resolved += text_.substr(from, at_ - from);
    if (text_[at_++] == '"') break;
    if (!escaped(resolved)) return false;
    from = at_;
    if (!plain_end()) return false;
  }
  // Views into a block stay right because it never grows past what it has room for.
  if (resolved_.empty() || resolved_.back().capacity() - resolved_.back().size() < resolved.size()) {
    resolved_.emplace_back().reserve(std::max(kBlock, resolved.size()));
  }
  std::string& block = resolved_.back();
  block += resolved;
  value = std::string_view(block).substr(block.size() - resolved.size());
  return true;
}

// The characters of a number by JSON's grammar; empty: an error.
std::string_view JsonPull::number_text() {
  skip_space();
  if (failed()) return {};
  const size_t begin = at_;
  const auto digits = [&] {
    const size_t from = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    return at_ != from;
  };
  const auto take = [&](std::string_view any) {
    const bool there = at_ < text_.size() && any.find(text_[at_]) != std::string_view::npos;
    if (there) ++at_;
    return there;
  };
  take("-");
  const bool zero = take("0");
  bool good = zero || digits();
  if (good && take(".")) good = digits();
  if (good && take("eE")) {
    take("+-");
    good = digits();
  }
  if (good && !(zero && at_ < text_.size() && is_digit(text_[at_]))) return text_.substr(begin, at_ - begin);
  fail("a number expected");
  return {};
}

bool JsonPull::integer(int64_t& value) {
  value = 0;
  const std::string_view digits = number_text();
  if (digits.empty()) return false;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (problem == std::errc() && end == digits.data() + digits.size()) return true;
  return fail("an integer expected");
}

bool JsonPull::number(double& value) {
  value = 0;
  const std::string_view digits = number_text();
  if (digits.empty()) return false;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  // One too near zero is out of range too.
  if (problem == std::errc() && std::isfinite(value)) return true;
  return fail("a number out of range");
}

bool JsonPull::begin_object() {
  if (!expect('{')) return false;
  first_.push_back(true);
  return first_.size() <= kDepth || fail(cat("nested deeper than ", kDepth));
}

bool JsonPull::begin_array() {
  if (!expect('[')) return false;
  first_.push_back(true);
  return first_.size() <= kDepth || fail(cat("nested deeper than ", kDepth));
}

// Goes to the next member of the innermost array or object. False: it ends here, or an error.
bool JsonPull::next(char close) {
  skip_space();
  if (failed()) return false;
  if (at_ < text_.size() && text_[at_] == close) {
    ++at_;
    first_.pop_back();
    return false;
  }
  const bool first = first_.back();
  first_.back() = false;
  return first || expect(',');
}

bool JsonPull::next_key(std::string_view& key) {
  if (!next('}')) return false;
  skip_space();
  return string(key) && expect(':');
}

bool JsonPull::next_element() {
  return next(']');
}

bool JsonPull::skip() {
  const size_t depth = first_.size();
  do {
    if (first_.size() > depth) {  // inside what is skipped: go to the next member, or leave
      skip_space();
      if (failed() || at_ == text_.size()) return fail("the text ends inside a value");
      const bool in_object = kinds_.back() == Kind::object;
      std::string_view key;
      if (in_object ? !next_key(key) : !next_element()) {
        if (failed()) return false;
        kinds_.pop_back();
        continue;
      }
    }
    const std::optional<Kind> kind = peek();
    if (!kind) return fail("a value expected");
    std::string_view text;
    double real = 0;
    bool flag = false;
    switch (*kind) {
      case Kind::object:
      case Kind::array:
        kinds_.push_back(*kind);
        if (!(*kind == Kind::object ? begin_object() : begin_array())) return false;
        break;
      case Kind::string:
        if (!string(text)) return false;
        break;
      case Kind::number:
        if (!number(real)) return false;
        break;
      case Kind::boolean:
        if (!boolean(flag)) return false;
        break;
      case Kind::null:
        if (!null()) return false;
        break;
    }
  } while (first_.size() > depth);
  return true;
}

bool JsonPull::skip(std::string_view& text) {
  skip_space();
  const size_t begin = at_;
  if (!skip()) return false;
  text = text_.substr(begin, at_ - begin);
  return true;
}

bool JsonPull::finish() {
  skip_space();
  if (failed()) return false;
  return at_ == text_.size() || fail("something behind the value");
}

}  // namespace inferd
