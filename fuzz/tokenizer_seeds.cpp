// tokenizer_seeds FOLDER VECTORS: writes the tokenizers of src/text/testdata/tokenizer_vectors.jsonl with a
// few tokens each, one a file, below FOLDER/tokenizer_json, and their texts below FOLDER/encode, as corpora
// to start tokenizer_json_fuzz and encode_fuzz with.

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/json.h"
#include "base/strings.h"

namespace inferd {
namespace {

// A model with few tokens: single characters, bytes, and one merge.
Json small_model(const Json& model) {
  Json::Object small;
  for (const auto& [key, value] : model.as_object()) {
    if (key == "vocab" && value.is_object()) {
      Json::Object vocabulary;
      for (const char* token : {"<unk>", "a", "b", "ab", "\u2581", "\u0120", "t", "h", "e"})
        vocabulary.emplace_back(token, static_cast<int64_t>(vocabulary.size()));
      small.emplace_back(key, vocabulary);
    } else if (key == "vocab") {
      small.emplace_back(
          key, parse_json(R"([["<unk>",0.0],["</s>",0.0],["a",-1.5],["▁",-2.5],["▁a",-0.5]])").value());
    } else if (key == "merges") {
      small.emplace_back(key, Json::Array{"a b"});
    } else {
      small.emplace_back(key, value);
    }
  }
  return small;
}

int run(const char* folder, const char* vectors) {
  const std::string json_folder = cat(folder, "/tokenizer_json");
  const std::string text_folder = cat(folder, "/encode");
  std::filesystem::create_directories(json_folder);
  std::filesystem::create_directories(text_folder);
  std::ifstream file(vectors);
  std::map<std::string, Json> models;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    const auto vector = parse_json(line);
    if (!vector.ok()) return 1;
    const std::string& model = vector->find("model")->as_string();
    if (const Json* json = vector->find("json"); json != nullptr) {
      models[model] = small_model(*json);
      continue;
    }
    Json::Object whole = vector->find("parts")->as_object();
    whole.emplace_back("model", models.at(model));
    std::ofstream(cat(json_folder, "/vector-", number), std::ios::binary) << to_json(whole);
    const Json& first = vector->find("cases")->as_array()[0];
    std::ofstream(cat(text_folder, "/vector-", number), std::ios::binary)
        << static_cast<char>(number) << first.as_array()[0].as_string();
    ++number;
  }
  return number > 0 ? 0 : 1;
}

}  // namespace
}  // namespace inferd

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: tokenizer_seeds FOLDER VECTORS\n");
    return 2;
  }
  return inferd::run(argv[1], argv[2]);
}
