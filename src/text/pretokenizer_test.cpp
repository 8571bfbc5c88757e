// The hand-written scanners against PCRE2, an independent regular expression engine, on random strings and on
// the corpus. PCRE2 10.42 knows Unicode 14, so code points that later versions assigned are kept out of the
// strings; and its \s has U+180E, which White_Space lacks, so the class is spelled out.
#define PCRE2_CODE_UNIT_WIDTH 8
#include <gtest/gtest.h>
#include <pcre2.h>

#include <map>
#include <memory>
#include <random>

#include "base/utf8.h"
#include "text/pretokenizer.h"
#include "text/tokenizer_test_data.h"
#include "text/unicode.h"

namespace inferd {
namespace {

#define SPACE \
  R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})"

#define CONTRACTION R"((?i:'s|'t|'re|'ve|'m|'ll|'d))"
#define TAIL R"(|[)" SPACE R"(]*[\r\n]+|[)" SPACE R"(]+(?![^)" SPACE R"(])|[)" SPACE R"(]+)"
#define UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"

constexpr const char* kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^)" SPACE
                              R"(\p{L}\p{N}]+|[)" SPACE R"(]+(?![^)" SPACE R"(])|[)" SPACE R"(]+)";
constexpr const char* kQwen2 =
    CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^)" SPACE R"(\p{L}\p{N}]+[\r\n]*)" TAIL;
constexpr const char* kQwen35 =
    CONTRACTION R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^)" SPACE R"(\p{L}\p{M}\p{N}]+[\r\n]*)" TAIL;
constexpr const char* kLlama3 =
    CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^)" SPACE R"(\p{L}\p{N}]+[\r\n]*)" TAIL;
constexpr const char* kO200k =
    R"([^\r\n\p{L}\p{N}]?)" UPPER "*" LOWER "+" CONTRACTION R"(?|[^\r\n\p{L}\p{N}]?)" UPPER "+" LOWER
    "*" CONTRACTION R"(?|\p{N}{1,3}| ?[^)" SPACE R"(\p{L}\p{N}]+[\r\n/]*)" TAIL;
constexpr const char* kDeepseekV3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*)" TAIL;
constexpr const char* kDeepseekPunctuation =
    "[" SPACE R"(]?[!-/:-~\x{ff01}-\x{ff0f}\x{ff1a}-\x{ff5e}\x{2018}-\x{201f}\x{3000}-\x{3002}]+)";
constexpr const char* kCjk = R"([\x{4e00}-\x{9fa5}\x{800}-\x{4e00}\x{ac00}-\x{d7ff}]+)";
// The letters that DeepSeek-LLM lists.
constexpr const char* kDeepseekLetters =
    "[" SPACE R"(]?[A-Za-z\x{b5}\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{1ba}\x{1bc}-\x{1bf}\x{1c4}-\x{293})"
    R"(\x{295}-\x{2af}\x{370}-\x{373}\x{376}\x{377}\x{37b}-\x{37d}\x{37f}\x{386}\x{388}-\x{38a}\x{38c})"
    R"(\x{38e}-\x{3a1}\x{3a3}-\x{3f5}\x{3f7}-\x{481}\x{48a}-\x{52f}\x{531}-\x{556}\x{10a0}-\x{10c5})"
    R"(\x{13a0}-\x{13f5}\x{13f8}-\x{13fd}\x{1c90}-\x{1cba}\x{1cbd}-\x{1cbf}\x{1d00}-\x{1d2b})"
    R"(\x{1d6b}-\x{1d77}\x{1d79}-\x{1d9a}\x{1e00}-\x{1f15}\x{1f18}-\x{1f1d}\x{1f20}-\x{1f45})"
    R"(\x{1f48}-\x{1f4d}\x{1f50}-\x{1f57}\x{1f59}\x{1f5b}\x{1f5d}\x{1f5f}-\x{1f7d}\x{1f80}-\x{1fb4})"
    R"(\x{1fb6}-\x{1fbc}\x{1fbe}\x{1fc2}-\x{1fc4}\x{1fc6}-\x{1fcc}\x{1fd0}-\x{1fd3}\x{1fd6}-\x{1fdb})"
    R"(\x{1fe0}-\x{1fec}\x{1ff2}-\x{1ff4}\x{1ff6}-\x{1ffc}\x{2102}\x{2107}\x{210a}-\x{2113}\x{2115})"
    R"(\x{2119}-\x{211d}\x{2124}\x{2126}\x{2128}\x{212a}-\x{212d}\x{212f}-\x{2134}\x{2139})"
    R"(\x{213c}-\x{213f}\x{2145}-\x{2149}\x{214e}\x{2183}\x{2184}\x{2c00}-\x{2c7b}\x{2c7e}-\x{2ce4})"
    R"(\x{2ceb}-\x{2cee}\x{2cf2}\x{2cf3}\x{a640}-\x{a66d}\x{a680}-\x{a69b}\x{a722}-\x{a76f})"
    R"(\x{a771}-\x{a787}\x{a78b}-\x{a78e}\x{ab70}-\x{abbf}\x{fb00}-\x{fb06}\x{fb13}-\x{fb17})"
    R"(\x{ff21}-\x{ff3a}\x{ff41}-\x{ff5a}\x{10400}-\x{1044f}\x{104b0}-\x{104d3}\x{104d8}-\x{104fb})"
    R"(\x{10c80}-\x{10cb2}\x{10cc0}-\x{10cf2}\x{118a0}-\x{118df}\x{1e900}-\x{1e943}]+)";
constexpr const char* kTrailingSpaces = "[" SPACE "]+\\z";
constexpr const char* kNumber = "\\p{N}";

// The patterns of a name in order, as its tokenizer.json writes them. Falcon's "Digits" is not here: it works
// on the byte alphabet.
const std::map<std::string, std::vector<const char*>>& published() {
  static const std::map<std::string, std::vector<const char*>> rules = {
      {"gpt-2", {kGpt2}},
      {"smollm", {kNumber, kGpt2}},
      {"qwen2", {kQwen2}},
      {"qwen35", {kQwen35}},
      {"llama-bpe", {kLlama3}},
      {"gpt-4o", {kO200k}},
      {"deepseek-llm", {"[\\r\\n]", kDeepseekLetters, kDeepseekPunctuation, kTrailingSpaces, kCjk, kNumber}},
      {"deepseek-coder", {"[\\r\\n]", "[" SPACE "]?\\p{L}+", "[" SPACE "]?\\p{P}+", kCjk, kNumber}},
      {"deepseek-v3",
       {"\\p{N}{1,3}", "[\\x{4e00}-\\x{9fa5}\\x{3040}-\\x{309f}\\x{30a0}-\\x{30ff}]+", kDeepseekV3}},
  };
  return rules;
}

class Regex {
 public:
  explicit Regex(const char* pattern) {
    int error = 0;
    size_t offset = 0;
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern), PCRE2_ZERO_TERMINATED,
                              PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr));
    INFERD_CHECK(code_ != nullptr, "pattern at ", offset);
    pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);
    match_.reset(pcre2_match_data_create_from_pattern(code_.get(), nullptr));
  }

  // The matches one after another, and as pieces of their own what lies between them.
  std::vector<std::string> pieces(std::string_view text) {
    std::vector<std::string> out;
    size_t at = 0;
    while (at < text.size()) {
      if (!matches(text, at)) {
        out.emplace_back(text.substr(at));
        break;
      }
      const size_t* range = pcre2_get_ovector_pointer(match_.get());
      if (range[0] > at) out.emplace_back(text.substr(at, range[0] - at));
      out.emplace_back(text.substr(range[0], range[1] - range[0]));
      at = range[1];
    }
    return out;
  }

  bool matches(std::string_view text, size_t at = 0) {
    return pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                       PCRE2_NO_UTF_CHECK, match_.get(), nullptr) > 0;
  }

 private:
  struct Free {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
    void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
  };
  std::unique_ptr<pcre2_code, Free> code_;
  std::unique_ptr<pcre2_match_data, Free> match_;
};

std::string one_character(char32_t c) {
  std::string text;
  append_utf8(text, c);
  return text;
}

bool is_surrogate(char32_t c) {
  return c >= 0xD800 && c <= 0xDFFF;
}

// Class and detail of a code point as PCRE2 sees it, in the bits of unicode.h.
class Classes {
 public:
  int operator()(const std::string& text) {
    using namespace unicode_tables;
    if (letter_.matches(text)) return 1 | (upper_.matches(text) ? kUpper : lower_.matches(text) ? kLower : 0);
    if (number_.matches(text)) return 2;
    if (space_.matches(text)) return 3;
    return mark_.matches(text)          ? kMarkCategory
           : punctuation_.matches(text) ? kPunctuation
           : symbol_.matches(text)      ? kSymbol
                                        : 0;
  }

 private:
  Regex letter_{"\\p{L}"}, upper_{"[\\p{Lu}\\p{Lt}]"}, lower_{"\\p{Ll}"}, number_{"\\p{N}"},
      space_{"[" SPACE "]"}, mark_{"\\p{M}"}, punctuation_{"\\p{P}"}, symbol_{"\\p{S}"};
};

// True for the code points whose class PCRE2 sees as we do.
const std::vector<bool>& agreed() {
  static const std::vector<bool> table = [] {
    using namespace unicode_tables;
    Classes classes;
    std::vector<bool> agreed(0x110000);
    for (char32_t c = 0; c < 0x110000; ++c) {
      if (is_surrogate(c)) continue;
      agreed[c] = classes(one_character(c)) == (char_flags(c) & (kClassMask | kDetailMask));
    }
    return agreed;
  }();
  return table;
}

TEST(CharClass, is_pcre2s_but_for_code_points_that_it_does_not_know_yet) {
  Regex unassigned("\\p{Cn}");
  int differ = 0;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (is_surrogate(c) || agreed()[c]) continue;
    ++differ;
    ASSERT_TRUE(unassigned.matches(one_character(c))) << std::hex << static_cast<uint32_t>(c);
  }
  std::printf("%d code points differ, all unassigned in PCRE2 %s\n", differ, [] {
    static char version[32];
    pcre2_config(PCRE2_CONFIG_VERSION, version);
    return version;
  }());
  // What Unicode 15.0 to 16.0 assigned; a PCRE2 with newer tables has fewer differences.
  EXPECT_LE(differ, 10294);
}

TEST(CharClass, of_the_digit_splitter_has_the_numbers_of_unicode_17) {
  std::vector<uint32_t> only_split;
  for (char32_t c = 0; c < 0x110000; ++c) {
    const bool number = char_class(c) == CharClass::number;
    if (splits_as_digit(c) && !number) only_split.push_back(static_cast<uint32_t>(c));
    ASSERT_TRUE(splits_as_digit(c) || !number);
  }
  const std::vector<uint32_t> expected = {0x11DE0, 0x11DE1, 0x11DE2, 0x11DE3, 0x11DE4, 0x11DE5, 0x11DE6,
                                          0x11DE7, 0x11DE8, 0x11DE9, 0x16FF4, 0x16FF5, 0x16FF6};
  EXPECT_EQ(only_split, expected);
}

std::string show(const std::vector<std::string>& pieces) {
  std::string text;
  for (const std::string& piece : pieces) text += printable(piece, 1000);
  return text;
}

std::vector<std::string> our_pieces(const char* name, std::string_view text) {
  std::vector<std::string> pieces;
  for_each_piece(find_pre_tokenizer(name)->steps, text,
                 [&](std::string_view piece) { pieces.emplace_back(piece); });
  return pieces;
}

class Scanners {
 public:
  Scanners() {
    for (const auto& [name, patterns] : published()) {
      for (const char* pattern : patterns) regexes_[name].emplace_back(pattern);
    }
  }

  // Compares all of them on one text; fails the test at the first difference.
  void compare(const std::string& text) {
    for (auto& [name, regexes] : regexes_) {
      std::vector<std::string> pieces = {text};
      for (Regex& regex : regexes) {
        std::vector<std::string> smaller;
        for (const std::string& piece : pieces) {
          for (std::string& part : regex.pieces(piece)) smaller.push_back(std::move(part));
        }
        pieces = std::move(smaller);
      }
      ASSERT_EQ(show(our_pieces(name.c_str(), text)), show(pieces)) << name;
    }
  }

 private:
  std::map<std::string, std::vector<Regex>> regexes_;
};

TEST(Scanners, equal_pcre2_on_random_strings) {
  const std::vector<std::string> fragments = {"'s",
                                              "'S",
                                              "'\u017F",
                                              "'t",
                                              "'re",
                                              "'RE",
                                              "'rE",
                                              "'ve",
                                              "'m",
                                              "'ll",
                                              "'lL",
                                              "'l",
                                              "'d",
                                              "'r",
                                              "'",
                                              "''",
                                              "\u2019s",
                                              " ",
                                              " ",
                                              "  ",
                                              "   ",
                                              "\t",
                                              "\n",
                                              "\r",
                                              "\r\n",
                                              "\v",
                                              "\f",
                                              "\u0085",
                                              "\u00A0",
                                              "\u1680",
                                              "\u180E",
                                              "\u2009",
                                              "\u200B",
                                              "\u2028",
                                              "\u3000",
                                              "\uFEFF",
                                              "a",
                                              "Z",
                                              "\u00E9",
                                              "\u0301",
                                              "\u6F22",
                                              "\uD55C",
                                              "\u0E01\u0E33",
                                              "word",
                                              "WORD",
                                              "Aa",
                                              "aA",
                                              "\u01C5",
                                              "\u02B0",
                                              "A\u0301",
                                              "\u0903",
                                              "/",
                                              "//",
                                              "\u2019",
                                              "\uFF01",
                                              "\u3002",
                                              "\u0800",
                                              "\uAC00",
                                              "123456",
                                              "1",
                                              "42",
                                              "\u0663",
                                              "\u00BD",
                                              "\u2167",
                                              "\u4E00",
                                              "\u3007",
                                              "\u00B2",
                                              "!",
                                              "...",
                                              "-",
                                              "_",
                                              "<|",
                                              "|>",
                                              "\U0001F600",
                                              "\U0001F468\u200D\U0001F469",
                                              "\U00010400",
                                              "\U000E0001",
                                              std::string(1, '\0'),
                                              "\x7F"};
  std::mt19937 random(1);
  Scanners scanners;
  for (int i = 0; i < 12000; ++i) {
    std::string text;
    const size_t length = 1 + random() % 16;
    for (size_t j = 0; j < length; ++j) {
      if (random() % 8 != 0) {
        text += fragments[random() % fragments.size()];
        continue;
      }
      const auto c = static_cast<char32_t>(random() % (random() % 2 == 0 ? 0x110000 : 0x3000));
      if (!is_surrogate(c) && agreed()[c]) append_utf8(text, c);
    }
    scanners.compare(text);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Scanners, equal_pcre2_on_the_corpus) {
  Scanners scanners;
  int compared = 0;
  for (const std::string& text : read_corpus()) {
    bool known = true;
    for (size_t at = 0; at < text.size();) known = agreed()[next_code_point(text, at)] && known;
    if (!known) continue;
    ++compared;
    scanners.compare(text);
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GE(compared, 4466);  // of 4,580; PCRE2 10.42 does not know a character of the others
}

TEST(Scanners, cut_as_the_patterns_say) {
  using Pieces = std::vector<std::string>;
  EXPECT_EQ(our_pieces("gpt-2", "It's 'SO  good\n\n 123!"),
            (Pieces{"It", "'s", " '", "SO", " ", " good", "\n\n", " 123", "!"}));
  EXPECT_EQ(our_pieces("smollm", "a  12 b"), (Pieces{"a", "  ", "1", "2", " b"}));
  EXPECT_EQ(our_pieces("qwen2", "It'S\t12!\n\nx  \n  y"),
            (Pieces{"It", "'S", "\t", "1", "2", "!\n\n", "x", "  \n", " ", " y"}));
  EXPECT_EQ(our_pieces("qwen2", ""), Pieces{});
}

TEST(Scanners, cut_falcon_by_bytes_that_look_like_numbers) {
  using Pieces = std::vector<std::string>;
  EXPECT_EQ(our_pieces("falcon", "a+-b 12345"), (Pieces{"a", "+-", "b", " ", "123", "45"}));
  // U+4E32 is E4 B8 B2, and the byte alphabet writes B2 as a superscript two.
  EXPECT_EQ(our_pieces("falcon", "\u4E32"), (Pieces{"\xE4\xB8", "\xB2"}));
}

TEST(PreTokenizers, are_found_by_name_only) {
  EXPECT_EQ(find_pre_tokenizer("default"), nullptr);
  EXPECT_EQ(find_pre_tokenizer("tekken"), nullptr);
  EXPECT_EQ(find_pre_tokenizer(""), nullptr);
  EXPECT_TRUE(find_pre_tokenizer("qwen2")->nfc);
  EXPECT_TRUE(find_pre_tokenizer("llama-bpe")->whole_tokens);
  EXPECT_FALSE(find_pre_tokenizer("gpt-4o")->whole_tokens);
  EXPECT_TRUE(pre_tokenizer_names().starts_with("gpt-2, phi-2, "));
}

}  // namespace
}  // namespace inferd
