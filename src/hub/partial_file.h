// A file that grows over several tries, also of several processes, until it is whole: NAME.incomplete beside
// its final place, where huggingface_hub before 1.0 kept its parts too. What is here is the beginning of the
// file as far as anybody knows; the hash of the whole decides. Called with the file's lock held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "hub/sha256.h"

namespace inferd {

class PartialFile {
 public:
  // Opens or makes PATH.incomplete. A part longer than `bytes` is no part of this file and is dropped.
  // `digest` makes an empty digest of the right kind. E-IO-002, -004, -006.
  static Result<std::unique_ptr<PartialFile>> open(std::string path, int64_t bytes,
                                                   std::function<Digest()> digest);
  ~PartialFile();  // the part stays
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  // Bytes that are here and in the digest; less than the file's own until read_back() is done.
  int64_t size() const { return size_; }
  int64_t missing() const { return bytes_ - size_; }
  // Adds the bytes that an earlier process left to the digest; `each` is called for every mebibyte with the
  // number of bytes, and may stop it.
  Status read_back(const std::function<Status(int64_t)>& each);

  // Appends, and leaves nothing in memory.
  Status write(std::span<const std::byte> bytes);
  // Drops what is here and begins again.
  Status restart();

  // The ETag with which the part came, for If-Range; empty when unknown.
  const std::string& etag() const { return etag_; }
  Status set_etag(const std::string& etag);

  // The digest of the whole file; once.
  std::string finish_digest();
  // Flushed, under its final name, and the folder flushed. E-IO-005 when somebody else wrote to it.
  Status commit();
  // Removes the part: its bytes are wrong.
  Status discard();

 private:
  PartialFile(std::string path, int64_t bytes, std::function<Digest()> digest, int fd);
  std::string part_path() const;
  std::string etag_path() const;

  std::string path_;
  int64_t bytes_;
  std::function<Digest()> make_digest_;
  Digest digest_;
  int fd_;
  int64_t size_ = 0;
  std::string etag_;
};

}  // namespace inferd
