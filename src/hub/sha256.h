// SHA-256 (FIPS 180-4) of bytes that arrive in pieces, as lower-case hexadecimal. The arithmetic is
// OpenSSL's.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

struct evp_md_ctx_st;

namespace inferd {

// One digest, one thread at a time.
class Sha256 {
 public:
  Sha256();
  void update(std::span<const std::byte> bytes);
  // The digest of everything given so far, 64 characters; nothing may be added afterwards.
  std::string finish();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

std::string sha256_hex(std::span<const std::byte> bytes);

// E-IO-001, -002, -003 when the file cannot be read.
Result<std::string> sha256_of_file(const std::string& path);

}  // namespace inferd
