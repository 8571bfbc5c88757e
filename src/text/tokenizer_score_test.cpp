// SentencePiece's BPE by scores, as GGUF files with the model "llama" have it, on vocabularies built by hand,
// and against a direct form of its rule. That its ids are Hugging Face's is tokenizer_files_test's business.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "base/strings.h"
#include "base/utf8.h"
#include "text/tokenizer.h"

namespace inferd {
namespace {

using Ids = std::vector<int32_t>;

struct ScoreVocabulary {
  std::vector<std::string> tokens;
  std::vector<int32_t> types;
  std::vector<double> scores;
  TokenizerData data{.model = "llama"};

  int32_t add(std::string text, double score, TokenType type = TokenType::normal) {
    tokens.push_back(std::move(text));
    scores.push_back(score);
    types.push_back(static_cast<int32_t>(type));
    return static_cast<int32_t>(tokens.size()) - 1;
  }
  // The tokens of all bytes; byte b has id first + b.
  int32_t add_bytes() {
    const auto first = static_cast<int32_t>(tokens.size());
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    for (size_t byte = 0; byte < 256; ++byte)
      add(cat("<0x", kDigits.substr(byte / 16, 1), kDigits.substr(byte % 16, 1), ">"), 0, TokenType::byte);
    return first;
  }
  Result<Tokenizer> create() {
    const std::vector<std::string_view> views(tokens.begin(), tokens.end());
    data.tokens = views;
    data.types = types;
    data.scores = scores;
    return Tokenizer::create(data);
  }
};

TEST(ScoreTokenizer, joins_what_makes_the_token_with_the_highest_score) {
  ScoreVocabulary words;
  const int32_t a = words.add("a", -10);
  const int32_t b = words.add("b", -11);
  const int32_t c = words.add("c", -12);
  const int32_t ab = words.add("ab", -3);
  const int32_t bc = words.add("bc", -2);
  const int32_t abc = words.add("abc", -1);
  words.data.add_space_prefix = false;
  const Tokenizer tokenizer = words.create().value();
  EXPECT_EQ(tokenizer.encode("abc"), (Ids{abc})) << "bc first, then a and bc";
  EXPECT_EQ(tokenizer.encode("abab"), (Ids{ab, ab}));
  EXPECT_EQ(tokenizer.encode("bcab"), (Ids{bc, ab}));
  EXPECT_EQ(tokenizer.encode("cba"), (Ids{c, b, a}));
}

TEST(ScoreTokenizer, joins_the_leftmost_of_equal_scores_whichever_token_it_makes) {
  ScoreVocabulary words;
  const int32_t a = words.add("a", -10);
  const int32_t b = words.add("b", -10);
  const int32_t ba = words.add("ba", -1);
  const int32_t ab = words.add("ab", -1);
  words.data.add_space_prefix = false;
  const Tokenizer tokenizer = words.create().value();
  EXPECT_EQ(tokenizer.encode("aba"), (Ids{ab, a}));
  EXPECT_EQ(tokenizer.encode("bab"), (Ids{ba, b}));
}

TEST(ScoreTokenizer, writes_spaces_as_the_model_does_and_puts_one_before_each_text) {
  ScoreVocabulary words;
  const int32_t space = words.add("\u2581", -5);
  const int32_t a = words.add("a", -5);
  const int32_t space_a = words.add("\u2581a", -1);
  const int32_t bos = words.add("<s>", 0, TokenType::control);
  const int32_t end = words.add("</s>", 0, TokenType::control);
  words.data.bos = bos;
  words.data.eos = end;
  const Tokenizer tokenizer = words.create().value();
  EXPECT_EQ(tokenizer.encode("a a"), (Ids{space_a, space_a}));
  EXPECT_EQ(tokenizer.encode(" a"), (Ids{space, space_a}));
  EXPECT_EQ(tokenizer.encode("a</s>a", {.add_special = true, .parse_special = true}),
            (Ids{bos, space_a, end, space_a}));
  EXPECT_TRUE(tokenizer.encode("").empty());
  EXPECT_EQ(tokenizer.decode(Ids{space_a, space_a}), "a a");
  EXPECT_EQ(tokenizer.decode(Ids{space, space_a}), " a");
  EXPECT_EQ(tokenizer.decode(Ids{bos, space_a}), "<s> a");
  EXPECT_EQ(tokenizer.decode(Ids{bos, space_a}, true), "a");
  EXPECT_EQ(tokenizer.token_bytes(space_a), " a");
  EXPECT_TRUE(tokenizer.adds_bos());
  EXPECT_EQ(Ids(tokenizer.end_ids().begin(), tokenizer.end_ids().end()), (Ids{end}));
  words.data.add_space_prefix = false;
  words.data.add_bos = false;
  const Tokenizer plain = words.create().value();
  EXPECT_EQ(plain.encode("a a", {.add_special = true}), (Ids{a, space_a}));
  EXPECT_EQ(plain.decode(Ids{space_a, space_a}), " a a");
}

TEST(ScoreTokenizer, gives_the_bytes_of_a_character_that_is_no_token) {
  ScoreVocabulary words;
  const int32_t a = words.add("a", -5);
  const int32_t byte = words.add_bytes();
  words.data.add_space_prefix = false;
  const Tokenizer tokenizer = words.create().value();
  const Ids ids = {a, byte + 0xC3, byte + 0xA9, byte + '\n', a};
  EXPECT_EQ(tokenizer.encode("a\u00E9\na"), ids);
  EXPECT_EQ(tokenizer.decode(ids), "a\u00E9\na");
  EXPECT_EQ(tokenizer.decode(Ids{byte + 0xC3, a}), "\uFFFDa");
  EXPECT_EQ(tokenizer.encode("<0x0A>").size(), 6u) << "what spells a byte token is text";
}

TEST(ScoreTokenizer, gives_the_unknown_token_where_there_are_no_bytes) {
  ScoreVocabulary words;
  const int32_t unknown = words.add("<unk>", 0, TokenType::unknown);
  const int32_t a = words.add("a", -5);
  words.data.unk = unknown;
  words.data.add_space_prefix = false;
  EXPECT_EQ(words.create().value().encode("xya<unk>"),
            (Ids{unknown, unknown, a, unknown, unknown, unknown, unknown, unknown}));
  words.data.unk.reset();
  EXPECT_EQ(words.create().value().encode("xya"), (Ids{a}));
}

TEST(ScoreTokenizer, joins_characters_that_are_no_tokens_into_one_that_is) {
  ScoreVocabulary words;
  const int32_t byte = words.add_bytes();
  const int32_t xy = words.add("xy", -1);
  words.data.add_space_prefix = false;
  const Tokenizer tokenizer = words.create().value();
  EXPECT_EQ(tokenizer.encode("xy"), (Ids{xy}));
  EXPECT_EQ(tokenizer.encode("yxyx"), (Ids{byte + 'y', xy, byte + 'x'}));
}

TEST(ScoreTokenizer, never_makes_a_control_token_of_text) {
  ScoreVocabulary words;
  const int32_t a = words.add("a", -5);
  const int32_t b = words.add("b", -5);
  const int32_t ab = words.add("ab", -1, TokenType::control);
  const int32_t aa = words.add("aa", -1, TokenType::user_defined);
  words.data.add_space_prefix = false;
  const Tokenizer tokenizer = words.create().value();
  EXPECT_EQ(tokenizer.encode("ab"), (Ids{a, b}));
  EXPECT_EQ(tokenizer.encode("ab", {.parse_special = true}), (Ids{ab}));
  EXPECT_EQ(tokenizer.encode("aab"), (Ids{aa, b}));
}

// The rule, by text: of all adjacent symbols whose joined text is a token, those with the highest score, the
// leftmost when equal.
Ids by_the_rule(const ScoreVocabulary& words, std::string_view text) {
  const auto find = [&](std::string_view wanted) {
    const auto found = std::find(words.tokens.begin(), words.tokens.end(), wanted);
    return found == words.tokens.end() ? -1 : static_cast<int32_t>(found - words.tokens.begin());
  };
  std::vector<std::string> symbols;
  while (!text.empty()) {
    const size_t length = decode_utf8(text).length;
    symbols.emplace_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  for (;;) {
    size_t best = symbols.size();
    double best_score = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const int32_t id = find(symbols[i] + symbols[i + 1]);
      if (id < 0) continue;
      const double score = words.scores[static_cast<size_t>(id)];
      if (best == symbols.size() || score > best_score) {
        best = i;
        best_score = score;
      }
    }
    if (best == symbols.size()) break;
    symbols[best] += symbols[best + 1];
    symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(best) + 1);
  }
  Ids ids;
  for (const std::string& symbol : symbols) {
    if (const int32_t id = find(symbol); id >= 0) {
      ids.push_back(id);
    } else {
      for (const char byte : symbol) ids.push_back(static_cast<unsigned char>(byte));
    }
  }
  return ids;
}

TEST(ScoreTokenizer, equals_the_rule_on_random_vocabularies) {
  std::mt19937 random(1);
  const std::vector<std::string> letters = {"a", "b", "c", "\u00E9", "\u6F22", "\U0001F600"};
  const auto random_text = [&](size_t length) {
    std::string text;
    for (size_t i = 0; i < length; ++i) text += letters[random() % letters.size()];
    return text;
  };
  for (int round = 0; round < 200; ++round) {
    ScoreVocabulary words;
    words.add_bytes();  // ids 0 to 255
    words.data.add_space_prefix = false;
    for (int i = 0; i < 30; ++i) {
      const std::string token = random_text(1 + random() % 4);
      if (std::find(words.tokens.begin(), words.tokens.end(), token) == words.tokens.end())
        words.add(token, -static_cast<double>(random() % (round % 2 == 0 ? 6 : 1000)));
    }
    const Tokenizer tokenizer = words.create().value();
    for (int i = 0; i < 20; ++i) {
      const std::string text = random_text(1 + random() % (i == 0 ? 200 : 12));
      ASSERT_EQ(tokenizer.encode(text), by_the_rule(words, text)) << text;
    }
  }
}

TEST(ScoreTokenizer, refuses_data_that_contradicts_itself) {
  const auto refusal = [](const std::function<void(ScoreVocabulary&)>& change) {
    ScoreVocabulary words;
    words.add("a", -1);
    words.add("b", -2);
    change(words);
    const Result<Tokenizer> made = words.create();
    return made.ok() ? "accepted" : cat(made.error().where, ": ", made.error().detail);
  };
  EXPECT_EQ(refusal([](auto&) {}), "accepted");
  EXPECT_EQ(refusal([](auto& w) { w.scores.pop_back(); }), "scores: 1 scores for 2 tokens");
  EXPECT_EQ(refusal([](auto& w) { w.scores[1] = NAN; }), "token 1: a score that is not finite");
  EXPECT_EQ(refusal([](auto& w) { w.types[1] = 7; }), "token 1: type 7; 1 to 6 allowed");
  EXPECT_EQ(refusal([](auto& w) { w.types[1] = 6; }), "token 1: a byte token is written <0x0A>, not \"b\"");
  EXPECT_EQ(refusal([](auto& w) { w.add("<0x41>", 0, TokenType::byte); }),
            "byte tokens: 1 of the 256 bytes are there; all or none allowed");
  EXPECT_EQ(refusal([](auto& w) { w.tokens[1] = "\xFF"; }), "token 1: ill-formed UTF-8 \"\\xff\"");
  EXPECT_EQ(refusal([](auto& w) { w.tokens[1] = std::string(513, 'b'); }),
            "token 1: a token of 513 bytes; 512 allowed");
  EXPECT_EQ(refusal([](auto& w) { w.data.remove_extra_whitespaces = true; }),
            ": model \"llama\" with remove_extra_whitespaces; known is only \"llama\" without");
}

}  // namespace
}  // namespace inferd
