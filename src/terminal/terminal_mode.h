// The modes of a terminal's input while this program uses it; the ones it came with are put back at the end.
#pragma once

#include <termios.h>

namespace inferd {

class TerminalMode {
 public:
  // `fd` is a terminal.
  explicit TerminalMode(int fd);
  ~TerminalMode() { restore(); }
  TerminalMode(const TerminalMode&) = delete;
  TerminalMode& operator=(const TerminalMode&) = delete;

  void edit();     // every key comes at once, Ctrl-C too; no echo
  void quiet();    // the same, but Ctrl-C and Ctrl-Z are signals: what is typed waits, unseen
  void restore();  // as it was

  const termios& original() const { return original_; }

 private:
  void set(const termios& mode) const;

  const int fd_;
  termios original_{};
};

// The size of the terminal behind `fd`, else 80 × 24.
struct TerminalSize {
  int columns = 80;
  int rows = 24;
  bool operator==(const TerminalSize&) const = default;
};
TerminalSize terminal_size(int fd);

}  // namespace inferd
