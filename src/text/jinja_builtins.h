// The functions every template can call.
#pragma once

#include <string_view>

#include "text/jinja_arguments.h"
#include "text/jinja_runtime.h"

namespace inferd::jinja {

struct Builtin {
  std::string_view name;
  Result<Value> (*call)(Runtime& runtime, const Arguments& arguments);
};

const Builtin* find_builtin(std::string_view name);  // null when unknown

// joiner()(): nothing the first time, then the separator.
Value call_joiner(JoinerObject& joiner);

}  // namespace inferd::jinja
