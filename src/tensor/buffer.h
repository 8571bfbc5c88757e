// Buffer owns one piece of device memory; Arena cuts a buffer into named parts at load.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/arithmetic.h"
#include "base/check.h"

namespace inferd {

class Buffer {
 public:
  using Free = void (*)(void* data, int64_t bytes);

  Buffer() = default;
  Buffer(void* data, int64_t bytes, Free free) : data_(data), bytes_(bytes), free_(free) {}
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)),
        free_(other.free_) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(free_, other.free_);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (data_ != nullptr) free_(data_, bytes_);
  }

  void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  int64_t bytes_ = 0;
  Free free_ = nullptr;
};

// Bump allocation inside a buffer, every part aligned to 64 bytes. Two passes: with no buffer it only adds up
// sizes, so the same code plans and places.
class Arena {
 public:
  static constexpr int64_t kAlignment = 64;

  Arena() = default;
  explicit Arena(const Buffer& buffer)
      : base_(static_cast<std::byte*>(buffer.data())), limit_(buffer.bytes()) {}

  template <typename T>
  T* take(int64_t count) {
    const int64_t begin = round_up(used_, kAlignment);
    used_ = begin + count * static_cast<int64_t>(sizeof(T));
    if (base_ == nullptr) return nullptr;
    INFERD_CHECK(used_ <= limit_, "arena of ", limit_, " bytes is too small for ", used_);
    return reinterpret_cast<T*>(base_ + begin);
  }

  int64_t used() const { return used_; }

 private:
  std::byte* base_ = nullptr;
  int64_t limit_ = 0;
  int64_t used_ = 0;
};

}  // namespace inferd
