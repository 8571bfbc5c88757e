// Small helpers for building messages: joining values, human numbers, nearest names.
// Used by every folder; no locale, no streams.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace inferd {

void append_piece(std::string& out, std::string_view piece);
void append_piece(std::string& out, double value);  // shortest text that reads back as the same double
void append_integer(std::string& out, int64_t value);
void append_integer(std::string& out, uint64_t value);

template <typename T>
void append_any(std::string& out, const T& value) {
  if constexpr (std::same_as<T, bool>) {
    append_piece(out, value ? std::string_view("true") : std::string_view("false"));
  } else if constexpr (std::same_as<T, char>) {
    out.push_back(value);
  } else if constexpr (std::signed_integral<T>) {
    append_integer(out, static_cast<int64_t>(value));
  } else if constexpr (std::unsigned_integral<T>) {
    append_integer(out, static_cast<uint64_t>(value));
  } else if constexpr (std::floating_point<T>) {
    append_piece(out, static_cast<double>(value));
  } else {
    append_piece(out, std::string_view(value));
  }
}

// cat("needs ", 12, " bytes") == "needs 12 bytes".
template <typename... Ts>
std::string cat(const Ts&... values) {
  std::string out;
  (append_any(out, values), ...);
  return out;
}

std::string fixed(double value, int decimals);  // fixed(1.25, 1) == "1.2" (round half to even)
std::string with_commas(int64_t value);         // 1234567 -> "1,234,567"
std::string human_bytes(int64_t bytes);         // 98362432 -> "93.8 MiB"
std::string human_seconds(double seconds);      // 0.0123 -> "12 ms", 3.21 -> "3.2 s", 75 -> "1 min 15 s"

// Decimal integer, the whole text, no sign but a leading '-'; nullopt when it is not one or overflows.
std::optional<int64_t> parse_int(std::string_view text);
// Decimal floating point, the whole text; "nan" and "inf" are refused.
std::optional<double> parse_double(std::string_view text);

std::vector<std::string_view> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);
std::string join(std::span<const std::string> parts, std::string_view separator);
std::string to_lower_ascii(std::string_view text);

// The candidate with the smallest edit distance, if that is small enough to be a likely typing error.
std::optional<std::string> nearest_name(std::string_view given, std::span<const std::string> candidates);

// Printable form of untrusted bytes for a message: at most `limit` bytes, control characters and quotes
// escaped.
std::string printable(std::string_view text, size_t limit = 60);

}  // namespace inferd
