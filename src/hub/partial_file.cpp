#include "hub/partial_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/mmap.h"
#include "base/strings.h"
#include "hub/atomic_file.h"

namespace inferd {
namespace {

constexpr size_t kPiece = size_t{1} << 20;
constexpr size_t kLongestEtag = 200;

// A strong ETag as it stands in a header, else nothing.
std::string strong_etag(std::string_view text) {
  const bool plain = std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
  const bool quoted =
      text.size() > 2 && text.size() <= kLongestEtag && text.front() == '"' && text.back() == '"';
  return plain && quoted ? std::string(text) : std::string();
}

Status remove_file(const std::string& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  return write_error(errno, path);
}

}  // namespace

PartialFile::PartialFile(std::string path, int64_t bytes, std::function<Digest()> digest, int fd)
    : path_(std::move(path)),
      bytes_(bytes),
      make_digest_(std::move(digest)),
      digest_(make_digest_()),
      fd_(fd) {}

PartialFile::~PartialFile() {
  ::close(fd_);
}

std::string PartialFile::part_path() const {
  return path_ + ".incomplete";
}
std::string PartialFile::etag_path() const {
  return path_ + ".incomplete.etag";
}

Result<std::unique_ptr<PartialFile>> PartialFile::open(std::string path, int64_t bytes,
                                                       std::function<Digest()> digest) {
  const std::string part = path + ".incomplete";
  const int fd = ::open(part.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) return write_error(errno, part);
  std::unique_ptr<PartialFile> file(new PartialFile(std::move(path), bytes, std::move(digest), fd));
  struct stat info{};
  if (::fstat(fd, &info) != 0) return write_error(errno, part);
  if (info.st_size > bytes) {
    INFERD_TRY_STATUS(file->restart());
  } else if (const auto etag = MappedFile::open(file->etag_path()); etag.ok() && info.st_size > 0) {
    file->etag_ = strong_etag({reinterpret_cast<const char*>(etag->bytes().data()), etag->bytes().size()});
  }
  return file;
}

Status PartialFile::read_back(const std::function<Status(int64_t)>& each) {
  std::vector<std::byte> piece(kPiece);
  for (;;) {
    const ssize_t got = ::pread(fd_, piece.data(), piece.size(), size_);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return Error{.code = Code::io_read, .detail = write_error(errno, "").detail, .where = part_path()};
    if (got == 0) return {};
    digest_.update(std::span(piece).first(static_cast<size_t>(got)));
    size_ += got;
    INFERD_TRY_STATUS(each(got));
  }
}

Status PartialFile::write(std::span<const std::byte> bytes) {
  digest_.update(bytes);
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd_, bytes.data(), bytes.size(), size_);
    if (written < 0) {
      if (errno == EINTR) continue;
      return write_error(errno, part_path());
    }
    size_ += written;
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return {};
}

Status PartialFile::restart() {
  digest_ = make_digest_();
  size_ = 0;
  etag_.clear();
  INFERD_TRY_STATUS(remove_file(etag_path()));
  if (::ftruncate(fd_, 0) != 0) return write_error(errno, part_path());
  return {};
}

Status PartialFile::set_etag(const std::string& etag) {
  const std::string strong = strong_etag(etag);
  if (strong == etag_) return {};
  etag_ = strong;
  INFERD_TRY_STATUS(remove_file(etag_path()));
  if (strong.empty()) return {};
  INFERD_TRY_STATUS(remove_file(etag_path() + ".new"));  // a killed process may have left it
  INFERD_TRY(AtomicFile file, AtomicFile::create(etag_path() + ".new", etag_path()));
  INFERD_TRY_STATUS(file.write(std::as_bytes(std::span(strong))));
  return file.commit();
}

std::string PartialFile::finish_digest() {
  return digest_.finish();
}

Status PartialFile::commit() {
  struct stat info{};
  if (::fstat(fd_, &info) != 0) return write_error(errno, part_path());
  if (info.st_size != bytes_) {  // the digest is of what was written, not of what somebody made of it
    return Error{
        .code = Code::io_changed,
        .detail = cat("it has ", with_commas(info.st_size), " bytes, ", with_commas(bytes_), " were written"),
        .where = part_path(),
        .fix = "run the same command again, on one machine at a time"};
  }
  if (::fsync(fd_) != 0) return write_error(errno, part_path());
  // First, so that a process killed in between leaves no file that nobody would remove.
  INFERD_TRY_STATUS(remove_file(etag_path()));
  if (::rename(part_path().c_str(), path_.c_str()) != 0) return write_error(errno, path_);
  return flush_folder(std::filesystem::path(path_).parent_path().string());
}

Status PartialFile::discard() {
  INFERD_TRY_STATUS(remove_file(etag_path()));
  return remove_file(part_path());
}

}  // namespace inferd
