// Recorded renders of other people's templates, which are not in this tree: the environment variable
// INFERD_TEMPLATES names a folder that tools/collect_chat_templates.py has filled.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "support/golden.h"
#include "text/chat_template_golden.h"

namespace inferd {
namespace {

std::map<std::string, std::string> collected_templates() {
  std::map<std::string, std::string> sources;
  if (const char* folder = std::getenv("INFERD_TEMPLATES")) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      std::string name = entry.path().filename().string();
      if (const size_t at = name.find("__"); at != std::string::npos) name.replace(at, 2, "/");
      sources[name] = test::read_file(entry.path().string());
    }
  }
  return sources;
}

test::TemplateSource source_in(const std::map<std::string, std::string>& sources) {
  return [&sources](const std::string& name) -> const std::string* {
    const auto found = sources.find(name);
    return found == sources.end() ? nullptr : &found->second;
  };
}

TEST(ChatTemplateGolden, every_recorded_render_of_the_collected_templates_is_equal) {
  const auto sources = collected_templates();
  if (sources.empty()) GTEST_SKIP() << "INFERD_TEMPLATES names no folder: no recorded render was compared";
  const test::GoldenRun run = test::run_golden(source_in(sources));
  std::cout << run.summary();
  EXPECT_GT(run.total, 0);
  EXPECT_EQ(run.equal, run.total);
}

TEST(ChatTemplateGolden, no_collected_template_makes_markup_of_what_a_caller_wrote) {
  const auto sources = collected_templates();
  if (sources.empty()) GTEST_SKIP() << "INFERD_TEMPLATES names no folder: no template was attacked";
  int renders = 0;
  EXPECT_EQ(test::find_forged_markup(source_in(sources), renders), std::vector<std::string>());
  std::cout << renders << " attacked renders\n";
  EXPECT_GT(renders, 0);
}

}  // namespace
}  // namespace inferd
