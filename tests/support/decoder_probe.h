// A decoder outside the engine and its logits, for tests that compare a model with golden files: errors end
// the test program.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lab/sequence_logits.h"

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
  void reset() { model_->reset(); }
  // Feeds ids behind what was fed before; the logits of all of them, (ids, vocab).
  std::vector<float> feed(std::span<const int32_t> ids);
  // Feeds ids; the logits of the last one only, (vocab).
  std::vector<float> feed_last(std::span<const int32_t> ids);

  int32_t vocab() const { return model_->vocab(); }
  const Decoder& decoder() const { return model_->decoder(); }
  SequenceLogits& model() { return *model_; }

 private:
  std::unique_ptr<SequenceLogits> model_;
};

// The bytes of a GGUF file, but that they say of one tensor that it has another type, one whose blocks have
// as many elements and no more bytes.
std::string gguf_with_type(const std::string& path, std::string_view tensor, uint32_t ggml_type);

int32_t arg_max(std::span<const float> logits);

// −ln p of each id but the first, given those before it. Starts a new sequence.
std::vector<double> token_nll(DecoderProbe& probe, std::span<const int32_t> ids);
// e to the mean of them.
double perplexity(std::span<const double> nll);

}  // namespace inferd::test
