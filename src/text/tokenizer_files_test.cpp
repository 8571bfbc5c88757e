// Tokenizers of many models against the ids that Hugging Face's library gives: the vocabularies that
// llama.cpp keeps as GGUF files, each with texts and their ids.
#include <gtest/gtest.h>

#include <malloc.h>
#include <time.h>

#include <cstdio>
#include <fstream>

#include "base/json.h"
#include "base/strings.h"
#include "text/tokenizer_json.h"
#include "text/tokenizer_test_data.h"
#include "text/unicode.h"

namespace inferd {
namespace {

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  INFERD_CHECK(file, "cannot open ", path, "; tools/fetch_tokenizers.py fetches it");
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// The texts of an .inp file.
std::vector<std::string> vocabulary_texts(const std::string& path) {
  constexpr std::string_view kBorder = "\n__ggml_vocab_test__\n";
  const std::string all = read_text(path);
  std::vector<std::string> texts;
  for (size_t at = 0; at <= all.size();) {
    const size_t end = std::min(all.find(kBorder, at), all.size());
    texts.push_back(all.substr(at, end - at));
    at = end + kBorder.size();
  }
  return texts;
}

// The ids of an .out file, by line, as show_ids() prints them.
std::vector<std::string> vocabulary_ids(const std::string& path) {
  const std::string all = read_text(path);
  std::vector<std::string> lines;
  for (const std::string_view line : split(all, '\n')) lines.emplace_back(trim(line));
  return lines;
}

class JsonFile : public testing::TestWithParam<const char*> {};

TEST_P(JsonFile, gives_the_ids_and_texts_of_hugging_face) {
  const std::string json = read_text(tokenizer_path(cat(GetParam(), ".json")));
  const auto tokenizer = read_tokenizer_json(json);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().terminal_text();
  const std::vector<GoldenText> texts = read_golden_texts(GetParam());
  ASSERT_EQ(texts.size(), 4580u);
  int wrong = 0;
  for (const GoldenText& golden : texts) {
    const std::vector<int32_t> parsed = tokenizer->encode(golden.text, {.parse_special = true});
    const std::vector<int32_t> plain = tokenizer->encode(golden.text);
    const std::string decoded = tokenizer->decode(golden.ids);
    EXPECT_EQ(show_ids(parsed), show_ids(golden.ids)) << golden.id;
    EXPECT_EQ(show_ids(plain), show_ids(golden.ids_plain)) << golden.id << " with special tokens as text";
    EXPECT_EQ(decoded, golden.decoded) << golden.id;
    if (parsed != golden.ids || plain != golden.ids_plain || decoded != golden.decoded) ++wrong;
    if (wrong > 20) FAIL() << "and more";
  }
  std::printf("%s: %zu texts, %d differ; %s held\n", GetParam(), texts.size(), wrong,
              human_bytes(tokenizer->bytes()).c_str());
}

// A file's vocabulary as a GGUF file would have it, under a pre-tokeniser's name.
struct Named {
  const char* file;
  const char* pre;
};

class NamedVocabulary : public testing::TestWithParam<Named> {};

TEST_P(NamedVocabulary, gives_the_ids_of_hugging_face) {
  const Json json =
      parse_json(read_text(tokenizer_path(cat(GetParam().file, ".json"))), {.depth = 64, .values = 10000000})
          .value();
  std::vector<std::string_view> tokens;
  std::vector<int32_t> types;
  const auto place = [&](int64_t id, const std::string& token, TokenType type) {
    const auto at = static_cast<size_t>(id);
    if (at >= tokens.size()) {
      tokens.resize(at + 1);
      types.resize(at + 1, static_cast<int32_t>(TokenType::unused));
    }
    tokens[at] = token;
    types[at] = static_cast<int32_t>(type);
  };
  const Json& model = *json.find("model");
  for (const auto& [token, id] : model.find("vocab")->as_object())
    place(id.as_integer(), token, TokenType::normal);
  for (const Json& added : json.find("added_tokens")->as_array()) {
    place(added.find("id")->as_integer(), added.find("content")->as_string(),
          added.find("special")->as_bool() ? TokenType::control : TokenType::user_defined);
  }
  std::vector<std::string> merges;
  for (const Json& merge : model.find("merges")->as_array()) {
    merges.push_back(merge.is_string()
                         ? merge.as_string()
                         : cat(merge.as_array()[0].as_string(), " ", merge.as_array()[1].as_string()));
  }
  const std::vector<std::string_view> merge_views(merges.begin(), merges.end());
  const auto tokenizer = Tokenizer::create(
      {.model = "gpt2", .pre = GetParam().pre, .tokens = tokens, .types = types, .merges = merge_views});
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().terminal_text();
  int wrong = 0;
  for (const GoldenText& golden : read_golden_texts(GetParam().file)) {
    const std::vector<int32_t> parsed = tokenizer->encode(golden.text, {.parse_special = true});
    const std::vector<int32_t> plain = tokenizer->encode(golden.text);
    EXPECT_EQ(show_ids(parsed), show_ids(golden.ids)) << golden.id;
    EXPECT_EQ(show_ids(plain), show_ids(golden.ids_plain)) << golden.id << " with control tokens as text";
    if ((parsed != golden.ids || plain != golden.ids_plain) && ++wrong > 20) FAIL() << "and more";
  }
  std::printf("%s with the vocabulary of %s: %d texts differ\n", GetParam().pre, GetParam().file, wrong);
}

INSTANTIATE_TEST_SUITE_P(Files, NamedVocabulary,
                         testing::Values(Named{"llama3", "llama-bpe"}, Named{"gptoss", "gpt-4o"},
                                         Named{"gpt4o", "gpt-4o"}, Named{"deepseek_v3", "deepseek-v3"},
                                         Named{"qwen3", "qwen2"}),
                         [](const auto& named) { return std::string(named.param.file); });

// Processor time of this thread, so that what else the machine does counts little.
double encode_seconds(const Tokenizer& tokenizer, const std::string& text) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  const double start = now();
  EXPECT_FALSE(tokenizer.encode(text, {.parse_special = true}).empty());
  return now() - start;
}

class Repeats : public testing::TestWithParam<const char*> {};

TEST_P(Repeats, take_time_linear_in_their_number_whatever_the_character) {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);  // working memory stays with the process
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  const auto tokenizer = read_tokenizer_json(read_text(tokenizer_path(cat(GetParam(), ".json"))));
  double slowest = 0;
  for (const char* unit :
       {"a",          "A",          "Aa",     " ",      "\n",     " \n",    "7",      "'",
        "/",          "<",          "\u0301", "\u00DF", "\u6F22", "\u0B95", "\u2581", "\u3000",
        "\U0001F600", "\U0010FFFF", "\uFFFD", "\x01",   "<bos>",  "<|",     "'s"}) {
    std::string text;
    while (text.size() < 1000000) text += unit;
    const std::string twice = text + text;
    double one = 1e9;
    double two = 1e9;
    // Each time is the least of several, taken by turns.
    for (int turn = 0; turn < 12 && (turn < 1 || two > 2.25 * one); ++turn) {
      one = std::min(one, encode_seconds(*tokenizer, text));
      two = std::min(two, encode_seconds(*tokenizer, twice));
    }
    EXPECT_LT(one, 1.0) << printable(unit);
    EXPECT_LT(two / one, 2.3) << printable(unit);  // 2 is linear; the rest is for caches and a busy machine
    slowest = std::max(slowest, one);
  }
  std::printf("%s: 1 MB of any of these in at most %.0f ms\n", GetParam(), slowest * 1e3);
}

// One of each way to cut and merge.
INSTANTIATE_TEST_SUITE_P(Files, Repeats,
                         testing::Values("deepseek_v3", "gemma3", "gptoss", "llama2", "llama3"),
                         [](const auto& file) { return std::string(file.param); });
INSTANTIATE_TEST_SUITE_P(Files, JsonFile,
                         testing::Values("deepseek_v3", "gemma3", "gpt4o", "gptoss", "llama2", "llama3",
                                         "llama3_1", "qwen3"),
                         [](const auto& file) { return std::string(file.param); });

class Vocabulary : public testing::TestWithParam<const char*> {};

TEST_P(Vocabulary, gives_the_ids_of_hugging_face) {
  const std::string path = tokenizer_path(cat("ggml-vocab-", GetParam(), ".gguf"));
  const auto source = read_gguf_tokens(path);
  const auto tokenizer = Tokenizer::create(source->data);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().terminal_text();
  const std::vector<std::string> texts = vocabulary_texts(path + ".inp");
  const std::vector<std::string> ids = vocabulary_ids(path + ".out");
  ASSERT_GE(texts.size(), 40u);
  ASSERT_GE(ids.size(), texts.size());
  // The ids beside Qwen2's vocabulary under Qwen3.5's rules come from a program that does not normalise.
  const bool without_nfc = GetParam() == std::string_view("qwen35");
  int compared = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (without_nfc && to_nfc(texts[i]) != texts[i]) continue;
    ++compared;
    EXPECT_EQ(show_ids(tokenizer->encode(texts[i])), ids[i]) << printable(texts[i], 200);
  }
  EXPECT_GE(compared, 40);
  std::printf("%s: %d texts, model %s, pre %s\n", GetParam(), compared,
              std::string(source->data.model).c_str(), std::string(source->data.pre).c_str());
}

INSTANTIATE_TEST_SUITE_P(Files, Vocabulary,
                         testing::Values("command-r", "deepseek-coder", "deepseek-llm", "falcon", "gpt-2",
                                         "llama-spm", "phi-3", "llama-bpe", "mpt", "qwen2", "qwen35",
                                         "refact", "starcoder"),
                         [](const auto& vocabulary) {
                           std::string name = vocabulary.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace inferd
