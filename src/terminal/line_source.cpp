#include "terminal/line_source.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>


namespace inferd {

std::optional<InputLine::End> wait_readable(int fd, const Wakeup& wakeup, int timeout_ms, bool& ready) {
  std::array<pollfd, 2> waiting = {pollfd{.fd = fd, .events = POLLIN, .revents = 0},
                                   pollfd{.fd = wakeup.fd, .events = POLLIN, .revents = 0}};
  ready = false;
  if (::poll(waiting.data(), waiting.size(), timeout_ms) < 0) return std::nullopt;
  ready = waiting[0].revents != 0;
  return waiting[1].revents != 0 ? wakeup.take() : std::nullopt;
}

void write_text(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

InputLine PlainReader::read(std::string_view prompt) {
  if (prompt_fd_ >= 0) write_text(prompt_fd_, prompt);
  size_t searched = 0;
  while (true) {
    const size_t feed = buffer_.find('\n', searched);
    if (feed != std::string::npos || (ended_ && !buffer_.empty())) {
      const size_t size = std::min(feed, buffer_.size());
      InputLine line{.end = InputLine::End::line,
                     .text = buffer_.substr(0, size)};
      if (line.text.ends_with('\r')) line.text.pop_back();
      buffer_.erase(0, size + 1);
      return line;
    }
    if (ended_) return {.end = InputLine::End::end, .text = {}};
    searched = buffer_.size();
    bool ready = false;
    if (const auto end = wait_readable(fd_, wakeup_, -1, ready))
      return {.end = *end, .text = std::exchange(buffer_, {})};
    if (!ready) continue;
    std::array<char, 65536> piece;
    const ssize_t got = ::read(fd_, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got > 0) {
      buffer_.append(piece.data(), static_cast<size_t>(got));
    } else {
      ended_ = true;
    }
  }
}

}  // namespace inferd
