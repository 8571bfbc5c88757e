// Files of this process's cgroups, version 1 and 2, from its own group up to the top of the mount.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace inferd {

std::optional<std::string> read_small_file(const std::string& path);

// Calls visit(folder, v2) for every folder that may limit `controller` ("cpu", "memory"), innermost first.
// Folders that are not there are visited too: inside a container the group's path may name what only the host
// sees, and the mount's own top, visited last, is the container's group.
void for_each_cgroup(const std::string& root, std::string_view controller,
                     const std::function<void(const std::string& folder, bool v2)>& visit);

}  // namespace inferd
