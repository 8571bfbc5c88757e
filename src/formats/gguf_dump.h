// What a GGUF file holds, for people and for scripts: `inferd show MODEL` and `inferd show MODEL --json`.
#pragma once

#include <string>

#include "base/json.h"
#include "formats/gguf.h"

namespace inferd {

// One line per key and tensor and a table of totals by type; ends in a line feed. Nothing of the file reaches
// the terminal unescaped. Long strings are cut; arrays show their first four and last two elements.
std::string gguf_dump_text(const GgufFile& file);

// {"file", "version", "bytes", "alignment", "data_offset",
//  "keys": [{"key", "type", "value"}, {"key", "type": "array", "element_type", "length", "value"}],
//  "tensors": [{"name", "type", "supported", "shape", "offset", "bytes"}],
//  "elements", "totals": [{"type", "tensors", "bytes"}]}
// Strings are whole. An array of more than 64 elements has "first" (four) and "last" (two) in place of
// "value". "shape" has the fastest dimension first, "offset" counts from the start of the file, "bytes" is
// null where the size of the type is not known. Totals are sorted by bytes, largest first. A uint64 past 2^63
// - 1 becomes a real number. Of a split model also "parts", their number, and "part" of a tensor, from 1;
// "bytes" is that of all parts, "offset" counts in the tensor's part.
Json gguf_dump_json(const GgufFile& file);

}  // namespace inferd
