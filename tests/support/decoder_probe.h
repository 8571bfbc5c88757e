// Runs a decoder outside the engine and hands out its logits: for tests that compare a model with golden
// files.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/batch_builder.h"
#include "model/decoder.h"
#include "ops/ops.h"

namespace inferd::test {

class DecoderProbe {
 public:
  struct Options {
    int32_t ctx = 512;
    int32_t max_tokens = 128;  // of one forward
    KvDType kv_dtype = KvDType::f32;
  };

  // Ends the test program with the error when the model does not load.
  DecoderProbe(Backend backend, const std::string& gguf_path, const Options& options);

  // Starts a new sequence.
  void reset() { length_ = 0; }
  // Feeds ids behind what was fed before; the logits of all of them, (ids, vocab).
  std::vector<float> feed(std::span<const int32_t> ids);
  // Feeds ids; the logits of the last one only, (vocab).
  std::vector<float> feed_last(std::span<const int32_t> ids);

  int32_t vocab() const { return decoder_->config().vocab; }
  const Decoder& decoder() const { return *decoder_; }

 private:
  std::vector<float> run(std::span<const int32_t> ids, int32_t logit_rows);

  Backend backend_;
  const Options options_;
  std::unique_ptr<Decoder> decoder_;
  Buffer kv_buffer_;
  Buffer buffer_;
  std::vector<std::byte> host_;
  KvView kv_;
  Activations activations_;
  MatrixView logits_;
  SeqState state_;
  std::unique_ptr<BatchBuilder> builder_;
  std::vector<int32_t> pages_;
  std::vector<int32_t> known_;
  int32_t length_ = 0;
};

int32_t arg_max(std::span<const float> logits);

// −ln p of each id but the first, given those before it. Starts a new sequence.
std::vector<double> token_nll(DecoderProbe& probe, std::span<const int32_t> ids);
// e to the mean of them.
double perplexity(std::span<const double> nll);

}  // namespace inferd::test
