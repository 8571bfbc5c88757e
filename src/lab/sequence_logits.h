// A decoder over one sequence at a time, outside of the engine, that hands out its logits: for perplexity,
// scores, and tests that compare a model with what others computed. One thread.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/batch_builder.h"
#include "formats/gguf.h"
#include "model/decoder.h"
#include "ops/ops.h"

namespace inferd {

class SequenceLogits {
 public:
  struct Options {
    int32_t ctx = 512;          // most tokens of a sequence
    int32_t step_tokens = 128;  // of one forward pass
    KvDType kv_dtype = KvDType::f32;
  };

  // Loads the model. The errors are those of Decoder::load(); E-MEM-002 when memory is short.
  static Result<std::unique_ptr<SequenceLogits>> load(Backend backend, const GgufFile& file,
                                                      const DecoderConfig& config, const Options& options,
                                                      const Decoder::Progress& progress = nullptr);

  // Starts a new sequence.
  void reset() { length_ = 0; }
  // Feeds ids behind what was fed before, at most Options::step_tokens and no more than ctx in all: the
  // logits of the last `rows` of them, (rows, vocab), until the next call.
  std::span<const float> feed(std::span<const int32_t> ids, int32_t rows);

  const Decoder& decoder() const { return *decoder_; }
  int32_t vocab() const { return decoder_->config().vocab; }
  int32_t length() const { return length_; }
  const Options& options() const { return options_; }

 private:
  SequenceLogits(Backend backend, const Options& options) : backend_(std::move(backend)), options_(options) {}

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
  std::vector<float> out_;
  int32_t length_ = 0;
};

}  // namespace inferd
