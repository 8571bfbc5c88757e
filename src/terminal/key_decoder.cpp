// Sequences as xterm, VTE, the Linux console and tmux send them (ECMA-48; xterm's "ctlseqs").
#include "terminal/key_decoder.h"

#include <array>
#include <utility>

#include "base/strings.h"
#include "base/utf8.h"

namespace inferd {
namespace {

constexpr char kEscape = '\x1b';
constexpr std::string_view kPasteBegin = "\x1b[200~";
constexpr std::string_view kPasteEnd = "\x1b[201~";
// Longer ones are no keys: whatever it is, it is passed over.
constexpr size_t kLongestCsi = 32;

std::optional<Key> control_key(char c) {
  static constexpr auto kKeys = std::to_array<std::pair<char, Key>>({
      {'A', Key::home},
      {'B', Key::left},
      {'C', Key::interrupt},
      {'D', Key::end_of_input},
      {'E', Key::end},
      {'F', Key::right},
      {'G', Key::cancel},
      {'H', Key::backspace},
      {'I', Key::complete},
      {'J', Key::enter},
      {'K', Key::erase_to_end},
      {'L', Key::clear_screen},
      {'M', Key::enter},
      {'N', Key::down},
      {'P', Key::up},
      {'R', Key::search},
      {'U', Key::erase_to_start},
      {'W', Key::erase_word_left},
      {'Y', Key::put_back},
      {'Z', Key::suspend},
  });
  if (c == 0x7f) return Key::backspace;
  for (const auto& [letter, key] : kKeys) {
    if (c == letter - '@') return key;
  }
  return std::nullopt;
}

// The last byte of ESC [ … or ESC O …, with what stands between.
std::optional<Key> sequence_key(std::string_view parameters, char last) {
  const bool by_word = parameters.ends_with(";5") || parameters.ends_with(";3");  // with Ctrl or Alt
  switch (last) {
    case 'A':
      return Key::up;
    case 'B':
      return Key::down;
    case 'C':
      return by_word ? Key::word_right : Key::right;
    case 'D':
      return by_word ? Key::word_left : Key::left;
    case 'H':
      return Key::home;
    case 'F':
      return Key::end;
    case 'M':
      return Key::enter;  // of the number pad
    case '~':
      break;
    default:
      return std::nullopt;
  }
  const std::string_view number = parameters.substr(0, parameters.find(';'));
  if (number == "1" || number == "7") return Key::home;
  if (number == "4" || number == "8") return Key::end;
  if (number == "3") return by_word ? Key::erase_word_right : Key::erase;
  return std::nullopt;
}

std::optional<Key> alt_key(char c) {
  switch (c) {
    case 'b':
    case 'B':
      return Key::word_left;
    case 'f':
    case 'F':
      return Key::word_right;
    case 'd':
    case 'D':
      return Key::erase_word_right;
    case '\x7f':
    case '\b':
      return Key::erase_word_left;
    case '\r':
    case '\n':
      return Key::new_line;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<KeyPress> KeyDecoder::take(Key key, size_t bytes) {
  bytes_.erase(0, bytes);
  return KeyPress{.key = key, .text = {}};
}

std::optional<KeyPress> KeyDecoder::next() {
  while (!bytes_.empty()) {
    if (pasting_) return next_paste();
    const char first = bytes_.front();
    if (first == kEscape) {
      const size_t before = bytes_.size();
      std::optional<KeyPress> press = next_escape();
      if (press || bytes_.size() == before) return press;
      continue;  // an unknown sequence was passed over
    }
    if (const auto byte = static_cast<unsigned char>(first); byte < 0x20 || byte == 0x7f) {
      if (const auto key = control_key(first)) return take(*key, 1);
      bytes_.erase(0, 1);
      continue;
    }
    KeyPress typed{.key = Key::text, .text = {}};
    size_t at = 0;
    while (at < bytes_.size()) {
      const auto byte = static_cast<unsigned char>(bytes_[at]);
      if (byte < 0x20 || byte == 0x7f) break;
      const Utf8Step step = decode_utf8(std::string_view(bytes_).substr(at));
      if (step.truncated && !given_up_) break;
      append_utf8(typed.text, step.code_point);
      at += step.length;
    }
    given_up_ = false;
    bytes_.erase(0, at);
    if (typed.text.empty()) return std::nullopt;
    return typed;
  }
  given_up_ = false;
  return std::nullopt;
}

std::optional<KeyPress> KeyDecoder::next_escape() {
  if (bytes_.size() == 1) {
    if (!std::exchange(given_up_, false)) return std::nullopt;
    return take(Key::cancel, 1);
  }
  if (bytes_[1] == '[' || bytes_[1] == 'O') return next_csi();
  if (bytes_[1] == kEscape) return take(Key::cancel, 1);
  if (const auto key = alt_key(bytes_[1])) return take(*key, 2);
  bytes_.erase(0, 1 + decode_utf8(std::string_view(bytes_).substr(1)).length);
  return std::nullopt;
}

std::optional<KeyPress> KeyDecoder::next_csi() {
  if (bytes_.starts_with(kPasteBegin)) {
    bytes_.erase(0, kPasteBegin.size());
    pasting_ = true;
    searched_ = 0;
    return next_paste();
  }
  for (size_t at = 2; at < bytes_.size(); ++at) {
    const char c = bytes_[at];
    if (c >= 0x40 && c <= 0x7e && !(at == 2 && c == '[')) {  // ESC [ [ A: the Linux console's F1
      const auto key = sequence_key(std::string_view(bytes_).substr(2, at - 2), c);
      bytes_.erase(0, at + 1);
      if (!key) return std::nullopt;
      return KeyPress{.key = *key, .text = {}};
    }
    if (static_cast<unsigned char>(c) < 0x20 || at > kLongestCsi) {  // broken off
      bytes_.erase(0, at);
      return std::nullopt;
    }
  }
  if (std::exchange(given_up_, false)) bytes_.clear();
  return std::nullopt;
}

std::optional<KeyPress> KeyDecoder::next_paste() {
  const size_t end = bytes_.find(kPasteEnd, searched_);
  if (end == std::string::npos) {
    searched_ = bytes_.size() < kPasteEnd.size() ? 0 : bytes_.size() - kPasteEnd.size() + 1;
    return std::nullopt;
  }
  KeyPress paste{.key = Key::paste, .text = replace_invalid_utf8(std::string_view(bytes_).substr(0, end))};
  bytes_.erase(0, end + kPasteEnd.size());
  pasting_ = false;
  // Terminals send the Enter key's byte for a line's end.
  std::string lines;
  for (size_t i = 0; i < paste.text.size(); ++i) {
    if (paste.text[i] != '\r') {
      lines.push_back(paste.text[i]);
    } else if (i + 1 == paste.text.size() || paste.text[i + 1] != '\n') {
      lines.push_back('\n');
    }
  }
  paste.text = std::move(lines);
  return paste;
}

void KeyDecoder::give_up() {
  given_up_ = !bytes_.empty() && !pasting_;
}

}  // namespace inferd
