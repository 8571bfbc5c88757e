// Tokens to a program, with jinja2's grammar. What jinja2 refuses when it compiles a template is refused
// here: unknown filters outside of `if`, `break` outside of a loop, assignment to `loop`. Not supported, and
// refused by name: include, import, extends, block, autoescape.
#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"
#include "text/jinja_ast.h"

namespace inferd::jinja {

inline constexpr int kMaxExprHeight = 200;     // CPython's own parser ends at 200 parentheses
inline constexpr int kMaxStatementDepth = 90;  // and at 100 levels of indentation

// E-TMPL-001 naming the line and the construct.
Result<std::unique_ptr<const Program>> parse_program(std::string_view source);

}  // namespace inferd::jinja
