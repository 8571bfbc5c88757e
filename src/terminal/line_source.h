// Where the lines of a conversation come from: an editor on a terminal, or plain reading.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace inferd {

struct InputLine {
  enum class End {
    line,
    interrupted,  // Ctrl-C; `text` is what had been typed
    end,          // Ctrl-D, or the end of the file
    stopped,      // the program was asked to end
  };
  End end = End::end;
  std::string text;  // without its line feed, UTF-8; an edited one may have several lines
};

class LineSource {
 public:
  virtual ~LineSource() = default;
  // `prompt` is shown before the line.
  virtual InputLine read(std::string_view prompt) = 0;
};

// How signals reach a reader that waits.
struct Wakeup {
  int fd = -1;  // becomes readable when a signal came; -1: never
  // Makes it unreadable again, and says what ends the read, if anything does.
  std::function<std::optional<InputLine::End>()> take;
};

// Reads a descriptor line by line, without any editing.
class PlainReader final : public LineSource {
 public:
  // `prompt_fd` -1: no prompts.
  PlainReader(int fd, int prompt_fd, Wakeup wakeup)
      : fd_(fd), prompt_fd_(prompt_fd), wakeup_(std::move(wakeup)) {}
  InputLine read(std::string_view prompt) override;

 private:
  const int fd_;
  const int prompt_fd_;
  const Wakeup wakeup_;
  std::string buffer_;
  bool ended_ = false;
};

// Waits until `fd` is readable, at most `timeout_ms` (-1: for ever): what the wakeup ended it with, or
// nothing, with `ready` saying whether there is something to read.
std::optional<InputLine::End> wait_readable(int fd, const Wakeup& wakeup, int timeout_ms, bool& ready);

// All of it, to a terminal or a pipe; what nobody reads any more is dropped.
void write_text(int fd, std::string_view text);

}  // namespace inferd
