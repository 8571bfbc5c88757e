#include "base/cgroup.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/strings.h"

namespace inferd {

std::optional<std::string> read_small_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void for_each_cgroup(const std::string& root, std::string_view controller,
                     const std::function<void(const std::string& folder, bool v2)>& visit) {
  const auto groups = read_small_file(root + "proc/self/cgroup");
  if (!groups) return;
  for (const std::string_view line : split(*groups, '\n')) {
    const std::vector<std::string_view> fields = split(line, ':');  // id:controllers:path
    if (fields.size() < 3) continue;
    const bool v2 = fields[1].empty();
    const std::vector<std::string_view> controllers = split(fields[1], ',');
    if (!v2 && std::ranges::find(controllers, controller) == controllers.end()) continue;
    for (std::string path(fields[2]);;) {
      if (v2) {
        visit(cat(root, "sys/fs/cgroup", path), true);
      } else {
        // Mounted under the controller's own name or under the joint name of its hierarchy.
        visit(cat(root, "sys/fs/cgroup/", controller, path), false);
        if (fields[1] != controller) visit(cat(root, "sys/fs/cgroup/", fields[1], path), false);
      }
      const size_t slash = path.rfind('/');
      if (path.empty() || slash == std::string::npos) break;
      path.resize(slash);
    }
  }
}

}  // namespace inferd
