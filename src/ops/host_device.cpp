#include "ops/host_device.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/strings.h"

namespace inferd {
namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;

// Buffers of at least one huge page start on a huge page boundary, so that the kernel can use them from the
// first byte.
int64_t mapping_bytes(int64_t bytes) {
  return bytes >= kHugePage ? round_up(bytes, kHugePage) : round_up(bytes, 4096);
}

void free_mapping(void* data, int64_t bytes) {
  ::munmap(data, static_cast<size_t>(mapping_bytes(bytes)));
}

}  // namespace

Result<Buffer> HostDevice::allocate(int64_t bytes, std::string_view what) {
  INFERD_CHECK(bytes >= 0, what, ": ", bytes, " bytes");
  if (bytes == 0) return Buffer();
  const int64_t wanted = mapping_bytes(bytes);
  const int64_t slack = wanted >= kHugePage ? kHugePage : 0;
  void* mapping = ::mmap(nullptr, static_cast<size_t>(wanted + slack), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    return Error{.code = Code::mem_alloc,
                 .detail = cat(human_bytes(bytes), " for ", what, " (", std::strerror(errno), ")")};
  }
  auto* begin = static_cast<std::byte*>(mapping);
  if (slack > 0) {
    const auto address = reinterpret_cast<uintptr_t>(begin);
    const auto head = static_cast<int64_t>((address + kHugePage - 1) / kHugePage * kHugePage - address);
    if (head > 0) ::munmap(begin, static_cast<size_t>(head));
    if (head < slack) ::munmap(begin + head + wanted, static_cast<size_t>(slack - head));
    begin += head;
    ::madvise(begin, static_cast<size_t>(wanted), MADV_HUGEPAGE);
  }
  return Buffer(begin, bytes, free_mapping);
}

void HostDevice::upload(void* device, const void* host, int64_t bytes) {
  if (bytes > 0) std::memcpy(device, host, static_cast<size_t>(bytes));
}

void HostDevice::download(void* host, const void* device, int64_t bytes) {
  if (bytes > 0) std::memcpy(host, device, static_cast<size_t>(bytes));
}

void HostDevice::wait(uint64_t mark) {
  INFERD_CHECK(mark <= mark_, "mark ", mark, " was never recorded");
}

std::unique_ptr<Graph> HostDevice::capture(const std::function<void()>&) {
  return nullptr;
}

void HostDevice::replay(Graph&) {
  INFERD_CHECK(false, "the host device captures no graphs");
}

}  // namespace inferd
