// Server-sent events (WHATWG HTML, section 9.2): one frame is one JSON text without line feeds.
#pragma once

#include <string>
#include <string_view>

namespace inferd {

inline constexpr std::string_view kSseType = "text/event-stream";
inline constexpr std::string_view kSsePing = ": ping\n\n";  // a comment, which readers skip
inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";

// Around what is appended in between.
inline void begin_frame(std::string& out) {
  out += "data: ";
}
inline void end_frame(std::string& out) {
  out += "\n\n";
}

}  // namespace inferd
