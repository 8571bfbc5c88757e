// How much the readers allocate: never by what a file claims, only by what it holds. Counts every operator
// new.

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdlib>
#include <new>
#include <string>

#include "base/strings.h"
#include "formats/gguf_samples.h"
#include "formats/safetensors.h"
#include "formats/safetensors_samples.h"

namespace {

struct Count {
  size_t now = 0;
  size_t peak = 0;
};
Count& count() {
  static Count the_count;
  return the_count;
}

void* counted(size_t bytes) {
  void* data = std::malloc(bytes == 0 ? 1 : bytes);
  if (data == nullptr) std::abort();
  count().now += malloc_usable_size(data);
  count().peak = std::max(count().peak, count().now);
  return data;
}

void uncounted(void* data) {
  if (data != nullptr) count().now -= malloc_usable_size(data);
  std::free(data);
}

}  // namespace

void* operator new(size_t bytes) {
  return counted(bytes);
}
void* operator new[](size_t bytes) {
  return counted(bytes);
}
void operator delete(void* data) noexcept {
  uncounted(data);
}
void operator delete[](void* data) noexcept {
  uncounted(data);
}
void operator delete(void* data, size_t) noexcept {
  uncounted(data);
}
void operator delete[](void* data, size_t) noexcept {
  uncounted(data);
}

namespace inferd {
namespace {

// Largest number of bytes held at once while parsing.
template <class File = GgufFile>
size_t peak_of(std::span<const std::byte> bytes) {
  const size_t before = count().now;
  count().peak = before;
  {
    const auto parsed = File::parse(bytes, "counted");
  }
  EXPECT_EQ(count().now, before) << "leaked";
  return count().peak - before;
}

// What gguf.h promises: 16 bytes for each of the file, and some for messages: under 6 KB for a file of 100
// bytes.
size_t allowed_for(size_t file_bytes) {
  return 16 * file_bytes + 4096;
}

TEST(GgufMemory, a_hostile_file_allocates_by_its_size_and_not_by_its_claims) {
  for (const HostileGguf& file : hostile_ggufs()) {
    const size_t peak = peak_of(file.bytes);
    EXPECT_LT(peak, allowed_for(file.bytes.size())) << file.name;
  }
}

TEST(GgufMemory, no_flipped_bit_makes_it_allocate_more) {
  auto bytes = ordinary_gguf();
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    ASSERT_LT(peak_of(bytes), allowed_for(bytes.size())) << "bit " << bit;
    bytes[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
  }
}

TEST(GgufMemory, as_many_keys_and_tensors_as_allowed_take_less_than_32_mib) {
  RawGguf file(kGgufMaxTensors, kGgufMaxKeys);
  for (uint64_t i = 0; i < kGgufMaxKeys; ++i) file.key(std::to_string(i), GgufValueType::uint8).u8(1);
  for (uint64_t i = 0; i < kGgufMaxTensors; ++i) file.tensor(std::to_string(i), {1}, 99, 0);
  const auto bytes = file.align(32).zeros(32).bytes();
  ASSERT_TRUE(GgufFile::parse(bytes, "many").ok());
  const size_t peak = peak_of(bytes);
  EXPECT_LT(peak, allowed_for(bytes.size()));
  EXPECT_LT(peak, size_t{32} << 20);
}

TEST(GgufMemory, a_vocabulary_takes_no_memory_of_its_own) {
  RawGguf file(0, 1);
  file.array("tokenizer.ggml.tokens", GgufValueType::string, 100000);
  for (int i = 0; i < 100000; ++i) file.string("token");
  const auto bytes = file.bytes();
  ASSERT_TRUE(GgufFile::parse(bytes, "vocabulary").ok());
  EXPECT_LT(peak_of(bytes), 4096U);
}

// What safetensors.h promises: 64 bytes for each of the file, and some for messages and the first of each
// container.
size_t allowed_for_safetensors(size_t file_bytes) {
  return 64 * file_bytes + 8192;
}

TEST(SafetensorsMemory, a_hostile_file_allocates_by_its_size_and_not_by_its_claims) {
  for (const HostileSafetensors& file : hostile_safetensors()) {
    EXPECT_LT(peak_of<SafetensorsFile>(file.bytes), allowed_for_safetensors(file.bytes.size())) << file.name;
  }
}

TEST(SafetensorsMemory, no_flipped_bit_makes_it_allocate_more) {
  auto bytes = ordinary_safetensors();
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    ASSERT_LT(peak_of<SafetensorsFile>(bytes), allowed_for_safetensors(bytes.size())) << "bit " << bit;
    bytes[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
  }
}

// The densest headers: what takes the fewest bytes for a value, a key or an entry.
TEST(SafetensorsMemory, dense_headers_stay_within_the_promise) {
  std::string numbers = R"({"a":[1)";
  std::string keys = R"({"__metadata__":{"":"")";
  std::string objects = R"({"":{})";
  std::string tensors = "{";
  for (int i = 0; i < 20000; ++i) {
    numbers += ",1";
    keys += cat(",\"", i, R"(":"")");
    objects += cat(",\"", i, R"(":{})");
    tensors += cat(i == 0 ? "\"" : ",\"", i, R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})");
  }
  EXPECT_TRUE(SafetensorsFile::parse(raw_safetensors(tensors + "}", 0), "tensors").ok());
  for (const std::string& header : {numbers + "]}", keys + "}}", objects + "}", tensors + "}"}) {
    const auto bytes = raw_safetensors(header, 0);
    EXPECT_LT(peak_of<SafetensorsFile>(bytes), allowed_for_safetensors(bytes.size())) << header.substr(0, 20);
  }
}

}  // namespace
}  // namespace inferd
