#include "hub/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "hub/atomic_file.h"

namespace inferd {

FileLock::~FileLock() {
  if (fd_ < 0) return;
  if (after_ == After::remove) ::unlink(path_.c_str());
  ::close(fd_);
}

// A lock file may go away with the lock, so whoever gets the lock makes sure that it is on the file which has
// the name now.
Result<FileLock> FileLock::acquire(std::string path, After after, const std::function<Status()>& waiting) {
  for (;;) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) return write_error(errno, path);
    const int failed = ::flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
    struct stat held{};
    struct stat named{};
    if (failed == 0 && ::fstat(fd, &held) == 0 && ::stat(path.c_str(), &named) == 0 &&
        held.st_ino == named.st_ino) {
      return FileLock(std::move(path), after, fd);
    }
    ::close(fd);
    if (failed != 0 && failed != EWOULDBLOCK && failed != EINTR) return write_error(failed, path);
    INFERD_TRY_STATUS(waiting());
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

}  // namespace inferd
