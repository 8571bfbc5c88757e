#include "support/decoder_probe.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "lab/score.h"

namespace inferd::test {
namespace {

template <typename T>
T must(Result<T> result) {
  INFERD_CHECK(result.ok(), result.error().terminal_text());
  return std::move(result).value();
}

}  // namespace

DecoderProbe::DecoderProbe(Backend backend, const std::string& gguf_path, const Options& options) {
  const GgufFile file = must(GgufFile::open(gguf_path));
  const DecoderConfig config = must(read_decoder_config(file));
  model_ = must(SequenceLogits::load(
      std::move(backend), file, config,
      {.ctx = options.ctx, .step_tokens = options.max_tokens, .kv_dtype = options.kv_dtype}));
}

std::vector<float> DecoderProbe::feed(std::span<const int32_t> ids) {
  const auto most = static_cast<size_t>(model_->options().step_tokens);
  std::vector<float> all;
  for (size_t at = 0; at < ids.size(); at += most) {
    const auto part = ids.subspan(at, std::min(ids.size() - at, most));
    const std::span<const float> logits = model_->feed(part, static_cast<int32_t>(part.size()));
    all.insert(all.end(), logits.begin(), logits.end());
  }
  return all;
}

std::vector<float> DecoderProbe::feed_last(std::span<const int32_t> ids) {
  const auto most = static_cast<size_t>(model_->options().step_tokens);
  while (ids.size() > most) {
    model_->feed(ids.first(most), 0);
    ids = ids.subspan(most);
  }
  const std::span<const float> logits = model_->feed(ids, 1);
  return {logits.begin(), logits.end()};
}

std::string gguf_with_type(const std::string& path, std::string_view tensor, uint32_t ggml_type) {
  const GgufFile file = must(GgufFile::open(path));
  const GgufTensor* found = must(file.tensor(tensor));
  std::string bytes(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  // An entry is: length of the name and the name, number of dimensions, dimensions, type (gguf.h).
  const size_t at =
      static_cast<size_t>(found->entry_offset) + 8 + tensor.size() + 4 + 8 * static_cast<size_t>(found->dims);
  std::memcpy(bytes.data() + at, &ggml_type, sizeof ggml_type);
  return bytes;
}

int32_t arg_max(std::span<const float> logits) {
  return static_cast<int32_t>(std::ranges::max_element(logits) - logits.begin());
}

std::vector<double> token_nll(DecoderProbe& probe, std::span<const int32_t> ids) {
  std::vector<double> nll = log_probabilities(probe.model(), ids, 1);
  for (double& p : nll) p = -p;
  return nll;
}

double perplexity(std::span<const double> nll) {
  return std::exp(std::accumulate(nll.begin(), nll.end(), 0.0) / static_cast<double>(nll.size()));
}

}  // namespace inferd::test
