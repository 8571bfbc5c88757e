#include "model/config.h"

#include <array>
#include <cmath>

#include "model/metadata.h"

namespace inferd {
namespace {

// What a name says that the metadata does not.
struct Architecture {
  std::string_view name;
  bool rope_neighbours = false;
  bool qk_norm = false;
  bool fused_projections = false;
  bool post_norms = false;
  bool gelu = false;
  bool scaled_embedding = false;  // by √hidden
  bool window_rope = false;       // layers with a window rotate by a base of their own, unscaled
  // Where the file does not say others.
  double attention_softcap = 0;
  double logit_softcap = 0;
  int32_t window = 0;
  // Gemma's largest sizes divide scores by √(hidden / heads) instead of √head_dim, and their files do not say
  // so: the number of layers does.
  int32_t layers_of_27b = 0;
  // Which layers of a file with a sliding window have it: every n-th one has not; 0: all have it. Unset: such
  // a file is refused, since it does not say which layers are meant.
  std::optional<int32_t> full_attention_every = {};
};

// The architectures that decoder.cpp computes.
constexpr std::array<Architecture, 7> kArchitectures = {{
    {.name = "llama", .rope_neighbours = true, .full_attention_every = 0},  // Mistral 7B v0.1 is one
    {.name = "qwen2"},
    {.name = "qwen3", .qk_norm = true},
    {.name = "phi3", .fused_projections = true, .full_attention_every = 0},
    {.name = "gemma", .gelu = true, .scaled_embedding = true},
    {.name = "gemma2",
     .post_norms = true,
     .gelu = true,
     .scaled_embedding = true,
     .attention_softcap = 50,
     .logit_softcap = 30,
     .window = 4096,
     .layers_of_27b = 46,
     .full_attention_every = 2},
    {.name = "gemma3",
     .qk_norm = true,
     .post_norms = true,
     .gelu = true,
     .scaled_embedding = true,
     .window_rope = true,
     .layers_of_27b = 62,
     .full_attention_every = 6},
}};

Result<const Architecture*> find_architecture(const GgufFile& file) {
  INFERD_TRY(const std::string_view name, file.string("general.architecture"));
  std::vector<std::string> known;
  for (const Architecture& architecture : kArchitectures) {
    if (architecture.name == name) return &architecture;
    known.emplace_back(architecture.name);
  }
  return Error{.code = Code::model_architecture,
               .detail = cat(printable(name), ", supported are ", join(known, ", ")),
               .where = cat(file.name(), ": general.architecture"),
               .fix = "use a model of one of these architectures"};
}

Status read_scales(DecoderConfig& config, const Metadata& in, const Architecture& architecture) {
  if (architecture.scaled_embedding) config.embedding_scale = std::sqrt(static_cast<float>(config.hidden));
  const int32_t divisor =
      config.layers == architecture.layers_of_27b ? config.hidden / config.heads : config.head_dim;
  config.attention_scale = 1.0f / std::sqrt(static_cast<float>(divisor));
  if (in.find("attention.scale") != nullptr) {
    INFERD_TRY(const double scale, in.real("attention.scale", 1e-6, 1e6));
    config.attention_scale = static_cast<float>(scale);
  }
  INFERD_TRY(const double attention_cap,
             in.real("attn_logit_softcapping", 0, 1e6, architecture.attention_softcap));
  config.attention_softcap = static_cast<float>(attention_cap);
  INFERD_TRY(const double logit_cap, in.real("final_logit_softcapping", 0, 1e6, architecture.logit_softcap));
  config.logit_softcap = static_cast<float>(logit_cap);
  return {};
}

// attention.sliding_window, and attention.sliding_window_pattern where a file has it: as the number n of
// Architecture::full_attention_every, or as one boolean a layer, true where the window is.
Status read_windows(DecoderConfig& config, const Metadata& in, const Architecture& architecture) {
  config.windows.assign(static_cast<size_t>(config.layers), 0);
  INFERD_TRY(const int32_t window, in.integer("attention.sliding_window", 0, 1 << 30, architecture.window));
  if (window == 0) return {};
  constexpr std::string_view kPattern = "attention.sliding_window_pattern";
  const GgufValue* pattern = in.find(kPattern);
  if (pattern != nullptr && pattern->type == GgufValueType::array) {
    if (pattern->element_type != GgufValueType::boolean || pattern->count != config.layers) {
      return in.bad(kPattern, cat("it is a ", pattern->type_name(), ", needed is a boolean for each of ",
                                  config.layers, " layers, or a number"));
    }
    for (size_t i = 0; i < config.windows.size(); ++i)
      if (pattern->payload[i] != std::byte{0}) config.windows[i] = window;
    return {};
  }
  if (pattern == nullptr && !architecture.full_attention_every.has_value()) {
    if (window >= config.train_ctx) return {};  // hides nothing, whichever layers have it
    return in.bad("attention.sliding_window",
                  cat(window, ": which layers of ", architecture.name, " have the window is not known"));
  }
  INFERD_TRY(const int32_t every, in.integer(kPattern, 0, 1024, architecture.full_attention_every));
  for (int32_t i = 0; i < config.layers; ++i)
    if (every == 0 || (i + 1) % every != 0) config.windows[static_cast<size_t>(i)] = window;
  return {};
}

}  // namespace

Result<DecoderConfig> read_decoder_config(const GgufFile& file) {
  INFERD_TRY(const Architecture* architecture, find_architecture(file));
  const Metadata in(file, architecture->name);
  DecoderConfig config;
  config.architecture = architecture->name;
  config.rope_neighbours = architecture->rope_neighbours;
  config.qk_norm = architecture->qk_norm;
  config.fused_projections = architecture->fused_projections;
  config.post_norms = architecture->post_norms;
  config.gelu = architecture->gelu;
  INFERD_TRY(const std::string_view name, file.string("general.name", ""));
  config.name = name;
  INFERD_TRY(config.layers, in.integer("block_count", 1, 1024));
  INFERD_TRY(config.train_ctx, in.integer("context_length", 1, 1 << 30));
  INFERD_TRY(config.hidden, in.integer("embedding_length", 1, 1 << 20));
  INFERD_TRY(config.ffn, in.integer("feed_forward_length", 1, 1 << 22));
  INFERD_TRY(config.heads, in.integer("attention.head_count", 1, 1 << 14));
  INFERD_TRY(config.kv_heads, in.integer("attention.head_count_kv", 1, config.heads, config.heads));
  if (config.heads % config.kv_heads != 0) {
    return in.bad("attention.head_count_kv",
                  cat(config.kv_heads, " does not divide ", config.heads, " heads"));
  }
  if (in.find("attention.key_length") == nullptr && config.hidden % config.heads != 0) {
    return in.bad("attention.head_count",
                  cat(config.heads, " does not divide the embedding length ", config.hidden));
  }
  INFERD_TRY(config.head_dim, in.integer("attention.key_length", 1, 1024, config.hidden / config.heads));
  INFERD_TRY(const int32_t value_dim, in.integer("attention.value_length", 1, 1024, config.head_dim));
  if (value_dim != config.head_dim) {
    return in.bad("attention.value_length", cat(value_dim, ", must equal the key length ", config.head_dim));
  }
  INFERD_TRY(const double eps, in.real("attention.layer_norm_rms_epsilon", 0, 1));
  config.rms_eps = static_cast<float>(eps);
  INFERD_TRY_STATUS(read_scales(config, in, *architecture));
  INFERD_TRY(const int32_t experts, in.integer("expert_count", 0, 1 << 20, 0));
  if (experts != 0) return in.bad("expert_count", cat(experts, ": a mixture of experts is not supported"));
  INFERD_TRY_STATUS(read_windows(config, in, *architecture));
  INFERD_TRY(config.rope, read_rope(in, config.head_dim, config.train_ctx));
  if (architecture->window_rope) {
    config.window_rope = RopeConfig{.dims = config.rope.dims};
    INFERD_TRY(config.window_rope->base, in.real("rope.freq_base_swa", 1.001, 1e12, 10000.0));
  }

  INFERD_TRY(const GgufTensor* embedding, file.tensor("token_embd.weight"));
  if (embedding->dims != 2 || embedding->shape[0] != config.hidden || embedding->shape[1] > 1 << 24) {
    return Error{.code = Code::model_tensor_shape,
                 .detail = cat("token_embd.weight is (", embedding->shape[1], ", ", embedding->shape[0],
                               "), needed is (vocabulary, ", config.hidden, ")"),
                 .where = cat(file.name(), ": byte ", embedding->entry_offset)};
  }
  config.vocab = static_cast<int32_t>(embedding->shape[1]);
  INFERD_TRY_STATUS([&]() -> Status {
    INFERD_TRY(const int32_t stated, in.integer("vocab_size", 1, 1 << 24, config.vocab));
    if (stated != config.vocab)
      return in.bad("vocab_size", cat(stated, ", the embedding has ", config.vocab, " rows"));
    return {};
  }());
  config.tied_head = file.find_tensor("output.weight") == nullptr;
  config.qkv_bias = file.find_tensor("blk.0.attn_q.bias") != nullptr;
  return config;
}

}  // namespace inferd
