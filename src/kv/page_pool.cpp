#include "kv/page_pool.h"

#include <algorithm>

#include "base/check.h"

namespace inferd {

PagePool::PagePool(const PagePoolOptions& options)
    : options_(options), pages_(static_cast<size_t>(options.pages)) {
  INFERD_CHECK(options.pages >= 1 && options.page_tokens >= 1, options.pages, " pages of ",
               options.page_tokens);
  free_.reserve(pages_.size());
  for (int32_t page = options.pages - 1; page >= 0; --page) free_.push_back(page);
}

int32_t PagePool::open_root(std::string_view key) {
  const auto [entry, added] = root_of_key_.try_emplace(std::string(key), next_root_);
  if (added) roots_[next_root_++] = {std::string(key), 0, 0};
  ++roots_.at(entry->second).users;
  return entry->second;
}

void PagePool::close_root(int32_t root) {
  --roots_.at(root).users;
  drop_root_if_unused(root);
}

void PagePool::drop_root_if_unused(int32_t root) {
  const auto entry = roots_.find(root);
  if (entry->second.users > 0 || entry->second.pages > 0) return;
  root_of_key_.erase(entry->second.key);
  roots_.erase(entry);
}

// FNV-1a over the parent and the ids; only a first sieve, find() compares the ids themselves.
uint64_t PagePool::hash_of(int32_t root, int32_t parent, std::span<const int32_t> ids) const {
  uint64_t hash = 0xCBF29CE484222325;
  const auto mix = [&hash](int32_t value) { hash = (hash ^ static_cast<uint32_t>(value)) * 0x100000001B3; };
  mix(root);
  mix(parent);
  for (const int32_t id : ids) mix(id);
  return hash & options_.hash_mask;
}

std::optional<int32_t> PagePool::find(int32_t root, int32_t parent, std::span<const int32_t> ids) const {
  const auto [begin, end] = index_.equal_range(hash_of(root, parent, ids));
  for (auto entry = begin; entry != end; ++entry) {
    const Page& page = pages_[static_cast<size_t>(entry->second)];
    if (page.root == root && page.parent == parent && std::ranges::equal(page.ids, ids)) return entry->second;
  }
  return std::nullopt;
}

void PagePool::set_evictable(int32_t index, bool evictable) {
  const std::pair<uint64_t, int32_t> entry(pages_[static_cast<size_t>(index)].last_use, index);
  if (evictable) {
    evictable_.insert(entry);
  } else {
    evictable_.erase(entry);
  }
}

void PagePool::use(int32_t index) {
  Page& page = pages_[static_cast<size_t>(index)];
  if (page.users++ > 0) return;
  if (page.indexed) {
    --cached_;
    if (page.children == 0) set_evictable(index, false);
  }
  ++active_;
}

void PagePool::unuse(int32_t index) {
  Page& page = pages_[static_cast<size_t>(index)];
  INFERD_CHECK(page.users > 0, "page ", index, " is given back twice");
  if (--page.users > 0) return;
  --active_;
  if (page.indexed) {
    ++cached_;
    page.last_use = ++clock_;
    if (page.children == 0) set_evictable(index, true);
  } else {
    free_.push_back(index);
  }
}

// Forgets a cached page without children; it becomes nobody's.
void PagePool::unindex(int32_t index) {
  Page& page = pages_[static_cast<size_t>(index)];
  const auto [begin, end] = index_.equal_range(page.hash);
  index_.erase(std::find_if(begin, end, [&](const auto& entry) { return entry.second == index; }));
  if (page.parent >= 0) {
    Page& parent = pages_[static_cast<size_t>(page.parent)];
    if (--parent.children == 0 && parent.users == 0) set_evictable(page.parent, true);
  }
  const int32_t root = page.root;
  --roots_.at(root).pages;
  page = {};
  drop_root_if_unused(root);
}

// A page that nobody uses: a free one, else the cached one that was used longest ago; −1: none.
int32_t PagePool::take_page() {
  if (!free_.empty()) {
    const int32_t page = free_.back();
    free_.pop_back();
    return page;
  }
  if (evictable_.empty()) return -1;
  const int32_t page = evictable_.begin()->second;
  set_evictable(page, false);
  --cached_;
  unindex(page);
  ++evictions_;
  return page;
}

int32_t PagePool::take_prefix(BlockTable& table, std::span<const int32_t> ids) {
  INFERD_CHECK(table.pages.empty() && table.root >= 0, "take_prefix() needs an empty table with a root");
  if (!options_.prefix_cache || ids.empty()) return 0;
  const auto page_tokens = static_cast<size_t>(options_.page_tokens);
  const size_t most = (ids.size() - 1) / page_tokens;
  int32_t parent = -1;
  for (size_t i = 0; i < most; ++i) {
    const auto page = find(table.root, parent, ids.subspan(i * page_tokens, page_tokens));
    if (!page) break;
    use(*page);
    table.pages.push_back(*page);
    parent = *page;
  }
  table.registered = static_cast<int32_t>(table.pages.size());
  return table.registered * options_.page_tokens;
}

bool PagePool::grow(BlockTable& table, int32_t tokens) {
  const int32_t wanted = pages_for(tokens) - static_cast<int32_t>(table.pages.size());
  if (wanted <= 0) return true;
  if (wanted > available()) return false;
  for (int32_t i = 0; i < wanted; ++i) {
    const int32_t page = take_page();
    INFERD_CHECK(page >= 0, "available() promised a page");
    use(page);
    table.pages.push_back(page);
  }
  return true;
}

PagePool::Fork PagePool::fork(BlockTable& table, const BlockTable& parent, int32_t tokens) {
  INFERD_CHECK(table.pages.empty() && table.root == parent.root,
               "fork() needs an empty table of the same root");
  INFERD_CHECK(static_cast<size_t>(pages_for(tokens)) <= parent.pages.size(), "fork past the parent's pages");
  const auto full = static_cast<size_t>(tokens / options_.page_tokens);
  const bool partial = tokens % options_.page_tokens != 0;
  if (partial && available() < 1) return {};
  for (size_t i = 0; i < full; ++i) {
    use(parent.pages[i]);
    table.pages.push_back(parent.pages[i]);
  }
  table.registered = std::min(parent.registered, static_cast<int32_t>(full));
  if (!partial) return {true, std::nullopt};
  const int32_t page = take_page();
  use(page);
  table.pages.push_back(page);
  return {true, std::pair(parent.pages[full], page)};
}

void PagePool::commit(BlockTable& table, std::span<const int32_t> ids, int32_t tokens) {
  if (!options_.prefix_cache) return;
  const auto page_tokens = static_cast<size_t>(options_.page_tokens);
  for (auto i = static_cast<size_t>(table.registered); (i + 1) * page_tokens <= static_cast<size_t>(tokens);
       ++i) {
    const int32_t parent = i == 0 ? -1 : table.pages[i - 1];
    const std::span<const int32_t> page_ids = ids.subspan(i * page_tokens, page_tokens);
    const int32_t index = table.pages[i];
    if (const auto known = find(table.root, parent, page_ids)) {
      // Two sequences computed the same text at the same time: keep one copy.
      use(*known);
      table.pages[i] = *known;
      unuse(index);
    } else {
      Page& page = pages_[static_cast<size_t>(index)];
      page.indexed = true;
      page.parent = parent;
      page.root = table.root;
      page.hash = hash_of(table.root, parent, page_ids);
      page.ids.assign(page_ids.begin(), page_ids.end());
      index_.emplace(page.hash, index);
      ++roots_.at(table.root).pages;
      if (parent >= 0) ++pages_[static_cast<size_t>(parent)].children;
    }
    table.registered = static_cast<int32_t>(i) + 1;
  }
}

void PagePool::release(BlockTable& table) {
  // Back to front: the end of a sequence becomes the first to be evicted, a prompt's beginning the last.
  for (size_t i = table.pages.size(); i-- > 0;) unuse(table.pages[i]);
  table.pages.clear();
  table.registered = 0;
}

void PagePool::check_invariants() const {
  int32_t active = 0;
  int32_t cached = 0;
  int32_t unused = 0;
  size_t indexed = 0;
  size_t leaves = 0;
  std::vector<int32_t> children(pages_.size());
  for (const Page& page : pages_) {
    indexed += page.indexed ? 1 : 0;
    if (page.indexed && page.parent >= 0) ++children[static_cast<size_t>(page.parent)];
    (page.users > 0 ? active : page.indexed ? cached : unused) += 1;
  }
  for (size_t i = 0; i < pages_.size(); ++i) {
    const Page& page = pages_[i];
    INFERD_CHECK(page.children == children[i], "page ", i, " counts ", page.children, " children, has ",
                 children[i]);
    INFERD_CHECK(page.parent < 0 || pages_[static_cast<size_t>(page.parent)].indexed, "page ", i,
                 " hangs in the air");
    if (page.indexed && page.users == 0 && page.children == 0) ++leaves;
  }
  INFERD_CHECK(active == active_ && cached == cached_ && unused == free(), "pages: counted ", active,
               " active, ", cached, " cached, ", unused, " free; the books say ", active_, ", ", cached_,
               ", ", free());
  INFERD_CHECK(active + cached + unused == total(), "pages do not add up to ", total());
  INFERD_CHECK(indexed == index_.size(), indexed, " indexed pages, ", index_.size(), " index entries");
  INFERD_CHECK(leaves == evictable_.size(), leaves, " cached leaves, ", evictable_.size(), " evictable");
}

}  // namespace inferd
