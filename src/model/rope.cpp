#include "model/rope.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

namespace inferd {
namespace {

// The divisors that a tensor holds; empty when the file has no such tensor.
Result<std::vector<double>> read_divisors(const GgufFile& file, std::string_view name, int32_t pairs) {
  const GgufTensor* tensor = file.find_tensor(name);
  if (tensor == nullptr) return std::vector<double>();
  INFERD_TRY(const DType dtype, file.dtype(*tensor));
  if (dtype != DType::f32 || tensor->elements != pairs) {
    return Error{.code = Code::model_tensor_shape,
                 .detail = cat(name, " is ", dtype_name(dtype), " with ", tensor->elements,
                               " elements, needed are F32 and ", pairs),
                 .where = cat(file.name(), ": byte ", tensor->entry_offset)};
  }
  std::vector<double> divisors;
  for (int32_t i = 0; i < pairs; ++i) {
    float value = 0;
    std::memcpy(&value, tensor->data.data() + size_t{4} * static_cast<size_t>(i), sizeof value);
    if (!(value > 0) || !std::isfinite(value)) {
      return Error{.code = Code::model_metadata,
                   .detail = cat("rope factor ", value, ", must be positive and finite"),
                   .where = cat(file.name(), ": ", name)};
    }
    divisors.push_back(static_cast<double>(value));
  }
  return divisors;
}

// The divisors of YaRN: pairs that turn more than beta_fast times within the original context keep their
// frequency, those that turn less than beta_slow times are divided by the factor.
Result<std::vector<double>> yarn_divisors(const RopeConfig& rope, const Metadata& in, double factor) {
  INFERD_TRY(const double fast, in.real("rope.scaling.yarn_beta_fast", 1e-3, 1e6, 32.0));
  INFERD_TRY(const double slow, in.real("rope.scaling.yarn_beta_slow", 1e-3, 1e6, 1.0));
  // Variants whose formulas differ from the paper's.
  for (const auto& [key, plain] : {std::pair<std::string_view, double>{"rope.scaling.yarn_ext_factor", 1.0},
                                   {"rope.scaling.yarn_attn_factor", 1.0},
                                   {"rope.scaling.yarn_log_multiplier", 0.0}}) {
    INFERD_TRY(const double value, in.real(key, -1e6, 1e6, plain));
    if (value != plain) return in.bad(key, cat(value, ", supported is ", plain));
  }
  // The pair, counted in dims / 2, that turns `turns` times within the original context.
  const auto pair_of = [&](double turns) {
    return rope.dims * std::log(rope.original_ctx / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(rope.base));
  };
  const double low = std::max(0.0, std::floor(pair_of(fast)));
  const double high = std::max(low + 0.001, std::min(rope.dims - 1.0, std::ceil(pair_of(slow))));
  std::vector<double> divisors;
  for (int32_t i = 0; i < rope.dims / 2; ++i) {
    const double slowness = std::clamp((i - low) / (high - low), 0.0, 1.0);
    divisors.push_back(1 / (slowness / factor + 1 - slowness));
  }
  return divisors;
}

void multiply(std::vector<double>& divisors, const std::vector<double>& by) {
  if (divisors.empty()) divisors.assign(by.size(), 1.0);
  for (size_t i = 0; i < by.size(); ++i) divisors[i] *= by[i];
}

}  // namespace

std::vector<double> RopeConfig::frequencies(int32_t ctx) const {
  const std::vector<double>& by = !long_divisors.empty() && ctx > original_ctx ? long_divisors : divisors;
  std::vector<double> frequencies;
  for (int32_t i = 0; i < dims / 2; ++i) {
    frequencies.push_back(std::pow(base, -2.0 * i / dims) / (by.empty() ? 1.0 : by[static_cast<size_t>(i)]));
  }
  return frequencies;
}

Result<RopeConfig> read_rope(const Metadata& in, int32_t head_dim, int32_t train_ctx) {
  RopeConfig rope;
  INFERD_TRY(rope.base, in.real("rope.freq_base", 1.001, 1e12, 10000.0));
  INFERD_TRY(rope.dims, in.integer("rope.dimension_count", 2, head_dim, head_dim));
  if (rope.dims % 2 != 0) return in.bad("rope.dimension_count", cat(rope.dims, ", must be even"));
  INFERD_TRY(rope.original_ctx, in.integer("rope.scaling.original_context_length", 1, 1 << 30, train_ctx));
  INFERD_TRY(rope.magnitude, in.real("rope.scaling.attn_factor", 1e-3, 1e3, 1.0));

  // Older files give a factor and no type, or the factor under another name; both mean linear.
  const std::string_view factor_key =
      in.find("rope.scaling.factor") == nullptr && in.find("rope.scale_linear") != nullptr
          ? "rope.scale_linear"
          : "rope.scaling.factor";
  INFERD_TRY(const std::string_view type,
             in.string("rope.scaling.type", in.find(factor_key) == nullptr ? "none" : "linear"));
  const GgufFile& file = in.file();
  INFERD_TRY(rope.divisors, read_divisors(file, "rope_factors_short.weight", rope.dims / 2));
  INFERD_TRY(rope.long_divisors, read_divisors(file, "rope_factors_long.weight", rope.dims / 2));
  if (rope.divisors.empty() != rope.long_divisors.empty() || (type == "longrope" && rope.divisors.empty())) {
    return in.bad("rope.scaling.type", cat(printable(type), ", which needs both tensors ",
                                           "rope_factors_short.weight and rope_factors_long.weight"));
  }
  INFERD_TRY(const std::vector<double> llama3, read_divisors(file, "rope_freqs.weight", rope.dims / 2));
  if (!rope.long_divisors.empty() && (!llama3.empty() || type == "linear" || type == "yarn")) {
    return in.bad("rope.scaling.type", cat(printable(type), ": another scaling beside LongRoPE's factors"));
  }
  multiply(rope.divisors, llama3);
  if (type == "linear" || type == "yarn") {
    INFERD_TRY(const double factor, in.real(factor_key, 1, 1e6));
    if (type == "linear") {
      multiply(rope.divisors, std::vector<double>(static_cast<size_t>(rope.dims / 2), factor));
    } else {
      INFERD_TRY(const std::vector<double> yarn, yarn_divisors(rope, in, factor));
      multiply(rope.divisors, yarn);
      rope.magnitude *= 1 + 0.1 * std::log(factor);
    }
  } else if (type != "none" && type != "longrope") {
    return in.bad("rope.scaling.type", cat(printable(type), ", supported are none, linear, yarn, longrope ",
                                           "and Llama 3's rope_freqs"));
  }
  return rope;
}

}  // namespace inferd
