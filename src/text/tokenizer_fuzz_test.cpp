// The fuzzer's own entry (fuzz/tokenizer_json_fuzz.cpp) over the recorded tokenizers, each also cut short and
// with bytes changed, and over the corpus that fuzzing found.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "base/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace inferd {
namespace {

void run_fuzz_entry(std::string_view text) {
  EXPECT_EQ(LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(text.data()), text.size()), 0);
}

TEST(TokenizerFuzz, damaged_tokenizers_keep_the_promises) {
  std::ifstream file(INFERD_SOURCE_DIR "/src/text/testdata/tokenizer_vectors.jsonl");
  std::map<std::string, Json> models;
  std::mt19937 random(5);
  int tokenizers = 0;
  for (std::string line; std::getline(file, line);) {
    const Json vector = parse_json(line).value();
    const std::string& model = vector.find("model")->as_string();
    if (const Json* json = vector.find("json"); json != nullptr) {
      models[model] = *json;
      continue;
    }
    Json::Object whole = vector.find("parts")->as_object();
    whole.emplace_back("model", models.at(model));
    const std::string text = to_json(whole);
    run_fuzz_entry(text);
    run_fuzz_entry(std::string_view(text).substr(0, random() % (text.size() + 1)));
    const size_t parts = to_json(*vector.find("parts")).size();
    for (int round = 0; round < 10; ++round) {
      std::string changed = text;
      // Half of the changes go to the parts, which are much smaller than the model.
      const size_t at = random() % (round % 2 == 0 ? parts : text.size());
      changed[at] = static_cast<char>(random() % 128);
      run_fuzz_entry(changed);
    }
    ++tokenizers;
  }
  EXPECT_EQ(tokenizers, 106);
}

TEST(TokenizerFuzz, the_corpus_keeps_the_promises) {
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(INFERD_SOURCE_DIR "/tests/corpus/tokenizer_json")) {
    std::ifstream stream(entry.path(), std::ios::binary);
    run_fuzz_entry(std::string{std::istreambuf_iterator<char>(stream), {}});
    ++files;
  }
  EXPECT_GT(files, 50);
}

}  // namespace
}  // namespace inferd
