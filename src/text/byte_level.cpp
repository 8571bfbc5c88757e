#include "text/byte_level.h"

#include <array>
#include <cstdint>

namespace inferd {
namespace {

constexpr size_t kAlphabetEnd = 0x100 + 68;

constexpr bool stands_for_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

// By code point: the byte, or −1.
constexpr std::array<int16_t, kAlphabetEnd> make_bytes() {
  std::array<int16_t, kAlphabetEnd> bytes{};
  bytes.fill(-1);
  size_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    bytes[stands_for_itself(byte) ? static_cast<size_t>(byte) : next++] = static_cast<int16_t>(byte);
  }
  return bytes;
}

constexpr auto kBytes = make_bytes();

// The byte that the character at `at` stands for, −1 when it is not in the alphabet; `at` moves behind it if
// it is. The alphabet ends below U+0144, so its UTF-8 forms have one byte, or two with a lead byte C2 to C5.
int take_alphabet_byte(std::string_view token, size_t& at) {
  const auto lead = static_cast<unsigned char>(token[at]);
  if (lead < 0x80) {
    ++at;
    return kBytes[lead];
  }
  if (lead < 0xC2 || lead > 0xC5 || at + 1 == token.size()) return -1;
  const auto second = static_cast<unsigned char>(token[at + 1]);
  const size_t code_point = (lead & 0x1Fu) << 6 | (second & 0x3Fu);
  if ((second & 0xC0) != 0x80 || code_point >= kAlphabetEnd) return -1;
  at += 2;
  return kBytes[code_point];
}

}  // namespace

bool append_alphabet_bytes(std::string& out, std::string_view token) {
  const size_t before = out.size();
  for (size_t at = 0; at < token.size();) {
    const int byte = take_alphabet_byte(token, at);
    if (byte < 0) {
      out.resize(before);
      return false;
    }
    out.push_back(static_cast<char>(byte));
  }
  return true;
}

int first_alphabet_byte(std::string_view token) {
  size_t at = 0;
  return token.empty() ? -1 : take_alphabet_byte(token, at);
}

int last_alphabet_byte(std::string_view token) {
  if (token.empty()) return -1;
  const bool two_bytes = token.size() > 1 && static_cast<unsigned char>(token.back()) >= 0x80;
  size_t at = token.size() - (two_bytes ? 2 : 1);
  return take_alphabet_byte(token, at);
}

}  // namespace inferd
