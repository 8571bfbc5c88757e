// Normalisation form C against Python's unicodedata and against what Hugging Face's tokenizers made of the
// corpus.
#include <gtest/gtest.h>

#include <fstream>

#include "base/utf8.h"
#include "text/tokenizer_test_data.h"
#include "text/unicode.h"

namespace inferd {
namespace {

std::string text_of(std::string_view code_points) {
  std::string text;
  for (const std::string_view word : split(code_points, ' ')) {
    append_utf8(text, static_cast<char32_t>(std::stoul(std::string(word), nullptr, 16)));
  }
  return text;
}

TEST(Nfc, equals_python_on_random_strings) {
  std::ifstream file(INFERD_SOURCE_DIR "/src/text/nfc_vectors.txt");
  int count = 0;
  int changed = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    const auto sides = split(line, ';');
    const std::string text = text_of(sides[0]);
    const std::string expected = text_of(sides[1]);
    ASSERT_EQ(to_nfc(text), expected) << line;
    ASSERT_EQ(to_nfc(expected), expected) << line << ": form C of form C";
    if (text != expected) {
      ASSERT_TRUE(may_change_in_nfc(text)) << line;
      ++changed;
    }
    // ASCII around it is a boundary, and runs of it are skipped eight bytes at a time.
    ASSERT_EQ(to_nfc("12345678" + text + "1234567890"), to_nfc("12345678" + text) + "1234567890") << line;
    ++count;
  }
  EXPECT_EQ(count, 1500);
  EXPECT_EQ(changed, 846);
}

TEST(Nfc, is_what_the_qwen_tokenizer_gives_back_for_the_corpus) {
  int changed = 0;
  for (const GoldenText& golden : read_golden_texts("qwen2.5-coder")) {
    ASSERT_EQ(to_nfc(golden.text), golden.decoded) << golden.id;
    if (golden.text != golden.decoded) ++changed;
    ASSERT_TRUE(golden.text == golden.decoded || may_change_in_nfc(golden.text)) << golden.id;
  }
  EXPECT_EQ(changed, 77);
}

TEST(Nfc, knows_the_cases_of_the_standard) {
  EXPECT_EQ(to_nfc("e\u0301"), "\u00E9");
  EXPECT_EQ(to_nfc("\u212B"), "\u00C5") << "a singleton";
  EXPECT_EQ(to_nfc("a\u0323\u0307"), "\u1EA1\u0307")
      << "the first mark composes, the second has no composite";
  EXPECT_EQ(to_nfc("a\u0307\u0323"), "\u1EA1\u0307") << "marks are ordered first";
  EXPECT_EQ(to_nfc("a\u0301\u0301"), "\u00E1\u0301") << "an equal class blocks";
  EXPECT_EQ(to_nfc("\u0958"), "\u0915\u093C") << "a composition exclusion";
  EXPECT_EQ(to_nfc("\u1112\u1161\u11AB"), "\uD55C") << "Hangul by arithmetic";
  EXPECT_EQ(to_nfc("\uD558\u11AB"), "\uD55C");
  EXPECT_EQ(to_nfc("\uD55C\u11AB"), "\uD55C\u11AB") << "a syllable has one tail";
  EXPECT_EQ(to_nfc("\u1161"), "\u1161");
  EXPECT_EQ(to_nfc("\u0301e"), "\u0301e") << "nothing before the mark";
  EXPECT_EQ(to_nfc(""), "");
}

TEST(Nfc, treats_characters_that_came_after_unicode_9_as_unknown) {
  EXPECT_EQ(to_nfc("\U00011935\U00011930"), "\U00011935\U00011930") << "composes since 13.0";
  EXPECT_EQ(to_nfc("\u0D3B\u0323"), "\u0D3B\u0323") << "class 9 since 10.0; both would keep this order";
  EXPECT_EQ(to_nfc("a\u0323\u0D3B"), "\u1EA1\u0D3B");
  EXPECT_EQ(to_nfc("a\u0301\u08D3"), "\u00E1\u08D3")
      << "class 220 since 11.0 would come before the acute accent";
}

TEST(Nfc, quick_check_passes_ordinary_text) {
  EXPECT_FALSE(may_change_in_nfc("plain text, \u00E9\u1EA1 \u6F22\u5B57 \uD55C \U0001F600\r\n"));
  EXPECT_FALSE(may_change_in_nfc("b\u0334\u0316")) << "marks in order that never compose";
  EXPECT_TRUE(may_change_in_nfc("b\u0316\u0334")) << "marks out of order";
}

}  // namespace
}  // namespace inferd
