// Where tests find the golden files of the independent oracles. Not part of the program.
#pragma once

#include <cstdlib>
#include <string>

namespace inferd {

inline std::string golden_path(const std::string& name) {
  const char* folder = std::getenv("INFERD_GOLDEN");
  return (folder != nullptr ? std::string(folder) : std::string(INFERD_SOURCE_DIR "/../shared/golden")) +
         "/" + name;
}

}  // namespace inferd
