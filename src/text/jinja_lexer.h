// Template source to tokens, with jinja2's rules (3.1; trim_blocks and lstrip_blocks on, as transformers sets
// them) for white space around tags, newlines and string escapes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace inferd::jinja {

inline constexpr size_t kMaxSourceBytes = size_t{256} << 10;  // the longest known template has 17 KB

enum class TokenKind : uint8_t {
  data,            // literal text
  variable_begin,  // {{
  variable_end,
  block_begin,  // {%
  block_end,
  name,
  string,  // `text` holds the value, escapes undone
  integer,
  real,
  op,  // `text` is the operator: + - / // * % ** ~ [ ] ( ) { } == != > >= < <= = . : | , ;
  end,
};

struct Token {
  TokenKind kind = TokenKind::end;
  int32_t line = 1;
  std::string text;
  int64_t integer = 0;
  double real = 0;
};

// What a token is called in messages: `"endif"`, `end of the template`.
std::string describe(const Token& token);

Error syntax_error(int32_t line, std::string detail);

// Always ends with one `end` token. E-TMPL-001 with the line for source that does not lex, is not UTF-8 or is
// longer than kMaxSourceBytes.
Result<std::vector<Token>> tokenize(std::string_view source);

}  // namespace inferd::jinja
