// Reads an inferd.toml. What is read is the part of TOML 1.0 (toml.io) that options need: bare keys,
// [tables], comments, one-line strings, decimal integers and numbers, true, false, and arrays of these. The
// rest of TOML is refused by name and place, so a file that is read means here what it means everywhere.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace inferd {

struct ConfigEntry {
  std::string section;              // empty: before the first table
  std::string key;                  // empty: the table itself, which then has no values
  std::vector<std::string> values;  // the texts that the command line would have; several of an array
  bool is_array = false;
  bool is_boolean = false;
  int line = 0;    // of the key, or of the table's name; from 1
  int column = 0;  // in characters, from 1
};

// In the order of the text; a table comes before its keys. E-CFG-001 with line and column.
Result<std::vector<ConfigEntry>> parse_config(std::string_view text, const std::string& path);

}  // namespace inferd
