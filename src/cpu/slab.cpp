#include "cpu/slab.h"

#include "base/arithmetic.h"
#include "tensor/buffer.h"

namespace inferd::cpu {

Result<SlabPart> SlabAllocator::take(int64_t bytes, std::string_view what) {
  const int64_t wanted = round_up(bytes, Arena::kAlignment);
  if (wanted > kSlabBytes) {
    INFERD_TRY(Buffer buffer, device_.allocate(wanted, what));
    auto own = std::make_shared<Buffer>(std::move(buffer));
    auto* data = static_cast<uint8_t*>(own->data());
    return SlabPart{std::move(own), data, bytes};
  }
  std::shared_ptr<Buffer> slab = slab_.lock();
  if (slab == nullptr || used_ + wanted > slab->bytes()) {
    INFERD_TRY(Buffer buffer, device_.allocate(kSlabBytes, what));
    slab = std::make_shared<Buffer>(std::move(buffer));
    slab_ = slab;
    used_ = 0;
  }
  auto* data = static_cast<uint8_t*>(slab->data()) + used_;
  used_ += wanted;
  return SlabPart{std::move(slab), data, bytes};
}

}  // namespace inferd::cpu
