// Strings of the template language: UTF-8 bytes, shared not copied, that remember which characters the caller
// wrote. A slice is a view of the same bytes; only making new text copies. One render on one thread, except
// that text which belongs to a parsed template may be read by many renders at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/span.h"

namespace inferd::jinja {

enum class Origin : uint8_t {
  markup,  // all of it was written by the template
  data,    // all of it came from the caller
  mixed,   // runs of both
};

class Text {
 public:
  Text() = default;  // empty
  // `bytes` must outlive every copy and slice.
  static Text borrowed(std::string_view bytes, Origin origin);
  static Text owned(std::string bytes, Origin origin);

  std::string_view view() const { return view_; }
  size_t size() const { return view_.size(); }
  bool empty() const { return view_.empty(); }
  Origin origin() const { return origin_; }

  // Python's Markup: text that the filter `safe` marked. Adding plain text to it escapes the plain text.
  bool is_safe() const { return safe_; }
  Text with_safe(bool safe) const;

  // Bytes [begin, end), which must lie at character boundaries.
  Text slice(size_t begin, size_t end) const;

  // Calls visit(std::string_view piece, Origin) for each run, in order; never with Origin::mixed.
  template <typename Visit>
  void for_each_run(Visit visit) const {
    if (origin_ != Origin::mixed) {
      if (!view_.empty()) visit(view_, origin_);
      return;
    }
    const std::vector<uint64_t>& runs = buffer_->runs;
    const size_t begin = offset();
    const size_t end = begin + view_.size();
    size_t at = begin;
    for (size_t run = run_at(begin); at < end; ++run) {
      const size_t stop = runs[run] >> 1 < end ? runs[run] >> 1 : end;
      visit(view_.substr(at - begin, stop - at), (runs[run] & 1) != 0 ? Origin::data : Origin::markup);
      at = stop;
    }
  }
  size_t run_count() const;

 private:
  friend class TextBuilder;
  struct Buffer {
    std::string bytes;
    std::vector<uint64_t> runs;  // end offset · 2 + (is data); empty when all of it has one origin
  };

  size_t offset() const { return static_cast<size_t>(view_.data() - buffer_->bytes.data()); }
  size_t run_at(size_t offset) const;

  std::shared_ptr<const Buffer> buffer_;  // null: borrowed
  std::string_view view_;
  Origin origin_ = Origin::markup;
  bool safe_ = false;
};

// Collects text with its runs.
class TextBuilder {
 public:
  void append(std::string_view bytes, Origin origin);  // not mixed
  void append(const Text& text);

  void reserve(size_t bytes) { bytes_.reserve(bytes); }
  size_t size() const { return bytes_.size(); }
  size_t run_count() const { return runs_.size(); }

  Text finish() &&;
  std::vector<TextSpan> finish_spans() &&;

 private:
  std::string bytes_;
  std::vector<uint64_t> runs_;  // as in Text::Buffer, but never empty when bytes_ is not
};

// Searches that take time linear in both lengths, whatever the pattern. npos when absent.
size_t find_text(std::string_view text, std::string_view pattern, size_t from = 0);
size_t rfind_text(std::string_view text, std::string_view pattern);

}  // namespace inferd::jinja
