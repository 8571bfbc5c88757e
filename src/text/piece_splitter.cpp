#include "text/piece_splitter.h"

#include <algorithm>

#include "base/check.h"
#include "text/unicode.h"

namespace inferd {
namespace {

struct Part {
  ByteRange range;
  bool match;
};

// Matches and what lies between them, in order; none is empty.
std::vector<Part> parts_of(const SplitStep& step, std::string_view text) {
  std::vector<Part> parts;
  for (size_t at = 0; at < text.size();) {
    ByteRange match{text.size(), text.size()};
    if (step.kind == SplitStep::Kind::pattern) {
      match = find_match(step.pattern, text, at);
    } else if (const size_t found = text.find(step.text, at); found != std::string_view::npos) {
      match = {found, found + step.text.size()};
    }
    if (match.begin != at) parts.push_back({{at, match.begin}, step.invert});
    if (match.begin != match.end) parts.push_back({match, !step.invert});
    at = match.end;
  }
  return parts;
}

// Joins what the behaviour joins. Of the merging ones only the first match of a run goes to its neighbour.
std::vector<Part> behave(SplitBehavior behavior, std::vector<Part> parts) {
  std::vector<Part> out;
  bool before = false;  // was the part before a match?
  switch (behavior) {
    case SplitBehavior::isolated:
      return parts;
    case SplitBehavior::removed:
      std::erase_if(parts, [](const Part& part) { return part.match; });
      return parts;
    case SplitBehavior::contiguous:
    case SplitBehavior::merged_with_previous:
      for (const Part& part : parts) {
        const bool join =
            behavior == SplitBehavior::contiguous ? part.match == before : part.match && !before;
        before = part.match;
        if (join && !out.empty()) {
          out.back().range.end = part.range.end;
        } else {
          out.push_back(part);
        }
      }
      return out;
    case SplitBehavior::merged_with_next:
      for (size_t i = parts.size(); i-- > 0;) {
        const Part& part = parts[i];
        const bool join = part.match && !before;
        before = part.match;
        if (join && !out.empty()) {
          out.back().range.begin = part.range.begin;
        } else {
          out.push_back(part);
        }
      }
      std::ranges::reverse(out);
      return out;
  }
  INFERD_CHECK(false, "split behaviour ", static_cast<int>(behavior));
}

bool begins_with_space(std::string_view text) {
  size_t at = 0;
  return char_class(next_code_point(text, at)) == CharClass::space;
}

std::string with_metaspace(const SplitStep& step, std::string_view text, bool first) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t space = std::min(text.find(' ', at), text.size());
    out += text.substr(at, space - at);
    if (space == text.size()) break;
    out += step.text;
    at = space + 1;
  }
  const bool wanted =
      step.prepend == SplitStep::Prepend::always || (step.prepend == SplitStep::Prepend::first && first);
  if (wanted && !out.starts_with(step.text)) out.insert(0, step.text);
  return out;
}

}  // namespace

void split_text(std::span<const SplitStep> steps, std::string_view text, bool first, const EmitPiece& emit) {
  if (text.empty()) return;
  if (steps.empty()) return emit(text);
  const SplitStep& step = steps[0];
  const std::span<const SplitStep> inner = steps.subspan(1);
  std::string changed;
  if (step.kind == SplitStep::Kind::prefix_space) {
    if (begins_with_space(text)) return split_text(inner, text, first, emit);
    changed = " ";
    changed += text;
    return split_text(inner, changed, first, emit);
  }
  SplitStep cut;  // what the metaspace step cuts by
  if (step.kind == SplitStep::Kind::metaspace) {
    changed = with_metaspace(step, text, first);
    if (!step.cuts) return split_text(inner, changed, first, emit);
    text = changed;
    cut.kind = SplitStep::Kind::literal;
    cut.text = step.text;
    cut.behavior = SplitBehavior::merged_with_next;
  } else {
    cut = step;
  }
  for (const Part& part : behave(cut.behavior, parts_of(cut, text))) {
    split_text(inner, text.substr(part.range.begin, part.range.end - part.range.begin),
               first && part.range.begin == 0, emit);
  }
}

}  // namespace inferd
