// The dense decoder: embedding, layers of attention and gated feed-forward with pre-norm, head. One function,
// forward(), run by every backend.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "formats/gguf.h"
#include "model/config.h"
#include "ops/ops.h"

namespace inferd {

// Named buffers of one step, in device memory, sized once for the most tokens a step may have.
struct Activations {
  MatrixView x;        // (N, D) the residual stream
  MatrixView h;        // (N, D) what a block reads and adds
  MatrixView qkv;      // (N, qkv_rows)
  MatrixView att;      // (N, heads · head_dim)
  MatrixView gate_up;  // (N, 2F)
  MatrixView ff;       // (N, F)
  MatrixView last;     // (L, D) the tokens whose logits are wanted

  // Takes its parts from the arena; with an empty arena only adds up their sizes.
  static Activations place(Arena& arena, const DecoderConfig& config, int32_t tokens, int32_t logit_rows);
  // The same buffers, cut to one step's rows.
  Activations cut(int32_t tokens, int32_t logit_rows) const;
};

class Decoder {
 public:
  // `done` and `total` are bytes of the model file; called now and then from the loading thread.
  using Progress = std::function<void(int64_t done, int64_t total)>;

  // Packs all weights for `ops` and gives the file's pages back as it goes. `ctx` sizes the rope table.
  // E-MODEL-004, -005, -006 name the tensor that is missing, misshaped, of an unsupported type, or not part
  // of this architecture; E-MEM-002 when memory is short.
  static Result<std::unique_ptr<Decoder>> load(const GgufFile& file, const DecoderConfig& config, int32_t ctx,
                                               Device& device, Ops& ops, const Progress& progress = nullptr);

  // Bytes that load() will take from the device, for the memory plan. Refuses what load() would refuse.
  static Result<int64_t> weight_bytes(const GgufFile& file, const DecoderConfig& config, int32_t ctx,
                                      const Ops& ops);

  // Runs one step: reads b.ids, writes K and V of the new tokens to kv[0], and the logits of b.logit_token's
  // tokens. Padding tokens compute nothing that anybody reads.
  void forward(Ops& ops, const BatchView& b, std::span<const KvView> kv, const Activations& a,
               MatrixView logits /* (L, V) */) const;

  const DecoderConfig& config() const { return config_; }
  // Bytes a decode step must read: all layers, the head and one embedding row.
  int64_t step_bytes() const;

  // One layer's K and V for the given page size and type.
  static KvLayout kv_layout(const DecoderConfig& config, KvDType dtype, int32_t page_tokens);
  static OpsLimits ops_limits(const DecoderConfig& config, int32_t rows, int32_t tokens, int32_t logit_rows,
                              int32_t ctx);

 private:
  friend class DecoderLoader;

  // A float vector in device memory.
  struct Vector {
    Buffer buffer;
    const float* data() const { return static_cast<const float*>(buffer.data()); }
  };
  struct Layer {
    Vector attn_norm;                       // (D)
    std::unique_ptr<PackedWeight> qkv;      // (qkv_rows, D)
    Vector qkv_bias;                        // (qkv_rows) or empty
    Vector q_norm;                          // (head_dim) or empty
    Vector k_norm;                          // (head_dim) or empty
    std::unique_ptr<PackedWeight> o;        // (D, heads · head_dim)
    Vector attn_post_norm;                  // (D) or empty
    Vector ffn_norm;                        // (D)
    std::unique_ptr<PackedWeight> gate_up;  // (2F, D)
    std::unique_ptr<PackedWeight> down;     // (D, F)
    Vector ffn_post_norm;                   // (D) or empty
  };

  explicit Decoder(const DecoderConfig& config) : config_(config) {}

  const DecoderConfig config_;
  std::unique_ptr<PackedWeight> embedding_;  // (V, D)
  std::unique_ptr<PackedWeight> head_;       // (V, D); null: the embedding
  Vector final_norm_;                        // (D)
  std::vector<Layer> layers_;
  Buffer rope_table_;
  RopeView rope_;
  Buffer window_rope_table_;
  RopeView window_rope_;  // of layers with a window; rope_ where the model has one rotation
};

}  // namespace inferd
