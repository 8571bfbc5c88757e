// INFERD_CHECK: a programmer error ends the process, in release builds too. Never used for input from
// outside.
#pragma once

#include <string>

#include "base/strings.h"

namespace inferd {

[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& detail);

}  // namespace inferd

// INFERD_CHECK(rows > 0, "linear: rows ", rows): prints file, line, condition and detail to stderr, then
// aborts.
#define INFERD_CHECK(condition, ...)                                                                        \
  do {                                                                                                      \
    if (!(condition)) [[unlikely]] {                                                                        \
      ::inferd::check_failed(__FILE__, __LINE__, #condition, ::inferd::cat("" __VA_OPT__(, ) __VA_ARGS__)); \
    }                                                                                                       \
  } while (false)
