// The filters (x|name) and tests (x is name) of jinja2, with `tojson` as transformers has it.
// Known to jinja2 but not here: filesizeformat, pprint, random, striptags, urlencode, urlize, wordwrap,
// xmlattr.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "text/jinja_arguments.h"
#include "text/jinja_runtime.h"

namespace inferd::jinja {

struct Filter {
  std::string_view name;
  Result<Value> (*apply)(Runtime& runtime, const Value& input, const Arguments& arguments);
};

struct Test {
  std::string_view name;
  Result<bool> (*holds)(Runtime& runtime, const Value& input, const Arguments& arguments);
};

const Filter* find_filter(std::string_view name);  // null when unknown
const Test* find_test(std::string_view name);

std::span<const Filter> value_filters();
std::span<const Filter> text_filters();
std::span<const Filter> sequence_filters();

// The value at the end of a path such as "address.city.0"; None stands for the value itself. Where a step is
// undefined, the fallback takes its place if there is one.
Result<Value> follow_path(Runtime& runtime, const Value& value, const Value& path, const Value* fallback);

}  // namespace inferd::jinja
