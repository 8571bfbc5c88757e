// ps and stop: the servers of this user on this machine, known by the notes they leave
// (client/server_notes.h).
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "api_key.h"
#include "client/http_client.h"
#include "client/server_notes.h"
#include "commands.h"
#include "environment.h"

namespace inferd {
namespace {

// Beyond a server's own --drain-timeout, for its last writes and the step that runs then.
constexpr int64_t kStopSlackMs = 15000;

// Of one server, right now.
struct ServerLook {
  std::string state;                        // "ready", "draining", "failed", "stalled", "silent"
  std::optional<int64_t> running, waiting;  // choices; none: it does not say
};

ServerLook look_at(const ServerNote& server) {
  ServerLook look{.state = "silent"};
  const Result<LoopbackUrl> url = LoopbackUrl::parse(server.url);
  if (!url.ok()) return {.state = "elsewhere"};  // it listens beyond the loopback only
  HttpCall call{.path = "/health/ready", .silence_timeout_ms = 2000};
  const Result<HttpAnswer> ready = http_call(*url, call);
  if (!ready.ok()) return look;
  const Result<Json> health = parse_json(ready->body);
  const Json* status = health.ok() ? health->find("status") : nullptr;
  if (status != nullptr && status->is_string()) look.state = status->as_string();
  if (!server.api_key_file.empty()) {
    const Result<std::string> key = read_api_key(server.api_key_file);
    if (!key.ok()) return look;
    call.headers = {{"Authorization", cat("Bearer ", *key)}};
  }
  call.path = "/metrics.json";
  const Result<HttpAnswer> metrics = http_call(*url, call);
  if (!metrics.ok() || metrics->status != 200) return look;
  const Result<Json> numbers = parse_json(metrics->body);
  if (!numbers.ok()) return look;
  const auto number = [&](std::string_view name) -> std::optional<int64_t> {
    const Json* value = numbers->find(name);
    return value != nullptr && value->is_integer() ? std::optional(value->as_integer()) : std::nullopt;
  };
  look.running = number("requests_running");
  look.waiting = number("requests_waiting");
  return look;
}

std::string uptime_text(double seconds) {
  const auto s = static_cast<int64_t>(seconds);
  if (s >= 86400) return cat(s / 86400, " d ", s % 86400 / 3600, " h");
  if (s >= 3600) return cat(s / 3600, " h ", s % 3600 / 60, " min");
  if (s >= 60) return cat(s / 60, " min");
  return cat(s, " s");
}

void print_rows(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - row[i].size() + 2, ' ');
    }
    std::fputs((line + "\n").c_str(), stdout);
  }
}

std::string choice_line(const ServerNote& server) {
  return cat("pid ", server.pid, "  port ", server.port, "  ", server.model);
}

bool is_named(const ServerNote& server, const std::string& name) {
  if (server.model == name || std::ranges::find(server.aliases, name) != server.aliases.end()) return true;
  std::error_code failure;
  const std::string path = std::filesystem::canonical(name, failure).string();
  return !failure && path == server.model_path;
}

// Those that the argument means: without one, the only server there is.
Result<std::vector<ServerNote>> choose(const std::vector<ServerNote>& servers, const Options& options) {
  if (options.all) return servers;
  std::vector<ServerNote> chosen = servers;
  std::string given;
  if (!options.arguments.empty()) {
    given = options.arguments.front();
    const auto number = parse_int(given);
    std::erase_if(chosen, [&](const ServerNote& server) {
      return !(number && (*number == server.pid || *number == server.port)) && !is_named(server, given);
    });
  }
  if (chosen.empty()) {
    Error error{.code = Code::server_none, .detail = given.empty() ? "this user has none" : printable(given)};
    std::vector<std::string> names;
    for (const ServerNote& server : servers) names.push_back(server.model);
    if (const auto near = nearest_name(given, names)) error.fix = cat("did you mean ", *near, "?");
    return error;
  }
  if (chosen.size() > 1) {
    std::vector<std::string> lines;
    for (const ServerNote& server : chosen) lines.push_back(choice_line(server));
    return Error{
        .code = Code::server_choice,
        .detail = given.empty() ? cat(chosen.size(), " run") : cat(printable(given), " is ", chosen.size()),
        .where = join(lines, "\n  at ")};
  }
  return chosen;
}

// A server that is being ended, by a descriptor of its process, so that its id cannot come to mean another
// one. By system calls, since glibc 2.36 declares the functions for C only.
class Stopping {
 public:
  explicit Stopping(ServerNote server)
      : server_(std::move(server)), process_(static_cast<int>(::syscall(SYS_pidfd_open, server_.pid, 0))) {}
  Stopping(Stopping&& other) noexcept
      : server_(std::move(other.server_)),
        process_(std::exchange(other.process_, -1)),
        begin_ns_(other.begin_ns_) {}
  Stopping& operator=(Stopping&&) = delete;
  ~Stopping() {
    if (process_ >= 0) ::close(process_);
  }

  // Asks it to end.
  Status tell() {
    if (process_ < 0 || process_start_ticks(server_.pid) != server_.start_ticks) return {};  // it has ended
    const ServerLook look = look_at(server_);
    const int64_t open = look.running.value_or(0) + look.waiting.value_or(0);
    if (::syscall(SYS_pidfd_send_signal, process_, SIGTERM, nullptr, 0) != 0)
      return failed(std::strerror(errno));
    begin_ns_ = monotonic_clock().now_ns();
    std::fputs(
        cat("stopping ", server_.url, " (pid ", server_.pid, ")",
            open > 0 ? cat(": ", open, " in flight, at most ", server_.drain_timeout_s, " s") : "", "\n")
            .c_str(),
        stderr);
    return {};
  }

  // Waits until it has ended.
  Status wait() {
    if (begin_ns_ == 0) {
      say_stopped("had ended already");
      return {};
    }
    const int64_t most_ms = int64_t{server_.drain_timeout_s} * 1000 + kStopSlackMs;
    while (true) {
      const int64_t left_ms = most_ms - (monotonic_clock().now_ns() - begin_ns_) / 1000000;
      if (left_ms <= 0)
        return failed(cat("it was told ", human_seconds(static_cast<double>(most_ms) / 1000), " ago"));
      std::array<pollfd, 2> waiting = {pollfd{.fd = process_, .events = POLLIN, .revents = 0},
                                       pollfd{.fd = wakeup_descriptor(), .events = POLLIN, .revents = 0}};
      if (::poll(waiting.data(), waiting.size(), static_cast<int>(std::min<int64_t>(left_ms, 1000))) < 0)
        continue;
      if (waiting[0].revents != 0) break;
      if (interrupted()) {
        return Error{.code = Code::interrupted,
                     .detail = "it was told and still ends its requests",
                     .where = choice_line(server_),
                     .fix = "`inferd ps` shows whether it has ended"};
      }
    }
    say_stopped(cat("after ", human_seconds(monotonic_clock().seconds_since(begin_ns_))));
    return {};
  }

 private:
  Error failed(std::string what) const {
    return Error{.code = Code::server_stop, .detail = std::move(what), .where = choice_line(server_)};
  }
  void say_stopped(const std::string& how) const {
    std::fputs(cat("stopped ", server_.model, " (pid ", server_.pid, ") ", how, "\n").c_str(), stdout);
  }

  ServerNote server_;
  int process_;
  int64_t begin_ns_ = 0;  // 0: there was nobody to tell
};

}  // namespace

int ps_command(const Options& options) {
  const std::vector<ServerNote> servers = running_servers(server_note_folders());
  if (options.json) {
    Json::Array list;
    for (const ServerNote& server : servers) {
      const ServerLook look = look_at(server);
      const auto number = [](const std::optional<int64_t>& value) { return value ? Json(*value) : Json(); };
      list.push_back(Json::Object{{"pid", int64_t{server.pid}},
                                  {"url", server.url},
                                  {"port", int64_t{server.port}},
                                  {"model", server.model},
                                  {"model_path", server.model_path},
                                  {"context", server.context},
                                  {"uptime_s", uptime_seconds(server)},
                                  {"state", look.state},
                                  {"running", number(look.running)},
                                  {"waiting", number(look.waiting)}});
    }
    std::fputs((to_json(Json(Json::Object{{"servers", std::move(list)}})) + "\n").c_str(), stdout);
    return kExitOk;
  }
  if (servers.empty()) {
    std::fputs("no server of this user runs; `inferd serve` starts one\n", stderr);
    return kExitOk;
  }
  std::vector<std::vector<std::string>> rows = {{"PID", "URL", "MODEL", "UPTIME", "STATE", "REQUESTS"}};
  for (const ServerNote& server : servers) {
    const ServerLook look = look_at(server);
    rows.push_back(
        {cat(server.pid), server.url, server.model, uptime_text(uptime_seconds(server)), look.state,
         look.running ? cat(*look.running, " running, ", look.waiting.value_or(0), " waiting") : "?"});
  }
  print_rows(rows);
  return kExitOk;
}

int stop_command(const Options& options) {
  watch_signals();
  const std::vector<ServerNote> servers = running_servers(server_note_folders());
  if (options.all && servers.empty()) {
    std::fputs("no server of this user runs\n", stderr);
    return kExitOk;
  }
  const Result<std::vector<ServerNote>> chosen = choose(servers, options);
  if (!chosen.ok()) return report(chosen.error());
  int code = kExitOk;
  std::vector<Stopping> told;
  for (const ServerNote& server : *chosen) {
    Stopping stopping(server);
    if (const Status asked = stopping.tell(); asked.ok()) {
      told.push_back(std::move(stopping));
    } else {
      code = report(asked.error());
    }
  }
  for (Stopping& stopping : told) {
    const Status ended = stopping.wait();
    if (ended.ok()) continue;
    code = report(ended.error());
    if (ended.error().code == Code::interrupted) break;
  }
  return code;
}

}  // namespace inferd
