// Edits a line on a terminal: the keys that shells have, a history, search in it, completion, pastes of
// several lines, characters of any width. Uses no escape sequence that a terminal of the last thirty years
// lacks. One thread.
//
// Drawing: the whole text is laid out anew after every key (line_layout.h), what was drawn is erased, and the
// rows that fit the terminal around the cursor are written. So a resize needs no code of its own.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "terminal/edit_buffer.h"
#include "terminal/history.h"
#include "terminal/key_decoder.h"
#include "terminal/line_layout.h"
#include "terminal/line_source.h"
#include "terminal/terminal_mode.h"

namespace inferd {

struct LineEditorOptions {
  int in = 0;   // a terminal
  int out = 2;  // the same terminal
  Wakeup wakeup;
  // Whole texts that could stand in place of what is before the cursor.
  std::function<std::vector<std::string>(std::string_view before_cursor)> complete;
};

class LineEditor final : public LineSource {
 public:
  // The history must outlive the editor, which reads it only.
  LineEditor(LineEditorOptions options, TerminalMode& mode, const History& history)
      : options_(std::move(options)), mode_(mode), history_(history) {}

  // The terminal is in TerminalMode::edit() while it reads, and in quiet() afterwards.
  InputLine read(std::string_view prompt) override;

 private:
  struct Search {
    std::string wanted;
    size_t at = 0;      // the line that is shown
    bool found = true;  // `wanted` is in it
    std::string before;
  };

  bool handle(const KeyPress& press, InputLine& result);
  void edit(const KeyPress& press);
  bool search_key(const KeyPress& press);
  void search_older(size_t from);
  void move_in_history(int step);
  void complete();
  void suspend();
  void draw();
  void forget_drawing() { drawn_ = {}; }
  void leave_drawing(std::string_view behind);
  void erase_drawing(std::string& out);
  bool fill(InputLine& result);

  const LineEditorOptions options_;
  TerminalMode& mode_;
  const History& history_;
  KeyDecoder keys_;
  bool input_ended_ = false;

  // Of one read().
  std::string prompt_;
  EditBuffer buffer_;
  std::vector<std::string> lines_;  // the history as edited in this read, and the new line at its end
  size_t line_ = 0;                 // the one in the buffer
  bool searching_ = false;
  Search search_;

  LineLayout drawn_;  // as on the terminal: the rows that were written
};

}  // namespace inferd
