// A program on a pseudo-terminal, and the screen that its output makes: a small terminal emulator, which
// knows the sequences that this project writes and ends the test program at any other. How wide characters
// are, it takes from the C library.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace inferd::test {

class Screen {
 public:
  Screen(int columns, int rows) : columns_(columns), rows_(rows), lines_(1) {}

  void write(std::string_view bytes);
  // As terminals do that break lines anew: those that had become too long, and those that a break had ended.
  void resize(int columns, int rows);

  // Every line from the first one, also what has scrolled away; no spaces at the ends, no empty lines at the
  // end.
  std::string text() const;
  std::string whole_lines() const;  // text(), without the breaks that the terminal made
  // The line of the cursor, "|" before the cell it is in.
  std::string cursor_line() const;
  bool pastes() const { return pastes_; }
  bool dimmed() const { return dimmed_; }  // some text was dim

 private:
  struct Line {
    std::vector<std::string> cells;  // a wide character has an empty cell behind it
    bool continues = false;          // broken by the terminal, not by a line feed
  };
  std::string lines(bool joined) const;
  void put(std::string_view character, int width);
  void feed();
  void control(std::string_view parameters, char last);
  Line& line();

  int columns_;
  int rows_;
  std::vector<Line> lines_;  // the last `rows_` of them are on the screen
  size_t row_ = 0;           // of lines_
  int column_ = 0;
  bool pastes_ = false;
  bool dimmed_ = false;
  std::string pending_;
};

struct TerminalOptions {
  int columns = 80;
  int rows = 24;
  std::vector<std::string> environment;
  std::string folder = ".";  // where the program runs
};

class Terminal {
 public:
  Terminal(const std::string& program, const std::vector<std::string>& arguments,
           const TerminalOptions& options);
  ~Terminal();  // kills it when it still runs
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void type(std::string_view bytes);
  // Reads until the screen's text ends with this, has it, or its cursor line is `line` ("" or "x|y"); ends
  // the test program with the screen when that takes too long, 20 s where nothing else is said.
  void expect_end(std::string_view text);
  void expect_text(std::string_view text, std::chrono::seconds timeout = std::chrono::seconds(20));
  void expect_cursor(std::string_view line);
  void expect_busy();  // until the line was taken: Ctrl-C is a signal from now on
  // Types, and reads until the next prompt: an empty line behind ">>> ". What was printed between.
  std::string ask(std::string_view bytes);
  void resize(int columns, int rows);
  void signal(int number) const;
  std::optional<int> wait(std::chrono::milliseconds timeout = std::chrono::seconds(20));

  const Screen& screen() const { return screen_; }
  const std::string& raw() const { return raw_; }  // every byte that came
  bool echoes() const;                             // the terminal's modes are as they were at the beginning

 private:
  bool read(std::chrono::steady_clock::time_point end);
  template <typename Condition>
  void read_until(const Condition& condition, std::string_view what,
                  std::chrono::seconds timeout = std::chrono::seconds(20));

  int master_ = -1;
  pid_t pid_ = -1;
  Screen screen_;
  std::string raw_;
  std::optional<int> code_;
};

}  // namespace inferd::test
