// A file mapped read-only. The mapping is a view of the file: if somebody truncates the file, touching the
// lost part raises SIGBUS, which apps/ turns into error E-IO-005.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace inferd {

class MappedFile {
 public:
  // E-IO-001 not found, E-IO-002 permission, E-IO-003 not a regular file or unreadable. An empty file maps to
  // no bytes.
  static Result<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  int64_t size() const { return static_cast<int64_t>(size_); }
  const std::string& path() const { return path_; }

  // Gives the pages that lie wholly inside [offset, offset + length) back to the kernel; reading them again
  // is allowed.
  void release(int64_t offset, int64_t length) const;
  // Asks the kernel to read [offset, offset + length) ahead.
  void prefetch(int64_t offset, int64_t length) const;

 private:
  MappedFile(std::string path, const std::byte* data, size_t size)
      : path_(std::move(path)), data_(data), size_(size) {}

  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace inferd
