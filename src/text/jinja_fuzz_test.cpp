// The fuzzer's own entry (fuzz/jinja_fuzz.cpp) over the templates of the vectors, each also cut short and
// with a byte changed, and over the corpus that fuzzing found.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "base/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace inferd {
namespace {

void run_fuzz_entry(std::string_view text) {
  EXPECT_EQ(LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(text.data()), text.size()), 0);
}

TEST(JinjaFuzz, damaged_vectors_keep_the_promises) {
  std::ifstream file(INFERD_SOURCE_DIR "/src/text/testdata/jinja_vectors.jsonl");
  std::mt19937 random(5);
  int templates = 0;
  for (std::string line; std::getline(file, line); ++templates) {
    const std::string source = parse_json(line).value().find("template")->as_string();
    run_fuzz_entry(source);
    run_fuzz_entry(std::string_view(source).substr(0, random() % (source.size() + 1)));
    std::string changed = source;
    if (!changed.empty()) changed[random() % changed.size()] = static_cast<char>(random() % 128);
    run_fuzz_entry(changed);
  }
  EXPECT_GT(templates, 500);
}

TEST(JinjaFuzz, the_corpus_keeps_the_promises) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(INFERD_SOURCE_DIR "/tests/corpus/jinja")) {
    std::ifstream stream(entry.path(), std::ios::binary);
    run_fuzz_entry(std::string{std::istreambuf_iterator<char>(stream), {}});
    ++files;
  }
  EXPECT_GT(files, 50);
}

}  // namespace
}  // namespace inferd
