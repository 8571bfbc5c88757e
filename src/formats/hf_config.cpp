#include "formats/hf_config.h"

#include <limits>

#include "base/mmap.h"
#include "base/strings.h"
#include "formats/hf_fields.h"
#include "formats/json_header.h"

namespace inferd {
namespace {

constexpr int kDepth = 16;
constexpr double kLargest = std::numeric_limits<double>::max();
constexpr double kSmallest = std::numeric_limits<double>::min();  // of what must be over 0

// What the file says in its new and in its old form: either, or both when they are equal.
template <typename T>
Result<std::optional<T>> one_of(const HfFields& fields, std::string_view key, const std::optional<T>& value,
                                std::string_view old_key, const std::optional<T>& old_value) {
  if (value && old_value && *value != *old_value)
    return fields.error(key, cat("says something else than ", old_key));
  return value ? value : old_value;
}

Result<HfRope> read_rope(const HfFields& fields) {
  HfRope rope;
  INFERD_TRY(const auto type, fields.string("rope_type"));
  INFERD_TRY(const auto old_type, fields.string("type"));
  // The older key may hold "default" beside a newer type, or the name that a type once had.
  if (type || old_type) rope.type = type ? *type : *old_type;
  INFERD_TRY(rope.theta, fields.number("rope_theta", kSmallest, kLargest));
  INFERD_TRY(rope.factor, fields.number("factor", kSmallest, kLargest));
  INFERD_TRY(rope.low_freq_factor, fields.number("low_freq_factor", kSmallest, kLargest));
  INFERD_TRY(rope.high_freq_factor, fields.number("high_freq_factor", kSmallest, kLargest));
  INFERD_TRY(rope.attention_factor, fields.number("attention_factor", kSmallest, kLargest));
  INFERD_TRY(rope.beta_fast, fields.number("beta_fast", kSmallest, kLargest));
  INFERD_TRY(rope.beta_slow, fields.number("beta_slow", kSmallest, kLargest));
  INFERD_TRY(rope.partial_rotary_factor, fields.number("partial_rotary_factor", kSmallest, 1));
  INFERD_TRY(rope.original_max_position_embeddings, fields.integer("original_max_position_embeddings"));
  INFERD_TRY(rope.short_factor, fields.numbers("short_factor", kSmallest, kLargest));
  INFERD_TRY(rope.long_factor, fields.numbers("long_factor", kSmallest, kLargest));
  INFERD_TRY(rope.mrope_section, fields.integers("mrope_section", 0, INT32_MAX));
  INFERD_TRY(rope.mrope_interleaved, fields.boolean("mrope_interleaved"));
  return rope;
}

// rope_parameters, with one rope for all layers or one for each type of layer.
Status read_new_ropes(HfConfig& config, const HfFields& parameters) {
  INFERD_TRY(const auto full, parameters.object("full_attention"));
  INFERD_TRY(const auto sliding, parameters.object("sliding_attention"));
  if (!full && !sliding) {
    INFERD_TRY(config.rope, read_rope(parameters));
    return {};
  }
  if (!full) return parameters.error("full_attention", "is missing beside sliding_attention");
  INFERD_TRY(config.rope, read_rope(*full));
  if (sliding) {
    INFERD_TRY(config.sliding_rope, read_rope(*sliding));
  }
  return {};
}

// rope_theta, rope_scaling, rope_local_base_freq and partial_rotary_factor beside everything else.
Status read_old_ropes(HfConfig& config, const HfFields& fields, bool has_new) {
  INFERD_TRY(const auto theta, fields.number("rope_theta", kSmallest, kLargest));
  INFERD_TRY(const auto partial, fields.number("partial_rotary_factor", kSmallest, 1));
  INFERD_TRY(const auto local, fields.number("rope_local_base_freq", kSmallest, kLargest));
  INFERD_TRY(const auto scaling, fields.object("rope_scaling"));
  if (scaling) {
    INFERD_TRY(HfRope rope, read_rope(*scaling));
    if (!rope.theta) rope.theta = config.rope.theta;
    if (!rope.partial_rotary_factor) rope.partial_rotary_factor = config.rope.partial_rotary_factor;
    if (has_new && rope != config.rope)
      return fields.error("rope_scaling", "says something else than rope_parameters");
    config.rope = std::move(rope);
  }
  INFERD_TRY(config.rope.theta,
             one_of(fields, "rope_theta", theta, "rope_parameters.rope_theta", config.rope.theta));
  INFERD_TRY(config.rope.partial_rotary_factor,
             one_of(fields, "partial_rotary_factor", partial, "rope_parameters.partial_rotary_factor",
                    config.rope.partial_rotary_factor));
  if (local) {
    if (config.sliding_rope && config.sliding_rope->theta != local)
      return fields.error("rope_local_base_freq",
                          "says something else than rope_parameters.sliding_attention");
    if (!config.sliding_rope) config.sliding_rope = HfRope{.theta = local};
  }
  return {};
}

Result<std::vector<HfLayerType>> read_layer_types(const HfFields& fields) {
  std::vector<HfLayerType> types;
  INFERD_TRY(const std::vector<std::string> names, fields.strings("layer_types"));
  for (const std::string& name : names) {
    if (name == "full_attention") {
      types.push_back(HfLayerType::full_attention);
    } else if (name == "sliding_attention") {
      types.push_back(HfLayerType::sliding_attention);
    } else if (name == "linear_attention") {
      types.push_back(HfLayerType::linear_attention);
    } else {
      return fields.error("layer_types",
                          cat("holds ", printable(name),
                              ", full_attention, sliding_attention and linear_attention are read"));
    }
  }
  return types;
}

// Which layers see only a window. The two rules of the old form: every n-th layer sees all (Gemma), or the
// first n do (Qwen).
Status read_layers(HfConfig& config, const HfFields& fields) {
  INFERD_TRY(config.sliding_window, fields.integer("sliding_window"));
  INFERD_TRY(const auto use_window, fields.boolean("use_sliding_window"));
  INFERD_TRY(const auto max_window_layers, fields.integer("max_window_layers", 0));
  INFERD_TRY(const auto pattern, fields.integer("sliding_window_pattern"));
  INFERD_TRY(const auto new_pattern, fields.integer("_sliding_window_pattern"));
  if (use_window == false) config.sliding_window.reset();

  std::vector<HfLayerType> derived;
  for (int64_t i = 0; i < config.num_hidden_layers; ++i) {
    if (pattern || new_pattern) {
      derived.push_back((i + 1) % pattern.value_or(new_pattern.value_or(1)) == 0
                            ? HfLayerType::full_attention
                            : HfLayerType::sliding_attention);
    } else if (use_window) {
      const bool windowed = config.sliding_window && i >= max_window_layers.value_or(0);
      derived.push_back(windowed ? HfLayerType::sliding_attention : HfLayerType::full_attention);
    }
  }
  INFERD_TRY(config.layer_types, read_layer_types(fields));
  if (config.layer_types.empty()) {
    config.layer_types = std::move(derived);
  } else if (std::ssize(config.layer_types) != config.num_hidden_layers) {
    return fields.error("layer_types", cat("names ", config.layer_types.size(),
                                           " layers, num_hidden_layers is ", config.num_hidden_layers));
  } else if (pattern && config.layer_types != derived) {
    return fields.error("layer_types", "says something else than sliding_window_pattern");
  }
  return {};
}

Status read_linear_attention(HfConfig& config, const HfFields& fields) {
  if (fields.find("linear_num_value_heads") == nullptr) return {};
  HfLinearAttention linear;
  INFERD_TRY(linear.conv_kernel_dim, fields.required("linear_conv_kernel_dim"));
  INFERD_TRY(linear.key_head_dim, fields.required("linear_key_head_dim"));
  INFERD_TRY(linear.num_key_heads, fields.required("linear_num_key_heads"));
  INFERD_TRY(linear.value_head_dim, fields.required("linear_value_head_dim"));
  INFERD_TRY(linear.num_value_heads, fields.required("linear_num_value_heads"));
  config.linear_attention = linear;
  return {};
}

// "num_experts" (Qwen), "num_local_experts" (Mixtral, GPT-OSS) or "n_routed_experts" (DeepSeek).
Status read_experts(HfConfig& config, const HfFields& fields) {
  for (const std::string_view key : {"num_experts", "num_local_experts", "n_routed_experts"}) {
    INFERD_TRY(const auto count, fields.integer(key, 0));
    if (!count || *count == 0) continue;
    HfExperts experts;
    experts.num_experts = *count;
    INFERD_TRY(experts.num_experts_per_tok, fields.required("num_experts_per_tok", 1, *count));
    INFERD_TRY(experts.moe_intermediate_size, fields.integer("moe_intermediate_size"));
    INFERD_TRY(experts.norm_topk_prob, fields.boolean("norm_topk_prob"));
    config.experts = experts;
    return {};
  }
  return {};
}

Status read_quantization(HfConfig& config, const HfFields& fields) {
  INFERD_TRY(const auto object, fields.object("quantization_config"));
  if (!object) return {};
  HfQuantization quantization;
  INFERD_TRY(const auto method, object->string("quant_method"));
  if (!method) return object->error("quant_method", "is missing");
  quantization.method = *method;
  INFERD_TRY(quantization.fmt, object->string("fmt"));
  INFERD_TRY(quantization.weight_block_size, object->integers("weight_block_size", 1, INT32_MAX));
  if (!quantization.weight_block_size.empty() && quantization.weight_block_size.size() != 2) {
    return object->error("weight_block_size", cat("holds ", quantization.weight_block_size.size(),
                                                  " numbers, rows and cols expected"));
  }
  INFERD_TRY(quantization.modules_to_not_convert, object->strings("modules_to_not_convert"));
  config.quantization = std::move(quantization);
  return {};
}

// What may stand beside text_config or in it.
struct Shared {
  std::optional<std::string> dtype;
  std::optional<bool> tie_word_embeddings;
  std::optional<int64_t> bos_token_id;
  std::vector<int64_t> eos_token_ids;
  std::optional<int64_t> pad_token_id;
};

Result<Shared> read_shared(const HfFields& fields) {
  Shared shared;
  INFERD_TRY(const auto dtype, fields.string("dtype"));
  INFERD_TRY(const auto old_dtype, fields.string("torch_dtype"));
  INFERD_TRY(shared.dtype, one_of(fields, "dtype", dtype, "torch_dtype", old_dtype));
  INFERD_TRY(shared.tie_word_embeddings, fields.boolean("tie_word_embeddings"));
  INFERD_TRY(shared.bos_token_id, fields.integer("bos_token_id", 0));
  INFERD_TRY(shared.eos_token_ids, fields.one_or_more("eos_token_id", 0, INT32_MAX));
  INFERD_TRY(shared.pad_token_id, fields.integer("pad_token_id", -1));  // −1: none, as some files say
  if (shared.pad_token_id == -1) shared.pad_token_id.reset();
  return shared;
}

void take(HfConfig& config, const Shared& shared) {
  if (!config.dtype) config.dtype = shared.dtype;
  if (!config.tie_word_embeddings) config.tie_word_embeddings = shared.tie_word_embeddings;
  if (!config.bos_token_id) config.bos_token_id = shared.bos_token_id;
  if (config.eos_token_ids.empty()) config.eos_token_ids = shared.eos_token_ids;
  if (!config.pad_token_id) config.pad_token_id = shared.pad_token_id;
}

Status read_language_model(HfConfig& config, const HfFields& fields) {
  INFERD_TRY(config.hidden_size, fields.required("hidden_size"));
  INFERD_TRY(config.num_hidden_layers, fields.required("num_hidden_layers", 1, kHfMaxLayers));
  INFERD_TRY(config.num_attention_heads, fields.required("num_attention_heads"));
  INFERD_TRY(config.vocab_size, fields.required("vocab_size"));
  INFERD_TRY(config.intermediate_size, fields.integer("intermediate_size"));
  INFERD_TRY(config.num_key_value_heads, fields.integer("num_key_value_heads"));
  INFERD_TRY(config.head_dim, fields.integer("head_dim"));
  INFERD_TRY(config.max_position_embeddings, fields.integer("max_position_embeddings"));
  INFERD_TRY(config.rms_norm_eps, fields.number("rms_norm_eps", 0, 1));
  INFERD_TRY(const auto act, fields.string("hidden_act"));
  INFERD_TRY(const auto activation, fields.string("hidden_activation"));
  INFERD_TRY(config.hidden_act, one_of(fields, "hidden_activation", activation, "hidden_act", act));
  INFERD_TRY(config.attention_bias, fields.boolean("attention_bias"));
  INFERD_TRY(config.mlp_bias, fields.boolean("mlp_bias"));
  INFERD_TRY(config.query_pre_attn_scalar, fields.number("query_pre_attn_scalar", kSmallest, kLargest));
  INFERD_TRY(config.attn_logit_softcapping, fields.number("attn_logit_softcapping", kSmallest, kLargest));
  INFERD_TRY(config.final_logit_softcapping, fields.number("final_logit_softcapping", kSmallest, kLargest));

  INFERD_TRY(const auto parameters, fields.object("rope_parameters"));
  if (parameters) INFERD_TRY_STATUS(read_new_ropes(config, *parameters));
  INFERD_TRY_STATUS(read_old_ropes(config, fields, parameters.has_value()));
  INFERD_TRY_STATUS(read_layers(config, fields));
  INFERD_TRY_STATUS(read_linear_attention(config, fields));
  return read_experts(config, fields);
}

Result<MappedFile> map_config(const std::string& path) {
  INFERD_TRY(MappedFile file, MappedFile::open(path));
  if (file.size() > kHfMaxConfigBytes) {
    return Error{.code = Code::model_metadata,
                 .detail = cat("it is ", with_commas(file.size()), " bytes long, at most ",
                               with_commas(kHfMaxConfigBytes), " allowed"),
                 .where = path};
  }
  return file;
}

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

}  // namespace

Result<HfConfig> parse_hf_config(std::string_view text, const std::string& name) {
  INFERD_TRY(const Json json, parse_json_header(text, kDepth, Code::model_metadata, name));
  const HfFields top(json, name);
  HfConfig config;
  INFERD_TRY(config.architectures, top.strings("architectures"));
  INFERD_TRY(const auto nested, top.object("text_config"));
  const HfFields& fields = nested ? *nested : top;
  INFERD_TRY(const auto type, fields.string("model_type"));
  if (!type) return fields.error("model_type", "is missing");
  config.model_type = *type;
  INFERD_TRY_STATUS(read_language_model(config, fields));
  INFERD_TRY(const Shared shared, read_shared(fields));
  take(config, shared);
  INFERD_TRY_STATUS(read_quantization(config, fields));
  if (nested) {
    INFERD_TRY(const Shared beside, read_shared(top));
    take(config, beside);
    if (!config.quantization) INFERD_TRY_STATUS(read_quantization(config, top));
  }
  return config;
}

Result<HfGenerationConfig> parse_hf_generation_config(std::string_view text, const std::string& name) {
  INFERD_TRY(const Json json, parse_json_header(text, kDepth, Code::model_metadata, name));
  const HfFields fields(json, name);
  INFERD_TRY(const Shared shared, read_shared(fields));
  HfGenerationConfig config{.bos_token_id = shared.bos_token_id,
                            .eos_token_ids = shared.eos_token_ids,
                            .pad_token_id = shared.pad_token_id};
  INFERD_TRY(config.do_sample, fields.boolean("do_sample"));
  INFERD_TRY(config.temperature, fields.number("temperature", 0, kLargest));
  INFERD_TRY(config.top_k, fields.integer("top_k", 0));
  INFERD_TRY(config.top_p, fields.number("top_p", 0, 1));
  INFERD_TRY(config.min_p, fields.number("min_p", 0, 1));
  INFERD_TRY(config.repetition_penalty, fields.number("repetition_penalty", kSmallest, kLargest));
  INFERD_TRY(config.max_new_tokens, fields.integer("max_new_tokens"));
  return config;
}

Result<HfConfig> read_hf_config(const std::string& path) {
  INFERD_TRY(const MappedFile file, map_config(path));
  return parse_hf_config(text_of(file), path);
}

Result<HfGenerationConfig> read_hf_generation_config(const std::string& path) {
  INFERD_TRY(const MappedFile file, map_config(path));
  return parse_hf_generation_config(text_of(file), path);
}

}  // namespace inferd
