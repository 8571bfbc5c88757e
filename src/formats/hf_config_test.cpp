// config.json in both its forms, generation_config.json, and what is refused in them.

#include "formats/hf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/strings.h"
#include "formats/golden_path.h"

namespace inferd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

HfConfig golden(const std::string& file) {
  const auto config = read_hf_config(golden_path("tiny/" + file));
  EXPECT_TRUE(config.ok()) << (config.ok() ? "" : config.error().terminal_text());
  return config.ok() ? *config : HfConfig();
}

TEST(HfConfig, reads_what_transformers_5_wrote) {
  const HfConfig llama = golden("llama/hf/config.json");
  EXPECT_THAT(llama.architectures, ElementsAre("LlamaForCausalLM"));
  EXPECT_EQ(llama.model_type, "llama");
  EXPECT_EQ(llama.dtype, "float32");
  EXPECT_EQ(llama.hidden_size, 64);
  EXPECT_EQ(llama.num_hidden_layers, 2);
  EXPECT_EQ(llama.num_attention_heads, 4);
  EXPECT_EQ(llama.vocab_size, 288);
  EXPECT_EQ(llama.intermediate_size, 96);
  EXPECT_EQ(llama.num_key_value_heads, 2);
  EXPECT_EQ(llama.head_dim, 16);
  EXPECT_EQ(llama.max_position_embeddings, 512);
  EXPECT_EQ(llama.rms_norm_eps, 1e-5);
  EXPECT_EQ(llama.hidden_act, "silu");
  EXPECT_EQ(llama.tie_word_embeddings, false);
  EXPECT_EQ(llama.attention_bias, false);
  EXPECT_EQ(llama.mlp_bias, false);
  EXPECT_EQ(llama.sliding_window, std::nullopt);
  EXPECT_THAT(llama.layer_types, ElementsAre());
  EXPECT_EQ(llama.rope, HfRope{.theta = 10000.0});
  EXPECT_EQ(llama.sliding_rope, std::nullopt);
  EXPECT_EQ(llama.bos_token_id, std::nullopt);
  EXPECT_THAT(llama.eos_token_ids, ElementsAre(2));
  EXPECT_EQ(llama.pad_token_id, 3);
  EXPECT_EQ(llama.quantization, std::nullopt);

  EXPECT_EQ(golden("llama-rope3-tied/hf/config.json").rope, (HfRope{.type = "llama3",
                                                                    .theta = 10000.0,
                                                                    .factor = 8.0,
                                                                    .low_freq_factor = 1.0,
                                                                    .high_freq_factor = 4.0,
                                                                    .original_max_position_embeddings = 32}));
  EXPECT_EQ(golden("llama-rope3-tied/hf/config.json").tie_word_embeddings, true);
  EXPECT_EQ(golden("mistral/hf/config.json").sliding_window, 8);

  const HfConfig gemma = golden("gemma3/hf/config.json");
  EXPECT_EQ(gemma.hidden_act, "gelu_pytorch_tanh");
  EXPECT_EQ(gemma.query_pre_attn_scalar, 32.0);
  EXPECT_EQ(gemma.final_logit_softcapping, std::nullopt);
  EXPECT_EQ(gemma.sliding_window, 8);
  const auto sliding = HfLayerType::sliding_attention;
  const auto full = HfLayerType::full_attention;
  EXPECT_THAT(gemma.layer_types, ElementsAre(sliding, sliding, sliding, sliding, sliding, full));
  EXPECT_EQ(gemma.rope.theta, 1e6);
  EXPECT_EQ(gemma.sliding_rope, HfRope{.theta = 1e4});

  const HfConfig hybrid = golden("qwen3_5/hf/config.json");
  const auto linear = HfLayerType::linear_attention;
  EXPECT_THAT(hybrid.layer_types, ElementsAre(linear, linear, linear, full));
  EXPECT_EQ(hybrid.linear_attention, (HfLinearAttention{.conv_kernel_dim = 4,
                                                        .key_head_dim = 16,
                                                        .num_key_heads = 2,
                                                        .value_head_dim = 16,
                                                        .num_value_heads = 4}));
  EXPECT_EQ(hybrid.rope.partial_rotary_factor, 0.25);
  EXPECT_THAT(hybrid.rope.mrope_section, ElementsAre(2, 1, 1));
  EXPECT_EQ(hybrid.rope.mrope_interleaved, true);
}

TEST(HfConfig, the_form_before_transformers_5_says_the_same) {
  for (const std::string family : {"llama", "llama-rope3-tied", "qwen2", "qwen3", "gemma3", "mistral"}) {
    EXPECT_EQ(golden(family + "/config.legacy.json"), golden(family + "/hf/config.json")) << family;
  }
}

constexpr std::string_view kSmall =
    R"("model_type":"llama","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"vocab_size":288)";

Result<HfConfig> with(std::string_view more) {
  return parse_hf_config(cat("{", kSmall, more.empty() ? "" : ",", more, "}"), "config.json");
}

TEST(HfConfig, leaves_open_what_the_file_does_not_say) {
  const HfConfig config = with("").value();
  EXPECT_EQ(config, (HfConfig{.model_type = "llama",
                              .hidden_size = 64,
                              .num_hidden_layers = 2,
                              .num_attention_heads = 4,
                              .vocab_size = 288}));
  EXPECT_EQ(with(R"("head_dim":null,"rope_scaling":null,"dtype":null,"layer_types":null)").value(), config);
}

TEST(HfConfig, reads_the_language_part_of_a_model_that_sees) {
  const auto config = parse_hf_config(
      cat(R"({"architectures":["Gemma3ForConditionalGeneration"],"model_type":"gemma3","eos_token_id":[1,106],)",
          R"("torch_dtype":"bfloat16","hidden_size":1,"text_config":{)", kSmall,
          R"(,"tie_word_embeddings":true}})"),
      "config.json");
  ASSERT_TRUE(config.ok());
  EXPECT_THAT(config->architectures, ElementsAre("Gemma3ForConditionalGeneration"));
  EXPECT_EQ(config->model_type, "llama");
  EXPECT_EQ(config->hidden_size, 64);
  EXPECT_EQ(config->dtype, "bfloat16");
  EXPECT_EQ(config->tie_word_embeddings, true);
  EXPECT_THAT(config->eos_token_ids, ElementsAre(1, 106));
}

TEST(HfConfig, reads_experts_windows_scales_and_scaled_ropes) {
  EXPECT_EQ(
      with(R"("num_experts":128,"num_experts_per_tok":8,"moe_intermediate_size":768,"norm_topk_prob":true)")
          .value()
          .experts,
      (HfExperts{.num_experts = 128,
                 .num_experts_per_tok = 8,
                 .moe_intermediate_size = 768,
                 .norm_topk_prob = true}));
  const HfConfig windows =
      with(R"("sliding_window":8,"use_sliding_window":true,"max_window_layers":1)").value();
  EXPECT_THAT(windows.layer_types, ElementsAre(HfLayerType::full_attention, HfLayerType::sliding_attention));
  EXPECT_EQ(with(R"("sliding_window":8,"use_sliding_window":false)").value().sliding_window, std::nullopt);
  EXPECT_EQ(with(R"("quantization_config":{"quant_method":"fp8","fmt":"e4m3","activation_scheme":"dynamic",)"
                 R"("weight_block_size":[128,128],"modules_to_not_convert":["lm_head"]})")
                .value()
                .quantization,
            (HfQuantization{.method = "fp8",
                            .fmt = "e4m3",
                            .weight_block_size = {128, 128},
                            .modules_to_not_convert = {"lm_head"}}));
  EXPECT_EQ(
      with(R"("rope_theta":1000000,"rope_scaling":{"type":"yarn","factor":4.0,"beta_fast":32})").value().rope,
      (HfRope{.type = "yarn", .theta = 1e6, .factor = 4.0, .beta_fast = 32.0}));
  EXPECT_THAT(
      with(R"("rope_scaling":{"rope_type":"longrope","long_factor":[1,2.5]})").value().rope.long_factor,
      ElementsAre(1.0, 2.5));
}

TEST(HfConfig, refuses_by_file_and_key) {
  struct Wrong {
    std::string_view text;
    std::string_view detail;
    std::string_view where;
  };
  const Wrong table[] = {
      {R"("hidden_act":1)", "hidden_act is of type integer, string expected", "key hidden_act"},
      {R"("head_dim":"16")", "head_dim is of type string, integer expected", "key head_dim"},
      {R"("head_dim":16.0)", "head_dim is of type number, integer expected", "key head_dim"},
      {R"("head_dim":0)", "head_dim is 0, 1 to 2147483647 allowed", "key head_dim"},
      {R"("head_dim":-1)", "head_dim is -1, ", "key head_dim"},
      {R"("head_dim":2147483648)", "head_dim is 2147483648, ", "key head_dim"},
      {R"("rms_norm_eps":"1e-5")", "rms_norm_eps is of type string, number expected", "key rms_norm_eps"},
      {R"("rms_norm_eps":-1)", "rms_norm_eps is -1, 0 to 1 allowed", "key rms_norm_eps"},
      {R"("mlp_bias":0)", "mlp_bias is of type integer, boolean expected", "key mlp_bias"},
      {R"("architectures":"Llama")", "architectures is of type string, array expected", "key architectures"},
      {R"("architectures":[1])", "architectures is of type integer, an array of strings",
       "key architectures"},
      {R"("eos_token_id":"</s>")", "eos_token_id is of type string, an integer or an array", "eos_token_id"},
      {R"("eos_token_id":[1,-2])", "eos_token_id is -2", "key eos_token_id"},
      {R"("layer_types":["full_attention"])", "layer_types names 1 layers, num_hidden_layers is 2", ""},
      {R"("layer_types":["full_attention","chunked_attention"])", "layer_types holds \"chunked_attention\"",
       ""},
      {R"("layer_types":["full_attention","full_attention"],"sliding_window_pattern":2)",
       "layer_types says something else than sliding_window_pattern", ""},
      {R"("rope_scaling":"linear")", "rope_scaling is of type string, object expected", "key rope_scaling"},
      {R"("rope_scaling":{"factor":0})", "rope_scaling.factor is 0, ", "key rope_scaling.factor"},
      {R"("rope_theta":0)", "rope_theta is 0, ", "key rope_theta"},
      {R"("rope_theta":2,"rope_parameters":{"rope_theta":1})",
       "rope_theta says something else than rope_parameters.rope_theta", "key rope_theta"},
      {R"("rope_scaling":{"factor":2},"rope_parameters":{"factor":1})",
       "rope_scaling says something else than rope_parameters", "key rope_scaling"},
      {R"("rope_parameters":{"sliding_attention":{}})",
       "rope_parameters.full_attention is missing beside sliding_attention", "key rope_parameters.full"},
      {R"("dtype":"float16","torch_dtype":"bfloat16")", "dtype says something else than torch_dtype", ""},
      {R"("num_experts":4)", "num_experts_per_tok is missing", "key num_experts_per_tok"},
      {R"("num_experts":4,"num_experts_per_tok":5)", "num_experts_per_tok is 5, 1 to 4 allowed", ""},
      {R"("linear_num_value_heads":4)", "linear_conv_kernel_dim is missing", ""},
      {R"("quantization_config":{})", "quantization_config.quant_method is missing", ""},
      {R"("quantization_config":{"quant_method":"fp8","weight_block_size":[128]})",
       "weight_block_size holds 1 numbers, rows and cols expected",
       "key quantization_config.weight_block_size"},
      {R"("vocab_size":1)", "duplicate key \"vocab_size\"", "config.json"},
      {R"("text_config":[])", "text_config is of type array, object expected", "key text_config"},
      {R"("text_config":{"model_type":"llama"})", "text_config.hidden_size is missing",
       "key text_config.hidden_size"},
  };
  for (const Wrong& wrong : table) {
    SCOPED_TRACE(wrong.text);
    const auto config = with(wrong.text);
    ASSERT_FALSE(config.ok());
    EXPECT_EQ(config.error().code, Code::model_metadata);
    EXPECT_THAT(config.error().detail, HasSubstr(std::string(wrong.detail)));
    EXPECT_THAT(config.error().where, StartsWith("config.json"));
    EXPECT_THAT(config.error().where, HasSubstr(std::string(wrong.where)));
  }
  for (const std::string_view text : {"", "[]", "{", "{}", "1"}) {
    EXPECT_EQ(parse_hf_config(text, "config.json").error().code, Code::model_metadata) << text;
  }
  // Of layers there may be so many that a list of their types stays small.
  EXPECT_THAT(parse_hf_config(R"({"model_type":"a","hidden_size":1,"num_hidden_layers":1000000000})", "c")
                  .error()
                  .detail,
              HasSubstr("num_hidden_layers is 1000000000, 1 to 4096 allowed"));
  EXPECT_EQ(read_hf_config(testing::TempDir() + "/no/config.json").error().code, Code::io_not_found);
}

TEST(HfGenerationConfig, reads_what_authors_suggest) {
  const auto config = parse_hf_generation_config(
      R"({"bos_token_id":151643,"do_sample":true,"eos_token_id":[151645,151643],"pad_token_id":151643,)"
      R"("repetition_penalty":1.05,"temperature":0.7,"top_k":20,"top_p":0.8,"transformers_version":"4.37.0"})",
      "generation_config.json");
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(*config, (HfGenerationConfig{.bos_token_id = 151643,
                                         .eos_token_ids = {151645, 151643},
                                         .pad_token_id = 151643,
                                         .do_sample = true,
                                         .temperature = 0.7,
                                         .top_k = 20,
                                         .top_p = 0.8,
                                         .repetition_penalty = 1.05}));
  EXPECT_EQ(parse_hf_generation_config("{}", "g").value(), HfGenerationConfig());
}

TEST(HfGenerationConfig, refuses_what_is_out_of_range) {
  for (const std::string text :
       {R"({"temperature":-0.1})", R"({"top_p":1.1})", R"({"top_k":-1})", R"({"min_p":2})",
        R"({"repetition_penalty":0})", R"({"do_sample":"yes"})", R"({"max_new_tokens":0})", "[]"}) {
    const auto config = parse_hf_generation_config(text, "generation_config.json");
    ASSERT_FALSE(config.ok()) << text;
    EXPECT_EQ(config.error().code, Code::model_metadata) << text;
  }
}

}  // namespace
}  // namespace inferd
