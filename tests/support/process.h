// A child process of a test: arguments, environment, its output as it comes, signals, exit code and peak
// memory.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace inferd::test {

struct ProcessOptions {
  // "NAME=value" beside this process's own; a later one replaces an earlier. Of the program's own
  // configuration a child inherits nothing: no INFERD_ variable and no user's inferd.toml.
  std::vector<std::string> environment;
  std::string stdout_path;  // instead of a pipe, such as /dev/full
  std::string stdin_text;   // at most what a pipe holds, 64 KiB
  std::string folder;       // to start in, instead of this process's
};

class Process {
 public:
  Process(const std::string& program, const std::vector<std::string>& arguments,
          const ProcessOptions& options = {});
  ~Process();  // kills it when it still runs
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // The next line of stdout without its line feed; nothing when the time is over or stdout has ended.
  std::optional<std::string> read_line(std::chrono::milliseconds timeout);
  void signal(int number) const;
  // The exit code, 128 + signal when one ended it; nothing when it still runs after the time.
  std::optional<int> wait(std::chrono::milliseconds timeout);
  // After wait(): everything on stderr, and on stdout that read_line() did not take.
  const std::string& stderr_text();
  std::string stdout_text();
  int64_t peak_bytes() const { return peak_bytes_; }  // after wait()
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  int stdout_ = -1;
  int stderr_ = -1;
  std::string line_buffer_;
  std::string stderr_text_;
  std::thread stderr_reader_;
  std::optional<int> code_;
  int64_t peak_bytes_ = 0;
};

// Runs to the end; ends the test program when that takes longer than a minute.
struct Finished {
  int code;
  std::string out;
  std::string err;
};
Finished run_process(const std::string& program, const std::vector<std::string>& arguments,
                     const ProcessOptions& options = {});

// The port in "ready http://127.0.0.1:PORT  …"; ends the test program when the line does not come in 20 s.
int wait_until_ready(Process& process);

}  // namespace inferd::test
