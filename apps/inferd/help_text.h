// What `inferd`, `inferd --help` and `inferd COMMAND --help` print, made from the option table for a terminal
// of `columns`; narrower than 40 counts as 40, wider than 100 as 100.
#pragma once

#include <string>
#include <string_view>

#include "options.h"

namespace inferd {

std::string brief_help(int columns);                  // `inferd` alone: how to begin
std::string help_text(int columns);                   // examples, all commands, where values come from
std::string help_text(Command command, int columns);  // examples, usage, options by group

// `text` in lines of at most `columns`, broken at spaces, each behind `indent` spaces and ended by a line
// feed; a longer word keeps a line of its own.
std::string wrapped(std::string_view text, size_t indent, size_t columns);

}  // namespace inferd
