// Small tokenizers with every part of a tokenizer.json that is known, against what Hugging Face's library
// made of texts: tools/make_tokenizer_vectors.py recorded it.
#include <gtest/gtest.h>

#include <fstream>

#include "base/json.h"
#include "base/strings.h"
#include "text/tokenizer_json.h"

namespace inferd {
namespace {

std::string show(const std::vector<int32_t>& ids) {
  std::string text;
  for (const int32_t id : ids) text += cat(id, " ");
  return text;
}

std::vector<int32_t> ids_of(const Json& array) {
  std::vector<int32_t> ids;
  for (const Json& id : array.as_array()) ids.push_back(static_cast<int32_t>(id.as_integer()));
  return ids;
}

TEST(TokenizerVectors, all_have_the_ids_and_texts_of_hugging_face) {
  std::ifstream file(INFERD_SOURCE_DIR "/src/text/testdata/tokenizer_vectors.jsonl");
  std::map<std::string, Json> models;
  int tokenizers = 0;
  int cases = 0;
  int forged = 0;
  for (std::string line; std::getline(file, line);) {
    const Json vector = parse_json(line).value();
    const std::string& model = vector.find("model")->as_string();
    if (const Json* json = vector.find("json"); json != nullptr) {
      models[model] = *json;
      continue;
    }
    const std::string& name = vector.find("name")->as_string();
    Json::Object whole = vector.find("parts")->as_object();
    whole.emplace_back("model", models.at(model));
    const auto tokenizer = read_tokenizer_json(to_json(whole));
    ASSERT_TRUE(tokenizer.ok()) << name << "\n" << tokenizer.error().terminal_text();
    ++tokenizers;
    for (const Json& recorded : vector.find("cases")->as_array()) {
      const Json::Array& values = recorded.as_array();
      const std::string& text = values[0].as_string();
      const std::string where = cat(name, ": ", printable(text, 200));
      const std::vector<int32_t> ids = ids_of(values[1]);
      EXPECT_EQ(show(tokenizer->encode(text, {.parse_special = true})), show(ids)) << where;
      const std::vector<int32_t> plain = tokenizer->encode(text);
      if (values[2].is_null()) {  // the library made a special token of text; that must not happen here
        for (const int32_t id : plain) EXPECT_NE(tokenizer->token_bytes(id), "</s>") << where;
        ++forged;
      } else {
        EXPECT_EQ(show(plain), show(ids_of(values[2]))) << where << " with special tokens as text";
      }
      EXPECT_EQ(show(tokenizer->encode(text, {.add_special = true, .parse_special = true})),
                show(ids_of(values[3])))
          << where << " framed";
      EXPECT_EQ(tokenizer->decode(ids), values[4].as_string()) << where;
      ++cases;
    }
  }
  EXPECT_EQ(tokenizers, 106);
  EXPECT_GT(forged, 0);
  EXPECT_EQ(cases, tokenizers * 16);
}

}  // namespace
}  // namespace inferd
