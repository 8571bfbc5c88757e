// The CPU backend: every verb in SIMD, over weights repacked at load. Results do not depend on threads, batch
// or instruction set (docs/numerics.md).
#pragma once

#include <optional>

#include "base/result.h"
#include "cpu/isa.h"
#include "ops/ops.h"

namespace inferd {

struct CpuOptions {
  int threads = 0;              // workers, the calling thread included; 0: as many as usable_cpus() says
  std::optional<IsaLevel> isa;  // none: the best that the machine has
  bool pin = true;  // each worker to one CPU; off where other programs share the CPUs by design (tests)
};

// All calls of the returned ops come from one thread at a time, which is worker 0. E-CPU-001: the machine
// cannot run the level asked for. E-ARG-003: a negative thread count.
Result<Backend> make_cpu_backend(const CpuOptions& options);

}  // namespace inferd
