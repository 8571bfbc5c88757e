#include "hub/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/clock.h"

namespace inferd {
namespace {

constexpr size_t kOutputKept = size_t{16} << 10;

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

// Runs in the forked child, where only async-signal-safe calls are allowed; returns only when the program
// cannot be run. fork and not posix_spawn, because only code of ours in the child can ask to die with its
// parent.
void become(const char* program, char* const* arguments, char* const* environment, int output_fd,
            pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // the parent died before the line above
  for (const int number : {SIGINT, SIGTERM, SIGPIPE, SIGHUP, SIGQUIT, SIGCHLD, SIGXFSZ})
    ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int null_fd = ::open("/dev/null", O_RDONLY);
  if (null_fd < 0 || ::dup2(null_fd, 0) < 0 || ::dup2(output_fd, 1) < 0 || ::dup2(output_fd, 2) < 0) return;
  ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);  // sockets and files of the parent are not the child's business
  ::execve(program, arguments, environment);
}

}  // namespace

std::optional<std::string> find_program(std::string_view name, const std::vector<std::string>& environment) {
  static constexpr std::string_view kPath = "PATH=";
  for (const std::string& variable : environment) {
    if (!variable.starts_with(kPath)) continue;
    for (const std::string_view folder : split(std::string_view(variable).substr(kPath.size()), ':')) {
      std::string candidate = cat(folder.empty() ? std::string_view(".") : folder, "/", name);
      if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    }
    return std::nullopt;
  }
  return std::nullopt;
}

Result<ChildProcess> ChildProcess::start(const std::string& program,
                                         const std::vector<std::string>& arguments,
                                         const std::vector<std::string>& environment) {
  std::array<int, 2> output;   // read end, write end
  std::array<int, 2> failure;  // the child's errno, or nothing when execve closes it
  if (::pipe2(output.data(), O_CLOEXEC) != 0) {
    return Error{.code = Code::internal, .detail = cat("no pipe: ", std::strerror(errno))};
  }
  if (::pipe2(failure.data(), O_CLOEXEC) != 0) {
    const int number = errno;
    for (const int fd : output) ::close(fd);
    return Error{.code = Code::internal, .detail = cat("no pipe: ", std::strerror(number))};
  }
  // Made before the fork: the child may not allocate.
  const std::vector<char*> argument_pointers = pointers(arguments),
                           environment_pointers = pointers(environment);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    become(program.c_str(), argument_pointers.data(), environment_pointers.data(), output[1], parent);
    const int number = errno;
    if (::write(failure[1], &number, sizeof number) < 0) ::_exit(126);
    ::_exit(127);
  }
  const int fork_error = errno;
  ::close(output[1]);
  ::close(failure[1]);
  if (pid < 0) {
    ::close(output[0]);
    ::close(failure[0]);
    return Error{.code = Code::internal, .detail = cat("no new process: ", std::strerror(fork_error))};
  }
  ::setpgid(pid, pid);  // as in the child: whoever comes first, the group exists before anybody needs it
  ChildProcess child(pid, output[0]);
  int number = 0;
  ssize_t got = 0;
  do {
    got = ::read(failure[0], &number, sizeof number);
  } while (got < 0 && errno == EINTR);
  ::close(failure[0]);
  if (got == sizeof number) {
    return Error{.code = Code::internal, .detail = cat("cannot run ", program, ": ", std::strerror(number))};
  }
  ::fcntl(child.output_fd_, F_SETFL, O_NONBLOCK);
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      output_fd_(std::exchange(other.output_fd_, -1)),
      exit_status_(other.exit_status_),
      output_(std::move(other.output_)) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(output_fd_, other.output_fd_);
  std::swap(exit_status_, other.exit_status_);
  std::swap(output_, other.output_);
  return *this;
}

ChildProcess::~ChildProcess() {
  stop();
  if (output_fd_ >= 0) ::close(output_fd_);
}

void ChildProcess::read_output() {
  std::array<char, 4096> piece;
  while (output_fd_ >= 0) {
    const ssize_t got = ::read(output_fd_, piece.data(), piece.size());
    if (got > 0) {
      output_.append(piece.data(), static_cast<size_t>(got));
      if (output_.size() > 2 * kOutputKept) output_.erase(0, output_.size() - kOutputKept);
    } else if (got < 0 && errno == EINTR) {
      continue;
    } else {
      if (got == 0 || errno != EAGAIN) ::close(std::exchange(output_fd_, -1));
      break;
    }
  }
}

bool ChildProcess::reap_if_ended() {
  siginfo_t info{};
  const int failed = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
  if (failed == 0 && info.si_pid == 0) return false;
  // While its leader is not reaped the group's number cannot be given to anybody else, so this hits only our
  // own.
  ::kill(-pid_, SIGKILL);
  int status = W_EXITCODE(
      127, 0);  // stays so when the process was started with SIGCHLD ignored and the kernel reaped it
  if (failed == 0) ::waitpid(pid_, &status, 0);
  pid_ = -1;
  exit_status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  read_output();
  if (output_.size() > kOutputKept) output_.erase(0, output_.size() - kOutputKept);
  return true;
}

bool ChildProcess::wait(int timeout_ms) {
  if (pid_ < 0 || reap_if_ended()) return true;
  if (output_fd_ < 0)
    timeout_ms = std::min(timeout_ms, 10);  // it has closed its output: most likely it is about to end
  pollfd ready{.fd = output_fd_, .events = POLLIN, .revents = 0};
  if (::poll(&ready, 1, timeout_ms) > 0) read_output();
  return reap_if_ended();
}

void ChildProcess::stop(int grace_ms) {
  if (pid_ < 0 || reap_if_ended()) return;
  ::kill(-pid_, SIGTERM);
  const int64_t start = monotonic_clock().now_ns();
  while (monotonic_clock().seconds_since(start) * 1000.0 < grace_ms) {
    if (wait(20)) return;
  }
  ::kill(-pid_, SIGKILL);
  while (!wait(20)) {
  }
}

}  // namespace inferd
