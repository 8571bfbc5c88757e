#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>

#include "base/arithmetic.h"
#include "base/errors.h"
#include "base/mmap.h"
#include "base/rng.h"
#include "base/strings.h"
#include "base/utf8.h"

namespace inferd {
namespace {

TEST(Strings, numbers_for_people) {
  EXPECT_EQ(cat("a", 1, 'b', 2.5, true, -3L, size_t{4}), "a1b2.5true-34");
  EXPECT_EQ(with_commas(-1234567), "-1,234,567");
  EXPECT_EQ(with_commas(123), "123");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(98362432), "93.8 MiB");
  EXPECT_EQ(human_bytes(int64_t{5} << 30), "5.00 GiB");
  EXPECT_EQ(human_seconds(0.0021), "2.1 ms");
  EXPECT_EQ(human_seconds(75), "1 min 15 s");
  EXPECT_EQ(fixed(1.25, 1), "1.2");
}

TEST(Strings, integers_are_read_whole_or_not_at_all) {
  EXPECT_EQ(parse_int("-12"), -12);
  for (const char* text : {"", "-", "1 ", " 1", "+1", "0x1", "1.0", "9223372036854775808"})
    EXPECT_FALSE(parse_int(text)) << text;
  EXPECT_EQ(parse_double("1e-3"), 1e-3);
  for (const char* text : {"", "nan", "inf", "-inf", "1e999", "1,0"})
    EXPECT_FALSE(parse_double(text)) << text;
}

TEST(Strings, the_nearest_name_is_a_likely_typing_error_or_nothing) {
  const std::vector<std::string> names = {"temperature", "top_p", "top_k", "max_tokens"};
  EXPECT_EQ(nearest_name("temprature", names), "temperature");
  EXPECT_EQ(nearest_name("tpo_p", names), "top_p");
  EXPECT_EQ(nearest_name("MAX_TOKEN", names), "max_tokens");
  EXPECT_EQ(nearest_name("frobnicate", names), std::nullopt);
  EXPECT_EQ(nearest_name(std::string(100000, 'a'), names), std::nullopt);
}

TEST(Strings, untrusted_bytes_are_printable_and_bounded) {
  EXPECT_EQ(printable("a\"\n\x1b\xff"), "\"a\\\"\\n\\x1b\\xff\"");
  EXPECT_EQ(printable(std::string(100, 'a'), 3), "\"aaa\"… (100 bytes)");
}

// Known answers of the reference implementation (Random123, kat_vectors: philox4x32 10).
TEST(Philox, gives_the_published_vectors) {
  using Counter = Philox::Counter;
  EXPECT_EQ(Philox::draw({0, 0, 0, 0}, {0, 0}), (Counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox::draw({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox::draw({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Arithmetic, sizes_past_64_bits_are_refused) {
  EXPECT_EQ(checked_mul(uint64_t{1} << 32, uint64_t{1} << 31), uint64_t{1} << 63);
  EXPECT_EQ(checked_mul(uint64_t{1} << 32, uint64_t{1} << 32), std::nullopt);
  EXPECT_EQ(checked_add(UINT64_MAX, 1), std::nullopt);
  EXPECT_EQ(checked_align(33, 32), 64);
  EXPECT_EQ(checked_align(UINT64_MAX - 3, 32), std::nullopt);
}

TEST(Utf8, ill_formed_sequences_follow_the_maximal_subpart_rule) {
  // The example of the Unicode standard, section 3.9, table 3-8 to 3-11.
  EXPECT_EQ(replace_invalid_utf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), "��������A");
  EXPECT_EQ(replace_invalid_utf8("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"), "��������A");
  EXPECT_EQ(replace_invalid_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), "����A");
  EXPECT_TRUE(decode_utf8("\xF0\x9F\x98").truncated);
  EXPECT_FALSE(decode_utf8("\xF0\x9F\x41").truncated);
  for (char32_t c : {U'\0', U'\x7f', U'\x80', U'\x7ff', U'\x800', U'\ud7ff', U'\ue000', U'\uffff',
                     U'\U00010000', U'\U0010ffff'}) {
    std::string text;
    append_utf8(text, c);
    EXPECT_EQ(decode_utf8(text).code_point, c);
    EXPECT_EQ(decode_utf8(text).length, text.size());
    EXPECT_TRUE(is_valid_utf8(text));
  }
}

TEST(Errors, ids_are_unique_and_every_row_has_text_and_fix) {
  std::set<std::string_view> ids;
  for (const ErrorRow& row : error_table()) {
    EXPECT_TRUE(ids.insert(row.id).second) << row.id;
    EXPECT_FALSE(row.text.empty()) << row.id;
    EXPECT_FALSE(row.fix.empty()) << row.id;
    EXPECT_GE(row.http_status, 400) << row.id;
    EXPECT_NE(row.exit_code, 0) << row.id;
  }
}

TEST(Errors, the_terminal_form_has_code_place_and_fix) {
  const Error error{
      .code = Code::kv_never_fits, .detail = "needs 9 pages, the pool has 8", .where = "prompt"};
  EXPECT_EQ(error.terminal_text(),
            "error[E-KV-001]: the request can never fit the KV pool: needs 9 pages, the pool has 8\n"
            "  at prompt\n"
            "  fix: shorten the prompt or max_tokens, or start with more --kv-memory\n");
}

TEST(MappedFile, gives_the_bytes_or_says_why_not) {
  const std::string path = cat(testing::TempDir(), ::getpid(), "-mapped_file");
  std::ofstream(path) << "hello";
  const MappedFile file = MappedFile::open(path).value();
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()),
            "hello");
  EXPECT_EQ(MappedFile::open(path + "-absent").error().code, Code::io_not_found);
  EXPECT_EQ(MappedFile::open(testing::TempDir()).error().code, Code::io_read);
  EXPECT_EQ(MappedFile::open("/dev/null").error().code, Code::io_read);
  std::ofstream(path + "-empty").flush();
  EXPECT_EQ(MappedFile::open(path + "-empty").value().size(), 0);
  ::unlink(path.c_str());
  ::unlink((path + "-empty").c_str());
}

}  // namespace
}  // namespace inferd
