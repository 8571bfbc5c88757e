// The decoder on the reference backend against transformers' logits: tiny random models at all positions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "reference/reference_backend.h"
#include "support/decoder_probe.h"
#include "support/golden.h"

namespace inferd {
namespace {

struct TinyCase {
  std::string family;
  std::string variant;
  std::string gguf;
  std::string folder;
};

void PrintTo(const TinyCase& c, std::ostream* out) {
  *out << c.family << " " << c.variant;
}

class TinyModel : public testing::TestWithParam<TinyCase> {};

// Goldens are float64 rounded to float; plain float differs by up to 1.3e-4, the golden README sets 5e-4.
constexpr float kTolerance = 5e-4f;

TEST_P(TinyModel, gives_the_golden_logits_at_every_position_whole_and_in_chunks) {
  const TinyCase& c = GetParam();
  const std::string folder = cat(test::golden_dir(), "/tiny/", c.folder, "/");
  const Json golden = test::read_json(folder + "golden.json");
  const Json::Array& prompts = golden.find("prompts")->as_array();
  const test::NpyArray wanted = test::read_npy(cat(folder, c.variant, ".logits.npy"));
  test::DecoderProbe probe(make_reference_backend(), folder + "gguf/" + c.gguf,
                           {.ctx = 128, .max_tokens = 128});
  ASSERT_EQ(wanted.shape.at(1), probe.vocab());
  size_t row = 0;
  for (const Json& prompt : prompts) {
    std::vector<int32_t> ids;
    for (const Json& id : prompt.as_array()) ids.push_back(static_cast<int32_t>(id.as_integer()));
    probe.reset();
    const std::vector<float> whole = probe.feed(ids);
    float worst = 0;
    for (size_t i = 0; i < whole.size(); ++i) {
      worst = std::max(
          worst, std::fabs(whole[i] - wanted.as<float>()[row * static_cast<size_t>(probe.vocab()) + i]));
    }
    EXPECT_LE(worst, kTolerance) << "prompt of " << ids.size();
    // The reference computes every row on its own, so chunks give the same bits.
    probe.reset();
    const std::span<const int32_t> all(ids);
    const size_t cut = ids.size() / 3 + 1;
    std::vector<float> chunks = probe.feed(all.first(cut));
    const std::vector<float> rest = probe.feed(all.subspan(cut));
    chunks.insert(chunks.end(), rest.begin(), rest.end());
    EXPECT_EQ(chunks, whole);
    row += ids.size();
  }
  EXPECT_EQ(static_cast<int64_t>(row), wanted.shape.at(0));
}

std::vector<TinyCase> tiny_cases() {
  std::vector<TinyCase> cases;
  for (const std::string family : {"llama", "llama-rope3-tied", "qwen2"}) {
    for (const std::string variant : {"f32", "f16", "q8_0", "q4_0"}) {
      cases.push_back({family, variant, cat("tiny-", family, "-", variant, ".gguf"), family});
    }
  }
  for (const std::string variant : {"llama-256-q4_k", "qwen2-256-q4_k", "llama-256-mixed"}) {
    cases.push_back({"wide", variant, cat("tiny-", variant, ".gguf"), "wide"});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Families, TinyModel, testing::ValuesIn(tiny_cases()), [](const auto& instance) {
  std::string name = instance.param.family + "_" + instance.param.variant;
  std::ranges::replace(name, '-', '_');
  return name;
});

TEST(TinyModels, what_is_not_computed_here_is_refused_by_name) {
  const auto refusal = [](const GgufFile& file) -> Error {
    const Backend backend = make_reference_backend();
    const Result<DecoderConfig> config = read_decoder_config(file);
    if (!config.ok()) return config.error();
    return Decoder::weight_bytes(file, *config, 64, *backend.ops).error();
  };
  const std::string tiny = test::golden_dir() + "/tiny/";
  const Error architecture = refusal(GgufFile::open(tiny + "gemma3/gguf/tiny-gemma3-f32.gguf").value());
  EXPECT_EQ(architecture.code, Code::model_architecture);
  EXPECT_EQ(architecture.detail, "\"gemma3\", supported are llama, qwen2");
  constexpr uint32_t kIq2Xxs = 16;
  const std::string other =
      test::gguf_with_type(tiny + "wide/gguf/tiny-llama-256-q4_k.gguf", "blk.0.attn_q.weight", kIq2Xxs);
  const Error type = refusal(GgufFile::parse(std::as_bytes(std::span(other)), "other.gguf").value());
  EXPECT_EQ(type.code, Code::model_tensor_type);
  EXPECT_EQ(type.detail, "blk.0.attn_q.weight has type IQ2_XXS");
}

}  // namespace
}  // namespace inferd
