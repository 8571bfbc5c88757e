#include "base/memory_info.h"

#include <algorithm>
#include <limits>

#include "base/cgroup.h"
#include "base/strings.h"

namespace inferd {
namespace {

// "MemAvailable:   123 kB" in a file of such lines.
std::optional<int64_t> line_kib(const std::string& text, std::string_view name) {
  for (const std::string_view line : split(text, '\n')) {
    if (!line.starts_with(name) || !line.substr(name.size()).starts_with(':')) continue;
    std::string_view value = trim(line.substr(name.size() + 1));
    if (value.ends_with(" kB")) value.remove_suffix(3);
    return parse_int(trim(value));
  }
  return std::nullopt;
}

std::optional<int64_t> file_integer(const std::string& path) {
  const auto text = read_small_file(path);
  return text ? parse_int(trim(*text)) : std::nullopt;  // "max" is no number: no limit
}

int64_t status_bytes(std::string_view name) {
  const auto text = read_small_file("/proc/self/status");
  return text ? line_kib(*text, name).value_or(0) * 1024 : 0;
}

}  // namespace

int64_t machine_available_memory(const std::string& root) {
  const auto text = read_small_file(root + "proc/meminfo");
  const auto kib = text ? line_kib(*text, "MemAvailable") : std::nullopt;
  return kib ? *kib * 1024 : std::numeric_limits<int64_t>::max();
}

int64_t available_memory(const std::string& root) {
  int64_t available = machine_available_memory(root);
  for_each_cgroup(root, "memory", [&](const std::string& folder, bool v2) {
    const auto limit = file_integer(folder + (v2 ? "/memory.max" : "/memory.limit_in_bytes"));
    const auto used = file_integer(folder + (v2 ? "/memory.current" : "/memory.usage_in_bytes"));
    if (!limit || !used) return;
    // Cached file pages count as used, but the kernel drops them when somebody needs the memory.
    int64_t reclaimable = 0;
    if (const auto stat = read_small_file(folder + "/memory.stat")) {
      for (const std::string_view line : split(*stat, '\n')) {
        const std::string_view name = v2 ? "inactive_file " : "total_inactive_file ";
        if (line.starts_with(name)) reclaimable = parse_int(line.substr(name.size())).value_or(0);
      }
    }
    available = std::min(available, std::max<int64_t>(0, *limit - *used + reclaimable));
  });
  return available;
}

int64_t resident_memory() {
  return status_bytes("VmRSS");
}
int64_t peak_resident_memory() {
  return status_bytes("VmHWM");
}

}  // namespace inferd
