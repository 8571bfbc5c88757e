#include "hub/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace inferd {

Error write_error(int error_number, const std::string& path) {
  Error error;
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      error.code = Code::io_disk_full;
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      error.code = Code::io_permission;
      break;
    case ENOENT:
      error.code = Code::io_not_found;
      break;
    default:
      error.code = Code::io_write;
      break;
  }
  error.detail = std::strerror(error_number);
  error.where = path;
  return error;
}

Result<AtomicFile> AtomicFile::create(std::string temporary_path, std::string final_path) {
  const int fd = ::open(temporary_path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return write_error(errno, temporary_path);
  return AtomicFile(std::move(temporary_path), std::move(final_path), fd);
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : temporary_path_(std::move(other.temporary_path_)),
      final_path_(std::move(other.final_path_)),
      fd_(std::exchange(other.fd_, -1)) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  std::swap(temporary_path_, other.temporary_path_);
  std::swap(final_path_, other.final_path_);
  std::swap(fd_, other.fd_);
  return *this;
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_path_.c_str());
}

Status AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return write_error(errno, final_path_);
    }
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return {};
}

Status AtomicFile::commit() {
  if (::fsync(fd_) != 0) return write_error(errno, final_path_);
  if (::rename(temporary_path_.c_str(), final_path_.c_str()) != 0) return write_error(errno, final_path_);
  ::close(std::exchange(fd_, -1));
  return flush_folder(std::filesystem::path(final_path_).parent_path().string());
}

Status flush_folder(const std::string& folder) {
  const std::string path = folder.empty() ? "." : folder;
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return write_error(errno, path);
  const int failed = ::fsync(fd) != 0 ? errno : 0;
  ::close(fd);
  if (failed != 0) return write_error(failed, path);
  return {};
}

}  // namespace inferd
