// The templates that the two test models carry, against their recorded renders.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <iostream>

#include "base/mmap.h"
#include "text/chat_template_golden.h"

namespace inferd {
namespace {

// The value of the key tokenizer.chat_template: found by its bytes, since this folder does not read GGUF.
std::string carried_template(const std::string& file) {
  const char* folder = std::getenv("INFERD_TEST_MODELS");
  const auto mapped = MappedFile::open(cat(folder != nullptr ? folder : "/tmp/models", "/", file)).value();
  const std::string_view bytes(reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size());
  static constexpr std::string_view kKey("tokenizer.chat_template\x08\0\0\0", 27);  // then the type: string
  const size_t at = bytes.find(kKey);
  INFERD_CHECK(at != std::string_view::npos, file, " has no chat template");
  uint64_t length = 0;
  std::memcpy(&length, bytes.data() + at + kKey.size(), sizeof length);
  return std::string(bytes.substr(at + kKey.size() + sizeof length, length));
}

TEST(ChatTemplateOfModels, every_recorded_render_of_both_models_is_equal) {
  const std::map<std::string, std::string> sources = {
      {"gguf/smollm2", carried_template("smollm2.gguf")},
      {"gguf/qwen2.5-coder", carried_template("qwen2.5-coder-0.5b.gguf")}};
  const testing::GoldenRun run = testing::run_golden([&](const std::string& name) -> const std::string* {
    const auto found = sources.find(name);
    return found == sources.end() ? nullptr : &found->second;
  });
  std::cout << run.summary();
  EXPECT_EQ(run.total, 96);
  EXPECT_EQ(run.equal, run.total);
}

}  // namespace
}  // namespace inferd
