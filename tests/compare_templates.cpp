// compare_templates FOLDER: recorded renders of other people's templates, which are not in this tree;
// tools/collect_chat_templates.py fills the folder. Exits with 1 when a render differs, or when a template
// made markup of what a caller wrote.
#include <cstdio>
#include <filesystem>
#include <iostream>

#include "support/golden.h"
#include "text/chat_template_golden.h"

int main(int argc, char** argv) {
  using namespace inferd;
  if (argc != 2) {
    std::fputs("usage: compare_templates FOLDER\n", stderr);
    return 2;
  }
  std::map<std::string, std::string> sources;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    std::string name = entry.path().filename().string();
    if (const size_t at = name.find("__"); at != std::string::npos)
      name = name.substr(0, at) + '/' + name.substr(at + 2);
    sources[name] = test::read_file(entry.path().string());
  }
  const auto source_of = [&sources](const std::string& name) -> const std::string* {
    const auto found = sources.find(name);
    return found == sources.end() ? nullptr : &found->second;
  };
  const test::GoldenRun run = test::run_golden(source_of);
  int attacked = 0;
  const std::vector<std::string> forged = test::find_forged_markup(source_of, attacked);
  std::cout << run.summary() << attacked << " attacked renders, " << forged.size() << " with forged markup\n";
  for (const std::string& name : forged) std::cout << "forged: " << name << "\n";
  return run.total > 0 && run.equal == run.total && attacked > 0 && forged.empty() ? 0 : 1;
}
