// Reads one architecture's keys of a GGUF file, each checked against what is allowed. Used while a model's
// configuration is read, on the loading thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "formats/gguf.h"

namespace inferd {

class Metadata {
 public:
  // Keys are looked up as ARCHITECTURE.KEY. The file outlives this.
  Metadata(const GgufFile& file, std::string_view architecture)
      : file_(file), prefix_(cat(architecture, ".")) {}

  const GgufFile& file() const { return file_; }

  // Null when there is none.
  const GgufValue* find(std::string_view key) const { return file_.find(cat(prefix_, key)); }

  // E-MODEL-003 about that key.
  Error bad(std::string_view key, std::string detail) const {
    return Error{.code = Code::model_metadata,
                 .detail = std::move(detail),
                 .where = cat(file_.name(), ": ", prefix_, key)};
  }

  // E-MODEL-003 when it is missing and has no fallback, of another type, or outside low … high.
  Result<int32_t> integer(std::string_view key, int64_t low, int64_t high,
                          std::optional<int64_t> fallback = {}) const {
    INFERD_TRY(const int64_t value, file_.integer(cat(prefix_, key), fallback));
    if (value < low || value > high) return bad(key, cat(value, ", allowed are ", low, " to ", high));
    return static_cast<int32_t>(value);
  }
  Result<double> real(std::string_view key, double low, double high,
                      std::optional<double> fallback = {}) const {
    INFERD_TRY(const double value, file_.real(cat(prefix_, key), fallback));
    if (!(value >= low && value <= high)) return bad(key, cat(value, ", allowed are ", low, " to ", high));
    return value;
  }
  Result<std::string_view> string(std::string_view key, std::string_view fallback) const {
    return file_.string(cat(prefix_, key), fallback);
  }

 private:
  const GgufFile& file_;
  const std::string prefix_;
};

}  // namespace inferd
