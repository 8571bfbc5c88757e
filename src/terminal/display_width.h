// How many columns of a terminal text takes, and where its characters as people see them begin and end. Pure
// functions, no locale: tables of Unicode 17.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace inferd {

// 0, 1 or 2; 0 for control characters.
int column_width(char32_t code_point);
// The sum over a text.
int column_width(std::string_view text);

// A character as people see it: a code point and what joins it (marks, variation selectors, skin tones, what
// stands behind a zero-width joiner, the second half of a flag). The offset behind the one that begins at
// `at`, and the beginning of the one that ends at `at`; `at` lies inside the text or at its ends.
size_t next_character(std::string_view text, size_t at);
size_t previous_character(std::string_view text, size_t at);

// What a terminal may be sent of text that strangers wrote: line feeds and tabs stay, all other control
// characters (C0, DEL and C1), which could move the cursor or worse, are left out. Ill-formed bytes become
// U+FFFD, so give it whole characters.
std::string without_controls(std::string_view text);

}  // namespace inferd
