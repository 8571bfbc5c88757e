// Malformed and unknown tokenizer.json files: each is refused with what, where and what is allowed, at once.
#include <gtest/gtest.h>

#include <time.h>

#include "base/strings.h"
#include "text/tokenizer_json.h"

namespace inferd {
namespace {

constexpr std::string_view kGood =
    R"({"version":"1.0","truncation":null,"padding":null,)"
    R"("added_tokens":[{"id":4,"content":"<s>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],)"
    R"("normalizer":{"type":"Replace","pattern":{"String":" "},"content":"_"},)"
    R"("pre_tokenizer":{"type":"Split","pattern":{"String":"-"},"behavior":"Isolated","invert":false},)"
    R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],)"
    R"("pair":[],"special_tokens":{"<s>":{"id":"<s>","ids":[4],"tokens":["<s>"]}}},)"
    R"("decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"_"},"content":" "},{"type":"Fuse"}]},)"
    R"("model":{"type":"BPE","dropout":null,"unk_token":"?","continuing_subword_prefix":null,"end_of_word_suffix":null,)"
    R"("fuse_unk":false,"byte_fallback":false,"ignore_merges":false,)"
    R"("vocab":{"?":0,"a":1,"b":2,"ab":3},"merges":["a b"]}})";

std::string replaced(std::string_view from, std::string_view to) {
  std::string text(kGood);
  const size_t at = text.find(from);
  INFERD_CHECK(at != std::string::npos, from);
  return text.replace(at, from.size(), to);
}

TEST(TokenizerJson, reads_a_file_with_every_part) {
  const Tokenizer tokenizer =
      read_tokenizer_json(kGood, R"({"bos_token":"<s>","eos_token":{"content":"b"}})").value();
  EXPECT_EQ(tokenizer.encode("ab-a", {.add_special = true}), (std::vector<int32_t>{4, 3, 0, 1}));
  EXPECT_EQ(tokenizer.encode("<s>b", {.parse_special = true}), (std::vector<int32_t>{4, 2}));
  EXPECT_EQ(tokenizer.bos(), 4);
  EXPECT_TRUE(tokenizer.adds_bos());
  EXPECT_EQ(tokenizer.eos(), 2);
  EXPECT_EQ(tokenizer.vocab_size(), 5);
}

// Processor time of this thread, so that what else the machine does counts little.
double thread_ms() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

struct Fault {
  const char* from;
  const char* to;
  const char* code;
  const char* message;  // "where: detail"
};

const Fault kFaults[] = {
    {R"({"version")", R"(["version")", "E-TOK-002", "the file: '{' expected at byte 0"},
    {R"("merges":["a b"]}})", R"("merges":["a b"])", "E-TOK-002",
     "model: the text ends where ',' is expected at byte"},
    {R"("merges":["a b"]}})", R"("merges":["a b"]}} x)", "E-TOK-002", "the file: something behind the value"},
    {R"("version":"1.0")", R"("version":"1.0","version":"1.0")", "E-TOK-002",
     "the file: the member \"version\" comes twice"},
    {R"("version":"1.0")", R"("versions":"1.0")", "E-TOK-001", "the file: the member \"versions\""},
    {R"("model":{)", R"("normalizer2":{)", "E-TOK-001", "the file: the member \"normalizer2\""},
    {R"("type":"BPE")", R"("type":"WordPiece")", "E-TOK-001", "model: type \"WordPiece\""},
    {R"("type":"BPE")", R"("type":"Unigram")", "E-TOK-002", "model: a Unigram model has a list of pairs"},
    {R"("type":"BPE")", R"("type":"BPE","max_input_chars_per_word":1)", "E-TOK-001",
     "model: the member \"max_input_chars_per_word\""},
    {R"("dropout":null)", R"("dropout":0.1)", "E-TOK-001", "model: dropout"},
    {R"("unk_token":"?")", R"("unk_token":"??")", "E-TOK-002", "model: unk_token \"??\" is no token"},
    {R"("unk_token":"?")", R"("unk_token":7)", "E-TOK-002", "model: '\"' expected at byte"},
    {R"("continuing_subword_prefix":null)", R"("continuing_subword_prefix":"##")", "E-TOK-001",
     "model: continuing_subword_prefix \"##\""},
    {R"("end_of_word_suffix":null)", R"("end_of_word_suffix":"</w>")", "E-TOK-001",
     "model: end_of_word_suffix \"</w>\""},
    {R"("byte_fallback":false)", R"("byte_fallback":true)", "E-TOK-001",
     "decoder: byte_fallback of the model without"},
    {R"("b":2)", R"("b":1)", "E-TOK-002", "model.vocab: id 1 is that of \"a\" and of \"b\""},
    {R"("b":2)", R"("b":-2)", "E-TOK-002", "model.vocab: id -2 of \"b\"; 0 to 2147483647 allowed"},
    {R"("b":2)", R"("b":2.5)", "E-TOK-002", "model.vocab: an integer expected"},
    {R"("b":2)", R"("b":2147483647)", "E-TOK-002",
     "model.vocab: id 2147483647 with 5 tokens; at most 65546 allowed"},
    {R"("b":2)", R"("b":99999999999)", "E-TOK-002", "model.vocab: id 99999999999 of \"b\""},
    {R"("b":2)", R"("a":2)", "E-TOK-002", "token 2: the text \"a\" is that of token 1 too"},
    {R"("b":2)", R"("":2)", "E-TOK-002", "token 2: empty text"},
    {R"("b":2)", R"("\ud800":2)", "E-TOK-002", "model.vocab: a lone surrogate at byte"},
    {R"("merges":["a b"])", R"("merges":["a b","a b"])", "E-TOK-002", "merge 1: \"a b\" was listed before"},
    {R"("merges":["a b"])", R"("merges":["ab"])", "E-TOK-002", "model.merges[0]: \"ab\" is not two parts"},
    {R"("merges":["a b"])", R"("merges":["a b c"])", "E-TOK-002",
     "model.merges[0]: \"a b c\" is not two parts"},
    {R"("merges":["a b"])", R"("merges":[["a","b","c"]])", "E-TOK-002",
     "model.merges: a pair of texts expected"},
    {R"("merges":["a b"])", R"("merges":[["a"]])", "E-TOK-002", "model.merges[0]: a part is empty"},
    {R"("merges":["a b"])", R"("merges":["a c"])", "E-TOK-002",
     "merge 0: \"a c\" has a part, or makes a whole, that is no token"},
    {R"("merges":["a b"])", R"("merges":["b a"])", "E-TOK-002",
     "merge 0: \"b a\" has a part, or makes a whole, that is no token"},
    {R"(,"merges":["a b"])", "", "E-TOK-002",
     "model: a BPE model has an object as \"vocab\", and \"merges\""},
    {R"("id":4,"content":"<s>")", R"("id":3,"content":"<s>")", "E-TOK-002",
     "added_tokens[0]: id 3 is that of \"ab\" and of \"<s>\""},
    {R"("id":4,"content":"<s>")", R"("content":"<s>")", "E-TOK-002", "added_tokens[0]: \"id\" -1"},
    {R"("id":4,"content":"<s>")", R"("id":4)", "E-TOK-002", "added_tokens[0]: has no \"content\""},
    {R"("special":true)", R"("special":"yes")", "E-TOK-002", "added_tokens[0]: true or false expected"},
    {R"("special":true)", R"("special":true,"weight":1)", "E-TOK-001",
     "added_tokens[0]: the member \"weight\""},
    {R"({"type":"Replace","pattern":{"String":" "})", R"({"type":"NFKC","pattern":{"String":" "})",
     "E-TOK-001", "normalizer: normaliser \"NFKC\""},
    {R"("pattern":{"String":" "})", R"("pattern":{"Regex":"a|b"})", "E-TOK-001",
     "normalizer: the regular expression \"a|b\""},
    {R"("pattern":{"String":" "})", R"("pattern":{"String":""})", "E-TOK-002",
     "normalizer: has no \"pattern\""},
    {R"("content":"_"})", R"("content":"____________________"})", "E-TOK-002",
     "normalizer: makes text more than 16 times longer"},
    {R"("pattern":{"String":"-"})", R"("pattern":{"Regex":"(a+)+$"})", "E-TOK-001",
     "pre_tokenizer: the regular expression \"(a+)+$\""},
    {R"("behavior":"Isolated")", R"("behavior":"Shuffled")", "E-TOK-001",
     "pre_tokenizer: behavior \"Shuffled\""},
    {R"({"type":"Split",)", R"({"type":"BertPreTokenizer",)", "E-TOK-001",
     "pre_tokenizer: pre-tokeniser \"BertPreTokenizer\""},
    {R"({"type":"Split",)", R"({"kind":"Split",)", "E-TOK-002", "pre_tokenizer: has no \"type\""},
    {R"({"type":"Split",)", R"({"type":"ByteLevel","use_regex":1,)", "E-TOK-002",
     "pre_tokenizer: \"use_regex\" is no boolean"},
    {R"({"type":"Split",)", R"({"type":"ByteLevel",)", "E-TOK-001",
     "decoder: ByteLevel in one of pre_tokenizer and decoder"},
    {R"("ids":[4])", R"("ids":[5])", "E-TOK-002", "post_processor: id 5; 0 to 4 allowed"},
    {R"("ids":[4])", R"("ids":["4"])", "E-TOK-002", "post_processor: a token id expected"},
    {R"({"Sequence":{"id":"A","type_id":0}})", R"({"Sequence":{"id":"B","type_id":0}})", "E-TOK-001",
     "post_processor: a template other than of one Sequence A"},
    {R"({"type":"Fuse"})", R"({"type":"CTC"})", "E-TOK-001", "decoder.decoders[1]: decoder \"CTC\""},
    {R"({"type":"Fuse"})", R"({"type":"Strip","content":" ","start":2,"stop":0})", "E-TOK-001",
     "decoder.decoders[1]: a Strip other than"},
    {R"("decoder":{"type":"Sequence",)", R"("decoder":null,"padding":{"type":"Sequence",)", "E-TOK-002",
     "the file: the member \"padding\" comes twice"},
};

TEST(TokenizerJson, refuses_each_fault_by_name_and_at_once) {
  ASSERT_GE(std::size(kFaults), 50u);
  for (const Fault& fault : kFaults) {
    const std::string text = replaced(fault.from, fault.to);
    const double begin = thread_ms();
    const auto made = read_tokenizer_json(text);
    const double took = thread_ms() - begin;
    ASSERT_FALSE(made.ok()) << fault.to;
    EXPECT_EQ(error_row(made.error().code).id, fault.code) << fault.to;
    const std::string message = cat(made.error().where, ": ", made.error().detail);
    EXPECT_TRUE(message.starts_with(cat("tokenizer.json: ", fault.message)))
        << message << "\n  for " << fault.to;
    EXPECT_LT(took, 50) << fault.to;
  }
}

TEST(TokenizerJson, refuses_a_config_that_names_other_tokens) {
  const auto refusal = [](std::string_view config) {
    const auto made = read_tokenizer_json(kGood, config);
    return made.ok() ? "accepted" : cat(made.error().where, ": ", made.error().detail);
  };
  EXPECT_EQ(refusal("{}"), "accepted");
  EXPECT_EQ(refusal(R"({"eos_token":null})"), "accepted");
  EXPECT_EQ(refusal(R"({"eos_token":"</s>"})"),
            "tokenizer_config.json: eos_token: \"eos_token\" is no token of tokenizer.json");
  EXPECT_TRUE(refusal("[]").starts_with("tokenizer_config.json: no object"));
  EXPECT_TRUE(refusal("{").starts_with("tokenizer_config.json: "));
}

// Files that would be slow or large if they were taken at their word.
TEST(TokenizerJson, refuses_hostile_files_at_once) {
  std::string steps;
  for (int i = 0; i < 64; ++i)
    steps += R"({"type":"Replace","pattern":{"String":"a"},"content":"aaaaaaaaaaaaaaaa"},)";
  std::string nested(R"({"type":"Sequence","normalizers":[)");
  std::string close;
  for (int i = 0; i < 40; ++i) {
    nested += R"({"type":"Sequence","normalizers":[)";
    close += "]}";
  }
  const std::string from = R"({"type":"Replace","pattern":{"String":" "},"content":"_"})";
  const std::string hostile[] = {
      replaced(from, cat(R"({"type":"Sequence","normalizers":[)", steps, from, "]}")),
      replaced(from, cat(nested, close, "]}")),
      replaced(from, std::string(100000, '[')),
      replaced(R"("b":2)", cat(R"("b":2,")", std::string(500000, 'b'), R"(":9)")),
      replaced("<s>\",\"single", cat(std::string(100000, 's'), "\",\"single")),
  };
  for (const std::string& text : hostile) {
    const double begin = thread_ms();
    const auto made = read_tokenizer_json(text);
    const double took = thread_ms() - begin;
    EXPECT_EQ(made.ok(), text.size() > 400000) << text.substr(0, 300);  // a long token is only long
    EXPECT_LT(took, 50) << text.substr(0, 300);
  }
}

}  // namespace
}  // namespace inferd
