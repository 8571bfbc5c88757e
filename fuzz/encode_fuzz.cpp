// What libFuzzer calls with every input, and the test that replays tests/corpus/encode: the first byte
// chooses a tokenizer, the others are a text. Encoding must give ids of the vocabulary, never a special token
// of a text that is data, the same ids however the text is cut into spans of one kind, and a text again.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/json.h"
#include "base/utf8.h"
#include "text/tokenizer_json.h"

namespace inferd {
namespace {

// Those of the recorded vectors.
std::vector<Tokenizer> read_tokenizers() {
  std::ifstream file(INFERD_SOURCE_DIR "/src/text/testdata/tokenizer_vectors.jsonl");
  INFERD_CHECK(file, "no tokenizer vectors");
  std::map<std::string, Json> models;
  std::vector<Tokenizer> tokenizers;
  for (std::string line; std::getline(file, line);) {
    const Json vector = parse_json(line).value();
    const std::string& model = vector.find("model")->as_string();
    if (const Json* json = vector.find("json"); json != nullptr) {
      models[model] = *json;
      continue;
    }
    Json::Object whole = vector.find("parts")->as_object();
    whole.emplace_back("model", models.at(model));
    tokenizers.push_back(read_tokenizer_json(to_json(whole)).value());
  }
  return tokenizers;
}

}  // namespace
}  // namespace inferd

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace inferd;
  static const std::vector<Tokenizer> kTokenizers = read_tokenizers();
  if (size == 0) return 0;
  const Tokenizer& tokenizer = kTokenizers[data[0] % kTokenizers.size()];
  const std::string text = replace_invalid_utf8({reinterpret_cast<const char*>(data) + 1, size - 1});
  for (const bool special : {false, true}) {
    const std::vector<int32_t> ids = tokenizer.encode(text, {.parse_special = special});
    INFERD_CHECK(tokenizer.check_ids(ids).ok());
    INFERD_CHECK(is_valid_utf8(tokenizer.decode(ids)));
    std::vector<TextSpan> spans;
    for (size_t at = 0; at < text.size();) {
      size_t end = std::min(text.size(), at + 1 + data[0] % 7);
      while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
      spans.push_back({text.substr(at, end - at), special});
      at = end;
    }
    INFERD_CHECK(tokenizer.encode_spans(spans) == ids, "spans change ids");
  }
  return 0;
}
