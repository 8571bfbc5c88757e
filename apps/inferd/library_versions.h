// The libraries inside of this program, and their versions as their headers say them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace inferd {

struct LibraryVersion {
  std::string_view name;
  std::string version;  // "1.81.0"
};

// Those that are compiled or linked in; libc, libm and the compiler's own run-time library are not among
// them.
std::vector<LibraryVersion> library_versions();

}  // namespace inferd
