// Server-sent events out of the pieces of a body: the data of each, comments left out. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace inferd {

class EventReader {
 public:
  void push(std::string_view piece) { buffer_ += piece; }
  // The data of the next whole event.
  std::optional<std::string> next();

 private:
  std::string buffer_;
};

}  // namespace inferd
