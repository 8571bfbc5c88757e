// Runs a program over variables. The only way in from outside: parse_program, then render.
#pragma once

#include <ctime>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "text/jinja_ast.h"
#include "text/span.h"

namespace inferd::jinja {

struct Variable {
  std::string_view name;
  const Json* value = nullptr;  // null: None
  bool markup = false;          // its text was written by the model's files, not by the caller
};

// The budget of a render: a base, and a share for every byte of text and every value that the caller sent.
struct Budget {
  int64_t base_steps = 300000;
  int64_t steps_per_byte = 2;
  int64_t steps_per_value = 4000;
  int64_t max_steps = 20000000;
  size_t text_bytes = size_t{4} << 20;  // and as many as the caller sent
};

struct RenderOptions {
  std::function<std::tm()> now;  // for strftime_now
  Budget budget;
  int64_t* steps_used = nullptr;  // set when not null, also after an error
};

// Any thread, and many at once over one program. Errors: E-TMPL-002 with the template's own text when it
// raised one, E-TMPL-003 with the line where it failed, E-TMPL-004 when the budget ran out.
Result<std::vector<TextSpan>> render(const Program& program, std::span<const Variable> variables,
                                     const RenderOptions& options);

}  // namespace inferd::jinja
