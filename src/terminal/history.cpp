#include "terminal/history.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/strings.h"
#include "base/utf8.h"

namespace inferd {
namespace {

// Longer entries, pasted ones mostly, are kept by this program only.
constexpr size_t kLongestEntry = size_t{64} << 10;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

Error failed(Code code, const std::string& path) {
  if (errno == EACCES || errno == EPERM || errno == EROFS) code = Code::io_permission;
  if (errno == ENOSPC || errno == EDQUOT) code = Code::io_disk_full;
  return Error{.code = code, .detail = std::strerror(errno), .where = path};
}

// Opened and locked, and still the file of that name: another program may have replaced it meanwhile.
Result<Descriptor> open_locked(const std::string& path) {
  while (true) {
    Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
    struct stat opened{};
    struct stat named{};
    if (file.get() < 0 || ::fstat(file.get(), &opened) != 0) return failed(Code::io_write, path);
    if (!S_ISREG(opened.st_mode))
      return Error{.code = Code::io_read, .detail = "it is no regular file", .where = path};
    while (::flock(file.get(), LOCK_EX) != 0) {
      if (errno != EINTR) return failed(Code::io_write, path);
    }
    if (::stat(path.c_str(), &named) != 0 || named.st_ino != opened.st_ino || named.st_dev != opened.st_dev)
      continue;
    if ((opened.st_mode & 077) != 0 && ::fchmod(file.get(), 0600) != 0) return failed(Code::io_write, path);
    return file;
  }
}

Status write_all(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failed(Code::io_write, path);
    text.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

Result<std::string> read_all(int fd, const std::string& path) {
  std::string text;
  std::array<char, 65536> piece;
  while (true) {
    const ssize_t got = ::read(fd, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(Code::io_read, path);
    if (got == 0) return text;
    text.append(piece.data(), static_cast<size_t>(got));
  }
}

std::string to_line(const std::string& entry) {
  std::string line;
  for (const char c : entry) {
    if (c == '\n') {
      line += "\\n";
    } else {
      if (c == '\\') line.push_back('\\');
      line.push_back(c);
    }
  }
  return line + "\n";
}

std::string from_line(std::string_view line) {
  std::string entry;
  for (size_t i = 0; i < line.size(); ++i) {
    const bool escaped = line[i] == '\\' && i + 1 < line.size();
    if (escaped) ++i;
    entry.push_back(escaped && line[i] == 'n' ? '\n' : line[i]);
  }
  return replace_invalid_utf8(entry);
}

}  // namespace

Status History::load() {
  const std::string path = std::exchange(path_, {});
  if (path.empty()) return {};
  std::error_code failure;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const bool made = std::filesystem::create_directories(folder, failure);
  if (made) std::filesystem::permissions(folder, std::filesystem::perms::owner_all, failure);
  if (failure) {
    errno = failure.value();
    return failed(Code::io_write, folder.string());
  }
  INFERD_TRY(const Descriptor file, open_locked(path));
  INFERD_TRY(const std::string content, read_all(file.get(), path));
  for (const std::string_view line : split(content, '\n')) {
    if (!line.empty()) entries_.push_back(from_line(line));
  }
  const bool grown = entries_.size() > 2 * limit_;
  if (entries_.size() > limit_) {
    entries_.erase(entries_.begin(), entries_.end() - static_cast<std::ptrdiff_t>(limit_));
  }
  if (grown) {
    std::string kept;
    for (const std::string& entry : entries_) kept += to_line(entry);
    const std::string beside = cat(path, ".", ::getpid());
    const Descriptor fresh(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (fresh.get() < 0) return failed(Code::io_write, beside);
    Status written = write_all(fresh.get(), kept, beside);
    if (written.ok() && ::rename(beside.c_str(), path.c_str()) != 0) written = failed(Code::io_write, path);
    if (!written.ok()) {
      ::unlink(beside.c_str());
      return written;
    }
  }
  path_ = path;
  return {};
}

Status History::add(const std::string& entry) {
  if (trim(entry).empty() || (!entries_.empty() && entries_.back() == entry)) return {};
  entries_.push_back(entry);
  if (path_.empty() || entry.size() > kLongestEntry) return {};
  Result<Descriptor> file = open_locked(path_);
  Status written =
      file.ok() ? write_all(file->get(), to_line(entry), path_) : Status(std::move(file).error());
  if (!written.ok()) path_.clear();
  return written;
}

}  // namespace inferd
