// Test support: the recorded renders of chat templates (jinja2 set up as transformers does), and running ours
// over them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"

namespace inferd::testing {

// The folder of the recorded results: INFERD_GOLDEN, or beside the source tree.
std::string golden_folder();

// The lines of a gzip file.
std::vector<std::string> gzip_lines(const std::string& path);
std::string whole_file(const std::string& path);

struct GoldenRun {
  int equal = 0;
  int total = 0;
  int templates_equal = 0;
  int templates = 0;
  std::vector<double> microseconds;        // of each render that succeeded; the least of three
  std::vector<std::string> differences;    // "template, conversation: what"
  std::map<std::string, int> by_template;  // differences of each template that has some

  std::string summary() const;
};

// Renders every recorded case whose template `source` finds (by name, such as "gguf/smollm2"); others are
// left out.
GoldenRun run_golden(const std::function<const std::string*(const std::string& name)>& source);

}  // namespace inferd::testing
