// Memory for packed weights: parts cut from large mappings, so that small weights lie in huge pages too.
// Streaming through 4 KB pages costs a page walk for every 4 KB, and under a hypervisor that is felt.
#pragma once

#include <memory>

#include "base/result.h"
#include "ops/device.h"

namespace inferd::cpu {

// One part; the mapping it was cut from lives until its last part is gone.
struct SlabPart {
  std::shared_ptr<Buffer> slab;
  uint8_t* data = nullptr;
  int64_t bytes = 0;
};

class SlabAllocator {
 public:
  explicit SlabAllocator(Device& device) : device_(device) {}

  // 64-byte aligned. E-MEM-002 when memory is short.
  Result<SlabPart> take(int64_t bytes, std::string_view what);

 private:
  // Untouched memory costs nothing, so a slab is larger than most weights; a weight past it gets a mapping of
  // its own.
  static constexpr int64_t kSlabBytes = int64_t{64} << 20;

  Device& device_;
  std::weak_ptr<Buffer> slab_;  // the one being cut; gone when all its parts are
  int64_t used_ = 0;
};

}  // namespace inferd::cpu
