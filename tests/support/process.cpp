#include "support/process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <map>
#include <utility>

#include "base/check.h"
#include "base/strings.h"

namespace inferd::test {
namespace {

std::string read_some(int fd) {
  std::array<char, 65536> chunk;
  const ssize_t got = ::read(fd, chunk.data(), chunk.size());
  return got > 0 ? std::string(chunk.data(), static_cast<size_t>(got)) : std::string();
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

}  // namespace

Process::Process(const std::string& program, const std::vector<std::string>& arguments,
                 const ProcessOptions& options) {
  int in[2];
  int out[2];
  int err[2];
  INFERD_CHECK(::pipe2(in, O_CLOEXEC) == 0 && ::pipe2(out, O_CLOEXEC) == 0 && ::pipe2(err, O_CLOEXEC) == 0,
               "pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], 0);
  if (options.stdout_path.empty()) {
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  } else {
    posix_spawn_file_actions_addopen(&actions, 1, options.stdout_path.c_str(), O_WRONLY, 0);
  }
  posix_spawn_file_actions_adddup2(&actions, err[1], 2);
  if (!options.folder.empty()) posix_spawn_file_actions_addchdir_np(&actions, options.folder.c_str());
  std::map<std::string, std::string> variables;
  const auto set = [&variables](std::string_view entry) {
    const size_t equals = entry.find('=');
    variables[std::string(entry.substr(0, equals))] = entry.substr(equals + 1);
  };
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!std::string_view(*entry).starts_with("INFERD_")) set(*entry);
  }
  set("XDG_CONFIG_HOME=/nowhere");
  for (const std::string& entry : options.environment) set(entry);
  std::vector<std::string> environment;
  for (const auto& [name, value] : variables) environment.push_back(cat(name, "=", value));
  std::vector<std::string> argv = arguments;
  argv.insert(argv.begin(), program);
  const int failed = ::posix_spawn(&pid_, program.c_str(), &actions, nullptr, pointers(argv).data(),
                                   pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  INFERD_CHECK(failed == 0, "cannot start ", program);
  ::close(out[1]);
  ::close(err[1]);
  // Our own reading end stays open meanwhile: a child that has ended already would make this a SIGPIPE.
  INFERD_CHECK(::write(in[1], options.stdin_text.data(), options.stdin_text.size()) ==
                   static_cast<ssize_t>(options.stdin_text.size()),
               "stdin");
  ::close(in[0]);
  ::close(in[1]);
  stdout_ = out[0];
  stderr_ = err[0];
  // Read all the time, so that a full pipe never stops the child.
  stderr_reader_ = std::thread([this] {
    for (std::string text = read_some(stderr_); !text.empty(); text = read_some(stderr_))
      stderr_text_ += text;
  });
}

Process::~Process() {
  if (!code_) {
    signal(SIGKILL);
    wait(std::chrono::seconds(20));
  }
  if (stderr_reader_.joinable()) stderr_reader_.join();
  ::close(stdout_);
  ::close(stderr_);
}

std::optional<std::string> Process::read_line(std::chrono::milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (true) {
    if (const size_t feed = line_buffer_.find('\n'); feed != std::string::npos) {
      std::string line = line_buffer_.substr(0, feed);
      line_buffer_.erase(0, feed + 1);
      return line;
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd poll{stdout_, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&poll, 1, static_cast<int>(left.count())) <= 0) return std::nullopt;
    const std::string text = read_some(stdout_);
    if (text.empty()) return std::nullopt;
    line_buffer_ += text;
  }
}

void Process::signal(int number) const {
  if (!code_) ::kill(pid_, number);
}

std::optional<int> Process::wait(std::chrono::milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (!code_) {
    int status = 0;
    rusage usage{};
    if (::wait4(pid_, &status, WNOHANG, &usage) == pid_) {
      code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      peak_bytes_ = usage.ru_maxrss * 1024;
    } else if (std::chrono::steady_clock::now() >= end) {
      return std::nullopt;
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  return code_;
}

const std::string& Process::stderr_text() {
  if (stderr_reader_.joinable()) stderr_reader_.join();
  return stderr_text_;
}

std::string Process::stdout_text() {
  std::string all = std::exchange(line_buffer_, {});
  for (std::string text = read_some(stdout_); !text.empty(); text = read_some(stdout_)) all += text;
  return all;
}

Finished run_process(const std::string& program, const std::vector<std::string>& arguments,
                     const ProcessOptions& options) {
  Process process(program, arguments, options);
  // stdout has to be read while it runs; it ends with the process.
  const std::string out = process.stdout_text();
  const std::optional<int> code = process.wait(std::chrono::minutes(1));
  INFERD_CHECK(code, program, " does not end");
  return {*code, out, process.stderr_text()};
}

int wait_until_ready(Process& process) {
  const std::optional<std::string> line = process.read_line(std::chrono::seconds(20));
  if (!line) {
    process.signal(SIGKILL);
    process.wait(std::chrono::seconds(10));
  }
  INFERD_CHECK(line, "no ready line; stderr: ", process.stderr_text());
  static constexpr std::string_view kBegin = "ready http://127.0.0.1:";
  INFERD_CHECK(line->starts_with(kBegin), "not a ready line: ", *line);
  return static_cast<int>(
      parse_int(line->substr(kBegin.size(), line->find(' ', kBegin.size()) - kBegin.size())).value());
}

}  // namespace inferd::test
