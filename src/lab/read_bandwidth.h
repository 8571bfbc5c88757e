// How fast this machine reads memory right now: the roof that decode speed is judged by.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "base/threads.h"

namespace inferd {

struct ReadBandwidth {
  double median_bytes_per_s = 0;
  double max_bytes_per_s = 0;
  int rounds = 0;
};

// Sweeps a buffer of `bytes` (at least 512 MiB, far past every cache) on all threads of the pool, `rounds`
// times after one to warm up. Only loads, no stores, in huge pages where the kernel has them. E-MEM-002 when
// the buffer cannot be had.
Result<ReadBandwidth> measure_read_bandwidth(ThreadPool& pool, int rounds = 11,
                                             int64_t bytes = int64_t{512} << 20);

}  // namespace inferd
