// For tests only: tokenizers out of real GGUF files, the corpus, and the ids that Hugging Face's library
// gives for it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mmap.h"
#include "text/tokenizer.h"

namespace inferd {

// The tokenizer's part of a GGUF file: views into the mapping.
struct GgufTokens {
  MappedFile file;
  std::vector<std::string_view> tokens, merges;
  std::vector<int32_t> types;
  std::vector<double> scores;
  TokenizerData data;  // of the vectors above
};

// A file of the folder INFERD_TEST_MODELS, and one of INFERD_TEST_TOKENIZERS or where
// tools/fetch_tokenizers.py puts it.
std::string model_path(const std::string& file_name);
std::string tokenizer_path(const std::string& file_name);

// Ends the process when the file cannot be read: these tests have no meaning without it.
std::unique_ptr<GgufTokens> read_gguf_tokens(const std::string& path);

struct GoldenText {
  std::string id;
  std::string text;
  std::vector<int32_t> ids;        // control tokens parsed
  std::vector<int32_t> ids_plain;  // control tokens read as text
  std::string decoded;             // of `ids`, control tokens kept
};

// The corpus with the ids of one tokenizer, from the folder INFERD_GOLDEN or shared/golden beside the source
// tree.
std::vector<GoldenText> read_golden_texts(const std::string& tokenizer);

// Only the texts.
std::vector<std::string> read_corpus();

// ids as "1 2 3", for messages.
std::string show_ids(const std::vector<int32_t>& ids);

}  // namespace inferd
