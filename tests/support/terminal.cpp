#include "support/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#include <algorithm>
#include <array>
#include <clocale>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "base/check.h"
#include "base/strings.h"
#include "base/utf8.h"

namespace inferd::test {

Screen::Line& Screen::line() {
  while (lines_.size() <= row_) lines_.emplace_back();
  return lines_[row_];
}

void Screen::feed() {
  ++row_;
  line();
}

void Screen::put(std::string_view character, int width) {
  if (width == 0) {  // joins what stands before
    std::vector<std::string>& cells = line().cells;
    for (size_t at = std::min<size_t>(static_cast<size_t>(column_), cells.size()); at-- > 0;) {
      if (cells[at].empty()) continue;
      cells[at] += character;
      return;
    }
    return;
  }
  if (column_ + width > columns_) {
    line().continues = true;
    feed();
    column_ = 0;
  }
  std::vector<std::string>& cells = line().cells;
  const auto at = static_cast<size_t>(column_);
  if (cells.size() < at + static_cast<size_t>(width)) cells.resize(at + static_cast<size_t>(width), " ");
  cells[at] = character;
  if (width == 2) cells[at + 1].clear();
  column_ += width;  // columns_: the next character breaks the line first
}

void Screen::control(std::string_view parameters, char last) {
  const int number = static_cast<int>(parse_int(parameters).value_or(1));
  const size_t top =
      lines_.size() > static_cast<size_t>(rows_) ? lines_.size() - static_cast<size_t>(rows_) : 0;
  switch (last) {
    case 'A':
      row_ = std::max(top, row_ - std::min(row_, static_cast<size_t>(number)));
      return;
    case 'C':
      column_ = std::min(columns_ - 1, std::min(column_, columns_ - 1) + number);
      return;
    case 'H':
      INFERD_CHECK(parameters.empty(), "ESC[", parameters, "H");
      row_ = top;
      column_ = 0;
      return;
    case 'J':
      INFERD_CHECK(parameters.empty() || parameters == "2", "ESC[", parameters, "J");
      if (parameters == "2") {
        lines_.resize(top);
        row_ = top;
      } else {
        lines_.resize(row_ + 1);
        lines_[row_].cells.resize(std::min(lines_[row_].cells.size(), static_cast<size_t>(column_)));
      }
      line().continues = false;
      return;
    case 'K':
      INFERD_CHECK(parameters.empty(), "ESC[", parameters, "K");
      line().cells.resize(std::min(line().cells.size(), static_cast<size_t>(column_)));
      return;
    case 'm':
      INFERD_CHECK(parameters == "0" || parameters == "2", "ESC[", parameters, "m");
      dimmed_ = dimmed_ || parameters == "2";
      return;
    case 'h':
    case 'l':
      INFERD_CHECK(parameters == "?2004", "ESC[", parameters, last);
      pastes_ = last == 'h';
      return;
    default:
      INFERD_CHECK(false, "an unknown sequence: ESC[", parameters, last);
  }
}

void Screen::write(std::string_view bytes) {
  static const bool kLocale = std::setlocale(LC_CTYPE, "C.UTF-8") != nullptr;
  INFERD_CHECK(kLocale, "no locale C.UTF-8");
  pending_ += bytes;
  std::string_view rest = pending_;
  while (!rest.empty()) {
    if (rest.front() == '\x1b') {
      const size_t end = rest.size() < 2 ? std::string_view::npos : rest.find_first_not_of("0123456789;?", 2);
      if (end == std::string_view::npos) break;
      INFERD_CHECK(rest[1] == '[', "an unknown sequence: ", printable(rest.substr(0, 20)));
      control(rest.substr(2, end - 2), rest[end]);
      rest.remove_prefix(end + 1);
      continue;
    }
    const Utf8Step step = decode_utf8(rest);
    if (step.truncated) break;
    if (step.code_point == '\r') {
      column_ = 0;
    } else if (step.code_point == '\n') {
      feed();
    } else if (step.code_point == '\t') {
      column_ = std::min(columns_ - 1, column_ / 8 * 8 + 8);
    } else {
      INFERD_CHECK(step.code_point >= 0x20 && step.code_point != 0x7f,
                   "a control character: ", static_cast<uint32_t>(step.code_point));
      put(rest.substr(0, step.length), std::max(0, ::wcwidth(static_cast<wchar_t>(step.code_point))));
    }
    rest.remove_prefix(step.length);
  }
  pending_ = std::string(rest);
}

void Screen::resize(int columns, int rows) {
  std::vector<Line> joined;
  size_t cursor_line = 0;
  size_t cursor_cell = 0;
  for (size_t i = 0; i < lines_.size(); ++i) {
    const bool goes_on = i > 0 && lines_[i - 1].continues;
    if (!goes_on) joined.emplace_back();
    if (i == row_) {
      cursor_line = joined.size() - 1;
      cursor_cell = joined.back().cells.size() + static_cast<size_t>(column_);
    }
    joined.back().cells.insert(joined.back().cells.end(), lines_[i].cells.begin(), lines_[i].cells.end());
  }
  lines_.clear();
  columns_ = columns;
  rows_ = rows;
  for (size_t i = 0; i < joined.size(); ++i) {
    size_t from = 0;
    const std::vector<std::string>& cells = joined[i].cells;
    do {
      size_t to = std::min(cells.size(), from + static_cast<size_t>(columns));
      if (to < cells.size() && cells[to].empty()) --to;  // not through a wide character
      if (i == cursor_line && cursor_cell >= from &&
          (cursor_cell < from + static_cast<size_t>(columns) || to == cells.size())) {
        row_ = lines_.size();
        column_ = std::min(columns, static_cast<int>(cursor_cell - from));
      }
      lines_.push_back({.cells = {cells.begin() + static_cast<std::ptrdiff_t>(from),
                                  cells.begin() + static_cast<std::ptrdiff_t>(to)},
                        .continues = to < cells.size()});
      from = to;
    } while (from < cells.size());
  }
}

std::string Screen::text() const {
  return lines(false);
}
std::string Screen::whole_lines() const {
  return lines(true);
}

std::string Screen::lines(bool joined) const {
  std::string all;
  size_t kept = 0;
  for (const Line& each : lines_) {
    for (const std::string& cell : each.cells) all += cell;
    if (joined && each.continues) continue;
    while (all.ends_with(' ')) all.pop_back();
    if (!all.empty() && all.back() != '\n') kept = all.size();
    all.push_back('\n');
  }
  all.resize(kept);
  return all;
}

std::string Screen::cursor_line() const {
  std::string all;
  const std::vector<std::string>& cells = lines_[row_].cells;
  for (size_t i = 0; i < std::max(cells.size(), static_cast<size_t>(column_)); ++i) {
    if (i == static_cast<size_t>(column_)) all.push_back('|');
    all += i < cells.size() ? cells[i] : " ";
  }
  return cells.size() <= static_cast<size_t>(column_) ? all + "|" : all;
}

Terminal::Terminal(const std::string& program, const std::vector<std::string>& arguments,
                   const TerminalOptions& options)
    : screen_(options.columns, options.rows) {
  const winsize size{.ws_row = static_cast<unsigned short>(options.rows),
                     .ws_col = static_cast<unsigned short>(options.columns),
                     .ws_xpixel = 0,
                     .ws_ypixel = 0};
  std::vector<std::string> argv = arguments;
  argv.insert(argv.begin(), program);
  std::vector<char*> pointers;
  for (std::string& argument : argv) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  pid_ = ::forkpty(&master_, nullptr, nullptr, &size);
  INFERD_CHECK(pid_ >= 0, "forkpty");
  if (pid_ == 0) {
    // Nothing of this process's that would configure the program.
    std::vector<std::string> names;
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string_view text = *entry;
      if (text.starts_with("INFERD_")) names.emplace_back(text.substr(0, text.find('=')));
    }
    for (const std::string& name : names) ::unsetenv(name.c_str());
    ::setenv("XDG_CONFIG_HOME", "/nowhere", 1);
    ::setenv("TERM", "xterm", 1);
    ::unsetenv("NO_COLOR");
    for (const std::string& entry : options.environment) {
      const size_t equals = entry.find('=');
      ::setenv(entry.substr(0, equals).c_str(), entry.substr(equals + 1).c_str(), 1);
    }
    if (::chdir(options.folder.c_str()) != 0) ::_exit(126);
    ::execv(program.c_str(), pointers.data());
    ::_exit(127);
  }
  ::fcntl(master_, F_SETFD, FD_CLOEXEC);
}

Terminal::~Terminal() {
  if (!code_) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ::close(master_);
}

void Terminal::type(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(master_, bytes.data(), bytes.size());
    INFERD_CHECK(written > 0, "the terminal takes no keys");
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

// False: nothing came in time, or the program has closed the terminal.
bool Terminal::read(std::chrono::steady_clock::time_point end) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
  pollfd waiting{.fd = master_, .events = POLLIN, .revents = 0};
  if (left.count() <= 0 || ::poll(&waiting, 1, static_cast<int>(left.count())) <= 0) return false;
  std::array<char, 65536> piece;
  const ssize_t got = ::read(master_, piece.data(), piece.size());
  if (got <= 0) return false;
  raw_.append(piece.data(), static_cast<size_t>(got));
  screen_.write({piece.data(), static_cast<size_t>(got)});
  return true;
}

template <typename Condition>
void Terminal::read_until(const Condition& condition, std::string_view what, std::chrono::seconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (!condition()) {
    INFERD_CHECK(read(end), "never came: ", what, "\n---- the screen:\n", screen_.text(),
                 "\n---- the cursor's line: ", screen_.cursor_line());
  }
}

void Terminal::expect_end(std::string_view text) {
  read_until([&] { return screen_.text().ends_with(text); }, text);
}

void Terminal::expect_text(std::string_view text, std::chrono::seconds timeout) {
  read_until([&] { return screen_.text().find(text) != std::string::npos; }, text, timeout);
}

void Terminal::expect_cursor(std::string_view line) {
  read_until([&] { return screen_.cursor_line() == line && screen_.pastes(); }, line);
}

void Terminal::expect_busy() {
  read_until([&] { return !screen_.pastes(); }, "the end of the line");
}

std::string Terminal::ask(std::string_view bytes) {
  const size_t before = screen_.text().size();
  const size_t came = raw_.size();
  type(bytes);
  // The prompt that was there is left first: what is drawn for each key ends with the cursor behind it.
  read_until([&] { return raw_.find("\x1b[?2004l", came) != std::string::npos; }, "the end of the line");
  read_until([&] { return screen_.cursor_line() == ">>> |" && screen_.pastes(); }, "the next prompt");
  std::string text = screen_.text().substr(before);
  INFERD_CHECK(text.ends_with("\n>>>"), text);
  text.resize(text.size() - 4);
  return text;
}

void Terminal::resize(int columns, int rows) {
  screen_.resize(columns, rows);
  const winsize size{.ws_row = static_cast<unsigned short>(rows),
                     .ws_col = static_cast<unsigned short>(columns),
                     .ws_xpixel = 0,
                     .ws_ypixel = 0};
  ::ioctl(master_, TIOCSWINSZ, &size);
}

void Terminal::signal(int number) const {
  if (!code_) ::kill(pid_, number);
}

std::optional<int> Terminal::wait(std::chrono::milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (!code_) {
    read(std::min(end, std::chrono::steady_clock::now() + std::chrono::milliseconds(5)));
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      while (read(std::chrono::steady_clock::now() + std::chrono::milliseconds(50))) {
      }
    } else if (std::chrono::steady_clock::now() >= end) {
      return std::nullopt;
    }
  }
  return code_;
}

bool Terminal::echoes() const {
  termios modes{};
  return ::tcgetattr(master_, &modes) == 0 &&
         (modes.c_lflag & (ECHO | ICANON | ISIG)) == (ECHO | ICANON | ISIG);
}

}  // namespace inferd::test
