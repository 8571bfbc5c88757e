// Files that strangers send: named hostile ones, every truncation and every flipped bit of an ordinary one,
// and the corpus that fuzzing found. All run through the fuzzer's own entry, so a reading past the end shows
// under sanitizers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>

#include "formats/safetensors.h"
#include "formats/safetensors_samples.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace inferd {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// In an allocation of exactly that size, so that AddressSanitizer sees the first byte past the end.
void run_fuzz_entry(std::span<const std::byte> bytes) {
  const std::unique_ptr<uint8_t[]> exact(new uint8_t[bytes.size()]);
  if (!bytes.empty()) std::memcpy(exact.get(), bytes.data(), bytes.size());
  LLVMFuzzerTestOneInput(exact.get(), bytes.size());
}

TEST(HostileSafetensors, each_named_file_is_refused_with_its_code_reason_and_place) {
  const auto files = hostile_safetensors();
  EXPECT_GE(files.size(), 80U);
  std::set<std::string> names;
  for (const HostileSafetensors& file : files) {
    SCOPED_TRACE(file.name);
    EXPECT_TRUE(names.insert(file.name).second);
    run_fuzz_entry(file.bytes);
    const auto begin = std::chrono::steady_clock::now();
    const auto parsed = SafetensorsFile::parse(file.bytes, "bad.safetensors");
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(50));
    ASSERT_FALSE(parsed.ok());
    EXPECT_EQ(error_row(parsed.error().code).id, error_row(file.code).id) << parsed.error().terminal_text();
    EXPECT_THAT(parsed.error().detail, HasSubstr(file.detail));
    EXPECT_THAT(parsed.error().where, StartsWith("bad.safetensors, "));
    EXPECT_THAT(parsed.error().where, HasSubstr(file.where));
  }
}

TEST(HostileSafetensors, an_error_reads_as_a_sentence_with_a_place_and_a_fix) {
  const auto bytes =
      raw_safetensors(R"({"lm_head.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[0,12]}})", 12);
  EXPECT_EQ(SafetensorsFile::parse(bytes, "models/bad.safetensors").error().terminal_text(),
            "error[E-ST-004]: bad safetensors tensor: \"lm_head.weight\", data_offsets: they span 12 bytes, "
            "4 elements of F32 are 16\n"
            "  at models/bad.safetensors, data_offsets of tensor \"lm_head.weight\"\n"
            "  fix: the file is damaged or hostile; fetch it again\n");
}

TEST(HostileSafetensors, an_ordinary_file_cut_anywhere_or_longer_is_refused) {
  auto whole = ordinary_safetensors();
  ASSERT_TRUE(SafetensorsFile::parse(whole, "whole").ok());
  for (size_t length = 0; length < whole.size(); ++length) {
    const auto cut = std::span(whole).first(length);
    run_fuzz_entry(cut);
    const auto parsed = SafetensorsFile::parse(cut, "cut");
    ASSERT_FALSE(parsed.ok()) << length;
    ASSERT_EQ(parsed.error().code, Code::safetensors_truncated) << length;
  }
  whole.push_back(std::byte{0});
  EXPECT_EQ(SafetensorsFile::parse(whole, "longer").error().code, Code::safetensors_tensor);
}

TEST(HostileSafetensors, no_flipped_bit_of_the_head_breaks_a_promise) {
  const auto whole = ordinary_safetensors();
  const auto head = static_cast<size_t>(SafetensorsFile::parse(whole, "whole").value().data_offset());
  auto flipped = whole;
  int refused = 0;
  for (size_t bit = 0; bit < head * 8; ++bit) {
    const auto mask = static_cast<std::byte>(1U << bit % 8);
    flipped[bit / 8] ^= mask;
    run_fuzz_entry(flipped);
    const bool ok = SafetensorsFile::parse(flipped, "flipped").ok();
    EXPECT_TRUE(bit >= 8 * 8 || !ok) << "bit " << bit;  // only one length is right
    refused += ok ? 0 : 1;
    flipped[bit / 8] ^= mask;
  }
  // What may change are the letters of names and metadata.
  EXPECT_GT(refused, static_cast<int>(head) * 6);
  EXPECT_EQ(flipped, whole);
}

TEST(HostileSafetensors, odd_files_and_the_ordinary_one_keep_the_promises) {
  run_fuzz_entry(ordinary_safetensors());
  for (const OddSafetensors& odd : odd_safetensors()) run_fuzz_entry(odd.bytes);
}

TEST(HostileSafetensors, the_corpus_keeps_the_promises) {
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(INFERD_SOURCE_DIR "/tests/corpus/safetensors")) {
    std::ifstream stream(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    run_fuzz_entry(std::as_bytes(std::span(text)));
    ++files;
  }
  EXPECT_GT(files, 50);
}

}  // namespace
}  // namespace inferd
