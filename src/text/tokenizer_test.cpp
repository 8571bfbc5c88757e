// What a tokenizer does with control tokens, spans, bad text and bad data, on a vocabulary built by hand.
// That its ids are Hugging Face's is tokenizer_real_test's business.
#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "base/strings.h"
#include "text/pretokenizer.h"
#include "text/tokenizer_test_vocabulary.h"

namespace inferd {
namespace {

using Ids = std::vector<int32_t>;

// The ids of a text that nothing merges in.
Ids bytes_of(std::string_view text) {
  Ids ids;
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

Ids joined(std::initializer_list<Ids> lists) {
  Ids all;
  for (const Ids& ids : lists) all.insert(all.end(), ids.begin(), ids.end());
  return all;
}

TEST(Tokenizer, merges_inside_pieces_and_gives_the_text_back) {
  TestVocabulary words;
  const int32_t he = words.merge("h", "e");
  words.merge("l", "l");
  const int32_t hell = words.merge("he", "ll");
  const int32_t space_w = words.merge("\u0120", "w");
  words.merge("e", "\u0120");  // never happens: no piece has a letter before a space
  const Tokenizer tokenizer = words.create().value();
  EXPECT_EQ(tokenizer.encode("hello he we"), (Ids{hell, 'o', ' ', he, space_w, 'e'}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("hello he we")), "hello he we");
  EXPECT_EQ(tokenizer.token_bytes(space_w), " w");
  EXPECT_TRUE(tokenizer.encode("").empty());
  EXPECT_EQ(tokenizer.vocab_size(), 261);
}

TEST(Tokenizer, knows_all_bytes) {
  const Tokenizer tokenizer = TestVocabulary().create().value();
  for (int32_t byte = 0; byte < 256; ++byte) {
    EXPECT_EQ(tokenizer.token_bytes(byte), std::string(1, static_cast<char>(byte))) << byte;
  }
  EXPECT_EQ(tokenizer.encode(std::string("\0\x7F \u00AD\u0144", 7)),
            bytes_of(std::string("\0\x7F \u00AD\u0144", 7)));
}

TEST(Tokenizer, reads_ill_formed_text_as_replacement_characters) {
  const Tokenizer tokenizer = TestVocabulary().create().value();
  EXPECT_EQ(tokenizer.encode("a\xFFz"), bytes_of("a\uFFFDz"));
  EXPECT_EQ(tokenizer.encode("\xF0\x9F\x98"), bytes_of("\uFFFD"));
  EXPECT_EQ(tokenizer.decode(Ids{'a', 0xF0, 0x9F, 'z', 0x80}), "a\uFFFDz\uFFFD");
}

class SpecialTokens : public testing::Test {
 protected:
  SpecialTokens() {
    start = words.add("<|start|>", TokenType::control);
    starts = words.add("<|start|>>", TokenType::control);
    call = words.add("<call>", TokenType::user_defined);
    pad = words.add("[PAD]", TokenType::unused);
    accents = words.add("\u00E9\u00E8", TokenType::user_defined);
    words.data.bos = start;
    words.data.pad = pad;
  }
  Tokenizer make() { return words.create().value(); }

  TestVocabulary words;
  int32_t start, starts, call, pad, accents;
};

TEST_F(SpecialTokens, are_parsed_only_when_asked_for_but_user_defined_ones_always) {
  const Tokenizer tokenizer = make();
  EXPECT_EQ(tokenizer.encode("a<|start|>b<call>", {.parse_special = true}), (Ids{'a', start, 'b', call}));
  EXPECT_EQ(tokenizer.encode("a<|start|>b<call>"), joined({bytes_of("a<|start|>b"), {call}}));
  EXPECT_EQ(tokenizer.encode("<|start|>>", {.parse_special = true}), (Ids{starts})) << "the longest";
  EXPECT_EQ(tokenizer.encode("<|start|<|start|>", {.parse_special = true}),
            joined({bytes_of("<|start|"), {start}}));
  EXPECT_EQ(tokenizer.encode("x\u00E9\u00E8"), (Ids{'x', accents}));
  EXPECT_EQ(tokenizer.decode(Ids{'x', accents, start, call}), "x\u00E9\u00E8<|start|><call>")
      << "as they are written";
  EXPECT_EQ(tokenizer.decode(Ids{'x', accents, start, call}, true), "x\u00E9\u00E8<call>");
}

TEST_F(SpecialTokens, add_the_begin_and_end_tokens_where_the_model_wants_them) {
  EXPECT_EQ(make().encode("a", {.add_special = true}), (Ids{'a'}));
  words.data.add_bos = true;
  EXPECT_EQ(make().encode("a", {.add_special = true}), (Ids{start, 'a'}));
  EXPECT_EQ(make().encode("a"), (Ids{'a'}));
  words.data.add_eos = true;
  words.data.eos = starts;
  EXPECT_EQ(make().encode_spans(std::vector<TextSpan>{{"a", false}}, true), (Ids{start, 'a', starts}));
  EXPECT_EQ(make().encode("", {.add_special = true}), (Ids{start, starts}));
}

TEST_F(SpecialTokens, unused_ids_are_banned_and_neither_made_nor_parsed) {
  const Tokenizer tokenizer = make();
  EXPECT_EQ(tokenizer.encode("[PAD]", {.parse_special = true}), bytes_of("[PAD]"));
  EXPECT_EQ(tokenizer.decode(Ids{'a', pad}), "a");
  EXPECT_EQ(tokenizer.vocab_size(), 261);
  const std::vector<uint32_t> mask = tokenizer.banned_mask(300);  // a model whose output was padded
  ASSERT_EQ(mask.size(), 10u);
  for (int32_t id = 0; id < 320; ++id) {
    const bool bit = (mask[static_cast<size_t>(id) / 32] >> (id % 32) & 1) != 0;
    EXPECT_EQ(bit, id == pad || id >= 261) << id;
  }
  EXPECT_TRUE(tokenizer.is_banned(pad));
  EXPECT_FALSE(tokenizer.is_special(pad));
  EXPECT_TRUE(tokenizer.is_special(start));
  EXPECT_FALSE(tokenizer.is_special(call));
}

TEST_F(SpecialTokens, match_only_wholly_inside_markup) {
  const Tokenizer tokenizer = make();
  const auto encode = [&](std::vector<TextSpan> spans) { return tokenizer.encode_spans(spans); };
  const Ids plain = bytes_of("<|start|>");
  EXPECT_EQ(encode({{"<|start|>", true}, {"<|start|>", false}}), joined({{start}, plain}));
  EXPECT_EQ(encode({{"<|st", true}, {"art|>", true}}), (Ids{start})) << "markup next to markup is one";
  EXPECT_EQ(encode({{"<|st", true}, {"", false}, {"art|>", true}}), (Ids{start}))
      << "an empty span is nothing";
  EXPECT_EQ(encode({{"<|st", true}, {"art|>", false}}), plain);
  EXPECT_EQ(encode({{"<|st", false}, {"art|>", true}}), plain);
  EXPECT_EQ(encode({{"<|st", true}, {"art", false}, {"|>", true}}), plain);
  // What a user wrote can not turn the template's token into a longer one, nor swallow it.
  EXPECT_EQ(encode({{"<|start|>", true}, {">", false}}), (Ids{start, '>'}));
  EXPECT_EQ(encode({{"<|start|", false}, {"<|start|>", true}}), joined({bytes_of("<|start|"), {start}}));
  EXPECT_EQ(encode({{"<ca", false}, {"ll>", true}}), (Ids{call})) << "user-defined tokens match anywhere";
  EXPECT_EQ(encode({}), Ids{});
}

TEST_F(SpecialTokens, a_control_token_that_is_plain_text_hides_what_begins_inside_it) {
  // As Hugging Face's library with encode_special_tokens: the match is found, then read as text as a whole.
  const int32_t tail = words.add("|>z", TokenType::user_defined);
  const Tokenizer tokenizer = make();
  EXPECT_EQ(tokenizer.encode("<|start|>z"), bytes_of("<|start|>z"));
  EXPECT_EQ(tokenizer.encode("<|end|>z"), joined({bytes_of("<|end"), {tail}}));
}

TEST_F(SpecialTokens, spans_without_control_text_are_encoded_as_their_joined_text) {
  words.merge("a", "b");
  words.merge("ab", "ab");
  words.merge("\u0120", "ab");
  words.pre = "qwen2";
  const Tokenizer tokenizer = make();
  const std::vector<std::string> parts = {"a", "b",      " ",  "ab", "e", "\u0301", "\u00E9\u00E8",
                                          "<", "<call>", "\n", "'s", "1"};
  std::mt19937 random(1);
  for (int i = 0; i < 3000; ++i) {
    std::vector<TextSpan> spans(random() % 8);
    std::string flat;
    for (TextSpan& span : spans) {
      for (size_t n = random() % 4; n > 0; --n) span.text += parts[random() % parts.size()];
      span.markup = random() % 2 == 0;
      flat += span.text;
    }
    ASSERT_EQ(tokenizer.encode_spans(spans), tokenizer.encode(flat)) << printable(flat);
  }
}

TEST_F(SpecialTokens, a_character_cut_by_a_border_is_not_joined) {
  const std::vector<TextSpan> cut = {{"\xE2\x82", false}, {"\xAC", true}};
  EXPECT_EQ(make().encode_spans(cut), bytes_of("\uFFFD\uFFFD"));
}

TEST_F(SpecialTokens, part_the_text_before_it_is_normalised) {
  words.pre = "qwen2";
  const Tokenizer tokenizer = make();
  EXPECT_EQ(tokenizer.encode("o\u0301"), bytes_of("\u00F3"));
  EXPECT_EQ(tokenizer.encode("o<call>\u0301"), joined({{'o', call}, bytes_of("\u0301")}));
  EXPECT_EQ(tokenizer.encode("e\u0301e\u0300"), bytes_of("\u00E9\u00E8"))
      << "the added token was not written so";
  words.pre = "smollm";
  EXPECT_EQ(make().encode("o\u0301"), bytes_of("o\u0301"));
}

TEST(Tokenizer, drops_bytes_that_have_no_token) {
  TestVocabulary words;
  words.tokens[4] = "gone";
  words.types[4] = static_cast<int32_t>(TokenType::unused);
  const Tokenizer tokenizer = words.create().value();
  EXPECT_EQ(tokenizer.encode("a\x04z"), (Ids{'a', 'z'}));
}

TEST(Tokenizer, ends_answers_with_the_named_ids_and_known_end_tokens) {
  TestVocabulary words;
  const int32_t text_end = words.add("<|endoftext|>", TokenType::control);
  const int32_t turn_end = words.add("<|im_end|>", TokenType::control);
  const int32_t other = words.add("<|other|>", TokenType::control);
  const auto end_ids = [&] {
    const Tokenizer tokenizer = words.create().value();
    return Ids(tokenizer.end_ids().begin(), tokenizer.end_ids().end());
  };
  EXPECT_EQ(end_ids(), (Ids{text_end, turn_end}));
  words.data.eos = turn_end;
  words.data.eot = other;
  EXPECT_EQ(end_ids(), (Ids{text_end, turn_end, other}));
  words.types[static_cast<size_t>(text_end)] = static_cast<int32_t>(TokenType::normal);
  EXPECT_EQ(end_ids(), (Ids{turn_end, other})) << "a normal token is text";
}

TEST(Tokenizer, checks_ids_from_outside) {
  const Tokenizer tokenizer = TestVocabulary().create().value();
  EXPECT_TRUE(tokenizer.check_ids(Ids{0, 255}).ok());
  EXPECT_EQ(tokenizer.check_ids(Ids{0, 256}).error().message(),
            "token id out of range: id 256 at index 1; 0 to 255 allowed");
  EXPECT_FALSE(tokenizer.check_ids(Ids{-1}).ok());
}

TEST(Tokenizer, takes_a_piece_that_is_a_token_whole_where_the_rules_say_so) {
  TestVocabulary words;
  const int32_t ab = words.merge("a", "b");
  const int32_t abc = words.add("abc");                           // no merge makes it
  const int32_t abd = words.add("abd", TokenType::user_defined);  // found before pieces are cut
  const int32_t bd = words.add("bd", TokenType::control);
  EXPECT_EQ(words.create().value().encode("abc"), (Ids{ab, 'c'}));
  words.pre = "llama-bpe";
  const Tokenizer tokenizer = words.create().value();
  EXPECT_EQ(tokenizer.encode("abc"), (Ids{abc}));
  EXPECT_EQ(tokenizer.encode("abcd"), (Ids{ab, 'c', 'd'})) << "only the whole piece";
  EXPECT_EQ(tokenizer.encode("abd"), (Ids{abd}));
  EXPECT_EQ(tokenizer.encode("bd"), (Ids{'b', 'd'})) << "never a control token";
  EXPECT_EQ(tokenizer.encode("bd", {.parse_special = true}), (Ids{bd}));
}

TEST(Tokenizer, adds_the_begin_token_where_the_name_says_so_and_the_file_nothing) {
  TestVocabulary words;
  words.data.bos = words.add("<s>", TokenType::control);
  EXPECT_FALSE(words.create().value().adds_bos());
  words.pre = "llama-bpe";
  EXPECT_TRUE(words.create().value().adds_bos());
  words.data.add_bos = false;
  EXPECT_FALSE(words.create().value().adds_bos());
  words.data.add_bos.reset();
  words.data.bos.reset();
  EXPECT_FALSE(words.create().value().adds_bos());
}

TEST(Tokenizer, refuses_kinds_it_does_not_know_and_lists_what_it_does) {
  TestVocabulary words;
  words.pre = "tekken";
  const Result<Tokenizer> refused = words.create();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(error_row(refused.error().code).id, "E-TOK-001");
  EXPECT_EQ(refused.error().detail, cat("model \"gpt2\" with pre-tokeniser \"tekken\"; known are model "
                                        "\"llama\", and \"gpt2\" with one of ",
                                        pre_tokenizer_names()));
  TokenizerData data{.model = "rwkv", .pre = "gpt-2"};
  EXPECT_EQ(error_row(Tokenizer::create(data).error().code).id, "E-TOK-001");
}

std::string refusal(TestVocabulary words) {
  const Result<Tokenizer> made = words.create();
  if (made.ok()) return "accepted";
  EXPECT_EQ(error_row(made.error().code).id, "E-TOK-002");
  return cat(made.error().where, ": ", made.error().detail);
}

TEST(Tokenizer, refuses_data_that_contradicts_itself) {
  const auto with = [](const std::function<void(TestVocabulary&)>& change) {
    TestVocabulary words;
    words.merge("a", "b");
    change(words);
    return refusal(std::move(words));
  };
  EXPECT_EQ(with([](auto&) {}), "accepted");
  EXPECT_EQ(with([](auto& w) { w.types.pop_back(); }), "token types: 256 types for 257 tokens");
  EXPECT_EQ(with([](auto& w) { w.tokens.clear(), w.types.clear(); }),
            "tokens: 0 tokens; 1 to 2147483647 allowed");
  EXPECT_EQ(with([](auto& w) { w.types[3] = 2; }),
            "token 3: type 2; 1, 3, 4 and 5 allowed in byte-level BPE");
  EXPECT_EQ(with([](auto& w) { w.types[3] = 6; }),
            "token 3: type 6; 1, 3, 4 and 5 allowed in byte-level BPE");
  EXPECT_EQ(with([](auto& w) { w.types[3] = -1; }),
            "token 3: type -1; 1, 3, 4 and 5 allowed in byte-level BPE");
  EXPECT_EQ(with([](auto& w) { w.add("a"); }), "token 257: the text \"a\" is that of token 97 too");
  EXPECT_EQ(with([](auto& w) { w.add("a", TokenType::control); }),
            "token 257: the text \"a\" is that of token 97 too");
  EXPECT_EQ(with([](auto& w) { w.add("a", TokenType::unused); }), "accepted");
  EXPECT_EQ(with([](auto& w) { w.add(""); }), "token 257: empty text");
  EXPECT_EQ(with([](auto& w) { w.add("\xFF"); }), "token 257: ill-formed UTF-8 \"\\xff\"");
  EXPECT_EQ(with([](auto& w) { w.add("\u6F22"); }), "accepted") << "outside the alphabet: kept as written";
  EXPECT_EQ(with([](auto& w) { w.add(std::string(513, 'x'), TokenType::control); }),
            "token 257: a control or user-defined token of 513 bytes; 1 to 512 allowed");
  EXPECT_EQ(with([](auto& w) { w.merges.push_back("ab"); }),
            "merge 1: \"ab\" is not two parts with one space between them");
  EXPECT_EQ(with([](auto& w) { w.merges.push_back("a b c"); }),
            "merge 1: \"a b c\" is not two parts with one space between them");
  EXPECT_EQ(with([](auto& w) { w.merges.push_back(""); }),
            "merge 1: \"\" is not two parts with one space between them");
  EXPECT_EQ(with([](auto& w) { w.merges.push_back(" b"); }),
            "merge 1: \" b\" has a part, or makes a whole, that is no token");
  EXPECT_EQ(with([](auto& w) { w.merges.push_back("b a"); }),
            "merge 1: \"b a\" has a part, or makes a whole, that is no token");
  EXPECT_EQ(with([](auto& w) { w.merges.push_back("q\u6F22 a"); }),
            "merge 1: \"q\\xe6\\xbc\\xa2 a\" has a part, or makes a whole, that is no token");
  EXPECT_EQ(with([](auto& w) { w.merges.push_back("a b"); }), "merge 1: \"a b\" was listed before");
  EXPECT_EQ(with([](auto& w) { w.add("ba", TokenType::control), w.merges.push_back("b a"); }),
            "merge 1: \"b a\" has or makes the control token 257");
  EXPECT_EQ(with([](auto& w) { w.add("ba", TokenType::unused), w.merges.push_back("b a"); }),
            "merge 1: \"b a\" has a part, or makes a whole, that is no token");
  EXPECT_EQ(with([](auto& w) { w.data.bos = 257; }), "bos token: id 257; 0 to 256 allowed");
  EXPECT_EQ(with([](auto& w) { w.data.pad = -1; }), "pad token: id -1; 0 to 256 allowed");
  EXPECT_EQ(with([](auto& w) { w.data.add_bos = true; }), "bos token: is to be added, but has no id");
  EXPECT_EQ(with([](auto& w) { w.data.add_eos = true; }), "eos token: is to be added, but has no id");
}

TEST(Tokenizer, survives_damaged_data) {
  std::mt19937 random(1);
  const auto pick = [&](size_t n) { return static_cast<size_t>(random() % n); };
  int accepted = 0;
  for (int i = 0; i < 2000; ++i) {
    TestVocabulary words;
    words.pre = i % 2 == 0 ? "qwen2" : "smollm";
    words.merge("a", "b");
    words.merge("ab", "a");
    words.merge("\u0120", "ab");
    words.add("<x>", TokenType::control);
    words.add("<xy>", TokenType::user_defined);
    for (size_t n = 1 + pick(3); n > 0; --n) {
      std::string& text =
          pick(2) == 0 ? words.tokens[pick(words.tokens.size())] : words.merges[pick(words.merges.size())];
      switch (pick(6)) {
        case 0:
          text.insert(pick(text.size() + 1), 1, static_cast<char>(random() % 256));
          break;
        case 1:
          text.resize(pick(text.size() + 1));
          break;
        case 2:
          if (!text.empty()) text[pick(text.size())] = static_cast<char>(random() % 256);
          break;
        case 3:
          words.types[pick(words.types.size())] = static_cast<int32_t>(random() % 8) - 1;
          break;
        case 4:
          words.merges.push_back(words.tokens[pick(words.tokens.size())] + " " + text);
          break;
        default:
          words.data.eos = static_cast<int32_t>(random() % 300) - 10;
          break;
      }
    }
    const Result<Tokenizer> made = words.create();
    if (!made.ok()) continue;
    ++accepted;
    std::string text;
    for (size_t n = pick(60); n > 0; --n) text += "ab <xy>\xCC\x81"[pick(9)];
    const Ids ids = made->encode(text, {.parse_special = i % 3 == 0});
    ASSERT_TRUE(made->check_ids(ids).ok());
    ASSERT_TRUE(is_valid_utf8(made->decode(ids)));
  }
  EXPECT_GT(accepted, 300);
}

TEST(Tokenizer, accepts_merges_in_any_order_of_the_ids_they_make) {
  TestVocabulary words;
  const int32_t abc = words.add("abc");
  const int32_t ab = words.add("ab");
  words.merges = {"a b", "ab c"};
  const Tokenizer tokenizer = words.create().value();
  EXPECT_EQ(tokenizer.encode("abcab"), (Ids{abc, ab}));
}

}  // namespace
}  // namespace inferd
