#include "terminal/edit_buffer.h"

#include <algorithm>
#include <utility>

#include "terminal/display_width.h"

namespace inferd {
namespace {

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n';
}

// Words are runs of letters and digits; what is no ASCII counts as letters.
bool is_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z');
}

}  // namespace

void EditBuffer::set(std::string text) {
  text_ = std::move(text);
  cursor_ = text_.size();
}

void EditBuffer::insert(std::string_view text) {
  text_.insert(cursor_, text);
  cursor_ += text.size();
}

void EditBuffer::replace_before_cursor(std::string_view text) {
  text_.replace(0, cursor_, text);
  cursor_ = text.size();
}

void EditBuffer::left() {
  cursor_ = previous_character(text_, cursor_);
}
void EditBuffer::right() {
  cursor_ = next_character(text_, cursor_);
}
void EditBuffer::home() {
  cursor_ = line_begin(cursor_);
}
void EditBuffer::end() {
  cursor_ = line_end(cursor_);
}

void EditBuffer::word_left() {
  while (cursor_ > 0 && !is_word(text_[cursor_ - 1])) --cursor_;
  while (cursor_ > 0 && is_word(text_[cursor_ - 1])) --cursor_;
}

void EditBuffer::word_right() {
  while (cursor_ < text_.size() && !is_word(text_[cursor_])) ++cursor_;
  while (cursor_ < text_.size() && is_word(text_[cursor_])) ++cursor_;
}

size_t EditBuffer::line_begin(size_t at) const {
  const size_t feed = at == 0 ? std::string::npos : text_.rfind('\n', at - 1);
  return feed == std::string::npos ? 0 : feed + 1;
}

size_t EditBuffer::line_end(size_t at) const {
  return std::min(text_.find('\n', at), text_.size());
}

size_t EditBuffer::at_column(size_t begin, int column) const {
  const size_t end = line_end(begin);
  size_t at = begin;
  int columns = 0;
  while (at < end) {
    const size_t next = next_character(text_, at);
    columns += column_width(std::string_view(text_).substr(at, next - at));
    if (columns > column) break;
    at = next;
  }
  return at;
}

bool EditBuffer::up() {
  const size_t begin = line_begin(cursor_);
  if (begin == 0) return false;
  const int column = column_width(std::string_view(text_).substr(begin, cursor_ - begin));
  cursor_ = at_column(line_begin(begin - 1), column);
  return true;
}

bool EditBuffer::down() {
  const size_t end = line_end(cursor_);
  if (end == text_.size()) return false;
  const size_t begin = line_begin(cursor_);
  const int column = column_width(std::string_view(text_).substr(begin, cursor_ - begin));
  cursor_ = at_column(end + 1, column);
  return true;
}

void EditBuffer::backspace() {
  const size_t from = previous_character(text_, cursor_);
  text_.erase(from, cursor_ - from);
  cursor_ = from;
}

void EditBuffer::erase() {
  text_.erase(cursor_, next_character(text_, cursor_) - cursor_);
}

void EditBuffer::take(size_t from, size_t to) {
  if (from == to) return;
  erased_ = text_.substr(from, to - from);
  text_.erase(from, to - from);
  cursor_ = from;
}

void EditBuffer::erase_word_left() {
  size_t from = cursor_;
  while (from > 0 && is_space(text_[from - 1])) --from;
  while (from > 0 && !is_space(text_[from - 1])) --from;
  take(from, cursor_);
}

void EditBuffer::erase_word_right() {
  const size_t from = cursor_;
  word_right();
  take(from, cursor_);
}

void EditBuffer::erase_to_start() {
  take(line_begin(cursor_), cursor_);
}

// At the end of a line: its line feed.
void EditBuffer::erase_to_end() {
  const size_t end = line_end(cursor_);
  take(cursor_, end == cursor_ ? std::min(end + 1, text_.size()) : end);
}

}  // namespace inferd
