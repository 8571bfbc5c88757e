#include "text/word_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace inferd {
namespace {

TEST(WordTable, finds_what_was_taken_in_and_nothing_else) {
  std::mt19937 random(1);
  std::map<std::string, int32_t> words;
  const auto random_word = [&] {
    std::string word;
    // Few letters, so that many words share beginnings and ends.
    for (size_t length = 1 + random() % WordTable::kMaxBytes; length > 0; --length) {
      word += std::string_view("ab\0\xFF", 4)[random() % 4];
    }
    return word;
  };
  while (words.size() < 5000) words.emplace(random_word(), static_cast<int32_t>(words.size()));
  WordTable table;
  EXPECT_EQ(table.find("a"), -1);
  table.reserve(words.size());
  for (const auto& [word, id] : words) table.insert(word, id);
  for (const auto& [word, id] : words) ASSERT_EQ(table.find(word), id);
  for (int i = 0; i < 50000; ++i) {
    const std::string word = random_word();
    const auto found = words.find(word);
    ASSERT_EQ(table.find(word), found == words.end() ? -1 : found->second);
  }
  EXPECT_EQ(table.find(""), -1);
  EXPECT_EQ(table.find(std::string(17, 'a')), -1);
}

}  // namespace
}  // namespace inferd
