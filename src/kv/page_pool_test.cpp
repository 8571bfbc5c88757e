#include "kv/page_pool.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>
#include <set>

namespace inferd {
namespace {

std::vector<int32_t> iota_ids(int32_t count, int32_t first = 0) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

BlockTable new_table(PagePool& pool, std::string_view key = "") {
  BlockTable table;
  table.root = pool.open_root(key);
  return table;
}

void finish(PagePool& pool, BlockTable& table) {
  pool.release(table);
  pool.close_root(table.root);
}

TEST(PagePool, a_table_grows_by_whole_pages_and_gives_them_all_back) {
  for (const int32_t tokens : {1, 15, 16, 17, 31, 32, 33}) {
    PagePool pool({.pages = 4});
    BlockTable table = new_table(pool);
    ASSERT_TRUE(pool.grow(table, tokens));
    EXPECT_EQ(static_cast<int32_t>(table.pages.size()), (tokens + 15) / 16);
    EXPECT_EQ(pool.active(), (tokens + 15) / 16);
    finish(pool, table);
    EXPECT_EQ(pool.free(), 4);
    pool.check_invariants();
  }
}

TEST(PagePool, growing_past_the_pool_changes_nothing) {
  PagePool pool({.pages = 3});
  BlockTable first = new_table(pool);
  BlockTable second = new_table(pool);
  ASSERT_TRUE(pool.grow(first, 20));
  EXPECT_FALSE(pool.grow(second, 17));
  EXPECT_TRUE(second.pages.empty());
  EXPECT_EQ(pool.free(), 1);
  EXPECT_TRUE(pool.grow(second, 16));
}

TEST(PagePool, a_hit_leaves_at_least_one_token_to_compute) {
  PagePool pool({.pages = 8});
  BlockTable writer = new_table(pool);
  const std::vector<int32_t> ids = iota_ids(48);
  ASSERT_TRUE(pool.grow(writer, 48));
  pool.commit(writer, ids, 48);
  for (const auto& [length, hit] :
       std::map<int32_t, int32_t>{{1, 0}, {16, 0}, {17, 16}, {32, 16}, {33, 32}, {48, 32}}) {
    BlockTable reader = new_table(pool);
    EXPECT_EQ(pool.take_prefix(reader, std::span(ids).first(static_cast<size_t>(length))), hit) << length;
    finish(pool, reader);
  }
  BlockTable longer = new_table(pool);
  EXPECT_EQ(pool.take_prefix(longer, iota_ids(64)), 48);
  EXPECT_EQ(longer.pages, writer.pages);
  finish(pool, longer);
  finish(pool, writer);
  EXPECT_EQ(pool.cached(), 3);
  pool.check_invariants();
}

TEST(PagePool, only_full_pages_are_found_and_only_by_the_same_ids_under_the_same_root) {
  PagePool pool({.pages = 8});
  BlockTable writer = new_table(pool, "tenant a");
  std::vector<int32_t> ids = iota_ids(40);
  ASSERT_TRUE(pool.grow(writer, 40));
  pool.commit(writer, ids, 40);
  BlockTable same = new_table(pool, "tenant a");
  EXPECT_EQ(pool.take_prefix(same, ids), 32);
  BlockTable other = new_table(pool, "tenant b");
  EXPECT_EQ(pool.take_prefix(other, ids), 0);
  ids[20] = 999;
  BlockTable changed = new_table(pool, "tenant a");
  EXPECT_EQ(pool.take_prefix(changed, ids), 16);
  // The second page of another prefix is not the second page of this one.
  BlockTable shifted = new_table(pool, "tenant a");
  EXPECT_EQ(pool.take_prefix(shifted, iota_ids(32, 16)), 0);
  for (BlockTable* table : {&writer, &same, &other, &changed, &shifted}) finish(pool, *table);
  pool.check_invariants();
}

TEST(PagePool, hash_collisions_are_never_hits) {
  PagePool pool({.pages = 64, .hash_mask = 0});
  std::vector<BlockTable> tables;
  for (int32_t i = 0; i < 10; ++i) {
    tables.push_back(new_table(pool));
    ASSERT_TRUE(pool.grow(tables.back(), 32));
    pool.commit(tables.back(), iota_ids(32, i * 100), 32);
  }
  for (int32_t i = 0; i < 10; ++i) {
    BlockTable reader = new_table(pool);
    ASSERT_EQ(pool.take_prefix(reader, iota_ids(40, i * 100)), i < 10 ? 32 : 0);
    EXPECT_EQ(reader.pages, tables[static_cast<size_t>(i)].pages);
    finish(pool, reader);
  }
  BlockTable reader = new_table(pool);
  EXPECT_EQ(pool.take_prefix(reader, iota_ids(40, 5000)), 0);
  finish(pool, reader);
  for (BlockTable& table : tables) finish(pool, table);
  pool.check_invariants();
}

TEST(PagePool, eviction_takes_the_longest_unused_end_first) {
  PagePool pool({.pages = 4});
  BlockTable old_table = new_table(pool);
  ASSERT_TRUE(pool.grow(old_table, 32));
  pool.commit(old_table, iota_ids(32), 32);
  pool.release(old_table);
  BlockTable recent = new_table(pool);
  ASSERT_TRUE(pool.grow(recent, 32));
  pool.commit(recent, iota_ids(32, 100), 32);
  pool.release(recent);
  EXPECT_EQ(pool.cached(), 4);
  BlockTable next = new_table(pool);
  ASSERT_TRUE(pool.grow(next, 16));
  EXPECT_EQ(pool.evictions(), 1);
  // The second page of the old sequence went; its first and the recent one are still there.
  BlockTable reader = new_table(pool);
  EXPECT_EQ(pool.take_prefix(reader, iota_ids(40)), 16);
  pool.release(reader);
  EXPECT_EQ(pool.take_prefix(reader, iota_ids(40, 100)), 32);
  pool.release(reader);
  pool.check_invariants();
}

TEST(PagePool, a_fork_shares_full_pages_and_copies_the_partial_one) {
  PagePool pool({.pages = 8});
  BlockTable parent = new_table(pool);
  ASSERT_TRUE(pool.grow(parent, 40));
  pool.commit(parent, iota_ids(40), 40);
  BlockTable child = new_table(pool);
  const PagePool::Fork fork = pool.fork(child, parent, 39);
  ASSERT_TRUE(fork.ok);
  ASSERT_TRUE(fork.copy.has_value());
  EXPECT_EQ(fork.copy->first, parent.pages[2]);
  EXPECT_EQ(fork.copy->second, child.pages[2]);
  EXPECT_EQ(child.pages[0], parent.pages[0]);
  EXPECT_EQ(child.pages[1], parent.pages[1]);
  EXPECT_NE(child.pages[2], parent.pages[2]);
  BlockTable exact = new_table(pool);
  const PagePool::Fork whole = pool.fork(exact, parent, 32);
  EXPECT_TRUE(whole.ok);
  EXPECT_FALSE(whole.copy.has_value());
  for (BlockTable* table : {&parent, &child, &exact}) finish(pool, *table);
  pool.check_invariants();
  EXPECT_EQ(pool.active(), 0);
}

TEST(PagePool, text_computed_twice_at_once_is_kept_once) {
  PagePool pool({.pages = 8});
  BlockTable a = new_table(pool);
  BlockTable b = new_table(pool);
  ASSERT_TRUE(pool.grow(a, 32));
  ASSERT_TRUE(pool.grow(b, 32));
  pool.commit(a, iota_ids(32), 32);
  pool.commit(b, iota_ids(32), 32);
  EXPECT_EQ(a.pages, b.pages);
  EXPECT_EQ(pool.active(), 2);
  EXPECT_EQ(pool.free(), 6);
  finish(pool, a);
  finish(pool, b);
  pool.check_invariants();
}

TEST(PagePool, without_a_prefix_cache_nothing_is_kept) {
  PagePool pool({.pages = 8, .prefix_cache = false});
  BlockTable a = new_table(pool);
  ASSERT_TRUE(pool.grow(a, 32));
  pool.commit(a, iota_ids(32), 32);
  finish(pool, a);
  EXPECT_EQ(pool.free(), 8);
}

// Against a model that knows, for every page a table names, which (root, prefix) it must hold.
TEST(PagePool, random_operations_keep_the_books_and_never_mix_up_contents) {
  for (const uint64_t mask : {~uint64_t{0}, uint64_t{3}}) {
    std::mt19937 random(11);
    const auto below = [&](int32_t n) { return static_cast<int32_t>(random() % static_cast<uint32_t>(n)); };
    PagePool pool({.pages = 40, .page_tokens = 4, .hash_mask = mask});
    struct Live {
      BlockTable table;
      std::string key;
      std::vector<int32_t> ids;
      int32_t length = 0;
    };
    std::vector<Live> live;
    std::map<int32_t, std::pair<std::string, std::vector<int32_t>>>
        contents;  // page: root key and the ids up to its end
    const auto fill = [&](Live& seq, int32_t tokens) {
      for (int32_t end = (seq.length / 4 + 1) * 4; end <= tokens; end += 4) {
        contents[seq.table.pages[static_cast<size_t>(end / 4 - 1)]] = {
            seq.key, {seq.ids.begin(), seq.ids.begin() + end}};
      }
      seq.length = tokens;
    };
    int64_t hits = 0;
    for (int step = 0; step < 40000; ++step) {
      const int32_t action = below(10);
      if (action < 3 && live.size() < 12) {
        Live seq;
        seq.key = std::string(1, static_cast<char>('a' + below(2)));
        for (int32_t i = below(30) + 1; i > 0; --i) seq.ids.push_back(below(2));
        seq.table.root = pool.open_root(seq.key);
        seq.length = pool.take_prefix(seq.table, seq.ids);
        hits += seq.length > 0 ? 1 : 0;
        ASSERT_LT(seq.length, static_cast<int32_t>(seq.ids.size()));
        for (int32_t end = 4; end <= seq.length; end += 4) {
          const std::vector<int32_t> prefix(seq.ids.begin(), seq.ids.begin() + end);
          ASSERT_EQ(contents.at(seq.table.pages[static_cast<size_t>(end / 4 - 1)]),
                    std::pair(seq.key, prefix));
        }
        live.push_back(std::move(seq));
      } else if (action < 7 && !live.empty()) {
        Live& seq = live[static_cast<size_t>(below(static_cast<int32_t>(live.size())))];
        for (int32_t i = below(4); i > 0; --i) seq.ids.push_back(below(2));
        const auto target = static_cast<int32_t>(seq.ids.size());
        if (pool.grow(seq.table, target)) {
          fill(seq, target);
          pool.commit(seq.table, seq.ids, target);
          for (int32_t end = 4; end <= seq.length; end += 4) {
            const std::vector<int32_t> prefix(seq.ids.begin(), seq.ids.begin() + end);
            ASSERT_EQ(contents.at(seq.table.pages[static_cast<size_t>(end / 4 - 1)]),
                      std::pair(seq.key, prefix));
          }
        }
      } else if (action < 8 && !live.empty() && live.size() < 12) {
        const Live& parent = live[static_cast<size_t>(below(static_cast<int32_t>(live.size())))];
        if (parent.length > 1) {
          Live child{{}, parent.key, parent.ids, 0};
          child.table.root = pool.open_root(child.key);
          const int32_t tokens = 1 + below(parent.length - 1);
          if (pool.fork(child.table, parent.table, tokens).ok) {
            child.length = tokens;
            live.push_back(std::move(child));
          } else {
            pool.close_root(child.table.root);
          }
        }
      } else if (!live.empty()) {
        const auto at = static_cast<size_t>(below(static_cast<int32_t>(live.size())));
        finish(pool, live[at].table);
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
      }
      if (step % 16 == 0) pool.check_invariants();
    }
    EXPECT_GT(hits, 1000);
    EXPECT_GT(pool.evictions(), 1000);
    for (Live& seq : live) finish(pool, seq.table);
    pool.check_invariants();
    EXPECT_EQ(pool.active(), 0);
  }
}

}  // namespace
}  // namespace inferd
