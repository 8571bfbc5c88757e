// The small models that an independent converter wrote: names, shapes and numbers of the GGUF files against
// the safetensors files that they were made from, each through its own reader.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/json.h"
#include "base/mmap.h"
#include "base/strings.h"
#include "formats/gguf.h"
#include "formats/golden_path.h"
#include "formats/safetensors.h"
#include "tensor/half.h"

namespace inferd {
namespace {

namespace fs = std::filesystem;

// Element i as a float.
float element(const SafetensorsTensor& tensor, size_t i) {
  if (tensor.dtype == SafetensorsDType::f32) {
    float value = 0;
    std::memcpy(&value, tensor.data.data() + 4 * i, 4);
    return value;
  }
  EXPECT_EQ(tensor.dtype, SafetensorsDType::bf16);
  uint16_t bits = 0;
  std::memcpy(&bits, tensor.data.data() + 2 * i, 2);
  return bf16_to_f32(bits);
}

// The row of the Hugging Face file that is row `row` of the GGUF file: q and k of llama have the two halves
// of a head's rotary dimensions interleaved there.
size_t source_row(size_t row, size_t head_dim) {
  const size_t inside = row % head_dim;
  return row - inside + inside % 2 * (head_dim / 2) + inside / 2;
}

// The values of `source` in the layout of its GGUF twin.
std::vector<float> as_in_gguf(const SafetensorsTensor& source, size_t permuted_head_dim, bool plus_one) {
  const auto cols = static_cast<size_t>(source.shape.back());
  std::vector<float> values;
  for (size_t i = 0; i < static_cast<size_t>(source.elements); ++i) {
    const size_t row = permuted_head_dim == 0 ? i / cols : source_row(i / cols, permuted_head_dim);
    values.push_back(element(source, row * cols + i % cols) + (plus_one ? 1.0f : 0.0f));
  }
  return values;
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
  const SafetensorsModel source = SafetensorsModel::open(folder / "hf").value();
  EXPECT_EQ(source.files().size(), family == "llama-rope3-tied" ? 3U : 1U);
  ASSERT_FALSE(source.tensors().empty());
  int files = 0;
  size_t compared = 0;
  for (const auto& entry : fs::directory_iterator(folder / "gguf")) {
    SCOPED_TRACE(entry.path());
    const GgufFile file = GgufFile::open(entry.path()).value();
    std::set<std::string_view> extra;
    for (const GgufTensor& tensor : file.tensors()) extra.insert(tensor.name);
    for (const SafetensorsModel::Entry& entry_of_source : source.tensors()) {
      const SafetensorsTensor& expected = *entry_of_source.tensor;
      const std::string& name = expected.name;
      const GgufTensor* tensor = file.tensor(gguf_name(name, family == "gemma3")).value();
      extra.erase(tensor->name);
      const std::vector<int64_t> shape(tensor->shape.begin(), tensor->shape.begin() + tensor->dims);
      EXPECT_EQ(shape, std::vector<int64_t>(expected.shape.rbegin(), expected.shape.rend())) << name;
      if (!entry.path().string().ends_with("-f32.gguf")) continue;
      // The file of floats has the source's numbers, bit for bit.
      ASSERT_EQ(file.dtype(*tensor).value(), DType::f32);
      const bool permuted = family.starts_with("llama") && (name.find("q_proj") != std::string::npos ||
                                                            name.find("k_proj") != std::string::npos);
      const size_t head_dim =
          permuted ? static_cast<size_t>(file.integer("llama.attention.key_length").value()) : 0;
      const std::vector<float> wanted =
          as_in_gguf(expected, head_dim, family == "gemma3" && name.ends_with("norm.weight"));
      EXPECT_TRUE(std::ranges::equal(tensor->data, std::as_bytes(std::span(wanted)))) << name;
      ++compared;
    }
    extra.erase("rope_freqs.weight");  // computed by the converter
    EXPECT_TRUE(extra.empty()) << *extra.begin();
    EXPECT_EQ(file.strings("tokenizer.ggml.tokens").value().size(), 288);
    ++files;
  }
  EXPECT_EQ(files, 4);
  EXPECT_EQ(compared, source.tensors().size());
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
