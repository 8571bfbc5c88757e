// How a prompt and the text behind it lie in the rows of a terminal. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace inferd {

struct LineLayout {
  std::vector<std::string> rows;  // what is printed; none has more columns than the terminal
  std::vector<int> widths;        // of each row, in columns
  size_t cursor_row = 0;
  int cursor_column = 0;  // less than the terminal's columns
};

// `prompt` stands before the first line of `text`, `more_prompt` before each further one; both are printable.
// Control characters in the text are shown as ^A, tabs as four spaces. `cursor` is a byte offset in the text.
LineLayout lay_out(std::string_view prompt, std::string_view more_prompt, std::string_view text,
                   size_t cursor, int columns);

// Rows between the top of a drawn layout and its cursor, after the terminal was made `columns` wide and broke
// the rows that had become too long, as most terminals do.
size_t rows_above_cursor(const LineLayout& drawn, int columns);

}  // namespace inferd
