// What counts as part of a word beside an added token. Pure function, any thread.
#pragma once

namespace inferd {

// Is it a word character (\w) to Hugging Face's added tokens? Requires code_point <= 0x10FFFF.
bool is_word_character(char32_t code_point);

}  // namespace inferd
