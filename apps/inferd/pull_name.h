// What a MODEL name means and where its files are: a path, a folder, a known name, or hf:OWNER/REPO. Looking
// is one function, which opens no connection; fetching is the other.
#pragma once

#include <functional>
#include <string>

#include "base/progress.h"
#include "base/result.h"
#include "hub/hub_cache.h"
#include "hub/model_names.h"
#include "hub/pull.h"

namespace inferd {

// An empty name means the default model.
std::string model_or_default(const std::string& name);

// E-HUB-005 an hf: name that is not here, E-HUB-006 one that is none, E-MODEL-008 a safetensors or split
// model; else as resolve_model().
Result<ModelLocation> locate_name(const std::string& name);

struct PullSinks {
  std::function<void(const ProgressEvent&)> progress;
  std::function<void(const std::string&)> note;
};

struct PulledName {
  std::string path;  // the model file, or a safetensors model's folder
  std::string commit;
  std::vector<PulledFile> files;  // with their hashes; empty when nothing had to be asked for
  int64_t fetched_bytes = 0;
};

// Makes sure that the files are here. With `offline` or when the environment says so, nothing is connected
// to: E-HUB-014 when they are not here. Errors as of fetch_model() and pull_model().
Result<PulledName> pull_name(const std::string& name, bool offline, const PullSinks& sinks);

// Models of the Hugging Face cache that are here; none when the environment names no place for it.
Result<std::vector<CachedFile>> cached_models();

}  // namespace inferd
