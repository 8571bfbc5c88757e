#include "text/stream_decoder.h"

#include "base/utf8.h"

namespace inferd {

void Utf8Stream::push(std::string_view bytes, std::string& out) {
  std::string joined;
  if (!unfinished_.empty()) {
    joined = unfinished_;
    joined += bytes;
    bytes = joined;
    unfinished_.clear();
  }
  while (!bytes.empty()) {
    const Utf8Step step = decode_utf8(bytes);
    if (step.truncated) {
      unfinished_ = bytes;
      return;
    }
    if (step.valid) {
      out += bytes.substr(0, step.length);
    } else {
      append_utf8(out, kReplacement);
    }
    bytes.remove_prefix(step.length);
  }
}

void Utf8Stream::finish(std::string& out) {
  if (!unfinished_.empty()) append_utf8(out, kReplacement);
  unfinished_.clear();
}

}  // namespace inferd
