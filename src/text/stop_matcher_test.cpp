// Stop strings against a search through the whole text, over all ways in which it can come in.
#include "text/stop_matcher.h"

#include <gtest/gtest.h>

#include <random>

namespace inferd {
namespace {

struct Outcome {
  std::string text;
  std::optional<size_t> matched;
  bool operator==(const Outcome&) const = default;
};

// The string whose end comes first wins, of several that end there the longest (of equal ones the first
// listed).
Outcome search(const std::string& text, const std::vector<std::string>& stops) {
  for (size_t end = 1; end <= text.size(); ++end) {
    std::optional<size_t> best;
    for (size_t i = 0; i < stops.size(); ++i) {
      if (std::string_view(text).substr(0, end).ends_with(stops[i]) &&
          (!best || stops[i].size() > stops[*best].size())) {
        best = i;
      }
    }
    if (best) return {text.substr(0, end - stops[*best].size()), best};
  }
  return {text, std::nullopt};
}

// The longest end of `text` that begins a stop string: what has to be held back, and no more.
size_t must_hold(const std::string& text, const std::vector<std::string>& stops) {
  size_t hold = 0;
  for (const std::string& stop : stops) {
    for (size_t n = 1; n < stop.size() && n <= text.size(); ++n) {
      if (text.ends_with(std::string_view(stop).substr(0, n))) hold = std::max(hold, n);
    }
  }
  return hold;
}

// Feeds text cut behind byte i where bit i of `cuts` is set, and checks every step.
void feed(const std::string& text, const std::vector<std::string>& stops, uint64_t cuts) {
  const Outcome expected = search(text, stops);
  StopMatcher matcher = StopMatcher::create(stops).value();
  std::string out;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if ((cuts >> i & 1) == 0 && i + 1 < text.size()) continue;
    const bool stopped = matcher.push(text.substr(begin, i + 1 - begin), out);
    begin = i + 1;
    ASSERT_EQ(stopped, matcher.matched().has_value());
    if (stopped) {
      ASSERT_EQ(out, expected.text) << text << " cut by " << cuts;
    } else {
      const std::string so_far = text.substr(0, begin);
      ASSERT_EQ(out, so_far.substr(0, so_far.size() - must_hold(so_far, stops)))
          << text << " cut by " << cuts;
    }
  }
  matcher.finish(out);
  ASSERT_EQ(out, expected.text) << text << " cut by " << cuts;
  ASSERT_EQ(matcher.matched(), expected.matched) << text << " cut by " << cuts;
}

TEST(StopMatcher, gives_the_same_text_for_every_split) {
  const std::vector<std::vector<std::string>> lists = {{"ab"},
                                                       {"aab"},
                                                       {"aa"},
                                                       {"abab", "ba"},
                                                       {"abc", "b"},
                                                       {"aaa", "aab"},
                                                       {"abcabd"},
                                                       {"a"},
                                                       {"c", "bc", "abc"},
                                                       {"ab", "ab"},
                                                       {}};
  std::mt19937 random(1);
  for (const auto& stops : lists) {
    for (int i = 0; i < 25; ++i) {
      std::string text;
      for (size_t n = random() % 9; n > 0; --n)
        text += static_cast<char>('a' + static_cast<char>(random() % 3));
      for (uint64_t cuts = 0; cuts < uint64_t{1} << text.size(); ++cuts) {
        feed(text, stops, cuts);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(StopMatcher, follows_random_lists_through_longer_texts) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 4000; ++i) {
    std::vector<std::string> stops(random() % 5);
    for (std::string& stop : stops) {
      for (size_t n = 1 + random() % 7; n > 0; --n)
        stop += static_cast<char>('a' + static_cast<char>(random() % 2));
    }
    std::string text;
    for (size_t n = random() % 60; n > 0; --n)
      text += static_cast<char>('a' + static_cast<char>(random() % 3));
    feed(text, stops, random());
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(StopMatcher, holds_whole_characters_back) {
  StopMatcher matcher = StopMatcher::create({"\u00E9!"}).value();
  std::string out;
  EXPECT_FALSE(matcher.push("\u00E8\u00E9", out));
  EXPECT_EQ(out, "\u00E8") << "e grave and e acute share their first byte";
  EXPECT_FALSE(matcher.push("\u00E9", out));
  EXPECT_EQ(out, "\u00E8\u00E9");
  EXPECT_TRUE(matcher.push("!more", out));
  EXPECT_TRUE(matcher.push("and more", out));
  matcher.finish(out);
  EXPECT_EQ(out, "\u00E8\u00E9");
}

TEST(StopMatcher, refuses_bad_lists_by_field) {
  const auto refusal = [](std::vector<std::string> stops) {
    const auto made = StopMatcher::create(std::move(stops));
    return made.ok() ? std::string("accepted") : cat(made.error().param, ": ", made.error().detail);
  };
  EXPECT_EQ(refusal({"a", ""}), "stop: stop string 1 is empty");
  EXPECT_EQ(refusal({"\xFF"}), "stop: stop string 0 is not valid UTF-8");
  EXPECT_EQ(refusal(std::vector<std::string>(65, "a")), "stop: stop has 65 strings; 64 allowed");
  EXPECT_EQ(refusal({std::string(4097, 'a')}), "stop: stop string 0 has 4097 bytes; 4096 allowed");
  EXPECT_EQ(refusal(std::vector<std::string>(64, std::string(4096, 'a'))), "accepted");
  EXPECT_EQ(error_row(StopMatcher::create({""}).error().code).id, "E-REQ-004");
}

}  // namespace
}  // namespace inferd
