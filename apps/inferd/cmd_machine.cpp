// doctor, version, and what all commands share.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <iterator>

#include "base/memory_info.h"
#include "base/threads.h"
#include "commands.h"
#include "cpu/isa.h"
#include "environment.h"
#include "library_versions.h"
#include "version.h"

namespace inferd {
namespace {

struct Finding {
  enum class Level { ok, warn, fail } level = Level::ok;
  std::string what;
  std::string text;
  std::string fix;
};

std::string isa_list() {
  std::string list;
  for (const IsaLevel level : available_isa_levels()) list += cat(list.empty() ? "" : ", ", isa_name(level));
  return list;
}

Finding processor() {
  const bool fast = default_isa_level() != IsaLevel::portable;
  return {
      fast ? Finding::Level::ok : Finding::Level::warn, "processor",
      cat(usable_cpus(), " usable CPUs; instruction sets ", isa_list()),
      fast ? ""
           : "AVX2 makes models several times faster; this chip, or its virtual machine, does not offer it"};
}

Finding memory() {
  const int64_t bytes = available_memory();
  const bool enough = bytes > int64_t{1} << 30;
  return {enough ? Finding::Level::ok : Finding::Level::warn, "memory", cat(human_bytes(bytes), " available"),
          enough ? "" : "small models need about 1 GiB"};
}

Finding folder() {
  const Result<std::string> path = model_folder();
  if (!path.ok())
    return {Finding::Level::fail, "models", path.error().message(), "set HOME or XDG_DATA_HOME"};
  const Result<std::vector<StoredModel>> stored = list_models(*path);
  if (!stored.ok())
    return {Finding::Level::fail, "models", stored.error().message(),
            std::string(error_row(stored.error().code).fix)};
  struct statvfs info{};
  std::string existing = *path;
  while (::statvfs(existing.c_str(), &info) != 0 && existing.find('/') != std::string::npos &&
         existing.size() > 1) {
    existing.resize(std::max<size_t>(1, existing.rfind('/')));
  }
  const auto free_bytes = static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize);
  const bool room = free_bytes > int64_t{1} << 30;
  return {room ? Finding::Level::ok : Finding::Level::warn, "models",
          cat(stored->size(), " in ", *path, ", ", human_bytes(free_bytes), " free"),
          room ? "" : "free space before fetching models"};
}

Finding port(int32_t number) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(number));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool free_port =
      fd >= 0 && ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  const std::string why = free_port ? "free" : std::strerror(errno);
  if (fd >= 0) ::close(fd);
  return {free_port ? Finding::Level::ok : Finding::Level::warn, "port",
          cat(number, " is ", free_port ? "free" : cat("taken (", why, ")")),
          free_port ? "" : "serve with another --port; 0 picks one"};
}

}  // namespace

int report(const Error& error) {
  std::fputs(error.terminal_text().c_str(), stderr);
  return error_row(error.code).exit_code;
}

Result<std::string> text_argument(const std::string& argument) {
  if (argument != "-") return argument;
  constexpr size_t kMost = size_t{64} << 20;
  std::string text;
  for (std::istreambuf_iterator<char> at(std::cin), end; at != end; ++at) {
    if (text.size() == kMost) {
      return Error{.code = Code::arg_value,
                   .detail = cat("stdin has more than ", human_bytes(kMost)),
                   .where = "-",
                   .fix = "give less text"};
    }
    text.push_back(*at);
  }
  return text;
}

int doctor_command(const Options& options) {
  static constexpr std::string_view kNames[] = {"ok", "warn", "FAIL"};
  const std::vector<Finding> findings = {processor(), memory(), folder(), port(options.port)};
  bool failed = false;
  Json::Array json;
  for (const Finding& finding : findings) {
    failed |= finding.level == Finding::Level::fail;
    const std::string_view level = kNames[static_cast<size_t>(finding.level)];
    json.push_back(Json::Object{{"check", finding.what},
                                {"level", to_lower_ascii(level)},
                                {"text", finding.text},
                                {"fix", finding.fix}});
    if (options.json) continue;
    std::fputs(cat(level, std::string(6 - level.size(), ' '), finding.what,
                   std::string(11 - finding.what.size(), ' '), finding.text, "\n")
                   .c_str(),
               stdout);
    if (!finding.fix.empty()) std::fputs(cat("        fix: ", finding.fix, "\n").c_str(), stdout);
  }
  if (options.json) std::fputs((to_json(Json(std::move(json))) + "\n").c_str(), stdout);
  return failed ? kExitBadFile : kExitOk;
}

int version_command(const Options& options) {
  if (!options.json) {
    std::fputs(cat("inferd ", kVersion, " (", kCommit, ")\n", kCompiler,
                   "\ninstruction sets here: ", isa_list(), "\n")
                   .c_str(),
               stdout);
    return kExitOk;
  }
  Json::Array levels;
  for (const IsaLevel level : available_isa_levels()) levels.push_back(isa_name(level));
  Json::Object libraries;
  for (const LibraryVersion& library : library_versions())
    libraries.emplace_back(std::string(library.name), library.version);
  const Json json = Json::Object{
      {"version", kVersion},
      {"commit", kCommit},
      {"compiler", kCompiler},
      {"isa", Json::Object{{"available", std::move(levels)}, {"chosen", isa_name(default_isa_level())}}},
      {"libraries", std::move(libraries)}};
  std::fputs((to_json(json) + "\n").c_str(), stdout);
  return kExitOk;
}

}  // namespace inferd
