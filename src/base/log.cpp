#include "base/log.h"

#include <unistd.h>

#include <array>
#include <ctime>

namespace inferd {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"error", "warn", "info", "debug"};

}  // namespace

std::string_view log_level_name(LogLevel level) {
  return kNames[static_cast<size_t>(level)];
}

std::optional<LogLevel> parse_log_level(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<LogLevel>(i);
  }
  return std::nullopt;
}

void Logger::write_line(LogLevel level, std::string_view area, std::string_view text) {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 16> stamp;
  const size_t stamp_length = std::strftime(stamp.data(), stamp.size(), "%H:%M:%S", &parts);
  std::string line(stamp.data(), stamp_length);
  line.push_back(' ');
  line.append(kNames[static_cast<size_t>(level)]);
  line.append(level == LogLevel::error || level == LogLevel::debug ? " " : "  ");
  line.append(area);
  line.append(": ");
  line.append(text);
  line.push_back('\n');
  const std::scoped_lock lock(mutex_);
  const ssize_t written = ::write(fd_, line.data(), line.size());
  static_cast<void>(written);  // see the header: a line that cannot be written is dropped
}

}  // namespace inferd
