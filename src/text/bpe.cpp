#include "text/bpe.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/check.h"

namespace inferd {
namespace {

constexpr uint32_t kNoMerge = std::numeric_limits<int32_t>::max();  // 31 bits
constexpr size_t kMaxPiece = std::numeric_limits<int32_t>::max();   // lengths are negated in 32 bits
// Up to this many bytes all pairs are looked through for each merge: quadratic, but without a heap and in
// registers.
constexpr size_t kShort = 32;

// A min-heap with four children a node: half the levels of a binary one, and the children share a cache line.
void sift_down(std::vector<uint64_t>& heap, size_t at) {
  const uint64_t key = heap[at];
  for (;;) {
    const size_t first = at * 4 + 1;
    if (first >= heap.size()) break;
    size_t least = first;
    const size_t end = std::min(first + 4, heap.size());
    for (size_t child = first + 1; child < end; ++child) {
      if (heap[child] < heap[least]) least = child;
    }
    if (heap[least] >= key) break;
    heap[at] = heap[least];
    at = least;
  }
  heap[at] = key;
}

void push_heap4(std::vector<uint64_t>& heap, uint64_t key) {
  size_t at = heap.size();
  heap.push_back(key);
  while (at > 0 && heap[(at - 1) / 4] > key) {
    heap[at] = heap[(at - 1) / 4];
    at = (at - 1) / 4;
  }
  heap[at] = key;
}

uint64_t pop_heap4(std::vector<uint64_t>& heap) {
  const uint64_t least = heap.front();
  heap.front() = heap.back();
  heap.pop_back();
  if (!heap.empty()) sift_down(heap, 0);
  return least;
}

}  // namespace

void BpeMerges::reserve(size_t merges) {
  INFERD_CHECK(count_ == 0);
  room_ = merges;
  const size_t capacity = std::bit_ceil(merges + merges / 2 + 2);
  entries_.assign(capacity, Entry{});
  joined_.reserve(merges);
  mask_ = capacity - 1;
  shift_ = 64 - std::countr_zero(capacity);
}

bool BpeMerges::add(int32_t left, int32_t right, int32_t joined) {
  INFERD_CHECK(joined_.size() == count_, "merges with and without a rank");
  if (!add_ranked(left, right, joined, static_cast<uint32_t>(count_))) return false;
  joined_.push_back(joined);
  return true;
}

bool BpeMerges::add_ranked(int32_t left, int32_t right, int32_t joined, uint32_t rank) {
  INFERD_CHECK(count_ < room_, "more merges than were announced");
  size_t at = slot(left, right);
  while (entries_[at].left >= 0) {
    if (entries_[at].left == left && entries_[at].right == right) return false;
    at = (at + 1) & mask_;
  }
  entries_[at] = {left, right, rank, joined};
  ++count_;
  return true;
}

BpeMerges::Merge BpeMerges::find(int32_t left, int32_t right) const {
  size_t at = slot(left, right);
  while (entries_[at].left >= 0) {
    if (entries_[at].left == left && entries_[at].right == right)
      return {entries_[at].rank, entries_[at].joined};
    at = (at + 1) & mask_;
  }
  return {kNoMerge, -1};
}

void BpeMerges::encode(std::string_view piece, std::vector<int32_t>& out, Scratch& scratch) const {
  // No merge crosses a place between two bytes that end and begin the parts of no merge, so what lies on its
  // two sides can be encoded apart. That cuts most long pieces (scripts without spaces) into short ones.
  size_t begin = 0;
  for (size_t at = 1; at <= piece.size(); ++at) {
    if (at < piece.size() &&
        may_join(static_cast<unsigned char>(piece[at - 1]), static_cast<unsigned char>(piece[at]))) {
      continue;
    }
    const std::string_view part = piece.substr(begin, at - begin);
    if (part.size() <= kShort) {
      int32_t ids[kShort];
      size_t count = 0;
      for (const char c : part) {
        if (const int32_t id = byte_ids_[static_cast<unsigned char>(c)]; id >= 0) ids[count++] = id;
      }
      merge_short({ids, count}, out);
    } else {
      scratch.symbols.clear();
      for (const char c : part) {
        if (const int32_t id = byte_ids_[static_cast<unsigned char>(c)]; id >= 0)
          scratch.symbols.push_back(id);
      }
      merge_long(scratch.symbols, out, scratch);
    }
    begin = at;
  }
}

void BpeMerges::merge(std::span<const int32_t> symbols, std::vector<int32_t>& out, Scratch& scratch) const {
  if (symbols.size() > kShort) return merge_long(symbols, out, scratch);
  int32_t ids[kShort];
  std::copy(symbols.begin(), symbols.end(), ids);
  merge_short({ids, symbols.size()}, out);
}

void BpeMerges::merge_short(std::span<int32_t> ids, std::vector<int32_t>& out) const {
  Merge pairs[kShort];  // of (i, i + 1)
  size_t count = ids.size();
  if (count == 0) return;
  for (size_t i = 0; i + 1 < count; ++i) pairs[i] = find(ids[i], ids[i + 1]);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (pairs[i].rank < pairs[best].rank) best = i;
    }
    if (pairs[best].rank == kNoMerge) break;
    ids[best] = pairs[best].joined;
    --count;
    for (size_t i = best + 1; i < count; ++i) {
      ids[i] = ids[i + 1];
      if (i + 1 < count) pairs[i] = pairs[i + 1];
    }
    if (best > 0) pairs[best - 1] = find(ids[best - 1], ids[best]);
    if (best + 1 < count) pairs[best] = find(ids[best], ids[best + 1]);
  }
  out.insert(out.end(), ids.begin(), ids.begin() + static_cast<ptrdiff_t>(count));
}

// A heap over all pairs of a long piece would not fit a cache. So the pairs known at one time are sorted and
// walked in order; of the pairs found on the way only those that come before the end of that run go to a
// heap, the others wait for the next run. Long runs of one character, whose pairs are found in order, neither
// sift nor sort.
void BpeMerges::merge_long(std::span<const int32_t> symbols, std::vector<int32_t>& out,
                           Scratch& scratch) const {
  INFERD_CHECK(symbols.size() <= kMaxPiece, "a piece of ", symbols.size(), " symbols");
  auto& slots = scratch.slots;
  auto& run = scratch.run;
  auto& heap = scratch.heap;
  auto& later = scratch.later;
  slots.clear();
  slots.reserve(symbols.size());
  run.clear();
  heap.clear();
  later.clear();
  for (const int32_t id : symbols) slots.push_back({id, kNoMerge, 0});
  const size_t count = slots.size();
  const auto next = [&](size_t at) {
    const int32_t inside = at + 1 < count ? slots[at + 1].id : 0;
    return inside < 0 ? at + static_cast<size_t>(-inside) : at + 1;
  };
  const auto before = [&](size_t at) {  // requires at > 0
    const int32_t inside = slots[at - 1].id;
    return inside < 0 ? at - static_cast<size_t>(-inside) : at - 1;
  };
  const auto key_of = [&](size_t left) { return uint64_t{slots[left].rank} << 32 | left; };
  const auto take_pair = [&](size_t left) {  // (left, next of left) is a new pair
    const size_t right = next(left);
    const uint32_t rank = right == count ? kNoMerge : find(slots[left].id, slots[right].id).rank;
    slots[left].rank = rank & kNoMerge;
    if (rank == kNoMerge) return;
    const uint64_t key = key_of(left);
    if (!run.empty() && key < run.back()) {
      push_heap4(heap, key);
    } else if (slots[left].later == 0) {
      slots[left].later = 1;
      later.push_back(static_cast<uint32_t>(left));
    }
  };

  for (size_t i = 0; i < count; ++i) take_pair(i);
  for (size_t run_at = 0;;) {
    if (run_at == run.size() && heap.empty()) {
      run.clear();
      run_at = 0;
      for (const uint32_t left : later) {
        slots[left].later = 0;
        if (slots[left].rank != kNoMerge) run.push_back(key_of(left));
      }
      later.clear();
      if (run.empty()) break;
      if (!std::ranges::is_sorted(run)) std::ranges::sort(run);
    }
    const bool from_heap = !heap.empty() && (run_at == run.size() || heap.front() < run[run_at]);
    const uint64_t key = from_heap ? pop_heap4(heap) : run[run_at++];
    const auto left = static_cast<uint32_t>(key);
    const auto rank = static_cast<uint32_t>(key >> 32);
    if (slots[left].rank != rank) continue;  // one of the two was joined to another since
    const size_t right = next(left);
    const size_t end = next(right);
    slots[right].rank = kNoMerge;  // gone
    slots[left].id = joined_.empty() ? find(slots[left].id, slots[right].id).joined : joined_[rank];
    slots[left + 1].id = slots[end - 1].id = -static_cast<int32_t>(end - left);
    take_pair(left);
    if (left > 0) take_pair(before(left));
  }
  for (size_t at = 0; at < count; at = next(at)) out.push_back(slots[at].id);
}

int64_t BpeMerges::bytes() const {
  return static_cast<int64_t>(entries_.capacity() * sizeof(Entry) + joined_.capacity() * sizeof(int32_t) +
                              sizeof(*this));
}

}  // namespace inferd
