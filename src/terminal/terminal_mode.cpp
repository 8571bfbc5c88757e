#include "terminal/terminal_mode.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>

namespace inferd {

TerminalMode::TerminalMode(int fd) : fd_(fd) {
  ::tcgetattr(fd_, &original_);
}

// What was typed ahead is kept: TCSADRAIN, never TCSAFLUSH.
void TerminalMode::set(const termios& mode) const {
  while (::tcsetattr(fd_, TCSADRAIN, &mode) != 0 && errno == EINTR) {
  }
}

void TerminalMode::edit() {
  termios mode = original_;
  mode.c_iflag &= ~static_cast<tcflag_t>(ICRNL | INLCR | IGNCR | IXON | ISTRIP);
  mode.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG | IEXTEN);
  mode.c_cc[VMIN] = 1;
  mode.c_cc[VTIME] = 0;
  set(mode);
}

void TerminalMode::quiet() {
  termios mode = original_;
  mode.c_iflag &= ~static_cast<tcflag_t>(ICRNL | INLCR | IGNCR | IXON | ISTRIP);
  mode.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | IEXTEN);
  mode.c_lflag |= ISIG | NOFLSH;       // Ctrl-C does not throw away what was typed ahead
  mode.c_cc[VQUIT] = _POSIX_VDISABLE;  // it would end the program with the terminal as it is now
  mode.c_cc[VMIN] = 1;
  mode.c_cc[VTIME] = 0;
  set(mode);
}

void TerminalMode::restore() {
  set(original_);
}

TerminalSize terminal_size(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {.columns = size.ws_col, .rows = size.ws_row};
}

}  // namespace inferd
