#include "terminal/line_editor.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "base/strings.h"
#include "terminal/display_width.h"

namespace inferd {
namespace {

// A key's sequence comes in one piece but over slow lines, so the rest of it is waited for so long.
constexpr int kSequenceMs = 50;
constexpr std::string_view kPasteOn = "\x1b[?2004h";
constexpr std::string_view kPasteOff = "\x1b[?2004l";
constexpr std::string_view kEraseBelow = "\x1b[J";
constexpr std::string_view kClearScreen = "\x1b[H\x1b[2J";

std::string common_prefix(const std::vector<std::string>& texts) {
  std::string prefix = texts.front();
  for (const std::string& text : texts) {
    size_t same = 0;
    while (same < std::min(prefix.size(), text.size()) && prefix[same] == text[same]) ++same;
    prefix.resize(same);
  }
  return prefix;
}

}  // namespace

InputLine LineEditor::read(std::string_view prompt) {
  prompt_ = prompt;
  buffer_.set("");
  lines_ = history_.entries();
  lines_.emplace_back();
  line_ = lines_.size() - 1;
  searching_ = false;
  forget_drawing();
  mode_.edit();
  write_text(options_.out, kPasteOn);
  draw();
  InputLine result;
  bool done = false;
  while (!done) {
    while (!done) {
      const std::optional<KeyPress> press = keys_.next();
      if (!press) break;
      done = handle(*press, result);
    }
    if (done) break;
    draw();
    done = fill(result);
  }
  mode_.quiet();
  write_text(options_.out, kPasteOff);
  return result;
}

// Waits for more keys; true: the read is over.
bool LineEditor::fill(InputLine& result) {
  if (input_ended_) {
    leave_drawing("");
    result = {.end = InputLine::End::end, .text = {}};
    return true;
  }
  bool ready = false;
  const auto ended = wait_readable(options_.in, options_.wakeup, keys_.pending() ? kSequenceMs : -1, ready);
  if (ended) {
    leave_drawing("");
    result = {.end = *ended, .text = buffer_.text()};
    return true;
  }
  if (!ready) {
    if (keys_.pending()) keys_.give_up();
    return false;
  }
  std::array<char, 4096> bytes;
  const ssize_t got = ::read(options_.in, bytes.data(), bytes.size());
  if (got > 0) {
    keys_.push({bytes.data(), static_cast<size_t>(got)});
  } else if (got == 0 || errno != EINTR) {
    input_ended_ = true;  // the terminal is gone
  }
  return false;
}

// True: the read is over.
bool LineEditor::handle(const KeyPress& press, InputLine& result) {
  if (searching_ && search_key(press)) return false;
  switch (press.key) {
    case Key::enter:
      leave_drawing("");
      result = {.end = InputLine::End::line, .text = buffer_.text()};
      return true;
    case Key::interrupt:
      leave_drawing("^C");
      result = {.end = InputLine::End::interrupted, .text = buffer_.text()};
      return true;
    case Key::end_of_input:
      if (!buffer_.text().empty()) {
        buffer_.erase();
        return false;
      }
      leave_drawing("");
      result = {.end = InputLine::End::end, .text = {}};
      return true;
    default:
      edit(press);
      return false;
  }
}

void LineEditor::edit(const KeyPress& press) {
  switch (press.key) {
    case Key::text:
    case Key::paste:
      return buffer_.insert(press.text);
    case Key::new_line:
      return buffer_.insert("\n");
    case Key::left:
      return buffer_.left();
    case Key::right:
      return buffer_.right();
    case Key::up:
      if (!buffer_.up()) move_in_history(-1);
      return;
    case Key::down:
      if (!buffer_.down()) move_in_history(1);
      return;
    case Key::home:
      return buffer_.home();
    case Key::end:
      return buffer_.end();
    case Key::word_left:
      return buffer_.word_left();
    case Key::word_right:
      return buffer_.word_right();
    case Key::backspace:
      return buffer_.backspace();
    case Key::erase:
      return buffer_.erase();
    case Key::erase_word_left:
      return buffer_.erase_word_left();
    case Key::erase_word_right:
      return buffer_.erase_word_right();
    case Key::erase_to_start:
      return buffer_.erase_to_start();
    case Key::erase_to_end:
      return buffer_.erase_to_end();
    case Key::put_back:
      return buffer_.put_back();
    case Key::complete:
      return complete();
    case Key::clear_screen:
      forget_drawing();
      return write_text(options_.out, kClearScreen);
    case Key::search:
      searching_ = true;
      search_ = {.wanted = "", .at = line_, .found = true, .before = buffer_.text()};
      return;
    case Key::suspend:
      return suspend();
    case Key::cancel:
    case Key::enter:
    case Key::interrupt:
    case Key::end_of_input:
      return;
  }
}

void LineEditor::move_in_history(int step) {
  if ((step < 0 && line_ == 0) || (step > 0 && line_ + 1 == lines_.size())) return;
  lines_[line_] = buffer_.text();
  line_ = step < 0 ? line_ - 1 : line_ + 1;
  buffer_.set(lines_[line_]);
}

// From line `from` back to the oldest.
void LineEditor::search_older(size_t from) {
  for (size_t i = from + 1; i-- > 0;) {
    if (lines_[i].find(search_.wanted) == std::string::npos) continue;
    search_.at = i;
    search_.found = true;
    buffer_.set(lines_[i]);
    return;
  }
  search_.found = false;
}

// False: the search is over, and the key means what it always means.
bool LineEditor::search_key(const KeyPress& press) {
  switch (press.key) {
    case Key::text:
      search_.wanted += press.text;
      search_older(search_.at);
      return true;
    case Key::backspace:
      search_.wanted.erase(previous_character(search_.wanted, search_.wanted.size()));
      search_older(lines_.size() - 1);
      return true;
    case Key::search:
      if (search_.at > 0) search_older(search_.at - 1);
      return true;
    case Key::cancel:
    case Key::interrupt:
      searching_ = false;
      buffer_.set(search_.before);
      return true;
    default:
      searching_ = false;
      if (search_.at != line_) {
        lines_[line_] = search_.before;
        line_ = search_.at;
      }
      return false;
  }
}

void LineEditor::complete() {
  const std::string_view before = std::string_view(buffer_.text()).substr(0, buffer_.cursor());
  const std::vector<std::string> found = options_.complete(before);
  if (found.empty()) return;
  if (found.size() == 1) return buffer_.replace_before_cursor(found.front() + " ");
  if (const std::string prefix = common_prefix(found); prefix.size() > before.size())
    return buffer_.replace_before_cursor(prefix);
  leave_drawing("");
  write_text(options_.out, cat(join(found, "  "), "\r\n"));
}

// Ctrl-Z: as the shell expects, and the line again when the program goes on.
void LineEditor::suspend() {
  leave_drawing("");
  write_text(options_.out, kPasteOff);
  mode_.restore();
  ::raise(SIGTSTP);
  mode_.edit();
  write_text(options_.out, kPasteOn);
}

// To the top of what is drawn, and nothing below it any more.
void LineEditor::erase_drawing(std::string& out) {
  if (drawn_.rows.empty()) return;
  const size_t up = rows_above_cursor(drawn_, terminal_size(options_.out).columns);
  if (up > 0) out += cat("\x1b[", up, "A");
  out += "\r";
  out += kEraseBelow;
}

void LineEditor::draw() {
  const TerminalSize size = terminal_size(options_.out);
  const std::string prompt =
      searching_ ? cat(search_.found ? "(search '" : "(nothing has '", search_.wanted, "') ") : prompt_;
  const std::string more(std::min<size_t>(prompt_.size(), 4), '.');
  LineLayout layout =
      lay_out(prompt, prompt_.size() < 4 ? more : "... ", buffer_.text(), buffer_.cursor(), size.columns);
  // Of a text that is higher than the terminal, the part around the cursor.
  const size_t most = static_cast<size_t>(std::max(1, size.rows));
  if (layout.rows.size() > most) {
    const size_t first =
        std::min(layout.rows.size() - most, layout.cursor_row - std::min(layout.cursor_row, most / 2));
    layout.rows.erase(layout.rows.begin(), layout.rows.begin() + static_cast<std::ptrdiff_t>(first));
    layout.widths.erase(layout.widths.begin(), layout.widths.begin() + static_cast<std::ptrdiff_t>(first));
    layout.rows.resize(most);
    layout.widths.resize(most);
    layout.cursor_row -= first;
  }
  std::string out;
  erase_drawing(out);
  for (size_t row = 0; row < layout.rows.size(); ++row) {
    if (row > 0) out += "\r\n";
    out += layout.rows[row];
  }
  if (const size_t up = layout.rows.size() - 1 - layout.cursor_row; up > 0) out += cat("\x1b[", up, "A");
  out += "\r";
  if (layout.cursor_column > 0) out += cat("\x1b[", layout.cursor_column, "C");
  write_text(options_.out, out);
  drawn_ = std::move(layout);
}

// The text stays on the terminal with the cursor below it, `behind` after its last character.
void LineEditor::leave_drawing(std::string_view behind) {
  searching_ = false;
  while (buffer_.down()) {
  }
  buffer_.end();
  draw();
  write_text(options_.out, cat(behind, "\r\n"));
  forget_drawing();
}

}  // namespace inferd
