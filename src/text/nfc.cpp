// Normalisation form C: Unicode Standard Annex 15 and section 3.11 to 3.12 of the standard. A character with
// combining class 0 and NFC_Quick_Check Yes is a boundary: nothing behind it changes what is before it. So
// most text is copied, and only a boundary character followed by unsure ones is decomposed, ordered and
// composed again.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"
#include "text/unicode.h"

namespace inferd {
namespace {

using namespace unicode_tables;

// Hangul syllables are arithmetic (section 3.12): syllable = base + (l * 21 + v) * 28 + t.
constexpr char32_t kSyllableBase = 0xAC00;
constexpr char32_t kLeadBase = 0x1100;
constexpr char32_t kVowelBase = 0x1161;
constexpr char32_t kTailBase = 0x11A7;  // t = 0 is "no tail"
constexpr char32_t kLeads = 19;
constexpr char32_t kVowels = 21;
constexpr char32_t kTails = 28;
constexpr char32_t kSyllables = kLeads * kVowels * kTails;

struct Item {
  char32_t code_point;
  uint8_t combining_class;
};

void decompose(std::vector<Item>& out, char32_t code_point) {
  if (code_point - kSyllableBase < kSyllables) {
    const char32_t index = code_point - kSyllableBase;
    out.push_back({kLeadBase + index / (kVowels * kTails), 0});
    out.push_back({kVowelBase + index / kTails % kVowels, 0});
    if (index % kTails != 0) out.push_back({kTailBase + index % kTails, 0});
    return;
  }
  char32_t seconds[8];  // the longest chain in the data has 3
  size_t count = 0;
  for (;;) {
    const auto found = std::lower_bound(kDecompositions.begin(), kDecompositions.end(), code_point,
                                        [](const Decomposition& d, char32_t c) { return d.code_point < c; });
    if (found == kDecompositions.end() || found->code_point != code_point) break;
    INFERD_CHECK(count < std::size(seconds));
    if (found->second != 0) seconds[count++] = found->second;
    code_point = found->first;
  }
  out.push_back({code_point, combining_class(code_point)});
  while (count > 0) {
    --count;
    out.push_back({seconds[count], combining_class(seconds[count])});
  }
}

// The primary composite of the two, or 0.
char32_t compose(char32_t first, char32_t second) {
  if (first - kLeadBase < kLeads && second - kVowelBase < kVowels) {
    return kSyllableBase + ((first - kLeadBase) * kVowels + (second - kVowelBase)) * kTails;
  }
  if (first - kSyllableBase < kSyllables && (first - kSyllableBase) % kTails == 0 && second > kTailBase &&
      second < kTailBase + kTails) {
    return first + (second - kTailBase);
  }
  const auto found = std::lower_bound(
      kCompositions.begin(), kCompositions.end(), std::pair(first, second),
      [](const Composition& c, const auto& key) { return std::pair(c.first, c.second) < key; });
  return found != kCompositions.end() && found->first == first && found->second == second ? found->composed
                                                                                          : 0;
}

// Stable, by class: counted, so that a hostile run of marks takes linear time too.
void sort_marks(std::span<Item> marks) {
  if (marks.size() <= 16) {
    for (size_t i = 1; i < marks.size(); ++i) {
      const Item item = marks[i];
      size_t at = i;
      for (; at > 0 && marks[at - 1].combining_class > item.combining_class; --at) marks[at] = marks[at - 1];
      marks[at] = item;
    }
    return;
  }
  const std::vector<Item> unsorted(marks.begin(), marks.end());
  std::array<size_t, 256> place{};  // where the next mark of a class goes
  for (const Item& item : unsorted) {
    if (item.combining_class < 255) ++place[item.combining_class + size_t{1}];
  }
  for (size_t i = 1; i < place.size(); ++i) place[i] += place[i - 1];
  for (const Item& item : unsorted) marks[place[item.combining_class]++] = item;
}

// Canonical ordering: the marks between two starters.
void order(std::span<Item> items) {
  for (size_t at = 0; at < items.size();) {
    size_t end = at;
    while (end < items.size() && items[end].combining_class != 0) ++end;
    sort_marks(items.subspan(at, end - at));
    at = end + 1;
  }
}

void append_composed(std::string& out, std::vector<Item>& items) {
  size_t kept = 0;
  size_t starter = 0;
  bool have_starter = false;
  int last_class = -1;  // of what stands between the starter and here; -1: nothing
  for (const Item item : items) {
    if (have_starter && last_class < item.combining_class) {
      if (const char32_t composed = compose(items[starter].code_point, item.code_point); composed != 0) {
        items[starter].code_point = composed;
        continue;
      }
    }
    if (item.combining_class == 0) {
      starter = kept;
      have_starter = true;
      last_class = -1;
    } else {
      last_class = item.combining_class;
    }
    items[kept++] = item;
  }
  for (size_t i = 0; i < kept; ++i) append_utf8(out, items[i].code_point);
}

// Moves `at` over ASCII, eight bytes at a time.
void skip_ascii(std::string_view text, size_t& at) {
  while (at + 8 <= text.size()) {
    uint64_t word;
    std::memcpy(&word, text.data() + at, 8);
    if ((word & 0x8080808080808080u) != 0) return;
    at += 8;
  }
}

}  // namespace

uint8_t combining_class(char32_t code_point) {
  if ((char_flags(code_point) & kMark) == 0) return 0;
  const auto found = std::lower_bound(kCombining.begin(), kCombining.end(), code_point,
                                      [](const CombiningRange& range, char32_t c) { return range.last < c; });
  return found->combining_class;
}

bool may_change_in_nfc(std::string_view text) {
  uint8_t last_class = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t before = at;
    skip_ascii(text, at);
    if (at != before) last_class = 0;
    if (at == text.size()) break;
    const char32_t code_point = next_code_point(text, at);
    const uint8_t flags = char_flags(code_point);
    if ((flags & kUnsure) != 0) return true;
    const uint8_t this_class = (flags & kMark) != 0 ? combining_class(code_point) : uint8_t{0};
    if (this_class != 0 && this_class < last_class) return true;
    last_class = this_class;
  }
  return false;
}

std::string to_nfc(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  std::vector<Item> items;
  size_t copied = 0;    // text before is in `out`
  size_t boundary = 0;  // start of the last boundary character, or `copied` when none came since
  for (size_t at = 0; at < text.size();) {
    size_t start = at;
    skip_ascii(text, at);
    if (at != start) boundary = at - 1;
    if (at == text.size()) break;
    start = at;
    const char32_t code_point = next_code_point(text, at);
    if ((char_flags(code_point) & (kMark | kUnsure)) == 0) {
      boundary = start;
      continue;
    }
    out.append(text.substr(copied, boundary - copied));
    items.clear();
    for (size_t i = boundary; i < at;) decompose(items, next_code_point(text, i));
    while (at < text.size()) {
      size_t next = at;
      const char32_t following = next_code_point(text, next);
      if ((char_flags(following) & (kMark | kUnsure)) == 0) break;
      decompose(items, following);
      at = next;
    }
    order(items);
    append_composed(out, items);
    copied = boundary = at;
  }
  out.append(text.substr(copied));
  return out;
}

}  // namespace inferd
