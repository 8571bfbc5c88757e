#include "text/jinja_text.h"

#include <string.h>  // memmem

#include <algorithm>

namespace inferd::jinja {

Text Text::borrowed(std::string_view bytes, Origin origin) {
  Text text;
  text.view_ = bytes;
  text.origin_ = origin;
  return text;
}

Text Text::owned(std::string bytes, Origin origin) {
  auto buffer = std::make_shared<Buffer>();
  buffer->bytes = std::move(bytes);
  Text text;
  text.view_ = buffer->bytes;
  text.origin_ = origin;
  text.buffer_ = std::move(buffer);
  return text;
}

Text Text::with_safe(bool safe) const {
  Text copy = *this;
  copy.safe_ = safe;
  return copy;
}

size_t Text::run_at(size_t offset) const {
  const auto past = [](uint64_t value, uint64_t run) { return value < run >> 1; };
  return static_cast<size_t>(std::upper_bound(buffer_->runs.begin(), buffer_->runs.end(), offset, past) -
                             buffer_->runs.begin());
}

Text Text::slice(size_t begin, size_t end) const {
  Text part = *this;
  part.view_ = view_.substr(begin, end - begin);
  if (origin_ == Origin::mixed) {
    if (part.view_.empty()) {
      part.origin_ = Origin::markup;
      part.buffer_ = nullptr;
      part.view_ = {};
    } else if (const uint64_t run = buffer_->runs[run_at(part.offset())];
               run >> 1 >= part.offset() + part.view_.size()) {
      part.origin_ = (run & 1) != 0 ? Origin::data : Origin::markup;
    }
  }
  return part;
}

size_t Text::run_count() const {
  if (view_.empty()) return 0;
  if (origin_ != Origin::mixed) return 1;
  return run_at(offset() + view_.size() - 1) - run_at(offset()) + 1;
}

void TextBuilder::append(std::string_view bytes, Origin origin) {
  if (bytes.empty()) return;
  bytes_.append(bytes);
  const uint64_t bit = origin == Origin::data ? 1 : 0;
  const uint64_t run = uint64_t{bytes_.size()} << 1 | bit;
  if (!runs_.empty() && (runs_.back() & 1) == bit) {
    runs_.back() = run;
  } else {
    runs_.push_back(run);
  }
}

void TextBuilder::append(const Text& text) {
  text.for_each_run([this](std::string_view piece, Origin origin) { append(piece, origin); });
}

Text TextBuilder::finish() && {
  if (bytes_.empty()) return {};
  auto buffer = std::make_shared<Text::Buffer>();
  buffer->bytes = std::move(bytes_);
  Text text;
  text.view_ = buffer->bytes;
  if (runs_.size() == 1) {
    text.origin_ = (runs_.front() & 1) != 0 ? Origin::data : Origin::markup;
  } else {
    text.origin_ = Origin::mixed;
    buffer->runs = std::move(runs_);
  }
  text.buffer_ = std::move(buffer);
  return text;
}

std::vector<TextSpan> TextBuilder::finish_spans() && {
  std::vector<TextSpan> spans;
  spans.reserve(runs_.size());
  if (runs_.size() == 1) {
    spans.push_back({std::move(bytes_), (runs_.front() & 1) == 0});
    return spans;
  }
  size_t begin = 0;
  for (const uint64_t run : runs_) {
    spans.push_back({bytes_.substr(begin, (run >> 1) - begin), (run & 1) == 0});
    begin = run >> 1;
  }
  return spans;
}

size_t find_text(std::string_view text, std::string_view pattern, size_t from) {
  if (from > text.size() || pattern.size() > text.size() - from) return std::string_view::npos;
  if (pattern.empty()) return from;
  // glibc's two-way search: linear, where string_view::find is quadratic on repetitive text.
  const void* found = memmem(text.data() + from, text.size() - from, pattern.data(), pattern.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

size_t rfind_text(std::string_view text, std::string_view pattern) {
  constexpr size_t kShort = 16;
  if (pattern.size() <= kShort) return text.rfind(pattern);
  // Knuth, Morris, Pratt (1977), reading both from their ends.
  const size_t length = pattern.size();
  const auto wanted = [&](size_t i) { return pattern[length - 1 - i]; };
  std::vector<uint32_t> border(length, 0);
  for (size_t i = 1, matched = 0; i < length; ++i) {
    while (matched > 0 && wanted(i) != wanted(matched)) matched = border[matched - 1];
    if (wanted(i) == wanted(matched)) ++matched;
    border[i] = static_cast<uint32_t>(matched);
  }
  for (size_t at = text.size(), matched = 0; at > 0; --at) {
    while (matched > 0 && text[at - 1] != wanted(matched)) matched = border[matched - 1];
    if (text[at - 1] == wanted(matched)) ++matched;
    if (matched == length) return at - 1;
  }
  return std::string_view::npos;
}

}  // namespace inferd::jinja
