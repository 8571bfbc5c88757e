// An Ops that does what another one does, and throws DeviceError in the k-th step: a device that dies at
// work. Or one that takes its time, so that a test can come in between two steps.
#pragma once

#include <chrono>
#include <memory>

#include "ops/ops.h"

namespace inferd::test {

// `step` counts from 1, 0 is none; the error is thrown in the middle of it, from attention. Every step begins
// with `delay`.
Backend make_faulty(Backend backend, int step, std::chrono::milliseconds delay = {});

}  // namespace inferd::test
