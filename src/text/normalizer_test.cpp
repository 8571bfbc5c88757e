#include "text/normalizer.h"

#include <gtest/gtest.h>

#include "text/tokenizer_json.h"

namespace inferd {
namespace {

using Kind = NormalizerStep::Kind;

TEST(Normalizer, does_its_steps_in_order) {
  std::vector<ByteRange> none;
  const std::vector<NormalizerStep> llama = {{Kind::prepend, "", "_"}, {Kind::replace, " ", "_"}};
  EXPECT_EQ(normalize(llama, "a b", none), "_a_b");
  EXPECT_EQ(normalize(llama, "", none), "");
  EXPECT_TRUE(may_change(llama, "a"));
  EXPECT_FALSE(may_change(llama, ""));
  EXPECT_EQ(normalize(std::vector<NormalizerStep>{{Kind::space_runs, "", "-"}}, " a  b   c ", none),
            " a-b-c ");
  EXPECT_EQ(normalize(std::vector<NormalizerStep>{{Kind::nfc, "", ""}}, "e\u0301", none), "\u00E9");
  EXPECT_EQ(normalize(std::vector<NormalizerStep>{{Kind::replace, "aa", "b"}}, "aaaaa", none), "bba");
}

TEST(Normalizer, says_where_ranges_went) {
  const auto moved = [](std::vector<NormalizerStep> steps, std::string_view text,
                        std::vector<ByteRange> ranges) {
    normalize(steps, text, ranges);
    return ranges;
  };
  using Ranges = std::vector<ByteRange>;
  EXPECT_EQ(moved({{Kind::replace, " ", "\u2581"}}, "a b c", {{0, 1}, {2, 4}}), (Ranges{{0, 1}, {4, 8}}));
  EXPECT_EQ(moved({{Kind::replace, " ", ""}}, "a b", {{0, 2}, {2, 3}}), (Ranges{{0, 1}, {1, 2}}));
  EXPECT_EQ(moved({{Kind::replace, " ", ""}}, "a b", {{1, 2}}), (Ranges{})) << "nothing of it is left";
  EXPECT_EQ(moved({{Kind::prepend, "", "__"}}, "abc", {{1, 2}}), (Ranges{{3, 4}}));
  EXPECT_EQ(moved({{Kind::prepend, "", "__"}}, "abc", {{0, 2}}), (Ranges{{0, 4}}))
      << "what is put before it too";
  // A border inside what is replaced: neither side may claim the whole.
  EXPECT_EQ(moved({{Kind::replace, "bc", "xyz"}}, "abcd", {{0, 2}, {2, 4}}), (Ranges{{0, 1}, {4, 5}}));
}

// "<s>" is looked for in the normalised text, but only what a template wrote may become it.
TEST(Normalizer, keeps_special_tokens_in_normalised_text_to_the_markup) {
  const Tokenizer tokenizer =
      read_tokenizer_json(
          R"({"added_tokens":[{"id":4,"content":"<s>","single_word":false,"lstrip":false,"rstrip":false,"normalized":true,"special":true}],)"
          R"("normalizer":{"type":"Replace","pattern":{"String":" "},"content":"__"},"pre_tokenizer":null,"post_processor":null,)"
          R"("decoder":{"type":"Fuse"},"model":{"type":"BPE","vocab":{"a":0,"_":1,"<":2,"s":3,">":5},"merges":[]}})")
          .value();
  const auto ids = [&](std::vector<TextSpan> spans) { return tokenizer.encode_spans(spans); };
  using Ids = std::vector<int32_t>;
  const Ids text = {2, 3, 5};
  EXPECT_EQ(ids({{"a <s> ", true}, {"a", false}}), (Ids{0, 1, 1, 4, 1, 1, 0}));
  EXPECT_EQ(ids({{"a ", true}, {"<s>", false}}), (Ids{0, 1, 1, 2, 3, 5}));
  EXPECT_EQ(ids({{"  ", false}, {"<s>", true}, {"<s>", false}}), (Ids{1, 1, 1, 1, 4, 2, 3, 5}));
  EXPECT_EQ(ids({{"<", true}, {"s>", false}}), text) << "not across a border";
  EXPECT_EQ(ids({{"<s", false}, {">", true}}), text);
}

}  // namespace
}  // namespace inferd
