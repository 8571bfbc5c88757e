// A piece of a prompt and where it came from. Chat templates make these, tokenizers take them.
#pragma once

#include <string>

namespace inferd {

// `markup`: written by the template, so special tokens in it are special. Otherwise the text came from the
// caller, and whatever it spells is text.
struct TextSpan {
  std::string text;
  bool markup = false;

  bool operator==(const TextSpan&) const = default;
};

}  // namespace inferd
