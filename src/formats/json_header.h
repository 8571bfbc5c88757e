// JSON that describes a model: read from a file that a stranger made, so under limits that its size sets, and
// with errors that name the file.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace inferd {

// One JSON object. `code` and `where` are those of the error, which adds the byte. Memory: at most 64 bytes
// for each byte of the text.
Result<Json> parse_json_header(std::string_view text, int depth, Code code, const std::string& where);

// Well-formed UTF-8 without control characters (C0, C1, DEL).
bool is_printable_utf8(std::string_view text);

}  // namespace inferd
