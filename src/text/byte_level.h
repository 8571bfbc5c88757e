// The printable alphabet in which byte-level BPE files write bytes (GPT-2, 2019): the 188 bytes that Latin-1
// prints stand for themselves, the other 68, in ascending order, are U+0100, U+0101, … U+0143. "Ġ" (U+0120)
// is a space.
#pragma once

#include <string>
#include <string_view>

namespace inferd {

// Appends the bytes that `token` stands for. False, and nothing appended: it holds a character that is not in
// the alphabet, or ill-formed UTF-8.
bool append_alphabet_bytes(std::string& out, std::string_view token);

// The byte that the first or last character of `token` stands for; −1: there is none, or it is not in the
// alphabet.
int first_alphabet_byte(std::string_view token);
int last_alphabet_byte(std::string_view token);

}  // namespace inferd
