#include "text/stop_matcher.h"

#include <algorithm>

#include "base/utf8.h"

namespace inferd {
namespace {

Error stop_error(std::string detail) {
  return {.code = Code::req_value, .detail = std::move(detail), .param = "stop"};
}

uint32_t advance(const std::string& text, const std::vector<uint32_t>& border, uint32_t state, char c) {
  while (state > 0 && (state == text.size() || text[state] != c)) state = border[state - 1];
  return text[state] == c ? state + 1 : 0;
}

}  // namespace

Result<StopMatcher> StopMatcher::create(std::vector<std::string> stops) {
  if (stops.size() > kMaxStrings) {
    return stop_error(cat("stop has ", stops.size(), " strings; ", kMaxStrings, " allowed"));
  }
  StopMatcher matcher;
  for (std::string& text : stops) {
    const size_t index = matcher.patterns_.size();
    if (text.empty()) return stop_error(cat("stop string ", index, " is empty"));
    if (text.size() > kMaxBytes) {
      return stop_error(cat("stop string ", index, " has ", text.size(), " bytes; ", kMaxBytes, " allowed"));
    }
    if (!is_valid_utf8(text)) return stop_error(cat("stop string ", index, " is not valid UTF-8"));
    std::vector<uint32_t> border(text.size(), 0);
    for (size_t i = 1; i < text.size(); ++i) border[i] = advance(text, border, border[i - 1], text[i]);
    matcher.patterns_.push_back({std::move(text), std::move(border)});
  }
  return matcher;
}

bool StopMatcher::push(std::string_view text, std::string& out) {
  if (matched_) return true;
  const size_t held_before = held_.size();
  held_ += text;
  for (size_t at = held_before; at < held_.size(); ++at) {
    size_t longest = 0;
    for (size_t i = 0; i < patterns_.size(); ++i) {
      Pattern& pattern = patterns_[i];
      pattern.state = advance(pattern.text, pattern.border, pattern.state, held_[at]);
      if (pattern.state == pattern.text.size() && pattern.state > longest) {
        longest = pattern.state;
        matched_ = i;
      }
    }
    if (matched_) {
      out.append(held_, 0, at + 1 - longest);
      held_.clear();
      return true;
    }
  }
  size_t keep = 0;
  for (const Pattern& pattern : patterns_) keep = std::max<size_t>(keep, pattern.state);
  out.append(held_, 0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
  return false;
}

void StopMatcher::finish(std::string& out) {
  out += held_;
  held_.clear();
}

}  // namespace inferd
