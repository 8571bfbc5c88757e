// How errors stand on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace inferd {

// The lines of `text` (Error::terminal_text()) in at most `columns` columns: broken at spaces, what a line
// goes on with behind four more spaces. What stands between backquotes stays together where it fits on a
// line, so that it can be copied; a word wider than a line stays where it is, for the terminal to break.
// Fewer than 20 columns count as 20.
std::string error_lines(std::string_view text, int columns);

}  // namespace inferd
