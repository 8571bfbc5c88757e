#include "hub/test_web.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "base/check.h"
#include "base/json.h"
#include "base/strings.h"
#include "hub/sha256.h"
#include "hub/test_wheel.h"

namespace inferd::testing_hub {
namespace {

constexpr int kTickMs = 20;

struct FreeKey {
  void operator()(EVP_PKEY* key) const { ::EVP_PKEY_free(key); }
};
struct FreeCertificate {
  void operator()(X509* certificate) const { ::X509_free(certificate); }
};
using Key = std::unique_ptr<EVP_PKEY, FreeKey>;
using Certificate = std::unique_ptr<X509, FreeCertificate>;

void add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  ::X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = ::X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  INFERD_CHECK(extension != nullptr, "extension ", value);
  ::X509_add_ext(certificate, extension, -1);
  ::X509_EXTENSION_free(extension);
}

Certificate make_certificate(EVP_PKEY* key, const char* name, int64_t serial, long seconds, X509* issuer,
                             EVP_PKEY* issuer_key, const std::string& alternative_names) {
  Certificate made(::X509_new());
  ::X509_set_version(made.get(), 2);
  ::ASN1_INTEGER_set_int64(::X509_get_serialNumber(made.get()), serial);
  ::X509_gmtime_adj(::X509_getm_notBefore(made.get()), -7200);
  ::X509_gmtime_adj(::X509_getm_notAfter(made.get()), seconds);
  ::X509_set_pubkey(made.get(), key);
  ::X509_NAME_add_entry_by_txt(::X509_get_subject_name(made.get()), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name), -1, -1, 0);
  X509* signer = issuer == nullptr ? made.get() : issuer;
  ::X509_set_issuer_name(made.get(), ::X509_get_subject_name(signer));
  add_extension(made.get(), signer, NID_basic_constraints,
                issuer == nullptr ? "critical,CA:TRUE" : "CA:FALSE");
  if (!alternative_names.empty()) add_extension(made.get(), signer, NID_subject_alt_name, alternative_names);
  INFERD_CHECK(::X509_sign(made.get(), issuer_key, EVP_sha256()) > 0, "X509_sign");
  return made;
}

bool ready(int fd, short events, int timeout_ms) {
  pollfd waiting{.fd = fd, .events = events, .revents = 0};
  return ::poll(&waiting, 1, timeout_ms) > 0;
}

ssize_t receive(int fd, ssl_st* tls, char* bytes, size_t size) {
  return tls != nullptr ? ::SSL_read(tls, bytes, static_cast<int>(size)) : ::recv(fd, bytes, size, 0);
}

WebRequest parse_request(std::string_view text) {
  WebRequest request;
  const std::vector<std::string_view> lines = split(text, '\n');
  const std::vector<std::string_view> words = split(trim(lines[0]), ' ');
  if (words.size() == 3) {
    request.method = words[0];
    request.target = words[1];
  }
  for (size_t i = 1; i < lines.size(); ++i) {
    const size_t colon = lines[i].find(':');
    if (colon == std::string_view::npos) continue;
    request.headers.emplace_back(to_lower_ascii(lines[i].substr(0, colon)), trim(lines[i].substr(colon + 1)));
  }
  return request;
}

}  // namespace

struct TestAuthority::Made {
  Key key{::EVP_EC_gen("P-256")};
  Certificate root;
};

TestAuthority::TestAuthority() : made_(std::make_unique<Made>()) {
  made_->root =
      make_certificate(made_->key.get(), "a throw-away root", 1, 7200, nullptr, made_->key.get(), "");
}
TestAuthority::~TestAuthority() = default;

std::string TestAuthority::pem() const {
  BIO* memory = ::BIO_new(::BIO_s_mem());
  ::PEM_write_bio_X509(memory, made_->root.get());
  char* bytes = nullptr;
  const long size = ::BIO_get_mem_data(memory, &bytes);
  std::string text(bytes, static_cast<size_t>(size));
  ::BIO_free(memory);
  return text;
}

std::shared_ptr<ssl_ctx_st> TestAuthority::issue(const std::string& names, long seconds,
                                                 int most_version) const {
  const Key key(::EVP_EC_gen("P-256"));
  const Certificate leaf =
      make_certificate(key.get(), "a server", 2, seconds, made_->root.get(), made_->key.get(), names);
  std::shared_ptr<ssl_ctx_st> context(::SSL_CTX_new(::TLS_server_method()), ::SSL_CTX_free);
  INFERD_CHECK(::SSL_CTX_use_certificate(context.get(), leaf.get()) == 1, "certificate");
  INFERD_CHECK(::SSL_CTX_use_PrivateKey(context.get(), key.get()) == 1, "key");
  if (most_version != 0) {
    ::SSL_CTX_set_security_level(context.get(), 0);  // else the old versions have no ciphers
    ::SSL_CTX_set_min_proto_version(context.get(), 0);
    ::SSL_CTX_set_max_proto_version(context.get(), most_version);
  }
  return context;
}

std::string WebRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

int64_t WebRequest::range_begin() const {
  const std::string range = header("range");
  if (!range.starts_with("bytes=") || !range.ends_with('-')) return -1;
  return parse_int(std::string_view(range).substr(6, range.size() - 7)).value_or(-1);
}

bool WebReply::send(std::string_view bytes) {
  while (!bytes.empty()) {
    if (stop_) return false;
    if (!ready(fd_, POLLOUT, kTickMs)) continue;
    const size_t size = std::min<size_t>(bytes.size(), 16384);
    const ssize_t sent = tls_ != nullptr ? ::SSL_write(tls_, bytes.data(), static_cast<int>(size))
                                         : ::send(fd_, bytes.data(), size, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

void WebReply::stall() const {
  std::array<char, 256> ignored;
  while (!stop_) {
    if (ready(fd_, POLLIN, kTickMs) && ::recv(fd_, ignored.data(), ignored.size(), 0) <= 0) return;
  }
}

void WebReply::relay(int port) {
  const int peer = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  INFERD_CHECK(::connect(peer, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0, "relay");
  send("HTTP/1.1 200 Connection established\r\n\r\n");
  std::array<char, 65536> bytes;
  while (!stop_) {
    std::array<pollfd, 2> both{pollfd{fd_, POLLIN, 0}, pollfd{peer, POLLIN, 0}};
    if (::poll(both.data(), both.size(), kTickMs) <= 0) continue;
    const bool from_client = both[0].revents != 0;
    const ssize_t got = ::recv(from_client ? fd_ : peer, bytes.data(), bytes.size(), 0);
    if (got <= 0) break;
    if (::send(from_client ? peer : fd_, bytes.data(), static_cast<size_t>(got), MSG_NOSIGNAL) != got) break;
  }
  ::close(peer);
}

WebServer::WebServer(Handler handler, std::shared_ptr<ssl_ctx_st> tls)
    : handler_(std::move(handler)), tls_(std::move(tls)) {
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes with write(), on both sides
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  INFERD_CHECK(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), size) == 0 &&
                   ::listen(listener_, 64) == 0 &&
                   ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0,
               "a port on loopback");
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_all(); });
}

WebServer::~WebServer() {
  stop_ = true;
  acceptor_.join();
  for (std::thread& thread : threads_) thread.join();
  ::close(listener_);
}

std::string WebServer::url(std::string_view host) const {
  return cat(tls_ ? "https://" : "http://", host, ":", port_);
}

std::vector<WebRequest> WebServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void WebServer::accept_all() {
  while (!stop_) {
    if (!ready(listener_, POLLIN, kTickMs)) continue;
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    const std::lock_guard lock(mutex_);
    threads_.emplace_back([this, fd] { serve(fd); });
  }
}

void WebServer::serve(int fd) {
  const timeval patience{.tv_sec = 20, .tv_usec = 0};  // a client of a failed test must not hold us for ever
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ssl_st* tls = tls_ ? ::SSL_new(tls_.get()) : nullptr;
  if (tls != nullptr) ::SSL_set_fd(tls, fd);
  if (tls == nullptr || ::SSL_accept(tls) == 1) {
    std::string text;
    std::array<char, 4096> bytes;
    while (!stop_ && text.find("\r\n\r\n") == std::string::npos) {
      if ((tls == nullptr || ::SSL_pending(tls) == 0) && !ready(fd, POLLIN, kTickMs)) continue;
      const ssize_t got = receive(fd, tls, bytes.data(), bytes.size());
      if (got <= 0) break;
      text.append(bytes.data(), static_cast<size_t>(got));
      if (text.front() == '\x16') text = "GET /tls HTTP/1.1\r\n\r\n";  // a TLS client where none is expected
    }
    if (text.find("\r\n\r\n") != std::string::npos) {
      const WebRequest request = parse_request(text);
      {
        const std::lock_guard lock(mutex_);
        requests_.push_back(request);
      }
      WebReply reply(fd, tls, stop_);
      handler_(request, reply);
    }
    if (tls != nullptr) ::SSL_shutdown(tls);
  }
  ::SSL_free(tls);
  ::shutdown(fd, SHUT_WR);
  ::close(fd);
}

std::string web_answer(std::string_view status, std::string_view headers, std::string_view body) {
  return cat("HTTP/1.1 ", status, "\r\nContent-Length: ", body.size(), "\r\nConnection: close\r\n", headers,
             "\r\n", body);
}

std::string FakeFile::hash() const {
  if (lfs) return sha256_text(content);
  GitBlobHash hash(static_cast<int64_t>(content.size()));
  hash.update(std::as_bytes(std::span(content)));
  return hash.finish();
}

std::string FakeFile::etag() const {
  return cat("cdn-", hash().substr(0, 8));
}

std::string FakeRepo::listing() const {
  Json::Array siblings;
  for (const FakeFile& file : files) {
    const auto size = static_cast<int64_t>(file.content.size());
    Json::Object sibling{
        {"rfilename", file.path}, {"size", size}, {"blobId", file.lfs ? std::string(40, 'b') : file.hash()}};
    if (file.lfs)
      sibling.emplace_back("lfs",
                           Json::Object{{"sha256", file.hash()}, {"size", size}, {"pointerSize", 133}});
    siblings.emplace_back(std::move(sibling));
  }
  return to_json(
      Json::Object{{"id", id}, {"sha", commit}, {"gated", false}, {"siblings", std::move(siblings)}});
}

const FakeFile* FakeRepo::find(std::string_view target) const {
  for (const FakeFile& file : files) {
    if (target == cat("/", id, "/resolve/", commit, "/", file.path) || target == cat("/cdn/", file.hash()))
      return &file;
  }
  return nullptr;
}

std::string content_answer(const WebRequest& request, const std::string& content, std::string_view etag) {
  const int64_t begin = request.range_begin();
  const std::string tag = cat("ETag: \"", etag, "\"\r\nAccept-Ranges: bytes\r\n");
  const std::string condition = request.header("if-range");
  if (begin < 0 || (!condition.empty() && condition != cat("\"", etag, "\"")))
    return web_answer("200 OK", tag, content);
  const auto size = static_cast<int64_t>(content.size());
  if (begin >= size)
    return web_answer("416 Range Not Satisfiable", cat("Content-Range: bytes */", size, "\r\n"), "");
  return web_answer("206 Partial Content",
                    cat(tag, "Content-Range: bytes ", begin, "-", size - 1, "/", size, "\r\n"),
                    std::string_view(content).substr(static_cast<size_t>(begin)));
}

void FakeRepo::serve(const WebRequest& request, WebReply& reply) const {
  if (request.target == cat("/api/models/", id, "/revision/main?blobs=true")) {
    reply.send(web_answer("200 OK", "Content-Type: application/json\r\n", listing()));
    return;
  }
  const FakeFile* file = find(request.target);
  if (file == nullptr) {
    reply.send(web_answer("404 Not Found", "X-Error-Code: EntryNotFound\r\n", ""));
  } else if (file->lfs && !request.target.starts_with("/cdn/")) {
    reply.send(
        web_answer("302 Found",
                   cat("Location: /cdn/", file->hash(), "\r\nX-Linked-ETag: \"", file->hash(),
                       "\"\r\nX-Linked-Size: ", file->content.size(), "\r\nX-Repo-Commit: ", commit, "\r\n"),
                   ""));
  } else {
    reply.send(content_answer(request, file->content, file->etag()));
  }
}

std::string noise(size_t bytes, uint64_t seed) {
  std::string text(bytes, '\0');
  uint64_t state = seed * 0x9e3779b97f4a7c15 + 1;
  for (char& c : text) {  // xorshift64
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    c = static_cast<char>(state >> 32 & 0xff);
  }
  return text;
}

}  // namespace inferd::testing_hub
