// Runs another program and collects what it says. The child leads a process group of its own, so that a
// Ctrl-C on the terminal reaches only us and killing the group leaves nothing behind; the whole group is
// killed when we die first, by kill -9 too. One thread: the one that starts a child must live until it has
// ended (the kernel ties the child's life to it).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace inferd {

// The executable file of that name in the PATH of `environment` ("NAME=value" lines), or nothing.
std::optional<std::string> find_program(std::string_view name, const std::vector<std::string>& environment);

class ChildProcess {
 public:
  // Starts `program` (a path) with exactly these arguments (arguments[0] is the name it sees) and
  // environment. Standard input is /dev/null, standard output and error are collected. E-SYS-002 when it
  // cannot be started.
  static Result<ChildProcess> start(const std::string& program, const std::vector<std::string>& arguments,
                                    const std::vector<std::string>& environment);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess();  // a child that still runs is stopped

  // Waits up to timeout_ms for output or the end; true once it has ended, with its whole group.
  bool wait(int timeout_ms);
  // SIGTERM to the group, SIGKILL to what is left after `grace_ms`; returns when the child has ended.
  void stop(int grace_ms = 2000);

  // After the end: the exit status, or 128 + the signal that ended it.
  int exit_status() const { return exit_status_; }
  // The last 16 KiB of what it wrote.
  const std::string& output() const { return output_; }

 private:
  ChildProcess(pid_t pid, int output_fd) : pid_(pid), output_fd_(output_fd) {}
  void read_output();
  bool reap_if_ended();

  pid_t pid_ = -1;  // -1: ended and reaped
  int output_fd_ = -1;
  int exit_status_ = 0;
  std::string output_;
};

}  // namespace inferd
