// What this program is: filled in by the build.
#pragma once

#include <string_view>

namespace inferd {

inline constexpr std::string_view kVersion = INFERD_VERSION;
extern const std::string_view
    kCommit;  // short hash, with "+" when the tree was changed; "unknown" outside git
extern const std::string_view kCompiler;  // "GCC 12.2.0 Release"

}  // namespace inferd
