#include "hub/sha256.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/check.h"
#include "base/mmap.h"

namespace inferd {

void Digest::Free::operator()(evp_md_ctx_st* context) const {
  EVP_MD_CTX_free(context);
}

Digest::Digest(Kind kind) {
  // The host's openssl.cnf may name providers to load; a digest needs none of them.
  INFERD_CHECK(OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr) == 1);
  context_.reset(EVP_MD_CTX_new());
  INFERD_CHECK(context_ && EVP_DigestInit_ex(context_.get(), kind == Kind::sha1 ? EVP_sha1() : EVP_sha256(),
                                             nullptr) == 1);
}

void Digest::update(std::span<const std::byte> bytes) {
  INFERD_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

std::string Digest::finish() {
  static constexpr std::string_view kHex = "0123456789abcdef";
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int length = 0;
  INFERD_CHECK(EVP_DigestFinal_ex(context_.get(), digest.data(), &length) == 1);
  std::string hex;
  for (unsigned int i = 0; i < length; ++i) {
    hex.push_back(kHex[digest[i] >> 4]);
    hex.push_back(kHex[digest[i] & 15]);
  }
  return hex;
}

GitBlobHash::GitBlobHash(int64_t size) : Digest(Kind::sha1) {
  const std::string header = cat("blob ", size, '\0');
  update(std::as_bytes(std::span(header)));
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256 digest;
  digest.update(bytes);
  return digest.finish();
}

Result<std::string> sha256_of_file(const std::string& path) {
  constexpr int64_t kPiece = int64_t{8}
                             << 20;  // given back when read: hashing a file must not raise the peak memory
  INFERD_TRY(const MappedFile file, MappedFile::open(path));
  Sha256 digest;
  for (int64_t offset = 0; offset < file.size(); offset += kPiece) {
    const int64_t length = std::min(kPiece, file.size() - offset);
    file.prefetch(offset, length);
    digest.update(file.bytes().subspan(static_cast<size_t>(offset), static_cast<size_t>(length)));
    file.release(offset, length);
  }
  return digest.finish();
}

}  // namespace inferd
