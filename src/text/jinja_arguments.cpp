#include "text/jinja_arguments.h"

#include <algorithm>

namespace inferd::jinja {

Error wrong_kind(std::string_view callee, std::string_view wanted, const Value& got) {
  if (got.is(Kind::undefined)) return undefined_error(got);
  return run_error(cat(callee, " needs ", wanted, ", got ", kind_name(got.kind())));
}

Status expect_no_arguments(std::string_view callee, const Arguments& arguments) {
  if (arguments.positional.empty() && arguments.named.empty()) return {};
  return run_error(cat(callee, " takes no arguments"));
}

Result<Bound> Bound::bind(const Arguments& arguments, const Parameters& parameters) {
  const std::vector<std::string_view>& names = parameters.names;
  INFERD_CHECK(names.size() <= kMaxParameters, parameters.callee);
  if (arguments.positional.size() > names.size()) {
    return run_error(cat(parameters.callee, " takes at most ", names.size(), " arguments, got ",
                         arguments.positional.size()));
  }
  Bound bound;
  bound.callee_ = parameters.callee;
  for (size_t i = 0; i < arguments.positional.size(); ++i) {
    bound.values_[i] = arguments.positional[i];
    bound.given_[i] = true;
  }
  for (const auto& [name, value] : arguments.named) {
    const auto found = name.empty() ? names.end() : std::find(names.begin(), names.end(), name);
    if (found == names.end())
      return run_error(cat(parameters.callee, " has no argument named ", printable(name)));
    const auto index = static_cast<size_t>(found - names.begin());
    if (bound.given_[index])
      return run_error(cat(parameters.callee, " got the argument ", printable(name), " twice"));
    bound.values_[index] = value;
    bound.given_[index] = true;
  }
  for (size_t i = 0; i < parameters.required; ++i) {
    if (!bound.given_[i]) {
      return run_error(cat(parameters.callee, " needs ", parameters.required,
                           parameters.required == 1 ? " argument" : " arguments"));
    }
  }
  return bound;
}

Result<int64_t> Bound::whole(size_t index, int64_t fallback) const {
  if (!given_[index]) return fallback;
  if (!values_[index].is_whole()) return wrong_kind(callee_, "an integer", values_[index]);
  return values_[index].whole();
}

Result<Text> Bound::text(size_t index, std::string_view fallback) const {
  if (!given_[index]) return Text::borrowed(fallback, Origin::markup);
  if (!values_[index].is(Kind::text)) return wrong_kind(callee_, "a string", values_[index]);
  return values_[index].text();
}

}  // namespace inferd::jinja
