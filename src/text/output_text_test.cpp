// Ids in, text deltas out: half characters, control tokens and stop strings together.
#include "text/output_text.h"

#include <gtest/gtest.h>

#include "text/tokenizer_test_vocabulary.h"

namespace inferd {
namespace {

class Answer : public testing::Test {
 protected:
  Answer()
      : end(words.add("<|im_end|>", TokenType::control)),
        stop_en(words.merge("E", "N")),
        tokenizer(words.create().value()) {}

  OutputText with_stops(std::vector<std::string> stops, bool skip_special = true) {
    return OutputText(tokenizer, StopMatcher::create(std::move(stops)).value(), skip_special);
  }

  TestVocabulary words;
  int32_t end, stop_en;
  Tokenizer tokenizer;
};

TEST_F(Answer, never_gives_half_a_character) {
  OutputText text = with_stops({});
  EXPECT_EQ(text.push('a'), "a");
  EXPECT_EQ(text.push(0xF0), "");
  EXPECT_EQ(text.push(0x9F), "");
  EXPECT_EQ(text.push(end), "") << "no text, and it does not end the character";
  EXPECT_EQ(text.push(0x98), "");
  EXPECT_EQ(text.push(0x80), "\U0001F600");
  EXPECT_EQ(text.push(0xE6), "");
  EXPECT_EQ(text.finish(), "\uFFFD");
  EXPECT_EQ(text.stopped(), std::nullopt);
}

TEST_F(Answer, shows_control_tokens_when_they_are_not_skipped) {
  OutputText text = with_stops({"_end"}, false);
  EXPECT_EQ(text.push(end), "<|im");
  EXPECT_EQ(text.stopped(), 0u);
  EXPECT_EQ(text.push('a'), "");
  EXPECT_EQ(text.finish(), "");
}

TEST_F(Answer, stops_across_tokens_and_flushes_what_was_none) {
  OutputText text = with_stops({"END.", "\n\n"});
  EXPECT_EQ(text.push('x'), "x");
  EXPECT_EQ(text.push(stop_en), "");
  EXPECT_EQ(text.push(stop_en), "EN") << "the first was not the beginning";
  EXPECT_EQ(text.push('D'), "");
  EXPECT_EQ(text.push('\n'), "END");
  EXPECT_EQ(text.push('E'), "\n");
  EXPECT_EQ(text.push('N'), "");
  EXPECT_EQ(text.push('D'), "");
  EXPECT_EQ(text.stopped(), std::nullopt);
  EXPECT_EQ(text.push('.'), "");
  EXPECT_EQ(text.stopped(), 0u);
  EXPECT_EQ(text.finish(), "");
}

TEST_F(Answer, gives_out_at_the_end_what_was_held_back) {
  OutputText text = with_stops({"abc"});
  EXPECT_EQ(text.push('a'), "");
  EXPECT_EQ(text.push('b'), "");
  EXPECT_EQ(text.finish(), "ab");
}

TEST_F(Answer, may_stop_at_the_replacement_of_a_cut_character) {
  OutputText text = with_stops({"a\uFFFD"});
  EXPECT_EQ(text.push('a'), "");
  EXPECT_EQ(text.push(0xE6), "");
  EXPECT_EQ(text.finish(), "");
  EXPECT_EQ(text.stopped(), 0u);
}

}  // namespace
}  // namespace inferd
