#include "text/normalizer.h"

#include <algorithm>

#include "base/check.h"
#include "text/unicode.h"

namespace inferd {
namespace {

std::string replace_all(const NormalizerStep& step, std::string_view text, std::vector<ByteRange>& ranges) {
  std::string out;
  out.reserve(text.size());
  size_t copied = 0;
  size_t next = 0;  // of the borders of `ranges`, two each
  const auto border = [&](size_t i) -> size_t& {
    return i % 2 == 0 ? ranges[i / 2].begin : ranges[i / 2].end;
  };
  // Moves the borders in [from, to]: what stands there is copied.
  const auto move_borders = [&](size_t to) {
    for (; next < ranges.size() * 2 && border(next) <= to; ++next)
      border(next) = out.size() + (border(next) - copied);
  };
  for (;;) {
    const size_t found = std::min(text.find(step.pattern, copied), text.size());
    move_borders(found);
    out += text.substr(copied, found - copied);
    if (found == text.size()) break;
    const size_t behind = found + step.pattern.size();
    // A border inside what is replaced: a range that begins there begins behind it, one that ends there ended
    // before it.
    for (; next < ranges.size() * 2 && border(next) < behind; ++next)
      border(next) = next % 2 == 0 ? out.size() + step.content.size() : out.size();
    out += step.content;
    copied = behind;
  }
  return out;
}

std::string replace_space_runs(const NormalizerStep& step, std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = std::min(text.find("  ", at), text.size());
    out += text.substr(at, begin - at);
    if (begin == text.size()) break;
    at = std::min(text.find_first_not_of(' ', begin), text.size());
    out += step.content;
  }
  return out;
}

}  // namespace

bool may_change(std::span<const NormalizerStep> steps, std::string_view text) {
  return std::ranges::any_of(steps, [text](const NormalizerStep& step) {
    switch (step.kind) {
      case NormalizerStep::Kind::nfc:
        return may_change_in_nfc(text);
      case NormalizerStep::Kind::prepend:
        return !text.empty();
      case NormalizerStep::Kind::replace:
        return text.find(step.pattern) != std::string_view::npos;
      case NormalizerStep::Kind::space_runs:
        return text.find("  ") != std::string_view::npos;
    }
    return true;
  });
}

bool follows_ranges(std::span<const NormalizerStep> steps) {
  return std::ranges::all_of(steps, [](const NormalizerStep& step) {
    return step.kind == NormalizerStep::Kind::prepend || step.kind == NormalizerStep::Kind::replace;
  });
}

std::string normalize(std::span<const NormalizerStep> steps, std::string_view text,
                      std::vector<ByteRange>& ranges) {
  INFERD_CHECK(ranges.empty() || follows_ranges(steps));
  std::string out(text);
  for (const NormalizerStep& step : steps) {
    switch (step.kind) {
      case NormalizerStep::Kind::nfc:
        if (may_change_in_nfc(out)) out = to_nfc(out);
        break;
      case NormalizerStep::Kind::prepend:
        if (out.empty()) break;
        out.insert(0, step.content);
        for (ByteRange& range : ranges) {
          if (range.begin > 0) range.begin += step.content.size();
          range.end += step.content.size();
        }
        break;
      case NormalizerStep::Kind::replace:
        out = replace_all(step, out, ranges);
        break;
      case NormalizerStep::Kind::space_runs:
        out = replace_space_runs(step, out);
        break;
    }
  }
  std::erase_if(ranges, [](const ByteRange& range) { return range.begin >= range.end; });
  return out;
}

}  // namespace inferd
