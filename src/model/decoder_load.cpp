// Loading a decoder: which tensors it has, of which shape, and how they become weights. The list is written
// once; one pass over it adds up sizes for the memory plan, another packs.
#include <cmath>
#include <cstring>
#include <unordered_set>

#include "model/decoder.h"
#include "tensor/half.h"

namespace inferd {

class DecoderLoader {
 public:
  // `device` and `decoder` are null when only sizes are wanted.
  DecoderLoader(const GgufFile& file, const DecoderConfig& config, const Ops& sizes)
      : file_(file), m_(config), sizes_(sizes) {}

  Status load_into(Decoder& decoder, int32_t ctx, Device& device, Ops& ops,
                   const Decoder::Progress& progress) {
    decoder_ = &decoder;
    device_ = &device;
    ops_ = &ops;
    progress_ = progress;
    return visit(ctx);
  }
  Result<int64_t> add_up(int32_t ctx) {
    INFERD_TRY_STATUS(visit(ctx));
    return bytes_;
  }

 private:
  using Weight = std::unique_ptr<PackedWeight>;
  struct Part {
    std::string name;
    int64_t rows;
  };

  Status visit(int32_t ctx) {
    for (const GgufTensor& tensor : file_.tensors()) total_ += static_cast<int64_t>(tensor.data.size());
    const int64_t q_rows = int64_t{m_.heads} * m_.head_dim;
    const int64_t kv_rows = int64_t{m_.kv_heads} * m_.head_dim;
    Decoder::Layer spare;
    Weight spare_weight;
    Decoder::Vector spare_vector;
    // The largest first: while a tensor is packed its pages of the file are resident too.
    if (!m_.tied_head) {
      INFERD_TRY_STATUS(
          weight(decoder_ ? decoder_->head_ : spare_weight, {{"output.weight", m_.vocab}}, m_.hidden));
    }
    INFERD_TRY_STATUS(
        weight(decoder_ ? decoder_->embedding_ : spare_weight, {{"token_embd.weight", m_.vocab}}, m_.hidden));
    if (decoder_) decoder_->layers_.resize(static_cast<size_t>(m_.layers));
    for (int32_t i = 0; i < m_.layers; ++i) {
      Decoder::Layer& l = decoder_ ? decoder_->layers_[static_cast<size_t>(i)] : spare;
      const auto name = [i](std::string_view part) { return cat("blk.", i, ".", part); };
      INFERD_TRY_STATUS(vector(l.attn_norm, {{name("attn_norm.weight"), m_.hidden}}));
      const std::vector<Part> qkv = {{name("attn_q.weight"), q_rows},
                                     {name("attn_k.weight"), kv_rows},
                                     {name("attn_v.weight"), kv_rows}};
      const std::vector<Part> fused_qkv = {{name("attn_qkv.weight"), q_rows + 2 * kv_rows}};
      INFERD_TRY_STATUS(weight(l.qkv, m_.fused_projections ? fused_qkv : qkv, m_.hidden));
      if (m_.qkv_bias) {
        INFERD_TRY_STATUS(vector(
            l.qkv_bias,
            {{name("attn_q.bias"), q_rows}, {name("attn_k.bias"), kv_rows}, {name("attn_v.bias"), kv_rows}}));
      }
      if (m_.qk_norm) {
        INFERD_TRY_STATUS(vector(l.q_norm, {{name("attn_q_norm.weight"), m_.head_dim}}));
        INFERD_TRY_STATUS(vector(l.k_norm, {{name("attn_k_norm.weight"), m_.head_dim}}));
      }
      INFERD_TRY_STATUS(weight(l.o, {{name("attn_output.weight"), m_.hidden}}, q_rows));
      if (m_.post_norms) {
        INFERD_TRY_STATUS(vector(l.attn_post_norm, {{name("post_attention_norm.weight"), m_.hidden}}));
        INFERD_TRY_STATUS(vector(l.ffn_post_norm, {{name("post_ffw_norm.weight"), m_.hidden}}));
      }
      INFERD_TRY_STATUS(vector(l.ffn_norm, {{name("ffn_norm.weight"), m_.hidden}}));
      const std::vector<Part> gate_up = {{name("ffn_gate.weight"), m_.ffn}, {name("ffn_up.weight"), m_.ffn}};
      const std::vector<Part> fused_gate_up = {{name("ffn_up.weight"), 2 * int64_t{m_.ffn}}};
      INFERD_TRY_STATUS(weight(l.gate_up, m_.fused_projections ? fused_gate_up : gate_up, m_.hidden));
      INFERD_TRY_STATUS(weight(l.down, {{name("ffn_down.weight"), m_.hidden}}, m_.ffn));
    }
    INFERD_TRY_STATUS(
        vector(decoder_ ? decoder_->final_norm_ : spare_vector, {{"output_norm.weight", m_.hidden}}));
    used_.insert(
        {"rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight"});  // read_rope()
    for (const GgufTensor& tensor : file_.tensors()) {
      if (!used_.contains(tensor.name)) {
        return Error{.code = Code::model_tensor_type,
                     .detail = cat(printable(tensor.name), " is not part of a ", m_.architecture,
                                   " model as it is computed here"),
                     .where = cat(file_.name(), ": byte ", tensor.entry_offset),
                     .fix = "use a model without it"};
      }
    }
    return ropes(ctx);
  }

  Result<const GgufTensor*> tensor(const std::string& name, int64_t rows, int64_t cols) {
    INFERD_TRY(const GgufTensor* found, file_.tensor(name));
    used_.insert(found->name);
    const bool vector = cols == 1;
    const int64_t found_rows = vector ? found->shape[0] : found->shape[1];
    const int64_t found_cols = vector ? found->shape[1] : found->shape[0];
    if (found->dims != (vector ? 1 : 2) || found_rows != rows || found_cols != cols) {
      return Error{.code = Code::model_tensor_shape,
                   .detail = vector ? cat(name, " has ", found->elements, " elements in ", found->dims,
                                          " dimensions, needed are ", rows, " in 1")
                                    : cat(name, " is (", found->shape[1], ", ", found->shape[0], ") in ",
                                          found->dims, " dimensions, needed is (", rows, ", ", cols, ")"),
                   .where = cat(file_.name(), ": byte ", found->entry_offset)};
    }
    return found;
  }

  // Matrices of `cols` columns as one packed weight.
  Status weight(Weight& target, const std::vector<Part>& parts, int64_t cols) {
    std::vector<RowGroup> groups;
    std::vector<const GgufTensor*> tensors;
    for (const Part& part : parts) {
      INFERD_TRY(const GgufTensor* found, tensor(part.name, part.rows, cols));
      INFERD_TRY(const DType dtype, file_.dtype(*found));
      groups.push_back({part.name, dtype, part.rows, cols, found->data});
      tensors.push_back(found);
    }
    bytes_ += round_up(sizes_.packed_bytes(groups), Arena::kAlignment);
    if (decoder_ == nullptr) return {};
    INFERD_TRY(target, ops_->pack(groups));
    for (const GgufTensor* found : tensors) read(*found);
    return {};
  }

  // Vectors one after another, as floats.
  Status vector(Decoder::Vector& target, const std::vector<Part>& parts) {
    std::vector<float> values;
    for (const Part& part : parts) {
      INFERD_TRY(const GgufTensor* found, tensor(part.name, part.rows, 1));
      INFERD_TRY(const DType dtype, file_.dtype(*found));
      if (is_quantised(dtype)) {
        return Error{.code = Code::model_tensor_type,
                     .detail = cat(part.name, " is ", dtype_name(dtype), ", needed is F32, F16 or BF16"),
                     .where = cat(file_.name(), ": byte ", found->entry_offset)};
      }
      for (int64_t i = 0; i < part.rows; ++i) values.push_back(element(found->data, dtype, i));
      if (decoder_ != nullptr) read(*found);
    }
    return upload(target.buffer, values, parts.front().name);
  }

  static float element(std::span<const std::byte> data, DType dtype, int64_t i) {
    if (dtype == DType::f32) {
      float value = 0;
      std::memcpy(&value, data.data() + i * 4, 4);
      return value;
    }
    uint16_t half = 0;
    std::memcpy(&half, data.data() + i * 2, 2);
    return dtype == DType::f16 ? f16_to_f32(half) : bf16_to_f32(half);
  }

  Status upload(Buffer& target, const std::vector<float>& values, std::string_view what) {
    const auto bytes = static_cast<int64_t>(values.size() * sizeof(float));
    bytes_ += round_up(bytes, Arena::kAlignment);
    if (decoder_ == nullptr) return {};
    INFERD_TRY(target, device_->allocate(bytes, what));
    device_->upload(target.data(), values.data(), bytes);
    device_->wait(device_->record());
    return {};
  }

  // cos and sin of every position and pair; angles in double, because a float product loses the angle far
  // out.
  Status rope(Buffer& target, RopeView& view, const RopeConfig& rope, int32_t ctx) {
    const int64_t count = int64_t{ctx} * rope.dims;
    if (decoder_ == nullptr) {
      bytes_ += round_up(count * 4, Arena::kAlignment);
      return {};
    }
    const std::vector<double> frequencies = rope.frequencies(ctx);
    std::vector<float> table;
    table.reserve(static_cast<size_t>(count));
    for (int32_t position = 0; position < ctx; ++position) {
      for (const double f : frequencies) {
        table.push_back(static_cast<float>(rope.magnitude * std::cos(position * f)));
        table.push_back(static_cast<float>(rope.magnitude * std::sin(position * f)));
      }
    }
    INFERD_TRY_STATUS(upload(target, table, "rope table"));
    view = {static_cast<const float*>(target.data()), rope.dims, m_.rope_neighbours};
    return {};
  }

  Status ropes(int32_t ctx) {
    Buffer spare_table;
    RopeView spare_view;
    INFERD_TRY_STATUS(rope(decoder_ ? decoder_->rope_table_ : spare_table,
                           decoder_ ? decoder_->rope_ : spare_view, m_.rope, ctx));
    if (m_.window_rope.has_value()) {
      return rope(decoder_ ? decoder_->window_rope_table_ : spare_table,
                  decoder_ ? decoder_->window_rope_ : spare_view, *m_.window_rope, ctx);
    }
    if (decoder_) decoder_->window_rope_ = decoder_->rope_;
    return {};
  }

  // A tensor's bytes are packed: its pages of the file may go.
  void read(const GgufTensor& tensor) {
    const auto bytes = static_cast<int64_t>(tensor.data.size());
    file_.release(tensor);
    done_ += bytes;
    if (progress_) progress_(done_, total_);
  }

  const GgufFile& file_;
  const DecoderConfig& m_;
  const Ops& sizes_;
  Decoder* decoder_ = nullptr;
  Device* device_ = nullptr;
  Ops* ops_ = nullptr;
  Decoder::Progress progress_;
  std::unordered_set<std::string_view> used_;
  int64_t bytes_ = 0;
  int64_t done_ = 0;
  int64_t total_ = 0;
};

Result<std::unique_ptr<Decoder>> Decoder::load(const GgufFile& file, const DecoderConfig& config, int32_t ctx,
                                               Device& device, Ops& ops, const Progress& progress) {
  auto decoder = std::unique_ptr<Decoder>(new Decoder(config));
  DecoderLoader loader(file, decoder->config_, ops);
  INFERD_TRY_STATUS(loader.load_into(*decoder, ctx, device, ops, progress));
  return decoder;
}

Result<int64_t> Decoder::weight_bytes(const GgufFile& file, const DecoderConfig& config, int32_t ctx,
                                      const Ops& ops) {
  return DecoderLoader(file, config, ops).add_up(ctx);
}

}  // namespace inferd
