// Bytes to valid UTF-8 in every split, against the whole text at once.
#include "text/stream_decoder.h"

#include <gtest/gtest.h>

#include <random>

#include "base/utf8.h"

namespace inferd {
namespace {

// All ways to cut `bytes` (up to 12 of them).
void check_all_splits(const std::string& bytes) {
  const std::string expected = replace_invalid_utf8(bytes);
  for (uint32_t cuts = 0; cuts < 1u << bytes.size(); ++cuts) {
    Utf8Stream stream;
    std::string out;
    size_t begin = 0;
    for (size_t i = 0; i < bytes.size(); ++i) {
      if ((cuts >> i & 1) == 0 && i + 1 < bytes.size()) continue;
      stream.push(bytes.substr(begin, i + 1 - begin), out);
      begin = i + 1;
      ASSERT_TRUE(is_valid_utf8(out)) << printable(bytes) << " cut by " << cuts;
    }
    stream.finish(out);
    ASSERT_EQ(out, expected) << printable(bytes) << " cut by " << cuts;
  }
}

TEST(Utf8Stream, joins_to_the_whole_text_in_every_split) {
  for (const std::string text :
       {"", "a", "\u00E9\u6F22\U0001F600", "a\xF0\x9F\x98", "\xF0\x9F\x98\x41", "\xE2\x82\xE2\x82\xAC",
        "\xED\xA0\x80", "\xFF\xC2", "\xF4\x90\x80\x80", "\xC0\xAF", "\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"}) {
    check_all_splits(text);
  }
  constexpr std::string_view kBytes = "a\x80\x9F\xA0\xBF\xC2\xE0\xE6\xED\xF0\xF4\xFF";
  std::mt19937 random(1);
  for (int i = 0; i < 400 && !testing::Test::HasFatalFailure(); ++i) {
    std::string bytes;
    for (size_t n = random() % 9; n > 0; --n) bytes += kBytes[random() % kBytes.size()];
    check_all_splits(bytes);
  }
}

TEST(Utf8Stream, gives_a_character_as_soon_as_it_is_whole_and_a_bad_byte_as_soon_as_it_is_known) {
  Utf8Stream stream;
  const auto push = [&](std::string_view bytes) {
    std::string out;
    stream.push(bytes, out);
    return out;
  };
  EXPECT_EQ(push("\xF0\x9F"), "");
  EXPECT_EQ(push("\x98"), "");
  EXPECT_EQ(push("\x80x\xE6"), "\U0001F600x");
  EXPECT_EQ(push("y"), "\uFFFDy");
  EXPECT_EQ(push("\xFF"), "\uFFFD");
  EXPECT_EQ(push("\xF0\x9F\x98"), "");
  std::string rest;
  stream.finish(rest);
  EXPECT_EQ(rest, "\uFFFD") << "three bytes of one character are one maximal subpart";
  rest.clear();
  stream.finish(rest);
  EXPECT_EQ(rest, "");
}

}  // namespace
}  // namespace inferd
