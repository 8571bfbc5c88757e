#include "terminal/line_layout.h"

#include <algorithm>

#include "base/utf8.h"
#include "terminal/display_width.h"

namespace inferd {
namespace {

// Narrower terminals are drawn on as if they had so many.
constexpr int kLeastColumns = 4;

class RowWriter {
 public:
  RowWriter(LineLayout& layout, int columns) : layout_(layout), columns_(columns) { new_row(); }

  void put(std::string_view shown) {
    const int width = column_width(shown);
    make_room(width);
    layout_.rows.back() += shown;
    layout_.widths.back() += width;
  }
  void make_room(int width) {
    if (layout_.widths.back() + width > columns_ && layout_.widths.back() > 0) new_row();
  }
  void put_each(std::string_view text) {
    for (size_t at = 0; at < text.size();) {
      const size_t next = next_character(text, at);
      put(text.substr(at, next - at));
      at = next;
    }
  }
  void new_row() {
    layout_.rows.emplace_back();
    layout_.widths.push_back(0);
  }
  // A cursor behind a full row stands at the beginning of the next.
  void mark_cursor() {
    if (layout_.widths.back() >= columns_) new_row();
    layout_.cursor_row = layout_.rows.size() - 1;
    layout_.cursor_column = layout_.widths.back();
  }

 private:
  LineLayout& layout_;
  const int columns_;
};

std::string shown_form(std::string_view character) {
  const char32_t c = decode_utf8(character).code_point;
  if (c == '\t') return "    ";
  if (c < 0x20) return {'^', static_cast<char>(c + '@')};
  if (c == 0x7f) return "^?";
  if (c >= 0x80 && c < 0xA0) return "\xEF\xBF\xBD";
  return std::string(character);
}

}  // namespace

LineLayout lay_out(std::string_view prompt, std::string_view more_prompt, std::string_view text,
                   size_t cursor, int columns) {
  LineLayout layout;
  RowWriter writer(layout, std::max(columns, kLeastColumns));
  writer.put_each(prompt);
  bool marked = false;
  for (size_t at = 0; at < text.size();) {
    if (!marked && at >= cursor) {
      // A wide character that does not fit any more takes the cursor along.
      const std::string_view next = text.substr(at, next_character(text, at) - at);
      if (next != "\n") writer.make_room(column_width(shown_form(next)));
      writer.mark_cursor();
      marked = true;
    }
    if (text[at] == '\n') {
      writer.new_row();
      writer.put_each(more_prompt);
      ++at;
      continue;
    }
    const size_t next = next_character(text, at);
    writer.put(shown_form(text.substr(at, next - at)));
    at = next;
  }
  if (!marked) writer.mark_cursor();
  return layout;
}

size_t rows_above_cursor(const LineLayout& drawn, int columns) {
  const int wide = std::max(columns, 1);
  size_t rows = 0;
  for (size_t row = 0; row < drawn.cursor_row; ++row)
    rows += static_cast<size_t>(std::max(0, drawn.widths[row] - 1) / wide) + 1;
  return rows + static_cast<size_t>(drawn.cursor_column / wide);
}

}  // namespace inferd
