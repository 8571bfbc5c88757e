// One line a message on stderr: "12:03:44 info  engine: text". Passed by reference; there is no global
// logger.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string_view>

#include "base/strings.h"

namespace inferd {

enum class LogLevel : int { error = 0, warn = 1, info = 2, debug = 3 };

std::string_view log_level_name(LogLevel level);  // "error" "warn" "info" "debug"
std::optional<LogLevel> parse_log_level(std::string_view name);

class Logger {
 public:
  explicit Logger(LogLevel level = LogLevel::info, int fd = 2) : level_(level), fd_(fd) {}
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  bool wants(LogLevel level) const { return level <= level_; }

  template <typename... Ts>
  void error(std::string_view area, const Ts&... text) {
    write(LogLevel::error, area, text...);
  }
  template <typename... Ts>
  void warn(std::string_view area, const Ts&... text) {
    write(LogLevel::warn, area, text...);
  }
  template <typename... Ts>
  void info(std::string_view area, const Ts&... text) {
    write(LogLevel::info, area, text...);
  }
  template <typename... Ts>
  void debug(std::string_view area, const Ts&... text) {
    write(LogLevel::debug, area, text...);
  }

 private:
  template <typename... Ts>
  void write(LogLevel level, std::string_view area, const Ts&... text) {
    if (wants(level)) write_line(level, area, cat(text...));
  }
  // Any thread. A line that cannot be written (full disk, closed pipe) is dropped: logging never stops
  // serving.
  void write_line(LogLevel level, std::string_view area, std::string_view text);

  const LogLevel level_;
  const int fd_;
  std::mutex mutex_;
};

}  // namespace inferd
