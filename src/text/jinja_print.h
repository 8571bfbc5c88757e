// Values to text: Python's str() and repr(), json.dumps; and JSON to values.
#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"
#include "text/jinja_runtime.h"

namespace inferd::jinja {

// str(value). A string is itself; an undefined value is nothing. E-TMPL-003 for what prints as a memory
// address there.
Result<Text> to_text(Runtime& runtime, const Value& value);

// repr(value)
Result<Text> to_repr(Runtime& runtime, const Value& value);

// Python's repr of a float: the shortest digits that read back, "1.0", "1e+16", "inf", "nan".
void append_real(std::string& out, double value);

struct JsonStyle {
  bool ensure_ascii = false;
  bool indented = false;
  Text indent;  // repeated for each level, when indented
  Text item_separator;
  Text key_separator;
  bool sort_keys = false;
};

// json.dumps(value, ...)
Result<Text> to_json_text(Runtime& runtime, const Value& value, const JsonStyle& style);

// JSON as values, whose strings borrow from it. They must be UTF-8, as those of parse_json are.
Result<Value> from_json(Runtime& runtime, const Json& json, Origin origin);

}  // namespace inferd::jinja
