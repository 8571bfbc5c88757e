// hf:OWNER/REPO[:QUANT|/FILE]: parsed and checked, and the files of a repository that such a name means. Pure
// functions: the same choice is made from the hub's listing and from what lies in the cache or in a folder.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace inferd {

struct RepoName {
  std::string owner;
  std::string repo;
  std::string quant;  // as given; at most one of quant and file is set
  std::string file;   // path inside the repository

  std::string id() const;    // "OWNER/REPO"
  std::string text() const;  // "hf:OWNER/REPO:QUANT"
};

bool is_hub_name(std::string_view text);  // begins with "hf:"

// E-HUB-006, naming the part that is wrong.
Result<RepoName> parse_repo_name(std::string_view text);

// A relative path that stays below the folder it is joined to, is at most 1,000 bytes long and prints as it
// is: no "..", no empty part, no backslash, no control character, well-formed UTF-8.
bool is_safe_repo_path(std::string_view path);

// The quantisation in a GGUF file's name: "Q4_K_M" of "model-Q4_K_M.gguf" and of "model.q4_k_m.gguf",
// "UD-Q4_K_XL", "BF16"; empty when there is none.
std::string quant_tag(std::string_view file_name);

struct RepoFile {
  std::string path;  // inside the repository
  int64_t bytes = 0;
};

// The files that make the model: one GGUF file, or those of a safetensors model.
struct ModelFiles {
  std::vector<std::string> paths;
  bool safetensors = false;
};

// `file` names it; else `quant` is looked for among the tags of the GGUF files; else the only GGUF file is
// taken, else the one with Q4_K_M, else, when there is none at all, the safetensors model in the top folder.
// Vision parts (mmproj) and importance matrices are no models. E-HUB-007 with the choices when nothing or
// more than one fits, E-MODEL-008 for a model that is split into several GGUF files, or when there is no
// model.
Result<ModelFiles> choose_model_files(std::string_view quant, std::string_view file,
                                      std::span<const RepoFile> files);

}  // namespace inferd
