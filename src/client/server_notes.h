// Which servers of this user run on this machine: each leaves a note, a small JSON file PID.json (mode 600)
// in a folder of the user's, while it serves. A note is believed only while a process with its id and start
// time is there and belongs to this user; others are removed when they are seen.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace inferd {

struct ServerNote {
  pid_t pid = 0;
  int64_t start_ticks = 0;  // field 22 of /proc/PID/stat
  std::string machine;      // its host name: home folders can be shared between machines
  std::string url;          // "http://127.0.0.1:8000"
  int port = 0;
  std::string model;
  std::vector<std::string> aliases;
  std::string model_path;  // canonical
  int64_t context = 0;     // most tokens of a prompt and its answer
  bool chats = false;      // there is a chat template
  int drain_timeout_s = 0;
  std::string api_key_file;  // empty: no key is asked for

  bool operator==(const ServerNote&) const = default;
};

// Field 22 of /proc/PID/stat; nothing when there is no such process.
std::optional<int64_t> process_start_ticks(pid_t pid);
// Seconds since the process of a note started, by the clock that /proc uses.
double uptime_seconds(const ServerNote& note);

// A note of this process, removed again at the end.
class PostedNote {
 public:
  // Completes pid, start and machine. The first of the folders that can be written gets the file; it is made
  // when it is missing. The error of the last one when none can.
  static Result<PostedNote> post(std::span<const std::string> folders, ServerNote note);
  PostedNote(PostedNote&& other) noexcept;
  PostedNote& operator=(PostedNote&&) = delete;
  ~PostedNote();

 private:
  explicit PostedNote(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// The servers that run, the youngest first. Folders that are missing or unreadable hold none.
std::vector<ServerNote> running_servers(std::span<const std::string> folders);

}  // namespace inferd
