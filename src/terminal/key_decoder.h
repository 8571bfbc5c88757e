// What a terminal sends, as keys. Bytes come in any pieces; what is not whole yet stays pending. One thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace inferd {

enum class Key {
  text,   // KeyPress::text is what was typed
  paste,  // KeyPress::text is what was pasted: lines end in '\n'
  enter,
  new_line,  // Alt-Enter
  left,
  right,
  up,
  down,
  home,
  end,
  word_left,
  word_right,
  backspace,
  erase,  // Delete
  erase_word_left,
  erase_word_right,
  erase_to_start,
  erase_to_end,
  put_back,  // Ctrl-Y
  clear_screen,
  search,
  complete,
  cancel,  // Escape, Ctrl-G
  interrupt,
  end_of_input,
  suspend,
};

struct KeyPress {
  Key key;
  std::string text;
};

class KeyDecoder {
 public:
  void push(std::string_view bytes) { bytes_ += bytes; }
  // The next whole key; unknown sequences are passed over. Nothing: more bytes are needed.
  std::optional<KeyPress> next();
  // Bytes wait for the rest of a sequence.
  bool pending() const { return !bytes_.empty() && !pasting_; }
  // No rest came in time: what waits is taken for what it is by itself.
  void give_up();

 private:
  std::optional<KeyPress> take(Key key, size_t bytes);
  std::optional<KeyPress> next_escape();
  std::optional<KeyPress> next_csi();
  std::optional<KeyPress> next_paste();

  std::string bytes_;
  bool pasting_ = false;
  size_t searched_ = 0;  // of a paste, for its end
  bool given_up_ = false;
};

}  // namespace inferd
