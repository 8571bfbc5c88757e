#include "base/clock.h"

#include <chrono>

namespace inferd {
namespace {

class MonotonicClock final : public Clock {
 public:
  int64_t now_ns() const override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
};

constinit const MonotonicClock kMonotonicClock;

}  // namespace

const Clock& monotonic_clock() {
  return kMonotonicClock;
}

int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace inferd
