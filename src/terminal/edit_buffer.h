// The text that is being edited, and the cursor in it: pure, knows no terminal. It may have several lines.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace inferd {

class EditBuffer {
 public:
  const std::string& text() const { return text_; }
  size_t cursor() const { return cursor_; }  // a byte offset, between two characters
  void set(std::string text);                // the cursor goes to the end
  void insert(std::string_view text);
  // `text` in place of what stands before the cursor.
  void replace_before_cursor(std::string_view text);

  void left();
  void right();
  void home();  // of the line
  void end();
  void word_left();
  void word_right();
  // False in the first or last line.
  bool up();
  bool down();

  void backspace();
  void erase();
  // What these take away, put_back() inserts again.
  void erase_word_left();  // back to white space
  void erase_word_right();
  void erase_to_start();  // of the line
  void erase_to_end();
  void put_back() { insert(erased_); }

 private:
  size_t line_begin(size_t at) const;
  size_t line_end(size_t at) const;
  // The offset in the line that begins at `begin`, as far as possible at this column.
  size_t at_column(size_t begin, int column) const;
  void take(size_t from, size_t to);

  std::string text_;
  size_t cursor_ = 0;
  std::string erased_;
};

}  // namespace inferd
