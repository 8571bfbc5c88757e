#include "environment.h"

#include <semaphore.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include "configuration.h"
#include "hub/model_names.h"

namespace inferd {
namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

// $XDG_STATE_HOME/inferd, else ~/.local/state/inferd; a relative one counts as unset.
std::string state_folder() {
  if (const auto state = variable("XDG_STATE_HOME"); state.starts_with('/')) return cat(state, "/inferd");
  if (const auto home = variable("HOME"); home.starts_with('/')) return cat(home, "/.local/state/inferd");
  return {};
}

// A signal handler can reach nothing but static storage.
std::atomic<bool> g_interrupted{false};
std::atomic<int> g_signal{0};
std::atomic<int> g_wakeup_fd{-1};
std::atomic<int> g_terminal{-1};
termios g_terminal_modes;
sem_t g_wakeup;

void post_wakeup() {
  const uint64_t one = 1;
  const ssize_t written = ::write(g_wakeup_fd.load(), &one, sizeof one);
  static_cast<void>(written);  // it is readable already
}

void on_interrupt(int number) {
  const int saved = errno;
  if (g_interrupted.exchange(true)) {
    if (const int terminal = g_terminal.load(); terminal >= 0)
      ::tcsetattr(terminal, TCSANOW, &g_terminal_modes);
    ::_exit(128 + number);
  }
  g_signal.store(number);
  ::sem_post(&g_wakeup);
  post_wakeup();
  errno = saved;
}

void on_resize(int) {
  const int saved = errno;
  post_wakeup();
  errno = saved;
}

std::string_view g_bus_error_text;

void on_bus_error(int) {
  const ssize_t written = ::write(2, g_bus_error_text.data(), g_bus_error_text.size());
  static_cast<void>(written);
  ::_exit(kExitBadFile);
}

}  // namespace

Result<std::string> model_folder() {
  return default_model_folder(variable("XDG_DATA_HOME"), variable("HOME"));
}

ConfigurationPlaces configuration_places() {
  return {.environment = child_environment(),
          .folder_file = "inferd.toml",
          .user_file = user_config_path(variable("XDG_CONFIG_HOME"), variable("HOME"))};
}

std::vector<std::string> server_note_folders() {
  std::vector<std::string> folders;
  if (const auto runtime = variable("XDG_RUNTIME_DIR"); runtime.starts_with('/'))
    folders.push_back(cat(runtime, "/inferd"));
  if (const std::string state = state_folder(); !state.empty()) folders.push_back(state + "/servers");
  return folders;
}

std::string history_path() {
  const std::string state = state_folder();
  return state.empty() ? state : state + "/history";
}

std::string expand_home(const std::string& path) {
  const std::string_view home = variable("HOME");
  return path.starts_with("~/") && home.starts_with('/') ? cat(home, path.substr(1)) : path;
}

bool is_dumb_terminal() {
  return variable("TERM") == "dumb";
}

bool wants_colour(int fd) {
  return ::isatty(fd) != 0 && !is_dumb_terminal() && variable("NO_COLOR").empty();
}

Result<HubSettings> hub_settings() {
  return read_hub_settings(variable);
}

bool offline_by_environment() {
  return is_switched_on(variable("HF_HUB_OFFLINE"));
}

std::vector<std::string> child_environment() {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) all.emplace_back(*entry);
  return all;
}

ProgressStyle progress_style(int fd) {
  return ::isatty(fd) != 0 && variable("TERM") != "dumb" ? ProgressStyle::bar : ProgressStyle::lines;
}

ProgressPrinter stderr_progress() {
  return ProgressPrinter(monotonic_clock(), STDERR_FILENO, progress_style(STDERR_FILENO),
                         [] { return terminal_columns(STDERR_FILENO); });
}

const std::atomic<bool>& interrupted() {
  return g_interrupted;
}
int interrupt_signal() {
  return g_signal.load();
}

void forget_interrupt() {
  g_signal.store(0);
  g_interrupted.store(false);
}

void watch_signals() {
  ::sem_init(&g_wakeup, 0, 0);
  if (g_wakeup_fd.load() < 0) g_wakeup_fd.store(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  struct sigaction action{};
  action.sa_handler = on_interrupt;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

int wakeup_descriptor() {
  return g_wakeup_fd.load();
}

void clear_wakeup() {
  uint64_t count = 0;
  const ssize_t got = ::read(g_wakeup_fd.load(), &count, sizeof count);
  static_cast<void>(got);  // nothing to clear
}

void watch_resizes() {
  struct sigaction action{};
  action.sa_handler = on_resize;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGWINCH, &action, nullptr);
}

void restore_at_once(int fd, const termios& modes) {
  g_terminal_modes = modes;
  g_terminal.store(fd);
}

void wait_for_wakeup() {
  while (::sem_wait(&g_wakeup) != 0 && errno == EINTR) {
  }
}

void wake() {
  ::sem_post(&g_wakeup);
}

void install_fault_handlers() {
  struct sigaction ignore{};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, nullptr);
  static const std::string text =
      Error{.code = Code::io_changed, .detail = "it became shorter"}.terminal_text();
  g_bus_error_text = text;
  struct sigaction bus{};
  bus.sa_handler = on_bus_error;
  ::sigaction(SIGBUS, &bus, nullptr);
}

}  // namespace inferd
