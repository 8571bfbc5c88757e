#include "model/decoder.h"

#include <algorithm>

namespace inferd {

void Decoder::forward(Ops& ops, const BatchView& b, std::span<const KvView> kv, const Activations& a,
                      MatrixView logits) const {
  const DecoderConfig& m = config_;
  AttentionShape shape{m.heads, m.kv_heads, m.head_dim, m.attention_scale, m.attention_softcap};
  constexpr int32_t kGroup = 0;

  ops.gather_rows(a.x, *embedding_, b.ids);  // (N, D)
  if (m.embedding_scale != 1) ops.scale(a.x, m.embedding_scale);
  for (int32_t i = 0; i < m.layers; ++i) {
    const Layer& l = layers_[static_cast<size_t>(i)];
    shape.window = m.windows[static_cast<size_t>(i)];
    if (i == 0) {
      ops.rmsnorm(a.h, a.x, l.attn_norm.data(), m.rms_eps);
    } else {
      ops.add_rmsnorm(a.h, a.x, a.h, l.attn_norm.data(), m.rms_eps);  // x += h; h = norm(x)      (N, D)
    }
    ops.linear(a.qkv, a.h, *l.qkv, l.qkv_bias.data());  //                  (N, (H+2K)·hd)
    if (m.qk_norm) ops.qk_norm(a.qkv, l.q_norm.data(), l.k_norm.data(), m.rms_eps, shape);
    ops.rope_store_kv(a.qkv, kv[kGroup], b, kGroup, i, shape.window > 0 ? window_rope_ : rope_,
                      shape);                                      // rotate q, k; write k, v
    ops.attention(a.att, a.qkv, kv[kGroup], b, kGroup, i, shape);  //                       (N, H·hd)
    ops.linear(a.h, a.att, *l.o, nullptr);                         //                          (N, D)
    ops.reduce(a.h);
    if (m.post_norms) ops.rmsnorm(a.h, a.h, l.attn_post_norm.data(), m.rms_eps);
    ops.add_rmsnorm(a.h, a.x, a.h, l.ffn_norm.data(), m.rms_eps);
    ops.linear(a.gate_up, a.h, *l.gate_up, nullptr);  //                         (N, 2F)
    if (m.gelu) {
      ops.gelu_mul(a.ff, a.gate_up);  //                          (N, F)
    } else {
      ops.silu_mul(a.ff, a.gate_up);
    }
    ops.linear(a.h, a.ff, *l.down, nullptr);  //                          (N, D)
    ops.reduce(a.h);
    if (m.post_norms) ops.rmsnorm(a.h, a.h, l.ffn_post_norm.data(), m.rms_eps);
  }
  if (logits.rows == 0) return;  // only prompt chunks that go on
  ops.add(a.x, a.h);
  ops.select_rows(a.last, a.x, b.logit_token);  //                          (L, D)
  ops.rmsnorm(a.last, a.last, final_norm_.data(), m.rms_eps);
  ops.linear(logits, a.last, head_ ? *head_ : *embedding_, nullptr);  //                          (L, V)
  if (m.logit_softcap > 0) ops.softcap(logits, m.logit_softcap);
}

int64_t Decoder::step_bytes() const {
  int64_t bytes = (head_ ? *head_ : *embedding_).bytes();
  for (const Layer& l : layers_)
    bytes += l.qkv->bytes() + l.o->bytes() + l.gate_up->bytes() + l.down->bytes();
  return bytes;
}

KvLayout Decoder::kv_layout(const DecoderConfig& config, KvDType dtype, int32_t page_tokens) {
  return {dtype, config.layers, config.kv_heads, config.head_dim, page_tokens};
}

OpsLimits Decoder::ops_limits(const DecoderConfig& config, int32_t rows, int32_t tokens, int32_t logit_rows,
                              int32_t ctx) {
  OpsLimits limits;
  limits.rows = rows;
  limits.tokens = tokens;
  limits.logit_rows = logit_rows;
  limits.ctx = ctx;
  limits.heads = config.heads;
  limits.kv_heads = config.kv_heads;
  limits.head_dim = config.head_dim;
  limits.linear_cols = std::max({config.hidden, config.heads * config.head_dim, config.ffn});
  limits.linear_rows = std::max({config.vocab, config.qkv_rows(), 2 * config.ffn, config.hidden});
  limits.vocab = config.vocab;
  return limits;
}

Activations Activations::place(Arena& arena, const DecoderConfig& config, int32_t tokens,
                               int32_t logit_rows) {
  const auto matrix = [&arena](int64_t rows, int64_t cols) {
    return matrix_f32(arena.take<float>(rows * cols), rows, cols);
  };
  Activations a;
  a.x = matrix(tokens, config.hidden);
  a.h = matrix(tokens, config.hidden);
  a.qkv = matrix(tokens, config.qkv_rows());
  a.att = matrix(tokens, int64_t{config.heads} * config.head_dim);
  a.gate_up = matrix(tokens, 2 * int64_t{config.ffn});
  a.ff = matrix(tokens, config.ffn);
  a.last = matrix(logit_rows, config.hidden);
  return a;
}

Activations Activations::cut(int32_t tokens, int32_t logit_rows) const {
  return {x.first_rows(tokens),       h.first_rows(tokens),       qkv.first_rows(tokens),
          att.first_rows(tokens),     gate_up.first_rows(tokens), ff.first_rows(tokens),
          last.first_rows(logit_rows)};
}

}  // namespace inferd
