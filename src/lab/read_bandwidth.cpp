#include "lab/read_bandwidth.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/clock.h"
#include "ops/host_device.h"

namespace inferd {
namespace {

// The exclusive or of a buffer, 128 bytes a turn in eight accumulators of the size that every x86-64 has
// registers for: two loads a cycle, several times what memory delivers.
uint64_t sweep(const std::byte* data, int64_t bytes) {
  using Lanes = uint64_t __attribute__((vector_size(16)));
  Lanes sum[8] = {};
  for (int64_t at = 0; at + 128 <= bytes; at += 128) {
#pragma GCC unroll 8
    for (int64_t i = 0; i < 8; ++i) {
      Lanes lanes;
      std::memcpy(&lanes, data + at + i * 16, sizeof lanes);
      sum[i] ^= lanes;
    }
  }
  uint64_t result = 0;
  for (const Lanes lanes : sum) result ^= lanes[0] ^ lanes[1];
  return result;
}

}  // namespace

Result<ReadBandwidth> measure_read_bandwidth(ThreadPool& pool, int rounds, int64_t bytes) {
  HostDevice device("bandwidth");
  INFERD_TRY(const Buffer buffer, device.allocate(bytes, "the bandwidth measurement"));
  std::memset(buffer.data(), 1, static_cast<size_t>(bytes));
  const Clock& clock = monotonic_clock();
  const int64_t part = bytes / pool.size() / 256 * 256;
  std::vector<double> rates;
  std::atomic<uint64_t> sink{0};
  for (int round = 0; round <= rounds; ++round) {
    const int64_t start = clock.now_ns();
    pool.run([&](int worker) {
      sink.fetch_xor(sweep(static_cast<const std::byte*>(buffer.data()) + worker * part, part),
                     std::memory_order_relaxed);
    });
    const double seconds = clock.seconds_since(start);
    if (round > 0) rates.push_back(static_cast<double>(part * pool.size()) / seconds);
  }
  std::ranges::sort(rates);
  return ReadBandwidth{rates[rates.size() / 2], rates.back(), rounds};
}

}  // namespace inferd
