// Replays the corpus of the request fuzzer.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace inferd {
namespace {

TEST(RequestCorpus, every_body_keeps_the_promises_on_every_route) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(INFERD_SOURCE_DIR "/tests/corpus/request")) {
    std::ifstream stream(entry.path(), std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    for (char route = 0; route < 5 && !bytes.empty(); ++route) {
      bytes[0] = route;
      LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    }
    ++files;
  }
  EXPECT_GE(files, 20);
}

}  // namespace
}  // namespace inferd
