// The merge loops against the rule itself, written as plainly as it is said, on random merge tables.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "text/bpe.h"

namespace inferd {
namespace {

// A table over the bytes a to d, of which d may be missing: some token strings come about in several ways.
struct Table {
  std::vector<std::string> tokens;  // by id
  struct Merge {
    int32_t left, right, joined;
  };
  std::vector<Merge> merges;  // by rank
  bool has_d = true;
};

// `ordered`: each merge only joins tokens that merges of lower rank make, as training does. Otherwise ranks
// are shuffled, so a merge may make a pair that ranks before itself.
Table random_table(std::mt19937& random, bool ordered) {
  Table table;
  table.has_d = random() % 2 == 0;
  table.tokens = {"a", "b", "c", "d"};
  std::map<std::string, int32_t> ids = {{"a", 0}, {"b", 1}, {"c", 2}, {"d", 3}};
  std::map<std::pair<int32_t, int32_t>, bool> pairs;
  const size_t wanted = 1 + random() % 40;
  for (size_t i = 0; i < wanted; ++i) {
    const auto left = static_cast<int32_t>(random() % table.tokens.size());
    const auto right = static_cast<int32_t>(random() % table.tokens.size());
    const std::string joined =
        table.tokens[static_cast<size_t>(left)] + table.tokens[static_cast<size_t>(right)];
    if (joined.size() > 12 || !pairs.emplace(std::pair(left, right), true).second) continue;
    const auto [at, is_new] = ids.emplace(joined, static_cast<int32_t>(table.tokens.size()));
    if (is_new) table.tokens.push_back(joined);
    table.merges.push_back({left, right, at->second});
  }
  if (!ordered) std::shuffle(table.merges.begin(), table.merges.end(), random);
  return table;
}

BpeMerges merges_of(const Table& table) {
  BpeMerges merges;
  merges.reserve(table.merges.size());
  for (int32_t id = 0; id < (table.has_d ? 4 : 3); ++id) merges.set_byte(static_cast<uint8_t>('a' + id), id);
  for (const auto& [left, right, joined] : table.merges) {
    EXPECT_TRUE(merges.add(left, right, joined));
    merges.allow_join(static_cast<uint8_t>(table.tokens[static_cast<size_t>(left)].back()),
                      static_cast<uint8_t>(table.tokens[static_cast<size_t>(right)].front()));
  }
  return merges;
}

// Again and again: of all adjacent pairs that have a merge, join the leftmost of the lowest rank.
std::vector<int32_t> encode_plainly(const Table& table, const std::string& piece) {
  std::vector<int32_t> ids;
  for (const char c : piece) {
    if (c != 'd' || table.has_d) ids.push_back(c - 'a');
  }
  for (;;) {
    size_t best_rank = table.merges.size();
    size_t best = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      for (size_t rank = 0; rank < best_rank; ++rank) {
        if (table.merges[rank].left == ids[i] && table.merges[rank].right == ids[i + 1]) {
          best_rank = rank;
          best = i;
        }
      }
    }
    if (best_rank == table.merges.size()) return ids;
    ids[best] = table.merges[best_rank].joined;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

std::string random_piece(std::mt19937& random) {
  const size_t length = random() % 2 == 0 ? random() % 40 : random() % 150;
  const uint32_t letters = 1 + random() % 4;
  std::string piece;
  const std::string unit = {static_cast<char>('a' + random() % 4), static_cast<char>('a' + random() % 4)};
  const bool periodic = random() % 3 == 0;
  for (size_t i = 0; i < length; ++i) {
    piece += periodic ? unit[i % 2] : static_cast<char>('a' + static_cast<char>(random() % letters));
  }
  return piece;
}

void compare(bool ordered) {
  std::mt19937 random(ordered ? 1 : 2);
  BpeMerges::Scratch scratch;
  size_t longer_than_short = 0;
  for (int i = 0; i < 400; ++i) {
    const Table table = random_table(random, ordered);
    const BpeMerges merges = merges_of(table);
    for (int j = 0; j < 20; ++j) {
      const std::string piece = random_piece(random);
      std::vector<int32_t> ids;
      merges.encode(piece, ids, scratch);
      ASSERT_EQ(ids, encode_plainly(table, piece)) << "table " << i << ", piece " << piece;
      if (piece.size() > 32) ++longer_than_short;
    }
  }
  EXPECT_GT(longer_than_short, 2000u);
}

TEST(Bpe, equals_the_rule_on_tables_as_training_makes_them) {
  compare(true);
}
TEST(Bpe, equals_the_rule_when_a_merge_makes_a_pair_that_ranks_before_it) {
  compare(false);
}

TEST(Bpe, joins_the_leftmost_of_equal_ranks_and_the_lowest_rank_first) {
  Table table{.tokens = {"a", "b", "c", "d", "aa", "ab"}, .merges = {{0, 0, 4}, {0, 1, 5}}};
  const BpeMerges merges = merges_of(table);
  BpeMerges::Scratch scratch;
  std::vector<int32_t> ids;
  merges.encode("aaab", ids, scratch);
  EXPECT_EQ(ids, (std::vector<int32_t>{4, 5}));
  ids.clear();
  merges.encode("aab", ids, scratch);
  EXPECT_EQ(ids, (std::vector<int32_t>{4, 1})) << "aa ranks before ab";
  merges.encode("", ids, scratch);
  EXPECT_EQ(ids.size(), 2u);
}

TEST(Bpe, drops_a_byte_without_token_and_joins_what_it_parted) {
  Table table{.tokens = {"a", "b", "c", "d", "ab"}, .merges = {{0, 1, 4}}, .has_d = false};
  const BpeMerges merges = merges_of(table);
  BpeMerges::Scratch scratch;
  std::vector<int32_t> ids;
  merges.encode("addbd", ids, scratch);
  EXPECT_EQ(ids, (std::vector<int32_t>{4}));
  ids.clear();
  merges.encode("ddd", ids, scratch);
  merges.encode(std::string(1000, 'd'), ids, scratch);
  EXPECT_TRUE(ids.empty());
}

TEST(Bpe, refuses_a_pair_that_it_has) {
  BpeMerges merges;
  merges.reserve(2);
  EXPECT_TRUE(merges.add(1, 2, 3));
  EXPECT_FALSE(merges.add(1, 2, 4));
}

}  // namespace
}  // namespace inferd
