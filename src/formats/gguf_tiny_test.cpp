// The small models that an independent converter wrote: names, shapes and bytes against the Hugging Face
// files that they were made from.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "base/json.h"
#include "base/mmap.h"
#include "formats/gguf.h"
#include "formats/golden_path.h"

namespace inferd {
namespace {

namespace fs = std::filesystem;

struct HfTensor {
  std::string dtype;
  std::vector<int64_t> shape;
  std::vector<std::byte> data;
};

// The tensors of a folder of safetensors files: u64 length, JSON, data.
std::map<std::string, HfTensor> read_safetensors(const fs::path& folder) {
  std::map<std::string, HfTensor> tensors;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".safetensors") continue;
    const MappedFile file = MappedFile::open(entry.path()).value();
    uint64_t length = 0;
    std::memcpy(&length, file.bytes().data(), sizeof(length));
    const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()) + 8, length);
    const Json header = parse_json(text).value();
    for (const auto& [name, value] : header.as_object()) {
      if (name == "__metadata__") continue;
      HfTensor tensor{.dtype = value.find("dtype")->as_string()};
      for (const Json& dim : value.find("shape")->as_array()) tensor.shape.push_back(dim.as_integer());
      const auto& span = value.find("data_offsets")->as_array();
      const auto begin = static_cast<size_t>(span[0].as_integer());
      const auto bytes =
          file.bytes().subspan(8 + length + begin, static_cast<size_t>(span[1].as_integer()) - begin);
      tensor.data.assign(bytes.begin(), bytes.end());
      tensors.emplace(name, std::move(tensor));
    }
  }
  return tensors;
}

// The GGUF name of a Hugging Face tensor of the dense families, as the GGUF specification lists them.
std::string gguf_name(std::string name, bool gemma) {
  static const std::vector<std::pair<std::string, std::string>> kParts = {
      {"model.layers.", "blk."},
      {"model.embed_tokens", "token_embd"},
      {"model.norm", "output_norm"},
      {"lm_head", "output"},
      {"input_layernorm", "attn_norm"},
      {"pre_feedforward_layernorm", "ffn_norm"},
      {"post_feedforward_layernorm", "post_ffw_norm"},
      {"self_attn.q_proj", "attn_q"},
      {"self_attn.k_proj", "attn_k"},
      {"self_attn.v_proj", "attn_v"},
      {"self_attn.o_proj", "attn_output"},
      {"self_attn.q_norm", "attn_q_norm"},
      {"self_attn.k_norm", "attn_k_norm"},
      {"mlp.gate_proj", "ffn_gate"},
      {"mlp.up_proj", "ffn_up"},
      {"mlp.down_proj", "ffn_down"},
  };
  const auto replace = [&](const std::string& from, const std::string& to) {
    if (const size_t at = name.find(from); at != std::string::npos) name.replace(at, from.size(), to);
  };
  for (const auto& [from, to] : kParts) replace(from, to);
  replace("post_attention_layernorm", gemma ? "post_attention_norm" : "ffn_norm");
  return name;
}

class TinyModels : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!fs::exists(golden_path("tiny"))) GTEST_SKIP() << "no golden files at " << golden_path("tiny");
  }
};

TEST_P(TinyModels, have_the_tensors_of_their_source) {
  const std::string family = GetParam();
  const fs::path folder = golden_path("tiny/" + family);
  const auto source = read_safetensors(folder / "hf");
  ASSERT_FALSE(source.empty());
  int files = 0;
  for (const auto& entry : fs::directory_iterator(folder / "gguf")) {
    SCOPED_TRACE(entry.path());
    const GgufFile file = GgufFile::open(entry.path()).value();
    std::set<std::string_view> extra;
    for (const GgufTensor& tensor : file.tensors()) extra.insert(tensor.name);
    for (const auto& [name, expected] : source) {
      const GgufTensor* tensor = file.tensor(gguf_name(name, family == "gemma3")).value();
      extra.erase(tensor->name);
      const std::vector<int64_t> shape(tensor->shape.begin(), tensor->shape.begin() + tensor->dims);
      EXPECT_EQ(shape, std::vector<int64_t>(expected.shape.rbegin(), expected.shape.rend())) << name;
      // Rows of q and k of llama are stored in another order; all else of an F32 file is the source's, byte
      // for byte.
      const bool permuted = family.starts_with("llama") && (name.find("q_proj") != std::string::npos ||
                                                            name.find("k_proj") != std::string::npos);
      if (file.dtype(*tensor).value() == DType::f32 && expected.dtype == "F32" && !permuted) {
        EXPECT_TRUE(std::ranges::equal(tensor->data, expected.data)) << name;
      }
    }
    extra.erase("rope_freqs.weight");  // computed by the converter
    EXPECT_TRUE(extra.empty()) << *extra.begin();
    EXPECT_EQ(file.strings("tokenizer.ggml.tokens").value().size(), 288);
    ++files;
  }
  EXPECT_EQ(files, 4);
}

INSTANTIATE_TEST_SUITE_P(Gguf, TinyModels,
                         testing::Values("llama", "llama-rope3-tied", "qwen2", "qwen3", "gemma3"),
                         [](const auto& name) {
                           std::string text = name.param;
                           std::ranges::replace(text, '-', '_');
                           return text;
                         });

TEST_F(TinyModels, of_many_types_have_the_types_they_were_made_with) {
  const GgufFile file = GgufFile::open(golden_path("tiny/wide/gguf/tiny-llama-256-mixed.gguf")).value();
  std::set<std::string> types;
  for (const GgufTensor& tensor : file.tensors()) types.insert(ggml_type_name(tensor.type));
  EXPECT_EQ(types, (std::set<std::string>{"BF16", "F32", "IQ4_NL", "IQ4_XS", "Q2_K", "Q3_K", "Q4_1", "Q5_0",
                                          "Q5_1", "Q5_K"}));
  int files = 0;
  for (const auto& entry : fs::directory_iterator(golden_path("tiny/wide/gguf"))) {
    const GgufFile wide = GgufFile::open(entry.path()).value();
    EXPECT_EQ(wide.tensor("token_embd.weight").value()->shape, (std::array<int64_t, 4>{256, 288, 1, 1}));
    ++files;
  }
  EXPECT_EQ(files, 5);
}

TEST_F(TinyModels, come_with_blocks_of_the_sizes_that_gguf_py_knows) {
  const MappedFile file = MappedFile::open(golden_path("quant/index.json")).value();
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  const Json index = parse_json(text).value();
  const auto& types = index.find("types")->as_object();
  EXPECT_EQ(types.size(), 24U);
  for (const auto& [name, expected] : types) {
    const GgmlType* type = find_ggml_type(static_cast<uint32_t>(expected.find("ggml_type")->as_integer()));
    EXPECT_EQ(type->name, name);
    EXPECT_EQ(type->block_elements, expected.find("block")->as_integer()) << name;
    EXPECT_EQ(type->block_bytes, expected.find("bytes_per_block")->as_integer()) << name;
  }
}

}  // namespace
}  // namespace inferd
