// SHA-256 (FIPS 180-4), and git's name for a file, of bytes that arrive in pieces, as lower-case hexadecimal.
// The arithmetic is OpenSSL's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

struct evp_md_ctx_st;

namespace inferd {

// One digest, one thread at a time.
class Digest {
 public:
  void update(std::span<const std::byte> bytes);
  // The digest of everything given so far, in hexadecimal; nothing may be added afterwards.
  std::string finish();

 protected:
  enum class Kind { sha1, sha256 };
  explicit Digest(Kind kind);

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

class Sha256 : public Digest {
 public:
  Sha256() : Digest(Kind::sha256) {}
};

// The name git gives to a file of `size` bytes: the SHA-1 of "blob SIZE", a zero byte and the bytes.
class GitBlobHash : public Digest {
 public:
  explicit GitBlobHash(int64_t size);
};

std::string sha256_hex(std::span<const std::byte> bytes);

// E-IO-001, -002, -003 when the file cannot be read.
Result<std::string> sha256_of_file(const std::string& path);

}  // namespace inferd
