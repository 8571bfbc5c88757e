// An Ops that does what another one does, and throws DeviceError in the k-th step: a device that dies at
// work.
#pragma once

#include <memory>

#include "ops/ops.h"

namespace inferd::test {

// `step` counts from 1; the error is thrown in the middle of it, from attention.
Backend make_faulty(Backend backend, int step);

}  // namespace inferd::test
