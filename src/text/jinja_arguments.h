// The arguments of one call, and their binding to parameter names by Python's rules.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/jinja_runtime.h"

namespace inferd::jinja {

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string_view, Value>> named;
};

// Parameters of a function: `name` empty means it cannot be given by name.
struct Parameters {
  std::string_view callee;
  size_t required = 0;
  std::vector<std::string_view> names;
};

class Bound {
 public:
  // E-TMPL-003 for too many, unknown, doubled or missing arguments.
  static Result<Bound> bind(const Arguments& arguments, const Parameters& parameters);

  bool has(size_t index) const { return given_[index]; }
  const Value& operator[](size_t index) const { return values_[index]; }
  // False also for an argument that is None.
  bool has_value(size_t index) const { return given_[index] && !values_[index].is(Kind::none); }

  bool flag(size_t index, bool fallback) const { return given_[index] ? is_true(values_[index]) : fallback; }
  // E-TMPL-003 when the argument has another kind.
  Result<int64_t> whole(size_t index, int64_t fallback) const;
  Result<Text> text(size_t index, std::string_view fallback) const;

 private:
  static constexpr size_t kMaxParameters = 4;
  std::string_view callee_;
  std::array<Value, kMaxParameters> values_;
  std::array<bool, kMaxParameters> given_{};
};

Status expect_no_arguments(std::string_view callee, const Arguments& arguments);

// "NAME needs a string, got a list"
Error wrong_kind(std::string_view callee, std::string_view wanted, const Value& got);

}  // namespace inferd::jinja
