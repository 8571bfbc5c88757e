// Python's three ways to format: "%s" % x, "{}".format(x) and the specifications behind the colon.
#pragma once

#include "base/result.h"
#include "text/jinja_arguments.h"
#include "text/jinja_runtime.h"

namespace inferd::jinja {

// format % argument: a tuple gives the values one by one, a dict by name.
Result<Value> format_percent(Runtime& runtime, const Text& format, const Value& argument);

// format.format(...), whose fields may name attributes and items of their values, as the sandbox lets them.
Result<Value> format_braces(Runtime& runtime, const Text& format, const Arguments& arguments);

// One number or string under a specification such as ">8.2f"; other values only under an empty one.
Result<Text> format_value(Runtime& runtime, const Value& value, std::string_view specification);

}  // namespace inferd::jinja
