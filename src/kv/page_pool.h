// The host's books of one KV group: which pages are free, who uses the others, and which finished pages may
// be found again by their ids (the prefix cache). Page numbers only, no device memory; one thread.
//
// Every page is in exactly one state, and free + active + cached == total always:
//   free    nobody uses it and nothing in it can be found;
//   active  at least one sequence names it (its count of users is > 0);
//   cached  no sequence names it, but it holds full, final tokens of a known prefix; taken back when free
//   pages run out.
// A page that more than one sequence names, or that the prefix cache knows, is never written again.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace inferd {

struct PagePoolOptions {
  int32_t pages = 0;
  int32_t page_tokens = 16;
  bool prefix_cache = true;
  // Tests set fewer bits so that hashes collide; a collision is never a hit, because ids are compared.
  uint64_t hash_mask = ~uint64_t{0};
};

// The pages of one sequence: token t lies in pages[t / page_tokens].
struct BlockTable {
  std::vector<int32_t> pages;
  int32_t registered = 0;  // leading pages that the prefix cache knows
  int32_t root = -1;       // which prefix tree the sequence belongs to (open_root)
};

class PagePool {
 public:
  explicit PagePool(const PagePoolOptions& options);

  // Sequences with different keys never share pages: the key joins adapter, KV type, numerics mode and tenant
  // salt. Each open_root() needs its close_root().
  int32_t open_root(std::string_view key);
  void close_root(int32_t root);

  // Takes the longest cached prefix of `ids` into an empty table: at most ⌊(ids.size() − 1) / page_tokens⌋
  // pages, so that at least one token is left to compute. Returns the tokens covered.
  int32_t take_prefix(BlockTable& table, std::span<const int32_t> ids);

  // Makes the table hold at least `tokens`; false, and nothing changed, when the pool cannot.
  bool grow(BlockTable& table, int32_t tokens);

  // Shares the full pages of the first `tokens` of `parent` with an empty table; a partial last page gets a
  // page of its own, to be filled by a copy from the returned source. False when the pool cannot; nothing
  // changed then.
  struct Fork {
    bool ok = false;
    std::optional<std::pair<int32_t, int32_t>> copy;  // (source page, target page)
  };
  Fork fork(BlockTable& table, const BlockTable& parent, int32_t tokens);

  // Tells the prefix cache that the first `tokens` of the sequence, whose ids are given, are in its pages for
  // good. A page of the table may be exchanged for another one that holds the same tokens; steps in flight
  // may go on reading the old one, since whoever gets it next writes to it in a later step.
  void commit(BlockTable& table, std::span<const int32_t> ids, int32_t tokens);

  // Gives all pages back.
  void release(BlockTable& table);

  // Pages that grow() could take now.
  int32_t available() const { return free() + cached_; }
  int32_t pages_for(int32_t tokens) const {
    return (tokens + options_.page_tokens - 1) / options_.page_tokens;
  }

  int32_t total() const { return options_.pages; }
  int32_t page_tokens() const { return options_.page_tokens; }
  int32_t free() const { return static_cast<int32_t>(free_.size()); }
  int32_t active() const { return active_; }
  int32_t cached() const { return cached_; }
  int64_t evictions() const { return evictions_; }

  // Recounts everything from the pages; ends the process when the books are wrong. O(pages).
  void check_invariants() const;

 private:
  struct Page {
    int32_t users = 0;
    bool indexed = false;  // the prefix cache knows it
    int32_t parent = -1;   // page before it in the prefix; −1: first page of its root
    int32_t root = -1;
    int32_t children = 0;  // indexed pages whose parent this is
    uint64_t hash = 0;
    uint64_t last_use = 0;
    std::vector<int32_t> ids;  // page_tokens ids, when indexed
  };
  struct Root {
    std::string key;
    int32_t users = 0;  // open_root() without close_root()
    int32_t pages = 0;  // indexed pages
  };

  int32_t take_page();
  void use(int32_t page);
  void unuse(int32_t page);
  void unindex(int32_t page);
  void set_evictable(int32_t page, bool evictable);
  void drop_root_if_unused(int32_t root);
  std::optional<int32_t> find(int32_t root, int32_t parent, std::span<const int32_t> ids) const;
  uint64_t hash_of(int32_t root, int32_t parent, std::span<const int32_t> ids) const;

  const PagePoolOptions options_;
  std::vector<Page> pages_;
  std::vector<int32_t> free_;  // a stack
  // (last use, page): cached pages without children. A cached page's children are cached too (whoever names a
  // page names the pages before it), so evicting leaves first reaches every cached page.
  std::set<std::pair<uint64_t, int32_t>> evictable_;
  std::unordered_multimap<uint64_t, int32_t> index_;  // hash to page
  std::unordered_map<std::string, int32_t> root_of_key_;
  std::unordered_map<int32_t, Root> roots_;
  int32_t next_root_ = 0;
  uint64_t clock_ = 0;
  int32_t active_ = 0;
  int32_t cached_ = 0;
  int64_t evictions_ = 0;
};

}  // namespace inferd
