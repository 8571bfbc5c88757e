// What a model file says about a dense decoder, checked once at load. One struct by flags for the llama,
// qwen2 and qwen3 families; any other architecture is refused by name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/gguf.h"
#include "model/rope.h"

namespace inferd {

struct DecoderConfig {
  std::string architecture;  // "llama", "qwen2", "qwen3"
  std::string name;          // general.name
  int32_t layers = 0;
  int32_t hidden = 0;  // D
  int32_t ffn = 0;     // F
  int32_t heads = 0;
  int32_t kv_heads = 0;
  int32_t head_dim = 0;
  int32_t vocab = 0;      // V, rows of the embedding
  int32_t train_ctx = 0;  // the longest context the model was made for
  float rms_eps = 0;
  bool tied_head = false;  // the embedding is the output head too
  bool qkv_bias = false;
  bool qk_norm = false;            // every head of q and k is normalised before its rotation
  bool fused_projections = false;  // the file has q, k, v as one tensor, and gate and up as one
  bool post_norms = false;  // what attention and the feed-forward give is normalised before it is added
  bool gelu = false;        // the gate is GELU with tanh; else SiLU
  float embedding_scale = 1;
  float attention_scale = 0;     // AttentionShape::scale
  float attention_softcap = 0;   // AttentionShape::softcap
  float logit_softcap = 0;       // Ops::softcap of the logits; 0: none
  std::vector<int32_t> windows;  // (layers) AttentionShape::window of each: 0 sees all

  RopeConfig rope;
  std::optional<RopeConfig> window_rope;  // of layers with a window, where it is another
  bool rope_neighbours = false;           // GGUF stores llama's q and k rows so that pairs are neighbours

  int32_t qkv_rows() const { return (heads + 2 * kv_heads) * head_dim; }
};

// Reads the metadata and the shapes that it must agree with. E-MODEL-002 unknown architecture; E-MODEL-003 a
// key that is missing, odd or asks for something this model code does not compute (experts, other rope
// scalings, a sliding window in an architecture that has none).
Result<DecoderConfig> read_decoder_config(const GgufFile& file);

}  // namespace inferd
