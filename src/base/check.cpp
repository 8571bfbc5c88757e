#include "base/check.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace inferd {

void check_failed(const char* file, int line, const char* condition, const std::string& detail) {
  std::string_view name(file);
  if (const size_t slash = name.rfind("src/"); slash != std::string_view::npos) name.remove_prefix(slash);
  const std::string text = cat("inferd: internal check failed at ", name, ":", line, ": ", condition,
                               detail.empty() ? "" : ": ", detail, "\n");
  std::fputs(text.c_str(), stderr);
  std::abort();
}

}  // namespace inferd
