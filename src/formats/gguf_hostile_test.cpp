// Files that strangers send: named hostile ones, every truncation and every flipped bit of an ordinary one,
// and the corpus that fuzzing found. All run through the fuzzer's own entry, so a reading past the end shows
// under sanitizers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>

#include "base/strings.h"
#include "formats/gguf_samples.h"

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

TEST(HostileGguf, each_named_file_is_refused_with_its_code_reason_and_place) {
  const auto files = hostile_ggufs();
  EXPECT_GE(files.size(), 60U);
  std::set<std::string> names;
  for (const HostileGguf& file : files) {
    SCOPED_TRACE(file.name);
    EXPECT_TRUE(names.insert(file.name).second);
    run_fuzz_entry(file.bytes);
    const auto parsed = GgufFile::parse(file.bytes, "bad.gguf");
    ASSERT_FALSE(parsed.ok());
    EXPECT_EQ(error_row(parsed.error().code).id, error_row(file.code).id) << parsed.error().terminal_text();
    EXPECT_THAT(parsed.error().detail, HasSubstr(file.detail));
    EXPECT_THAT(parsed.error().where, StartsWith("bad.gguf, byte "));
    EXPECT_THAT(parsed.error().where, HasSubstr(file.where));
  }
}

TEST(HostileGguf, an_error_reads_as_a_sentence_with_a_place_and_a_fix) {
  const auto bytes =
      RawGguf(0, 1).key("tokenizer.ggml.tokens", GgufValueType::string).u64(100).raw("abc").bytes();
  EXPECT_EQ(GgufFile::parse(bytes, "models/bad.gguf").error().terminal_text(),
            "error[E-GGUF-003]: truncated GGUF file: needs 165 bytes, the file has 68\n"
            "  at models/bad.gguf, byte 65, string of key 0 \"tokenizer.ggml.tokens\"\n"
            "  fix: fetch the file again and compare its SHA-256\n");
}

TEST(HostileGguf, an_ordinary_file_cut_anywhere_is_refused_by_its_length) {
  const auto whole = ordinary_gguf();
  const GgufFile file = GgufFile::parse(whole, "whole").value();
  int64_t data_end = 0;
  std::set<size_t> lengths;
  for (int64_t i = 0; i < file.data_offset(); ++i) lengths.insert(static_cast<size_t>(i));
  for (const GgufTensor& tensor : file.tensors()) {
    const int64_t end = tensor.offset + static_cast<int64_t>(tensor.data.size());
    for (const int64_t edge : {tensor.offset, end}) {
      for (int64_t i = edge - 1; i <= edge + 1; ++i) lengths.insert(static_cast<size_t>(i));
    }
    data_end = std::max(data_end, end);
  }
  EXPECT_GT(lengths.size(), 1000U);
  for (const size_t length : lengths) {
    SCOPED_TRACE(length);
    const auto cut = std::span(whole).first(length);
    run_fuzz_entry(cut);
    const auto parsed = GgufFile::parse(cut, "cut");
    // Only the padding after the last tensor may be missing.
    ASSERT_EQ(parsed.ok(), static_cast<int64_t>(length) >= data_end);
    if (parsed.ok()) continue;
    ASSERT_EQ(parsed.error().code, length < 4 ? Code::gguf_magic : Code::gguf_truncated);
    const std::string reason =
        length >= 4 ? cat(", the file has ", with_commas(static_cast<int64_t>(length))) : "it ";
    ASSERT_THAT(parsed.error().detail, HasSubstr(reason));
  }
}

TEST(HostileGguf, no_flipped_bit_of_the_head_breaks_a_promise) {
  const auto whole = ordinary_gguf();
  const auto head = static_cast<size_t>(GgufFile::parse(whole, "whole").value().data_offset());
  auto flipped = whole;
  int refused = 0;
  for (size_t bit = 0; bit < head * 8; ++bit) {
    const auto mask = static_cast<std::byte>(1U << bit % 8);
    flipped[bit / 8] ^= mask;
    run_fuzz_entry(flipped);
    const bool ok = GgufFile::parse(flipped, "flipped").ok();
    // Of the magic and the version no other value is right, but for 2 in place of 3.
    EXPECT_TRUE(bit >= 8 * 8 || ok == (bit == 4 * 8)) << "bit " << bit;
    refused += ok ? 0 : 1;
    flipped[bit / 8] ^= mask;
  }
  EXPECT_GT(refused, static_cast<int>(head));
  EXPECT_EQ(flipped, whole);
}

TEST(HostileGguf, odd_files_and_the_ordinary_one_keep_the_promises) {
  run_fuzz_entry(ordinary_gguf());
  for (const OddGguf& odd : odd_ggufs()) run_fuzz_entry(odd.bytes);
}

TEST(HostileGguf, the_corpus_keeps_the_promises) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(INFERD_SOURCE_DIR "/tests/corpus/gguf")) {
    std::ifstream stream(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    run_fuzz_entry(std::as_bytes(std::span(text)));
    ++files;
  }
  EXPECT_GT(files, 50);
}

}  // namespace
}  // namespace inferd
