#include "text/pretokenizer.h"

namespace inferd {
namespace {

using enum PiecePattern;

// "ByteLevel" alone splits by GPT-2's pattern. StarCoder's order is "Digits" with individual digits, then
// "ByteLevel".
constexpr PiecePattern kGpt2[] = {gpt2};
constexpr PiecePattern kStarcoder[] = {digit, gpt2};
constexpr PiecePattern kQwen2[] = {qwen2};
constexpr PiecePattern kQwen35[] = {qwen35};
constexpr PiecePattern kLlama3[] = {llama3};
constexpr PiecePattern kO200k[] = {o200k};
constexpr PiecePattern kFalcon[] = {punctuation_run, gpt2, alphabet_digits, ascii_digits_3};
constexpr PiecePattern kDeepseekLlm[] = {newline,         deepseek_letters, deepseek_punctuation,
                                         trailing_spaces, deepseek_cjk,     digit};
constexpr PiecePattern kDeepseekCoder[] = {newline, spaced_letters, spaced_punctuation, deepseek_cjk, digit};
constexpr PiecePattern kDeepseekV3[] = {numbers_3, deepseek_v3_cjk, deepseek_v3};

// One row a name; the only list of what is supported.
constexpr PreTokenizer kPreTokenizers[] = {
    {.name = "gpt-2", .steps = kGpt2},
    {.name = "phi-2", .steps = kGpt2},
    {.name = "mpt", .steps = kGpt2, .nfc = true},
    {.name = "smollm", .steps = kStarcoder},
    {.name = "starcoder", .steps = kStarcoder},
    {.name = "refact", .steps = kStarcoder},
    {.name = "command-r", .steps = kStarcoder, .nfc = true},
    {.name = "qwen2", .steps = kQwen2, .nfc = true},
    {.name = "deepseek-r1-qwen", .steps = kQwen2, .nfc = true},
    {.name = "qwen35", .steps = kQwen35, .nfc = true},
    {.name = "llama-bpe", .steps = kLlama3, .whole_tokens = true, .adds_bos = true},
    {.name = "llama3", .steps = kLlama3, .whole_tokens = true, .adds_bos = true},
    {.name = "llama-v3", .steps = kLlama3, .whole_tokens = true, .adds_bos = true},
    {.name = "falcon3", .steps = kLlama3, .whole_tokens = true, .adds_bos = true},
    {.name = "falcon-h1", .steps = kLlama3, .whole_tokens = true, .adds_bos = true},
    {.name = "lfm2", .steps = kLlama3, .whole_tokens = true, .adds_bos = true},
    {.name = "midm-2.0", .steps = kLlama3, .whole_tokens = true, .adds_bos = true},
    {.name = "pixtral", .steps = kLlama3, .whole_tokens = true, .adds_bos = true},
    {.name = "dbrx", .steps = kLlama3},
    {.name = "gpt-4o", .steps = kO200k},
    {.name = "llama4", .steps = kO200k},
    {.name = "falcon", .steps = kFalcon},
    {.name = "deepseek-llm", .steps = kDeepseekLlm},
    {.name = "deepseek-coder", .steps = kDeepseekCoder},
    {.name = "deepseek-v3", .steps = kDeepseekV3},
};

}  // namespace

const PreTokenizer* find_pre_tokenizer(std::string_view name) {
  for (const PreTokenizer& rules : kPreTokenizers) {
    if (rules.name == name) return &rules;
  }
  return nullptr;
}

std::string pre_tokenizer_names() {
  std::string names;
  for (const PreTokenizer& rules : kPreTokenizers) {
    if (!names.empty()) names += ", ";
    names += rules.name;
  }
  return names;
}

}  // namespace inferd
