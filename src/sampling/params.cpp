#include "sampling/params.h"

#include <sys/random.h>

#include <algorithm>
#include <cmath>

namespace inferd {
namespace {

Error out_of_range(std::string_view field, const std::string& got, std::string_view allowed) {
  return Error{.code = Code::req_value,
               .detail = cat(field, " is ", got, ", allowed is ", allowed),
               .param = std::string(field)};
}

Status in_range(std::string_view field, double value, double low, bool low_allowed, double high) {
  // NaN fails every comparison, so it is refused here too.
  if ((low_allowed ? value >= low : value > low) && value <= high) return {};
  return out_of_range(field, cat(value), cat(low_allowed ? "" : "above ", low, " to ", high));
}

}  // namespace

Status validate(const SamplingParams& p, int64_t vocab) {
  INFERD_TRY_STATUS(in_range("temperature", p.temperature, 0, true, 100));
  if (p.top_k < 0 || p.top_k > INT32_MAX) return out_of_range("top_k", cat(p.top_k), "0 (off) to 2147483647");
  INFERD_TRY_STATUS(in_range("top_p", p.top_p, 0, false, 1));
  INFERD_TRY_STATUS(in_range("min_p", p.min_p, 0, true, 1));
  INFERD_TRY_STATUS(in_range("repetition_penalty", p.repetition_penalty, 0, false, 10));
  INFERD_TRY_STATUS(in_range("presence_penalty", p.presence_penalty, -2, true, 2));
  INFERD_TRY_STATUS(in_range("frequency_penalty", p.frequency_penalty, -2, true, 2));
  if (p.logit_bias.size() > static_cast<size_t>(kMaxLogitBias)) {
    return out_of_range("logit_bias", cat(p.logit_bias.size(), " entries"), cat("0 to ", kMaxLogitBias));
  }
  std::vector<int32_t> ids;
  for (const LogitBias& entry : p.logit_bias) {
    if (entry.id < 0 || entry.id >= vocab) {
      return out_of_range("logit_bias", cat("for id ", entry.id), cat("ids 0 to ", vocab - 1));
    }
    if (!(entry.bias >= -100 && entry.bias <= 100)) {
      return out_of_range("logit_bias", cat(entry.bias, " for id ", entry.id), "-100 to 100");
    }
    ids.push_back(entry.id);
  }
  std::ranges::sort(ids);
  if (const auto twice = std::ranges::adjacent_find(ids); twice != ids.end()) {
    return out_of_range("logit_bias", cat("given twice for id ", *twice), "each id once");
  }
  if (p.min_tokens < 0 || p.min_tokens > INT32_MAX)
    return out_of_range("min_tokens", cat(p.min_tokens), "0 to max_tokens");
  if (p.stop_ids.size() > static_cast<size_t>(kMaxStopIds)) {
    return out_of_range("stop_token_ids", cat(p.stop_ids.size(), " ids, the model's own included"),
                        cat("at most ", kMaxStopIds));
  }
  for (const int32_t id : p.stop_ids) {
    if (id < 0 || id >= vocab)
      return out_of_range("stop_token_ids", cat("id ", id), cat("ids 0 to ", vocab - 1));
  }
  if (p.logprobs < -1 || p.logprobs > kMaxTopLogprobs) {
    return out_of_range("top_logprobs", cat(p.logprobs), cat("0 to ", kMaxTopLogprobs));
  }
  return {};
}

SampleParams to_device(const SamplingParams& p, uint32_t choice) {
  INFERD_CHECK(p.seed.has_value(), "a request needs a seed before it is submitted");
  SampleParams d{};
  d.seed = *p.seed;
  d.choice = choice;
  d.temperature = static_cast<float>(p.temperature);
  d.top_k = static_cast<int32_t>(p.top_k);
  d.top_p = static_cast<float>(p.top_p);
  d.min_p = static_cast<float>(p.min_p);
  d.repetition = static_cast<float>(p.repetition_penalty);
  d.presence = static_cast<float>(p.presence_penalty);
  d.frequency = static_cast<float>(p.frequency_penalty);
  d.min_tokens = static_cast<int32_t>(p.min_tokens);
  d.logprobs = p.logprobs;
  d.processed_logprobs = p.processed_logprobs ? 1 : 0;
  d.stop_count = static_cast<int32_t>(p.stop_ids.size());
  std::ranges::copy(p.stop_ids, d.stop_ids);
  d.bias_count = static_cast<int32_t>(p.logit_bias.size());
  std::ranges::copy(p.logit_bias, d.bias);
  return d;
}

uint64_t random_seed() {
  uint64_t seed = 0;
  INFERD_CHECK(::getrandom(&seed, sizeof seed, 0) == sizeof seed, "getrandom");
  return seed >> 1;  // stays positive in JSON clients that read int64
}

}  // namespace inferd
