// The decoder against transformers: logits of tiny random models at all positions, and how they go on.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>

#include "cpu/cpu_backend.h"
#include "formats/gguf_writer.h"
#include "reference/reference_backend.h"
#include "support/decoder_probe.h"
#include "support/golden.h"

namespace inferd {
namespace {

struct TinyCase {
  std::string family;
  std::string variant;
  std::string gguf;
  std::string folder;  // of golden.json and VARIANT.logits.npy
};

void PrintTo(const TinyCase& c, std::ostream* out) {
  *out << c.family << " " << c.variant;
}

// Goldens are float64 rounded to float; plain float differs by up to 1.3e-4, the golden README sets 5e-4.
constexpr float kTolerance = 5e-4f;
// Under this margin between the two largest golden logits two right programs may choose differently.
constexpr double kMargin = 1e-3;

class TinyModel : public testing::TestWithParam<TinyCase> {
 protected:
  Json golden() const { return test::read_json(GetParam().folder + "/golden.json"); }
  static Backend cpu_backend() {
    Result<Backend> made = make_cpu_backend({.threads = 2, .pin = false});
    INFERD_CHECK(made.ok(), made.error().message());
    return std::move(made).value();
  }
  test::DecoderProbe probe(Backend backend, int32_t ctx = 128) const {
    return {std::move(backend), GetParam().gguf, {.ctx = ctx, .max_tokens = ctx}};
  }

  // The logits of every position of every prompt with so many tokens, whole and in two chunks, which must
  // give the same bits.
  void expect_golden_logits(test::DecoderProbe probe, size_t shortest = 1, size_t longest = 128) const {
    const test::NpyArray wanted =
        test::read_npy(cat(GetParam().folder, "/", GetParam().variant, ".logits.npy"));
    ASSERT_EQ(wanted.shape.at(1), probe.vocab());
    size_t row = 0;
    const Json all_prompts = golden();
    for (const Json& prompt : all_prompts.find("prompts")->as_array()) {
      const std::vector<int32_t> ids = ids_of(prompt);
      const size_t first_row = row;
      row += ids.size();
      if (ids.size() < shortest || ids.size() > longest) continue;
      probe.reset();
      const std::vector<float> whole = probe.feed(ids);
      const float* expected = wanted.as<float>() + first_row * static_cast<size_t>(probe.vocab());
      float worst = 0;
      for (size_t i = 0; i < whole.size(); ++i) worst = std::max(worst, std::fabs(whole[i] - expected[i]));
      EXPECT_LE(worst, kTolerance) << "prompt of " << ids.size();
      probe.reset();
      const std::span<const int32_t> all(ids);
      const size_t cut = ids.size() / 3 + 1;
      std::vector<float> chunks = probe.feed(all.first(cut));
      const std::vector<float> rest = probe.feed(all.subspan(cut));
      chunks.insert(chunks.end(), rest.begin(), rest.end());
      EXPECT_EQ(chunks, whole);
    }
    EXPECT_EQ(static_cast<int64_t>(row), wanted.shape.at(0));
  }

  // Greedy continuations of the prompts that have one, up to the first step whose golden margin is too small
  // to tell.
  void expect_golden_greedy(test::DecoderProbe probe) const {
    const Json all = golden();
    const Json& variant = *all.find("variants")->find(GetParam().variant);
    size_t steps = 0;
    size_t all_steps = 0;
    for (size_t p = 0; p < all.find("prompts")->as_array().size(); ++p) {
      const std::vector<int32_t> wanted = ids_of(variant.find("greedy")->as_array()[p]);
      const Json::Array& margins = variant.find("margin")->as_array()[p].as_array();
      all_steps += wanted.size();
      probe.reset();
      std::vector<float> logits = probe.feed_last(ids_of(all.find("prompts")->as_array()[p]));
      for (size_t i = 0; i < wanted.size() && margins[i].as_number() >= kMargin; ++i, ++steps) {
        const int32_t id = test::arg_max(logits);
        ASSERT_EQ(id, wanted[i]) << "prompt " << p << ", step " << i << ", margin " << margins[i].as_number();
        logits = probe.feed_last({&id, 1});
      }
    }
    EXPECT_GE(steps, all_steps / 3);  // something was compared
    EXPECT_GE(all_steps, 32u);
  }

 private:
  static std::vector<int32_t> ids_of(const Json& array) {
    std::vector<int32_t> ids;
    for (const Json& id : array.as_array()) ids.push_back(static_cast<int32_t>(id.as_integer()));
    return ids;
  }
};

TEST_P(TinyModel, gives_the_golden_logits_at_every_position_whole_and_in_chunks) {
  expect_golden_logits(probe(make_reference_backend()));
}

TEST_P(TinyModel, goes_on_as_the_golden_greedily) {
  expect_golden_greedy(probe(make_reference_backend()));
}

// The CPU backend keeps activations in float beside float weights, so the same bounds hold.
class TinyFloatModelOnCpu : public TinyModel {};

TEST_P(TinyFloatModelOnCpu, gives_the_golden_logits_and_greedy_ids) {
  expect_golden_logits(probe(cpu_backend()));
  expect_golden_greedy(probe(cpu_backend()));
}

std::vector<TinyCase> tiny_cases() {
  std::vector<TinyCase> cases;
  for (const std::string family : {"llama", "llama-rope3-tied", "qwen2", "qwen3", "gemma3"}) {
    const std::string folder = test::tiny_dir(family);
    for (const std::string variant : {"f32", "f16", "q8_0", "q4_0"})
      cases.push_back({family, variant, cat(folder, "/gguf/tiny-", family, "-", variant, ".gguf"), folder});
  }
  // The GGUF file holds the weights of the golden folder, which are F16.
  cases.push_back({"mistral", "hf", test::tiny_dir("mistral") + "/gguf/tiny-mistral-f16.gguf",
                   test::golden_dir() + "/tiny/mistral"});
  for (const std::string family : {"gemma", "gemma2"}) {
    const std::string folder = test::tiny_dir(family);
    cases.push_back({family, "f16", cat(folder, "/gguf/tiny-", family, "-f16.gguf"), folder});
  }
  const std::string wide = test::golden_dir() + "/tiny/wide";
  for (const std::string variant :
       {"llama-256-q4_k", "qwen2-256-q4_k", "qwen3-256-q4_k", "gemma3-256-q4_k", "llama-256-mixed"})
    cases.push_back({"wide", variant, cat(wide, "/gguf/tiny-", variant, ".gguf"), wide});
  return cases;
}

std::vector<TinyCase> float_cases() {
  std::vector<TinyCase> cases = tiny_cases();
  std::erase_if(
      cases, [](const TinyCase& c) { return c.variant != "f32" && c.variant != "f16" && c.variant != "hf"; });
  return cases;
}

std::string case_name(const testing::TestParamInfo<TinyCase>& instance) {
  std::string name = instance.param.family + "_" + instance.param.variant;
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Families, TinyModel, testing::ValuesIn(tiny_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Families, TinyFloatModelOnCpu, testing::ValuesIn(float_cases()), case_name);

// A copy of a model file without its tokenizer and with other keys of its architecture beside its own.
std::string with_keys(const std::string& path, const std::string& copy,
                      const std::function<void(GgufWriter&)>& add) {
  const GgufFile file = GgufFile::open(path).value();
  GgufWriter writer;
  const std::string architecture(file.string("general.architecture").value());
  writer.add("general.architecture", architecture);
  for (const GgufValue& value : file.values()) {
    if (!value.key.starts_with(architecture + ".")) continue;
    if (value.type == GgufValueType::uint32)
      writer.add(value.key, static_cast<uint32_t>(file.integer(value.key).value()));
    if (value.type == GgufValueType::float32)
      writer.add(value.key, static_cast<float>(file.real(value.key).value()));
  }
  add(writer);
  for (const GgufTensor& t : file.tensors())
    writer.add_tensor(t.name, t.type, {t.shape.begin(), t.shape.begin() + t.dims}, t.data);
  const Status written = writer.write(copy);
  INFERD_CHECK(written.ok(), copy);
  return copy;
}

// Scalings of llama's rotation over the weights of the tiny llama model.
class RopeScaling : public TinyModel {};

TEST_P(RopeScaling, gives_the_golden_logits_and_greedy_ids) {
  const std::string path = with_keys(
      test::tiny_dir("llama") + "/gguf/tiny-llama-f32.gguf", GetParam().gguf, [](GgufWriter& writer) {
        const std::string& type = GetParam().variant;
        writer.add("llama.rope.scaling.type", type);
        writer.add("llama.rope.scaling.factor", type == "linear" ? 4.0f : 8.0f);
        if (type == "yarn") writer.add("llama.rope.scaling.original_context_length", uint32_t{32});
      });
  expect_golden_logits(probe(make_reference_backend()));
  expect_golden_greedy(probe(make_reference_backend()));
  std::filesystem::remove(path);
}

INSTANTIATE_TEST_SUITE_P(Llama, RopeScaling,
                         testing::Values(TinyCase{"llama", "linear", testing::TempDir() + "tiny-linear.gguf",
                                                  test::tiny_dir("llama-rope")},
                                         TinyCase{"llama", "yarn", testing::TempDir() + "tiny-yarn.gguf",
                                                  test::tiny_dir("llama-rope")}),
                         case_name);

// LongRoPE with factors that change over at 32 tokens: transformers chooses by the sequence, we by the
// context.
class LongRope : public TinyModel {};

TEST_P(LongRope, short_factors_serve_short_contexts_and_long_ones_the_others) {
  for (const auto& backend : {std::function<Backend()>([] { return make_reference_backend(); }),
                              std::function<Backend()>(cpu_backend)}) {
    expect_golden_logits(probe(backend(), 32), 1, 32);
    expect_golden_logits(probe(backend(), 128), 33, 128);
    expect_golden_greedy(probe(backend(), 128));
  }
}

INSTANTIATE_TEST_SUITE_P(Phi3, LongRope,
                         testing::Values(TinyCase{"phi3", "f16",
                                                  test::tiny_dir("phi3") + "/gguf/tiny-phi3-f16.gguf",
                                                  test::tiny_dir("phi3")}),
                         case_name);

TEST(TinyModels, what_is_not_computed_here_is_refused_by_name) {
  const auto refusal = [](const GgufFile& file) -> Error {
    const Backend backend = make_reference_backend();
    const Result<DecoderConfig> config = read_decoder_config(file);
    if (!config.ok()) return config.error();
    return Decoder::weight_bytes(file, *config, 64, *backend.ops).error();
  };
  GgufWriter mamba;
  mamba.add("general.architecture", "mamba");
  const std::vector<std::byte> bytes = mamba.bytes();
  const Error architecture = refusal(GgufFile::parse(bytes, "other.gguf").value());
  EXPECT_EQ(architecture.code, Code::model_architecture);
  EXPECT_EQ(architecture.detail, "\"mamba\", supported are llama, qwen2, qwen3, phi3, gemma, gemma2, gemma3");
  constexpr uint32_t kIq2Xxs = 16;
  const std::string other = test::gguf_with_type(
      test::golden_dir() + "/tiny/wide/gguf/tiny-llama-256-q4_k.gguf", "blk.0.attn_q.weight", kIq2Xxs);
  const Error type = refusal(GgufFile::parse(std::as_bytes(std::span(other)), "other.gguf").value());
  EXPECT_EQ(type.code, Code::model_tensor_type);
  EXPECT_EQ(type.detail, "blk.0.attn_q.weight has type IQ2_XXS");
}

}  // namespace
}  // namespace inferd
