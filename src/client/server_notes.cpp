#include "client/server_notes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/json.h"
#include "base/strings.h"

namespace inferd {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLongestNote = size_t{64} << 10;

std::string machine_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::optional<std::string> read_small(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return std::nullopt;
  std::string text(kLongestNote, '\0');
  const ssize_t got = ::read(fd, text.data(), text.size());
  ::close(fd);
  if (got < 0) return std::nullopt;
  text.resize(static_cast<size_t>(got));
  return text;
}

std::string note_text(const ServerNote& note) {
  Json::Array aliases;
  for (const std::string& alias : note.aliases) aliases.emplace_back(alias);
  return to_json(Json(Json::Object{{"pid", int64_t{note.pid}},
                                   {"start_ticks", note.start_ticks},
                                   {"machine", note.machine},
                                   {"url", note.url},
                                   {"port", note.port},
                                   {"model", note.model},
                                   {"aliases", std::move(aliases)},
                                   {"model_path", note.model_path},
                                   {"context", note.context},
                                   {"chats", note.chats},
                                   {"drain_timeout_s", note.drain_timeout_s},
                                   {"api_key_file", note.api_key_file}})) +
         "\n";
}

// Nothing: this is no note that we wrote.
std::optional<ServerNote> read_note(const std::string& path) {
  const std::optional<std::string> text = read_small(path);
  if (!text) return std::nullopt;
  const Result<Json> json = parse_json(*text);
  if (!json.ok()) return std::nullopt;
  const auto integer = [&](std::string_view name) -> int64_t {
    const Json* value = json->find(name);
    return value != nullptr && value->is_integer() ? value->as_integer() : -1;
  };
  const auto string = [&](std::string_view name) -> std::string {
    const Json* value = json->find(name);
    return value != nullptr && value->is_string() ? value->as_string() : std::string();
  };
  ServerNote note{.pid = static_cast<pid_t>(integer("pid")),
                  .start_ticks = integer("start_ticks"),
                  .machine = string("machine"),
                  .url = string("url"),
                  .port = static_cast<int>(integer("port")),
                  .model = string("model"),
                  .model_path = string("model_path"),
                  .context = integer("context"),
                  .drain_timeout_s = static_cast<int>(integer("drain_timeout_s")),
                  .api_key_file = string("api_key_file")};
  const Json* chats = json->find("chats");
  note.chats = chats != nullptr && chats->is_bool() && chats->as_bool();
  if (const Json* aliases = json->find("aliases"); aliases != nullptr && aliases->is_array()) {
    for (const Json& alias : aliases->as_array()) {
      if (alias.is_string()) note.aliases.push_back(alias.as_string());
    }
  }
  if (note.pid <= 0 || note.start_ticks < 0 || note.url.empty() || note.model.empty()) return std::nullopt;
  return note;
}

bool is_ours(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && info.st_uid == ::geteuid();
}

bool runs(const ServerNote& note) {
  return process_start_ticks(note.pid) == note.start_ticks && is_ours(cat("/proc/", note.pid));
}

Result<std::string> write_note(const std::string& folder, const ServerNote& note) {
  const auto failed = [](const std::string& path) {
    const Code code = errno == EACCES || errno == EPERM || errno == EROFS ? Code::io_permission
                      : errno == ENOSPC || errno == EDQUOT                ? Code::io_disk_full
                                                                          : Code::io_write;
    return Error{.code = code, .detail = std::strerror(errno), .where = path};
  };
  std::error_code failure;
  if (fs::create_directories(folder, failure)) fs::permissions(folder, fs::perms::owner_all, failure);
  if (failure) {
    errno = failure.value();
    return failed(folder);
  }
  const std::string path = cat(folder, "/", note.pid, ".json");
  const std::string beside = cat(folder, "/.", note.pid, ".tmp");
  ::unlink(beside.c_str());  // of a process before us that had this id
  const int fd = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return failed(beside);
  const std::string text = note_text(note);
  const bool written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (!written || ::rename(beside.c_str(), path.c_str()) != 0) {
    Error error = failed(path);
    ::close(fd);
    ::unlink(beside.c_str());
    return error;
  }
  ::close(fd);
  return path;
}

}  // namespace

std::optional<int64_t> process_start_ticks(pid_t pid) {
  const std::optional<std::string> stat = read_small(cat("/proc/", pid, "/stat"));
  if (!stat) return std::nullopt;
  // The second field is the program's name in parentheses, which may hold anything.
  const size_t name_end = stat->rfind(')');
  if (name_end == std::string::npos || name_end + 2 > stat->size()) return std::nullopt;
  const std::vector<std::string_view> fields = split(std::string_view(*stat).substr(name_end + 2), ' ');
  constexpr size_t kStartTime = 22 - 3;
  return fields.size() > kStartTime ? parse_int(fields[kStartTime]) : std::nullopt;
}

double uptime_seconds(const ServerNote& note) {
  const std::optional<std::string> uptime = read_small("/proc/uptime");
  if (!uptime) return 0;
  const auto now = parse_double(std::string_view(*uptime).substr(0, uptime->find(' ')));
  const auto hertz = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return std::max(0.0, now.value_or(0) - static_cast<double>(note.start_ticks) / hertz);
}

Result<PostedNote> PostedNote::post(std::span<const std::string> folders, ServerNote note) {
  note.pid = ::getpid();
  note.start_ticks = process_start_ticks(note.pid).value_or(-1);
  note.machine = machine_name();
  std::error_code failure;
  const fs::path canonical = fs::canonical(note.model_path, failure);
  if (!failure) note.model_path = canonical.string();
  Error last{.code = Code::io_not_found,
             .detail = "no folder for it: XDG_RUNTIME_DIR, XDG_STATE_HOME and HOME are no absolute paths"};
  for (const std::string& folder : folders) {
    Result<std::string> path = write_note(folder, note);
    if (path.ok()) return PostedNote(std::move(path).value());
    last = std::move(path).error();
  }
  return last;
}

PostedNote::PostedNote(PostedNote&& other) noexcept : path_(std::exchange(other.path_, {})) {}

PostedNote::~PostedNote() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

std::vector<ServerNote> running_servers(std::span<const std::string> folders) {
  std::vector<ServerNote> servers;
  const std::string machine = machine_name();
  for (const std::string& folder : folders) {
    std::error_code failure;
    for (fs::directory_iterator at(folder, failure), end; !failure && at != end; at.increment(failure)) {
      const std::string path = at->path().string();
      const std::string name = at->path().filename().string();
      if (!name.ends_with(".json") || !parse_int(at->path().stem().string()) || !is_ours(path)) continue;
      const std::optional<ServerNote> note = read_note(path);
      if (note && note->machine != machine) continue;
      if (note && runs(*note)) {
        if (std::ranges::find(servers, note->pid, &ServerNote::pid) == servers.end())
          servers.push_back(*note);
      } else {
        ::unlink(path.c_str());
      }
    }
  }
  std::ranges::sort(servers, std::ranges::greater(), &ServerNote::start_ticks);
  return servers;
}

}  // namespace inferd
