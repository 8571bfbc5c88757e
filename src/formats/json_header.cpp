#include "formats/json_header.h"

#include <algorithm>

#include "base/strings.h"
#include "base/utf8.h"

namespace inferd {

Result<Json> parse_json_header(std::string_view text, int depth, Code code, const std::string& where) {
  // A value takes 40 bytes, or 120 while the vector around it grows; in a text that says something there are
  // four bytes a value or more.
  const int64_t values = std::min(JsonLimits{}.values, std::ssize(text) / 4 + 16);
  Result<Json> parsed = parse_json(text, {.depth = depth, .values = values});
  if (!parsed.ok()) {
    Error error = std::move(parsed).error();
    return Error{.code = code,
                 .detail = std::move(error.detail),
                 .where = error.where.empty() ? where : cat(where, ", ", error.where)};
  }
  if (!parsed->is_object()) {
    return Error{.code = code,
                 .detail = cat("it is of type ", parsed->kind_name(), ", object expected"),
                 .where = where};
  }
  return parsed;
}

bool is_printable_utf8(std::string_view text) {
  while (!text.empty()) {
    const Utf8Step step = decode_utf8(text);
    if (!step.valid || step.code_point < 0x20 || (step.code_point >= 0x7f && step.code_point < 0xa0))
      return false;
    text.remove_prefix(step.length);
  }
  return true;
}

}  // namespace inferd
