// The methods that Python's str, list, tuple, dict and range have, as far as templates may call them.
#pragma once

#include <string_view>

#include "text/jinja_arguments.h"
#include "text/jinja_runtime.h"

namespace inferd::jinja {

struct Method {
  std::string_view name;
  // Null: Python has the attribute, but it is not supported here, and using it is an error.
  Result<Value> (*call)(Runtime& runtime, const Value& self, const Arguments& arguments);
};

// Null when Python's type has no attribute of that name.
const Method* find_method(Kind kind, std::string_view name);
const Method* find_text_method(std::string_view name);

// True for what would change a list or a dict: jinja2's immutable sandbox hides it.
bool is_mutator(Kind kind, std::string_view name);

Result<Value> call_method(Runtime& runtime, const Method& method, const Value& self,
                          const Arguments& arguments);

}  // namespace inferd::jinja
