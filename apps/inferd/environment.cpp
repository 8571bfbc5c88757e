#include "environment.h"

#include <semaphore.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include "hub/model_names.h"

namespace inferd {
namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

// A signal handler can reach nothing but static storage.
std::atomic<bool> g_interrupted{false};
std::atomic<int> g_signal{0};
sem_t g_wakeup;

void on_interrupt(int number) {
  if (g_interrupted.exchange(true)) ::_exit(128 + number);
  g_signal.store(number);
  ::sem_post(&g_wakeup);
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

Result<HubSettings> hub_settings() {
  return read_hub_settings(variable);
}

bool offline_by_environment() {
  return is_switched_on(variable("INFERD_OFFLINE")) || is_switched_on(variable("HF_HUB_OFFLINE"));
}

std::vector<std::string> child_environment() {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) all.emplace_back(*entry);
  return all;
}

ProgressStyle progress_style(int fd) {
  return ::isatty(fd) != 0 && variable("TERM") != "dumb" ? ProgressStyle::bar : ProgressStyle::lines;
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
  struct sigaction action{};
  action.sa_handler = on_interrupt;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
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
