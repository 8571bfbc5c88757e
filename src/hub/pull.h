// Brings the files that hf:OWNER/REPO means into the cache: lists the repository, checks the free space, and
// downloads what is not here, one file after the other, each under its final name only when all its bytes are
// here, hashed and flushed. Whatever stops it, the part that came stays, and the next call goes on from
// there.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "hub/hub_settings.h"
#include "hub/repo_name.h"

namespace inferd {

struct PullOptions {
  HubSettings hub;
  // Phases "list", "wait" (another process fetches the same file) and "pull" (all files as one), at least
  // five times a second on the calling thread; `done` never falls.
  std::function<void(const ProgressEvent&)> progress;
  // A line for people that is no error: "stalled 12 s, retrying 2/5".
  std::function<void(const std::string&)> note;
  const std::atomic<bool>* cancel = nullptr;  // set it (a signal handler may) to stop
  int attempts = 5;                           // without a byte of progress between them
  int64_t backoff_ms = 1000;                  // before the second attempt; doubled for each further one
};

struct PulledFile {
  std::string path;  // on this disk
  int64_t bytes;
  std::string hash;  // SHA-256, or git's SHA-1 of a small file
};

struct PulledModel {
  std::string path;  // the model file; of a safetensors model its folder
  std::string commit;
  bool safetensors = false;
  std::vector<PulledFile> files;
  int64_t fetched_bytes = 0;  // over the network in this call
};

// Blocks. Two calls at once, also of two processes and of huggingface_hub: one works at a file, the other
// waits. E-HUB-007 the name fits no file or several, E-HUB-008 no access, E-HUB-009 no such repository,
// E-HUB-010 the network (after all attempts), E-HUB-011 TLS, E-HUB-012 an unusable answer, E-HUB-013 other
// bytes, E-HUB-014 offline and not here, E-HUB-015 settings, E-MODEL-008 a split model, E-IO-002, -004, -006
// the cache cannot be written, E-SYS-001 stopped.
Result<PulledModel> pull_model(const RepoName& name, const PullOptions& options);

}  // namespace inferd
