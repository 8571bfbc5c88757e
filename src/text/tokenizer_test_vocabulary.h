// For tests only: a small byte-level vocabulary built by hand. Ids 0 to 255 are the bytes in order.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "text/tokenizer.h"

namespace inferd {

struct TestVocabulary {
  std::string pre = "gpt-2";
  std::vector<std::string> tokens;
  std::vector<int32_t> types;
  std::vector<std::string> merges;
  TokenizerData data;  // its views are set by create()

  TestVocabulary() {
    for (int byte = 0; byte < 256; ++byte) add(byte_character(byte));
  }

  // How GPT-2's published table writes a byte: printable ones as they are, the others numbered from U+0100.
  static std::string byte_character(int byte) {
    const auto prints = [](int b) {
      return (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
    };
    int character = byte;
    if (!prints(byte)) {
      character = 0x100;
      for (int b = 0; b < byte; ++b) character += prints(b) ? 0 : 1;
    }
    std::string text;
    append_utf8(text, static_cast<char32_t>(character));
    return text;
  }

  int32_t add(std::string text, TokenType type = TokenType::normal) {
    tokens.push_back(std::move(text));
    types.push_back(static_cast<int32_t>(type));
    return static_cast<int32_t>(tokens.size()) - 1;
  }

  // Adds a merge and the token that it makes.
  int32_t merge(const std::string& left, const std::string& right) {
    merges.push_back(left + " " + right);
    return add(left + right);
  }

  Result<Tokenizer> create() {
    const std::vector<std::string_view> token_views(tokens.begin(), tokens.end());
    const std::vector<std::string_view> merge_views(merges.begin(), merges.end());
    data.model = "gpt2";
    data.pre = pre;
    data.tokens = token_views;
    data.types = types;
    data.merges = merge_views;
    return Tokenizer::create(data);
  }
};

}  // namespace inferd
