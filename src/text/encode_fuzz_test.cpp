// The fuzzer's own entry (fuzz/encode_fuzz.cpp) over the corpus that fuzzing found: every text under every
// recorded tokenizer.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace inferd {
namespace {

TEST(EncodeFuzz, the_corpus_keeps_the_promises) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(INFERD_SOURCE_DIR "/tests/corpus/encode")) {
    std::ifstream stream(entry.path(), std::ios::binary);
    std::string input{std::istreambuf_iterator<char>(stream), {}};
    if (input.empty()) continue;
    for (int tokenizer = 0; tokenizer < 106; ++tokenizer) {
      input[0] = static_cast<char>(tokenizer);
      EXPECT_EQ(LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size()), 0);
    }
    ++files;
  }
  EXPECT_GT(files, 50);
}

}  // namespace
}  // namespace inferd
