// Completion in shells. The scripts for bash, zsh and fish are thin: at each press of TAB they ask
// `inferd complete WORD…`, which answers from the option table and the model folder, without configuration,
// server or network.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace inferd {

struct Candidate {
  std::string text;
  std::string note;  // one line; may be empty
};

struct Completion {
  std::vector<Candidate> candidates;
  bool files = false;  // file names as well
};

struct ModelNames {
  std::vector<std::string> here;
  std::vector<std::string> fetchable;
};

// What may stand in the place of the last of `words`, which are those behind "inferd"; the last may be empty.
Completion complete(std::span<const std::string> words, const ModelNames& models);

// A candidate a line, "TEXT" or "TEXT<TAB>NOTE"; a last line ":files" asks for file names. Texts with control
// characters are left out.
std::string completion_lines(const Completion& completion);

// The script of "bash", "zsh" or "fish".
std::string_view completion_script(std::string_view shell);

}  // namespace inferd
