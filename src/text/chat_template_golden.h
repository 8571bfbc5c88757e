// Tests only: the recorded renders of chat templates (jinja2 set up as transformers does), and ours compared
// with them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace inferd::test {

// Finds the source of a template by its recorded name, such as "gguf/smollm2"; null when it is not at hand.
using TemplateSource = std::function<const std::string*(const std::string& name)>;

struct GoldenRun {
  int equal = 0;
  int total = 0;
  int templates_equal = 0;
  int templates = 0;
  std::vector<double> microseconds;        // of each render that succeeded; the least of three
  std::vector<std::string> differences;    // "template, conversation: what"
  std::map<std::string, int> by_template;  // how many differ, of each template that has some

  std::string summary() const;
};

// Renders every recorded case whose template is at hand; others are left out.
GoldenRun run_golden(const TemplateSource& source);

// Renders the recorded conversations with control text added to everything the caller wrote (but roles and
// types), and says where some of it came out as markup. `renders` counts those that succeeded.
std::vector<std::string> find_forged_markup(const TemplateSource& source, int& renders);

}  // namespace inferd::test
