#include "base/mmap.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/strings.h"

namespace inferd {
namespace {

Error open_error(const std::string& path, int number) {
  Error error;
  error.code = number == ENOENT || number == ENOTDIR ? Code::io_not_found
               : number == EACCES || number == EPERM ? Code::io_permission
                                                     : Code::io_read;
  if (number != ENOENT && error.code != Code::io_permission) error.detail = std::strerror(number);
  error.where = path;
  return error;
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return open_error(path, errno);
  struct stat info{};
  if (::fstat(fd, &info) != 0) {
    const int number = errno;
    ::close(fd);
    return open_error(path, number);
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(fd);
    return Error{.code = Code::io_read,
                 .detail = S_ISDIR(info.st_mode) ? "it is a folder" : "it is not a regular file",
                 .where = path};
  }
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) {
    ::close(fd);
    return MappedFile(path, nullptr, 0);
  }
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  const int number = errno;
  ::close(fd);
  if (data == MAP_FAILED) return open_error(path, number);
  return MappedFile(path, static_cast<const std::byte*>(data), size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::release(int64_t offset, int64_t length) const {
  const int64_t page = ::sysconf(_SC_PAGESIZE);
  const int64_t begin = (offset + page - 1) / page * page;
  const int64_t end = (offset + length) / page * page;
  if (data_ == nullptr || end <= begin) return;
  ::madvise(const_cast<std::byte*>(data_) + begin, static_cast<size_t>(end - begin), MADV_DONTNEED);
}

void MappedFile::prefetch(int64_t offset, int64_t length) const {
  const int64_t page = ::sysconf(_SC_PAGESIZE);
  const int64_t begin = offset / page * page;
  if (data_ == nullptr || length <= 0) return;
  ::madvise(const_cast<std::byte*>(data_) + begin, static_cast<size_t>(offset + length - begin),
            MADV_WILLNEED);
}

}  // namespace inferd
