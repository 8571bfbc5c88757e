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

std::string_view log_format_name(LogFormat format) {
  return format == LogFormat::json ? "json" : "text";
}

std::optional<LogFormat> parse_log_format(std::string_view name) {
  if (name == "text") return LogFormat::text;
  if (name == "json") return LogFormat::json;
  return std::nullopt;
}

void Logger::record(LogLevel level, std::string_view area, std::string_view text,
                    const Json::Object& fields) {
  if (!wants(level)) return;
  if (format_ == LogFormat::text) return write_line(level, area, text);
  write_json(level, area, fields);
}

void Logger::write_line(LogLevel level, std::string_view area, std::string_view text) {
  if (format_ == LogFormat::json) return write_json(level, area, {{"message", text}});
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
  write_bytes(line);
}

void Logger::write_json(LogLevel level, std::string_view area, const Json::Object& fields) {
  std::timespec now{};
  std::timespec_get(&now, TIME_UTC);
  std::tm parts{};
  gmtime_r(&now.tv_sec, &parts);
  std::array<char, 32> stamp;
  const size_t stamp_length = std::strftime(stamp.data(), stamp.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  const std::string milliseconds = cat(1000 + now.tv_nsec / 1000000).substr(1);
  Json::Object object = {{"time", cat(std::string_view(stamp.data(), stamp_length), ".", milliseconds, "Z")},
                         {"level", kNames[static_cast<size_t>(level)]},
                         {"area", area}};
  object.insert(object.end(), fields.begin(), fields.end());
  write_bytes(to_json(Json(std::move(object))) + "\n");
}

void Logger::write_bytes(std::string_view line) {
  const std::scoped_lock lock(mutex_);
  const ssize_t written = ::write(fd_, line.data(), line.size());
  static_cast<void>(written);  // see the header: a line that cannot be written is dropped
}

}  // namespace inferd
