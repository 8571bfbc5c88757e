// The metadata of a Hugging Face model folder: config.json and generation_config.json as typed fields. Called
// once when such a model is loaded or shown, on any thread. Whether a model of these fields can be computed
// is for src/model to say.
//
// Both forms of config.json are read, that of transformers 5 and the one before it:
//   dtype                                  torch_dtype
//   rope_parameters {rope_theta, …}        rope_theta, rope_scaling {type or rope_type, …}
//   rope_parameters {full_attention {…},   rope_theta, rope_scaling, and rope_local_base_freq
//     sliding_attention {…}}
//   layer_types                            sliding_window_pattern, or use_sliding_window, max_window_layers
// Where both forms stand in one file they must agree. A model that also sees or hears keeps the fields of its
// language part in "text_config"; those are read.
//
// Source: the configuration classes of transformers 4 and 5, which also define what an absent key means. That
// differs by model, so a field that may be absent is an optional here; null counts as absent. Keys that are
// not listed are passed over.
//
// Errors: E-IO-001 … 003; else E-MODEL-003, naming file and key, what it is and what is allowed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace inferd {

inline constexpr int64_t kHfMaxConfigBytes = int64_t{16} << 20;
inline constexpr int64_t kHfMaxLayers = 4096;

enum class HfLayerType { full_attention, sliding_attention, linear_attention };

struct HfRope {
  std::string type = "default";  // "default" "linear" "dynamic" "yarn" "longrope" "llama3" …
  std::optional<double> theta;   // base of the frequencies, over 0
  std::optional<double> factor;  // by which the context is stretched
  std::optional<double> low_freq_factor;
  std::optional<double> high_freq_factor;
  std::optional<double> attention_factor;
  std::optional<double> beta_fast;
  std::optional<double> beta_slow;
  std::optional<double> partial_rotary_factor;              // part of a head's dimensions that turns, 0 … 1
  std::optional<int64_t> original_max_position_embeddings;  // tokens
  std::vector<double> short_factor;                         // longrope: a divisor per pair
  std::vector<double> long_factor;                          //
  std::vector<int64_t> mrope_section;                       // pairs for time, height, width
  std::optional<bool> mrope_interleaved;

  bool operator==(const HfRope&) const = default;
};

struct HfLinearAttention {  // gated delta rule: Qwen3-Next, Qwen3.5
  int64_t conv_kernel_dim = 0;
  int64_t key_head_dim = 0;
  int64_t num_key_heads = 0;
  int64_t value_head_dim = 0;
  int64_t num_value_heads = 0;

  bool operator==(const HfLinearAttention&) const = default;
};

struct HfExperts {
  int64_t num_experts = 0;
  int64_t num_experts_per_tok = 0;
  std::optional<int64_t> moe_intermediate_size;
  std::optional<bool> norm_topk_prob;

  bool operator==(const HfExperts&) const = default;
};

struct HfQuantization {
  std::string method;                      // "fp8" "gptq" "awq" …
  std::optional<std::string> fmt;          // fp8: "e4m3"
  std::vector<int64_t> weight_block_size;  // fp8: rows, cols of a block that shares a scale; empty: none
  std::vector<std::string> modules_to_not_convert;

  bool operator==(const HfQuantization&) const = default;
};

struct HfConfig {
  std::vector<std::string> architectures;  // "LlamaForCausalLM"
  std::string model_type;                  // "llama"; of text_config where there is one
  std::optional<std::string> dtype;        // "bfloat16"

  int64_t hidden_size = 0;
  int64_t num_hidden_layers = 0;
  int64_t num_attention_heads = 0;
  int64_t vocab_size = 0;
  std::optional<int64_t> intermediate_size;
  std::optional<int64_t> num_key_value_heads;  // absent: as many as heads, in most models
  std::optional<int64_t> head_dim;             // absent: hidden_size / num_attention_heads
  std::optional<int64_t> max_position_embeddings;
  std::optional<double> rms_norm_eps;
  std::optional<std::string> hidden_act;  // also spelled hidden_activation: "silu", "gelu_pytorch_tanh"
  std::optional<bool> tie_word_embeddings;
  std::optional<bool> attention_bias;
  std::optional<bool> mlp_bias;

  std::optional<int64_t> sliding_window;  // tokens; absent also when use_sliding_window is false
  std::vector<HfLayerType> layer_types;   // one a layer, or none: all layers are alike
  HfRope rope;                            // of full attention, or of all layers
  std::optional<HfRope> sliding_rope;     // of sliding attention, where it has its own

  std::optional<double> query_pre_attn_scalar;
  std::optional<double> attn_logit_softcapping;
  std::optional<double> final_logit_softcapping;
  std::optional<HfLinearAttention> linear_attention;
  std::optional<HfExperts> experts;
  std::optional<HfQuantization> quantization;

  std::optional<int64_t> bos_token_id;
  std::vector<int64_t> eos_token_ids;  // one key, which holds an id or a list of them
  std::optional<int64_t> pad_token_id;

  bool operator==(const HfConfig&) const = default;
};

// What a model's authors suggest for sampling.
struct HfGenerationConfig {
  std::optional<int64_t> bos_token_id;
  std::vector<int64_t> eos_token_ids;
  std::optional<int64_t> pad_token_id;
  std::optional<bool> do_sample;
  std::optional<double> temperature;         // 0 or more
  std::optional<int64_t> top_k;              // 0: all
  std::optional<double> top_p;               // 0 … 1
  std::optional<double> min_p;               // 0 … 1
  std::optional<double> repetition_penalty;  // over 0
  std::optional<int64_t> max_new_tokens;

  bool operator==(const HfGenerationConfig&) const = default;
};

// `name` stands for the file in messages.
Result<HfConfig> parse_hf_config(std::string_view text, const std::string& name);
Result<HfGenerationConfig> parse_hf_generation_config(std::string_view text, const std::string& name);

// `path` of the file itself.
Result<HfConfig> read_hf_config(const std::string& path);
Result<HfGenerationConfig> read_hf_generation_config(const std::string& path);

}  // namespace inferd
