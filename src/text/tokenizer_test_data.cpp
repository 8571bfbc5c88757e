#include "text/tokenizer_test_data.h"

#include <zlib.h>

#include <cstdlib>
#include <cstring>

#include "base/json.h"

namespace inferd {
namespace {

// Reads little-endian values of a file that the test trusts, but for its end.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes)
      : text_(reinterpret_cast<const char*>(bytes.data()), bytes.size()) {}

  template <typename T>
  T number() {
    T value;
    const std::string_view bytes = take(sizeof(T));
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  std::string_view string() { return take(number<uint64_t>()); }
  std::string_view take(size_t size) {
    INFERD_CHECK(size <= text_.size() - at_, "the GGUF file ends early");
    at_ += size;
    return text_.substr(at_ - size, size);
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

constexpr uint32_t kUint32 = 4, kInt32 = 5, kFloat32 = 6, kBool = 7, kString = 8, kArray = 9;

size_t size_of_type(uint32_t type) {
  constexpr size_t kSizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return kSizes[type];
}

std::string gunzip(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  INFERD_CHECK(file != nullptr, "cannot read ", path);
  std::string text;
  char buffer[1 << 16];
  for (int size; (size = gzread(file, buffer, sizeof(buffer))) > 0;)
    text.append(buffer, static_cast<size_t>(size));
  gzclose(file);
  return text;
}

std::vector<Json> golden_lines(const std::string& name) {
  const char* folder = std::getenv("INFERD_GOLDEN");
  const std::string path = cat(folder != nullptr ? folder : INFERD_SOURCE_DIR "/../shared/golden", "/", name);
  const std::string text = gunzip(path);
  std::vector<Json> lines;
  for (const std::string_view line : split(text, '\n')) {
    if (!line.empty()) lines.push_back(parse_json(line).value());
  }
  return lines;
}

std::vector<int32_t> ids_of(const Json& array) {
  std::vector<int32_t> ids;
  for (const Json& id : array.as_array()) ids.push_back(static_cast<int32_t>(id.as_integer()));
  return ids;
}

}  // namespace

std::string model_path(const std::string& file_name) {
  const char* folder = std::getenv("INFERD_TEST_MODELS");
  INFERD_CHECK(folder != nullptr, "set INFERD_TEST_MODELS to the folder with ", file_name);
  return cat(folder, "/", file_name);
}

std::string tokenizer_path(const std::string& file_name) {
  if (const char* folder = std::getenv("INFERD_TEST_TOKENIZERS")) return cat(folder, "/", file_name);
  if (const char* cache = std::getenv("XDG_CACHE_HOME")) return cat(cache, "/inferd/tokenizers/", file_name);
  const char* home = std::getenv("HOME");
  INFERD_CHECK(home != nullptr, "set INFERD_TEST_TOKENIZERS to the folder with ", file_name);
  return cat(home, "/.cache/inferd/tokenizers/", file_name);
}

std::unique_ptr<GgufTokens> read_gguf_tokens(const std::string& path) {
  auto file = MappedFile::open(path);
  INFERD_CHECK(file.ok(), path, ": ", file.error().message());
  auto out = std::unique_ptr<GgufTokens>(new GgufTokens{
      .file = std::move(file).value(), .tokens = {}, .merges = {}, .types = {}, .scores = {}, .data = {}});
  Reader reader(out->file.bytes());
  INFERD_CHECK(reader.take(4) == "GGUF" && reader.number<uint32_t>() == 3);
  reader.number<uint64_t>();
  const auto keys = reader.number<uint64_t>();
  TokenizerData& data = out->data;
  for (uint64_t i = 0; i < keys; ++i) {
    const std::string_view key = reader.string();
    const auto type = reader.number<uint32_t>();
    if (type == kArray) {
      const auto element = reader.number<uint32_t>();
      const auto count = reader.number<uint64_t>();
      if (element == kString) {
        std::vector<std::string_view> strings;
        strings.reserve(count);
        for (uint64_t j = 0; j < count; ++j) strings.push_back(reader.string());
        if (key == "tokenizer.ggml.tokens") {
          out->tokens = std::move(strings);
        } else if (key == "tokenizer.ggml.merges") {
          out->merges = std::move(strings);
        }
      } else {
        const std::string_view raw = reader.take(count * size_of_type(element));
        if (key == "tokenizer.ggml.token_type" && element == kInt32) {
          out->types.resize(count);
          std::memcpy(out->types.data(), raw.data(), raw.size());
        } else if (key == "tokenizer.ggml.scores" && element == kFloat32) {
          std::vector<float> scores(count);
          std::memcpy(scores.data(), raw.data(), raw.size());
          out->scores.assign(scores.begin(), scores.end());
        }
      }
    } else if (type == kString) {
      const std::string_view value = reader.string();
      if (key == "tokenizer.ggml.model") data.model = value;
      if (key == "tokenizer.ggml.pre") data.pre = value;
    } else if (type == kUint32) {
      const auto value = static_cast<int32_t>(reader.number<uint32_t>());
      if (key == "tokenizer.ggml.bos_token_id") data.bos = value;
      if (key == "tokenizer.ggml.eos_token_id") data.eos = value;
      if (key == "tokenizer.ggml.unknown_token_id") data.unk = value;
      if (key == "tokenizer.ggml.padding_token_id") data.pad = value;
    } else if (type == kBool) {
      const bool value = reader.number<uint8_t>() != 0;
      if (key == "tokenizer.ggml.add_bos_token") data.add_bos = value;
      if (key == "tokenizer.ggml.add_space_prefix") data.add_space_prefix = value;
      if (key == "tokenizer.ggml.remove_extra_whitespaces") data.remove_extra_whitespaces = value;
    } else {
      reader.take(size_of_type(type));
    }
  }
  data.tokens = out->tokens;
  data.merges = out->merges;
  data.types = out->types;
  data.scores = out->scores;
  return out;
}

std::vector<GoldenText> read_golden_texts(const std::string& tokenizer) {
  const std::vector<Json> corpus = golden_lines("corpus.jsonl.gz");
  const std::vector<Json> golden = golden_lines(cat("tokenizers/", tokenizer, ".jsonl.gz"));
  INFERD_CHECK(corpus.size() == golden.size());
  std::vector<GoldenText> texts;
  for (size_t i = 0; i < corpus.size(); ++i) {
    GoldenText text{.id = corpus[i].find("id")->as_string(), .text = corpus[i].find("text")->as_string()};
    INFERD_CHECK(golden[i].find("id")->as_string() == text.id);
    text.ids = ids_of(*golden[i].find("ids"));
    text.ids_plain = ids_of(*golden[i].find("ids_plain"));
    const Json* decoded = golden[i].find("decoded");
    text.decoded = decoded != nullptr ? decoded->as_string() : text.text;
    texts.push_back(std::move(text));
  }
  return texts;
}

std::vector<std::string> read_corpus() {
  std::vector<std::string> texts;
  for (const Json& line : golden_lines("corpus.jsonl.gz")) texts.push_back(line.find("text")->as_string());
  return texts;
}

std::string show_ids(const std::vector<int32_t>& ids) {
  std::string text;
  for (const int32_t id : ids) text += cat(text.empty() ? "" : " ", id);
  return text;
}

}  // namespace inferd
