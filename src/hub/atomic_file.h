// A file that appears under its name whole or not at all: written under a temporary name, flushed to the
// disk, renamed, and the folder flushed as well. A failed flush is final: the kernel may have dropped the
// pages, so it is not repeated.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/result.h"

namespace inferd {

// The error for a failed call on `path`: E-IO-004 no space or quota, E-IO-002 not permitted or read-only,
// E-IO-001 a missing folder, else E-IO-006.
Error write_error(int error_number, const std::string& path);

// After it a rename or a new name in `folder` outlives a loss of power. An empty text is the current folder.
Status flush_folder(const std::string& folder);

class AtomicFile {
 public:
  // Makes `temporary_path` (it must not exist), which must lie on the file system of `final_path`. Mode 644
  // less umask.
  static Result<AtomicFile> create(std::string temporary_path, std::string final_path);

  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();  // without commit(): the temporary file is removed

  Status write(std::span<const std::byte> bytes);
  // After a success the file has its final name, also after a loss of power; what had that name before is
  // replaced.
  Status commit();

 private:
  AtomicFile(std::string temporary_path, std::string final_path, int fd)
      : temporary_path_(std::move(temporary_path)), final_path_(std::move(final_path)), fd_(fd) {}

  std::string temporary_path_;
  std::string final_path_;
  int fd_ = -1;
};

}  // namespace inferd
