// Time. Durations come from a monotonic clock only; a test may put its own Clock in.
#pragma once

#include <cstdint>

namespace inferd {

class Clock {
 public:
  virtual ~Clock() = default;
  // Nanoseconds since some fixed moment; never goes back. Any thread.
  virtual int64_t now_ns() const = 0;

  double seconds_since(int64_t start_ns) const { return static_cast<double>(now_ns() - start_ns) * 1e-9; }
};

// CLOCK_MONOTONIC.
const Clock& monotonic_clock();

// Seconds since 1970, for "created" fields and log lines; never subtracted.
int64_t unix_seconds();

}  // namespace inferd
