// One tokenizer, many threads.
#include <gtest/gtest.h>

#include <thread>

#include "text/tokenizer_test_vocabulary.h"

namespace inferd {
namespace {

TEST(Tokenizer, encodes_the_same_on_all_threads_at_once) {
  TestVocabulary words;
  words.pre = "qwen2";
  words.add("<|im_start|>", TokenType::control);
  words.merge("a", "b");
  words.merge("ab", "ab");
  const Tokenizer tokenizer = words.create().value();
  std::string text = "<|im_start|> o\u0301 ";
  for (int i = 0; i < 100; ++i) text += i % 7 == 0 ? "ba" : "ab";
  const std::vector<int32_t> expected = tokenizer.encode(text, {.parse_special = true});
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (int& mine : wrong) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        if (tokenizer.encode(text, {.parse_special = true}) != expected) ++mine;
        if (tokenizer.decode(expected) != tokenizer.decode(tokenizer.encode(text, {.parse_special = true})))
          ++mine;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

}  // namespace
}  // namespace inferd
