// One line a message on stderr: "12:03:44 info  engine: text", or a JSON object with time, level, area and
// message. Passed by reference; there is no global logger.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string_view>

#include "base/json.h"
#include "base/strings.h"

namespace inferd {

enum class LogLevel : int { error = 0, warn = 1, info = 2, debug = 3 };

std::string_view log_level_name(LogLevel level);  // "error" "warn" "info" "debug"
std::optional<LogLevel> parse_log_level(std::string_view name);

enum class LogFormat { text, json };

std::string_view log_format_name(LogFormat format);
std::optional<LogFormat> parse_log_format(std::string_view name);  // "text" "json"

class Logger {
 public:
  explicit Logger(LogLevel level = LogLevel::info, int fd = 2, LogFormat format = LogFormat::text)
      : level_(level), fd_(fd), format_(format) {}
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  bool wants(LogLevel level) const { return level <= level_; }
  LogFormat format() const { return format_; }

  // A message that programs read too: `text` in one format, the fields in place of "message" in the other.
  void record(LogLevel level, std::string_view area, std::string_view text, const Json::Object& fields);

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
  void write_json(LogLevel level, std::string_view area, const Json::Object& fields);
  void write_bytes(std::string_view line);

  const LogLevel level_;
  const int fd_;
  const LogFormat format_;
  std::mutex mutex_;
};

}  // namespace inferd
