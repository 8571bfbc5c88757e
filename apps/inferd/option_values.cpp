#include "option_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "base/strings.h"

namespace inferd {
namespace {

using Unit = std::pair<std::string_view, double>;

// The number before the first unit that `text` ends in, times that unit.
std::optional<double> parse_with_unit(std::string_view text, std::span<const Unit> units) {
  for (const auto& [unit, factor] : units) {
    if (!text.ends_with(unit)) continue;
    const auto number = parse_double(trim(text.substr(0, text.size() - unit.size())));
    if (!number || *number < 0 || *number * factor > 0x1p62) return std::nullopt;
    return *number * factor;
  }
  return std::nullopt;
}

std::optional<int64_t> whole(std::optional<double> value) {
  if (!value || *value != std::floor(*value)) return std::nullopt;
  return static_cast<int64_t>(*value);
}

}  // namespace

std::optional<int64_t> parse_count(std::string_view text) {
  static constexpr std::array<Unit, 4> kUnits = {
      {{"k", 0x1p10}, {"K", 0x1p10}, {"m", 0x1p20}, {"M", 0x1p20}}};
  if (const auto plain = parse_int(text)) return plain;
  return whole(parse_with_unit(text, kUnits));
}

std::optional<int64_t> parse_bytes(std::string_view text) {
  static constexpr std::array<Unit, 10> kUnits = {{{"KiB", 0x1p10},
                                                   {"MiB", 0x1p20},
                                                   {"GiB", 0x1p30},
                                                   {"TiB", 0x1p40},
                                                   {"kB", 1e3},
                                                   {"MB", 1e6},
                                                   {"GB", 1e9},
                                                   {"TB", 1e12},
                                                   {"B", 1},
                                                   {"", 1}}};
  const auto bytes = parse_with_unit(text, kUnits);
  if (!bytes) return std::nullopt;
  return static_cast<int64_t>(std::llround(*bytes));
}

std::optional<int64_t> parse_seconds(std::string_view text) {
  static constexpr std::array<Unit, 3> kUnits = {{{"s", 1}, {"m", 60}, {"h", 3600}}};
  if (const auto plain = parse_int(text)) return plain;
  return whole(parse_with_unit(text, kUnits));
}

std::optional<bool> parse_switch(std::string_view text) {
  static constexpr std::array<std::string_view, 4> kOn = {"1", "true", "yes", "on"};
  static constexpr std::array<std::string_view, 4> kOff = {"0", "false", "no", "off"};
  const std::string lower = to_lower_ascii(text);
  if (std::ranges::find(kOn, lower) != kOn.end()) return true;
  if (std::ranges::find(kOff, lower) != kOff.end()) return false;
  return std::nullopt;
}

}  // namespace inferd
