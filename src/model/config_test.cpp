// What the configuration makes of a file's keys, and what it refuses.
#include "model/config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "formats/gguf_writer.h"

namespace inferd {
namespace {

struct Header {
  std::string architecture;
  uint32_t layers = 2;
  std::function<void(GgufWriter&)> more = [](GgufWriter&) {};  // keys and tensors beside the usual ones
};

Result<DecoderConfig> read(const Header& header) {
  const std::vector<float> embedding(8 * 32);
  GgufWriter writer;
  const auto key = [&](std::string_view name) { return cat(header.architecture, ".", name); };
  writer.add("general.architecture", header.architecture);
  writer.add(key("block_count"), header.layers);
  writer.add(key("context_length"), uint32_t{1024});
  writer.add(key("embedding_length"), uint32_t{32});
  writer.add(key("feed_forward_length"), uint32_t{48});
  writer.add(key("attention.head_count"), uint32_t{8});
  writer.add(key("attention.key_length"), uint32_t{16});
  writer.add(key("attention.value_length"), uint32_t{16});
  writer.add(key("attention.layer_norm_rms_epsilon"), 1e-5f);
  header.more(writer);
  writer.add_tensor("token_embd.weight", DType::f32, {32, 8}, std::as_bytes(std::span(embedding)));
  const std::vector<std::byte> bytes = writer.bytes();
  return read_decoder_config(GgufFile::parse(bytes, "model.gguf").value());
}

std::string refusal(const Header& header) {
  const Result<DecoderConfig> config = read(header);
  if (config.ok()) return "";
  EXPECT_EQ(config.error().code, Code::model_metadata);
  return cat(config.error().where, ": ", config.error().detail);
}

using Windows = std::vector<int32_t>;

TEST(Windows, are_on_every_layer_of_a_llama_file_that_has_one) {
  EXPECT_EQ(read({"llama"})->windows, (Windows{0, 0}));
  const auto window = [](GgufWriter& w) { w.add("llama.attention.sliding_window", uint32_t{64}); };
  EXPECT_EQ(read({"llama", 2, window})->windows, (Windows{64, 64}));
}

TEST(Windows, leave_every_second_layer_of_gemma_2_and_every_sixth_of_gemma_3) {
  EXPECT_EQ(read({"gemma2", 4})->windows, (Windows{4096, 0, 4096, 0}));  // also where the file does not say
  EXPECT_EQ(read({"gemma3", 7})->windows, (Windows{0, 0, 0, 0, 0, 0, 0}));
  const auto window = [](GgufWriter& w) { w.add("gemma3.attention.sliding_window", uint32_t{512}); };
  EXPECT_EQ(read({"gemma3", 7, window})->windows, (Windows{512, 512, 512, 512, 512, 0, 512}));
}

TEST(Windows, follow_the_pattern_that_a_file_gives) {
  const auto number = [](GgufWriter& w) {
    w.add("gemma3.attention.sliding_window", uint32_t{8});
    w.add("gemma3.attention.sliding_window_pattern", uint32_t{2});
  };
  EXPECT_EQ(read({"gemma3", 4, number})->windows, (Windows{8, 0, 8, 0}));
  const auto booleans = [](GgufWriter& w) {
    w.add("qwen2.attention.sliding_window", uint32_t{8});
    constexpr bool pattern[] = {false, true, true};
    w.add_array<bool>("qwen2.attention.sliding_window_pattern", pattern);
  };
  EXPECT_EQ(read({"qwen2", 3, booleans})->windows, (Windows{0, 8, 8}));
  EXPECT_EQ(
      refusal({"qwen2", 4, booleans}),
      "model.gguf: qwen2.attention.sliding_window_pattern: it is a bool[3], needed is a boolean for each "
      "of 4 layers, or a number");
}

TEST(Windows, of_layers_that_nobody_named_are_refused_unless_they_hide_nothing) {
  const auto window = [](uint32_t tokens) {
    return [tokens](GgufWriter& w) { w.add("qwen2.attention.sliding_window", tokens); };
  };
  EXPECT_EQ(refusal({"qwen2", 2, window(1023)}),
            "model.gguf: qwen2.attention.sliding_window: 1023: which layers of qwen2 have the window is not "
            "known");
  EXPECT_EQ(read({"qwen2", 2, window(1024)})->windows, (Windows{0, 0}));
}

TEST(Scales, are_those_of_the_architecture_unless_the_file_says_others) {
  const DecoderConfig llama = read({"llama"}).value();
  EXPECT_EQ(llama.embedding_scale, 1.0f);
  EXPECT_EQ(llama.attention_scale, 0.25f);  // heads of 16
  EXPECT_EQ(llama.attention_softcap, 0.0f);
  const DecoderConfig gemma2 = read({"gemma2"}).value();
  EXPECT_FLOAT_EQ(gemma2.embedding_scale, 5.6568542f);  // √32
  EXPECT_EQ(gemma2.attention_scale, 0.25f);
  EXPECT_EQ(gemma2.attention_softcap, 50.0f);
  EXPECT_EQ(gemma2.logit_softcap, 30.0f);
  EXPECT_EQ(read({"gemma2", 46})->attention_scale, 0.5f);  // the 27B: hidden 32 over 8 heads
  EXPECT_EQ(read({"gemma3", 62})->attention_scale, 0.5f);
  EXPECT_EQ(read({"gemma3", 46})->attention_scale, 0.25f);
  const auto others = [](GgufWriter& w) {
    w.add("gemma2.attention.scale", 0.125f);
    w.add("gemma2.attn_logit_softcapping", 2.0f);
    w.add("gemma2.final_logit_softcapping", 0.0f);
  };
  const DecoderConfig changed = read({"gemma2", 46, others}).value();
  EXPECT_EQ(changed.attention_scale, 0.125f);
  EXPECT_EQ(changed.attention_softcap, 2.0f);
  EXPECT_EQ(changed.logit_softcap, 0.0f);
}

TEST(Rope, of_gemma_3s_windows_has_a_base_of_its_own_and_no_scaling) {
  const auto keys = [](GgufWriter& w) {
    w.add("gemma3.rope.freq_base", 1e6f);
    w.add("gemma3.rope.scaling.type", "linear");
    w.add("gemma3.rope.scaling.factor", 8.0f);
  };
  const DecoderConfig config = read({"gemma3", 2, keys}).value();
  EXPECT_EQ(config.rope.base, 1e6);
  EXPECT_EQ(config.rope.divisors, std::vector<double>(8, 8.0));
  ASSERT_TRUE(config.window_rope.has_value());
  EXPECT_EQ(config.window_rope->base, 1e4);
  EXPECT_TRUE(config.window_rope->divisors.empty());
  EXPECT_FALSE(read({"gemma2"})->window_rope.has_value());
}

TEST(Rope, takes_a_factor_without_a_type_and_under_its_older_name_for_linear) {
  for (const char* key : {"llama.rope.scaling.factor", "llama.rope.scale_linear"}) {
    const DecoderConfig config = read({"llama", 2, [key](GgufWriter& w) { w.add(key, 4.0f); }}).value();
    EXPECT_EQ(config.rope.divisors, std::vector<double>(8, 4.0)) << key;
  }
}

TEST(Rope, chooses_longropes_factors_by_the_context) {
  const std::vector<float> small(8, 2.0f);
  const std::vector<float> large(8, 16.0f);
  const auto factors = [&](GgufWriter& w) {
    w.add("phi3.rope.scaling.original_context_length", uint32_t{256});
    w.add("phi3.rope.scaling.attn_factor", 1.25f);
    w.add_tensor("rope_factors_short.weight", DType::f32, {8}, std::as_bytes(std::span(small)));
    w.add_tensor("rope_factors_long.weight", DType::f32, {8}, std::as_bytes(std::span(large)));
  };
  const RopeConfig rope = read({"phi3", 2, factors})->rope;
  EXPECT_EQ(rope.magnitude, 1.25);
  EXPECT_EQ(rope.frequencies(256)[0], 1.0 / 2);
  EXPECT_EQ(rope.frequencies(257)[0], 1.0 / 16);
  EXPECT_DOUBLE_EQ(rope.frequencies(257)[4], 0.01 / 16);  // 10000^(−8/16)
}

TEST(Rope, refuses_scalings_that_are_not_computed_here) {
  const auto with = [](std::string_view type, const std::function<void(GgufWriter&)>& more) {
    return refusal({"llama", 2, [&](GgufWriter& w) {
                      w.add("llama.rope.scaling.type", type);
                      more(w);
                    }});
  };
  const auto factor = [](GgufWriter& w) { w.add("llama.rope.scaling.factor", 2.0f); };
  EXPECT_EQ(
      with("ntk", factor),
      "model.gguf: llama.rope.scaling.type: \"ntk\", supported are none, linear, yarn, longrope and Llama "
      "3's rope_freqs");
  EXPECT_EQ(with("longrope", factor),
            "model.gguf: llama.rope.scaling.type: \"longrope\", which needs both tensors "
            "rope_factors_short.weight and rope_factors_long.weight");
  const std::string variant = with("yarn", [&](GgufWriter& w) {
    factor(w);
    w.add("llama.rope.scaling.yarn_log_multiplier", 0.1f);
  });
  EXPECT_TRUE(variant.starts_with("model.gguf: llama.rope.scaling.yarn_log_multiplier: 0.1")) << variant;
  const std::string small_factor =
      with("linear", [](GgufWriter& w) { w.add("llama.rope.scaling.factor", 0.5f); });
  EXPECT_TRUE(small_factor.starts_with("model.gguf: llama.rope.scaling.factor: 0.5")) << small_factor;
  const std::vector<float> eight(8, 2.0f);
  const auto tensors = [&](std::vector<const char*> names) {
    return [names = std::move(names), &eight](GgufWriter& w) {
      for (const char* name : names) w.add_tensor(name, DType::f32, {8}, std::as_bytes(std::span(eight)));
    };
  };
  EXPECT_EQ(
      with("none", tensors({"rope_factors_long.weight"})),
      "model.gguf: llama.rope.scaling.type: \"none\", which needs both tensors rope_factors_short.weight "
      "and rope_factors_long.weight");
  EXPECT_EQ(
      with("none", tensors({"rope_factors_long.weight", "rope_factors_short.weight", "rope_freqs.weight"})),
      "model.gguf: llama.rope.scaling.type: \"none\": another scaling beside LongRoPE's factors");
}

TEST(Config, refuses_a_mixture_of_experts) {
  EXPECT_EQ(refusal({"llama", 2, [](GgufWriter& w) { w.add("llama.expert_count", uint32_t{8}); }}),
            "model.gguf: llama.expert_count: 8: a mixture of experts is not supported");
}

}  // namespace
}  // namespace inferd
