#include "ports.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "base/strings.h"

namespace inferd {
namespace {

namespace fs = std::filesystem;

// The inodes of sockets that listen on the port. A line of the table: "sl local_address rem_address st …
// inode", the address as HEX:PORT, state 0A for listening (proc(5)).
std::vector<std::string> listening_inodes(const std::string& table, int32_t port) {
  std::vector<std::string> inodes;
  std::ifstream file(table);
  std::string line;
  std::getline(file, line);  // the titles
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::array<std::string, 10> word;
    for (std::string& w : word) words >> w;
    const size_t colon = word[1].rfind(':');
    if (colon == std::string::npos || word[3] != "0A") continue;
    if (std::strtol(word[1].c_str() + colon + 1, nullptr, 16) == port) inodes.push_back(word[9]);
  }
  return inodes;
}

bool has_socket(const fs::path& process, const std::vector<std::string>& inodes) {
  std::error_code none;
  for (const fs::directory_entry& descriptor : fs::directory_iterator(process / "fd", none)) {
    const std::string target = fs::read_symlink(descriptor.path(), none).string();
    if (std::ranges::any_of(inodes, [&](const std::string& i) { return target == cat("socket:[", i, "]"); }))
      return true;
  }
  return false;
}

}  // namespace

std::optional<PortHolder> port_holder(int32_t port, const std::string& root) {
  const fs::path proc = fs::path(root) / "proc";
  std::vector<std::string> inodes = listening_inodes(proc / "net/tcp", port);
  const std::vector<std::string> inodes6 = listening_inodes(proc / "net/tcp6", port);
  inodes.insert(inodes.end(), inodes6.begin(), inodes6.end());
  if (inodes.empty()) return std::nullopt;
  std::error_code none;
  for (const fs::directory_entry& process : fs::directory_iterator(proc, none)) {
    const auto pid = parse_int(process.path().filename().string());
    if (!pid || !has_socket(process.path(), inodes)) continue;
    PortHolder holder{.pid = static_cast<int32_t>(*pid), .program = "?"};
    std::ifstream comm(process.path() / "comm");
    std::getline(comm, holder.program);
    return holder;
  }
  return std::nullopt;
}

std::optional<int32_t> free_port_above(int32_t port) {
  for (int32_t candidate = port + 1; candidate <= std::min(port + 100, 65535); ++candidate) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return std::nullopt;
    const int on = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(candidate));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const bool is_free =
        ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 && ::listen(fd, 1) == 0;
    ::close(fd);
    if (is_free) return candidate;
  }
  return std::nullopt;
}

Error with_port_holder(Error error, int32_t port) {
  if (error.code != Code::net_port) return error;
  const std::optional<PortHolder> holder = port_holder(port);
  if (holder) error.detail += cat("; held by ", holder->program, " (pid ", holder->pid, ")");
  if (const std::optional<int32_t> other = free_port_above(port)) {
    error.fix = cat(holder ? cat("stop it (kill ", holder->pid, ")") : "stop the other process",
                    ", or give --port ", *other, ", which is free");
  }
  return error;
}

}  // namespace inferd
