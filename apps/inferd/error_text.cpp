#include "error_text.h"

#include <algorithm>

#include "base/strings.h"
#include "terminal/display_width.h"

namespace inferd {
namespace {

constexpr std::string_view kIndent = "    ";

// The end of the word that begins at `from`: the next space, but the one behind the closing backquote when a
// backquote opens the word and all up to there is at most `columns` wide.
size_t word_end(std::string_view line, size_t from, int columns) {
  const size_t space = std::min(line.find(' ', from), line.size());
  const size_t open = line.find('`', from);
  if (open >= space) return space;
  const size_t close = line.find('`', open + 1);
  if (close == std::string_view::npos) return space;
  const size_t end = std::min(line.find(' ', close), line.size());
  return column_width(line.substr(from, end - from)) <= columns ? end : space;
}

std::string lines_of(std::string_view line, int columns) {
  const size_t begin = std::min(line.find_first_not_of(' '), line.size());
  std::string text(line.substr(0, begin));
  int used = static_cast<int>(begin);
  const int room = columns - static_cast<int>(kIndent.size());
  for (size_t at = begin; at < line.size();) {
    const size_t end = word_end(line, at, room);
    const std::string_view word = line.substr(at, end - at);
    const int width = column_width(word);
    if (at > begin && used + 1 + width > columns && width <= room) {
      text += cat("\n", kIndent);
      used = static_cast<int>(kIndent.size());
    } else if (at > begin) {
      text += ' ';
      ++used;
    }
    text += word;
    used += width;
    at = end + 1;
  }
  return text;
}

}  // namespace

std::string error_lines(std::string_view text, int columns) {
  columns = std::max(columns, 20);
  if (text.ends_with('\n')) text.remove_suffix(1);
  std::string all;
  for (const std::string_view line : split(text, '\n')) all += lines_of(line, columns) + "\n";
  return all;
}

}  // namespace inferd
