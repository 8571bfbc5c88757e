// One process at a time, on this machine, by flock() on a file.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "base/result.h"

namespace inferd {

class FileLock {
 public:
  enum class After { remove, keep };  // what becomes of the lock file; `keep` where other programs use it too

  // Waits until nobody else has it; `waiting` is called ten times a second until then, and ends the wait with
  // an error of its own. The file is made when it is missing; its folder must be there.
  static Result<FileLock> acquire(std::string path, After after, const std::function<Status()>& waiting);

  FileLock(FileLock&& other) noexcept
      : path_(std::move(other.path_)), after_(other.after_), fd_(std::exchange(other.fd_, -1)) {}
  FileLock& operator=(FileLock&&) = delete;
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();

 private:
  FileLock(std::string path, After after, int fd) : path_(std::move(path)), after_(after), fd_(fd) {}
  std::string path_;
  After after_;
  int fd_ = -1;
};

}  // namespace inferd
