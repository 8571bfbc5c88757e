#include "client/event_reader.h"

#include "base/strings.h"

namespace inferd {

std::optional<std::string> EventReader::next() {
  for (size_t end = 0; (end = buffer_.find("\n\n")) != std::string::npos;) {
    const std::string frame = buffer_.substr(0, end);
    buffer_.erase(0, end + 2);
    std::optional<std::string> data;
    for (std::string_view line : split(frame, '\n')) {
      if (!line.starts_with("data:")) continue;
      line.remove_prefix(line.starts_with("data: ") ? 6 : 5);
      data = data ? cat(*data, "\n", line) : std::string(line);
    }
    if (data) return data;
  }
  return std::nullopt;
}

}  // namespace inferd
