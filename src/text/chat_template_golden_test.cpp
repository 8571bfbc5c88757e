// Recorded renders of other people's templates, which are not in this tree: the environment variable
// INFERD_TEMPLATES names a folder that tools/collect_chat_templates.py has filled.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "text/chat_template_golden.h"

namespace inferd {
namespace {

TEST(ChatTemplateGolden, every_recorded_render_of_the_collected_templates_is_equal) {
  const char* folder = std::getenv("INFERD_TEMPLATES");
  if (folder == nullptr) GTEST_SKIP() << "INFERD_TEMPLATES is not set: no recorded render was compared";
  std::map<std::string, std::string> sources;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::string name = entry.path().filename().string();
    if (const size_t at = name.find("__"); at != std::string::npos) name.replace(at, 2, "/");
    sources[name] = testing::whole_file(entry.path().string());
  }
  const testing::GoldenRun run = testing::run_golden([&](const std::string& name) -> const std::string* {
    const auto found = sources.find(name);
    return found == sources.end() ? nullptr : &found->second;
  });
  std::cout << run.summary();
  EXPECT_GT(run.total, 0);
  EXPECT_EQ(run.equal, run.total);
}

}  // namespace
}  // namespace inferd
