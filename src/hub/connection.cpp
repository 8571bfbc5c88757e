#include "hub/connection.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <future>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"

namespace inferd {
namespace {

constexpr int64_t kTickMs = 100;

// Where Debian, Fedora, openSUSE, RHEL and Alpine keep their roots.
constexpr std::string_view kBundles[] = {
    "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem"};

int64_t now_ms() {
  return monotonic_clock().now_ns() / 1000000;
}

Error network(std::string detail) {
  return {.code = Code::hub_network, .detail = std::move(detail)};
}

bool cancelled(const Patience& patience) {
  return patience.cancel != nullptr && patience.cancel->load();
}

// Between two slices of a wait.
Status tick(const Patience& patience) {
  if (cancelled(patience)) return Error{.code = Code::interrupted, .detail = "stopped"};
  if (patience.tick) patience.tick();
  return {};
}

struct Address {
  sockaddr_storage bytes{};
  socklen_t length = 0;
};

struct Found {
  int failed = 0;  // what getaddrinfo() gave
  std::vector<Address> addresses;
};

Found look_up(const std::string& host, const std::string& port, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  Found found{.failed = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &list)};
  for (const addrinfo* at = found.failed == 0 ? list : nullptr; at != nullptr; at = at->ai_next) {
    Address address{.length = at->ai_addrlen};
    std::memcpy(&address.bytes, at->ai_addr, at->ai_addrlen);
    found.addresses.push_back(address);
  }
  if (found.failed == 0) ::freeaddrinfo(list);
  return found;
}

// getaddrinfo() cannot be stopped, so it runs on a thread that nobody waits for when time is up.
Result<std::vector<Address>> resolve(const std::string& host, int port, int timeout_ms,
                                     const Patience& patience) {
  const std::string service = cat(port);
  Found found = look_up(host, service, AI_NUMERICHOST);
  if (found.failed == 0) return std::move(found.addresses);
  auto task =
      std::make_shared<std::packaged_task<Found()>>([host, service] { return look_up(host, service, 0); });
  std::future<Found> future = task->get_future();
  std::thread([task] { (*task)(); }).detach();
  const int64_t end = now_ms() + timeout_ms;
  while (future.wait_for(std::chrono::milliseconds(kTickMs)) != std::future_status::ready) {
    INFERD_TRY_STATUS(tick(patience));
    if (now_ms() >= end) return network(cat("no answer from the name service for ", printable(host)));
  }
  found = future.get();
  if (found.failed != 0)
    return network(cat("cannot look up ", printable(host), ": ", ::gai_strerror(found.failed)));
  return std::move(found.addresses);
}

std::string openssl_reason() {
  const unsigned long code = ::ERR_peek_last_error();
  const char* reason = code == 0 ? nullptr : ::ERR_reason_error_string(code);
  return reason == nullptr ? "unknown reason" : reason;
}

}  // namespace

Status pause(int64_t ms, const Patience& patience) {
  const int64_t end = now_ms() + ms;
  for (;;) {
    INFERD_TRY_STATUS(tick(patience));
    const int64_t left = end - now_ms();
    if (left <= 0) return {};
    std::this_thread::sleep_for(std::chrono::milliseconds(std::min(left, kTickMs)));
  }
}

void TlsRoots::Free::operator()(ssl_ctx_st* context) const {
  ::SSL_CTX_free(context);
}

Result<TlsRoots> TlsRoots::load(const std::string& file) {
  std::string path = file;
  if (path.empty()) {
    const auto* const found = std::ranges::find_if(kBundles, [](std::string_view bundle) {
      std::error_code unreadable;
      return std::filesystem::is_regular_file(bundle, unreadable);
    });
    if (found == std::end(kBundles))
      return Error{.code = Code::hub_tls, .detail = "this system has no bundle of root certificates"};
    path = *found;
  }
  // The host's openssl.cnf may name engines and providers to load; nothing of that is wanted here.
  INFERD_CHECK(::OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr) == 1);
  TlsRoots roots;
  roots.context_.reset(::SSL_CTX_new(::TLS_client_method()));
  INFERD_CHECK(roots.context_ != nullptr, "SSL_CTX_new");
  INFERD_CHECK(::SSL_CTX_set_min_proto_version(roots.context(), TLS1_2_VERSION) == 1);
  ::SSL_CTX_set_verify(roots.context(), SSL_VERIFY_PEER, nullptr);
  ::SSL_CTX_set_mode(roots.context(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // A peer that just closes is an end like any other: whether the body is whole, HTTP says.
  ::SSL_CTX_set_options(roots.context(), SSL_OP_IGNORE_UNEXPECTED_EOF);
  ::ERR_clear_error();
  if (::SSL_CTX_load_verify_file(roots.context(), path.c_str()) != 1) {
    return Error{.code = Code::hub_tls,
                 .detail = cat("cannot read root certificates: ", openssl_reason()),
                 .where = path};
  }
  return roots;
}

void Connection::Free::operator()(ssl_st* tls) const {
  ::SSL_free(tls);
}

Connection::~Connection() {
  tls_.reset();
  ::close(fd_);
}

Result<std::unique_ptr<Connection>> Connection::open(const std::string& host, int port, int timeout_ms,
                                                     const Patience& patience) {
  INFERD_TRY(const std::vector<Address> addresses, resolve(host, port, timeout_ms, patience));
  Error last = network(cat(printable(host), " has no address"));
  for (const Address& address : addresses) {
    const int fd = ::socket(address.bytes.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
      last = network(cat("cannot open a socket: ", std::strerror(errno)));
      continue;
    }
    std::unique_ptr<Connection> connection(new Connection(fd, patience));
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    int failed = 0;
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address.bytes), address.length) != 0) failed = errno;
    if (failed == EINPROGRESS) {
      const Status waited = connection->wait(POLLOUT, timeout_ms, "connecting");
      if (!waited.ok()) {
        if (waited.error().code == Code::interrupted) return waited.error();
        last = network(cat("no answer from ", printable(host), ":", port));
        continue;
      }
      socklen_t size = sizeof failed;
      ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &size);
    }
    if (failed == 0) return connection;
    last = network(cat("cannot connect to ", printable(host), ":", port, ": ", std::strerror(failed)));
  }
  return last;
}

Status Connection::wait(short events, int timeout_ms, std::string_view what) const {
  const int64_t end = now_ms() + timeout_ms;
  for (;;) {
    INFERD_TRY_STATUS(tick(patience_));
    const int64_t left = end - now_ms();
    pollfd waiting{.fd = fd_, .events = events, .revents = 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::clamp<int64_t>(left, 0, kTickMs)));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return network(cat(what, ": ", std::strerror(errno)));
    if (left <= 0)
      return network(cat(
          "stalled ", timeout_ms < 1000 ? human_seconds(timeout_ms / 1000.0) : cat(timeout_ms / 1000, " s")));
  }
}

Status Connection::tls_wait(int result, int timeout_ms, std::string_view what) {
  switch (::SSL_get_error(tls_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return wait(POLLIN, timeout_ms, what);
    case SSL_ERROR_WANT_WRITE:
      return wait(POLLOUT, timeout_ms, what);
    case SSL_ERROR_ZERO_RETURN:
      return network(cat(what, ": the connection was closed early"));
    case SSL_ERROR_SYSCALL:
      return network(cat(what, ": ", errno != 0 ? std::strerror(errno) : "the connection was closed early"));
    default:
      return network(cat(what, ": TLS failed: ", openssl_reason()));
  }
}

Status Connection::start_tls(const std::string& host, const TlsRoots& roots, int timeout_ms) {
  tls_.reset(::SSL_new(roots.context()));
  INFERD_CHECK(tls_ != nullptr && ::SSL_set_fd(tls_.get(), fd_) == 1, "SSL_new");
  X509_VERIFY_PARAM* expected = ::SSL_get0_param(tls_.get());
  if (::X509_VERIFY_PARAM_set1_ip_asc(expected, host.c_str()) != 1) {  // no number, so a name
    ::ERR_clear_error();
    ::X509_VERIFY_PARAM_set_hostflags(expected, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    INFERD_CHECK(::X509_VERIFY_PARAM_set1_host(expected, host.c_str(), host.size()) == 1);
    INFERD_CHECK(::SSL_set_tlsext_host_name(tls_.get(), host.c_str()) == 1);
  }
  const int64_t end = now_ms() + timeout_ms;
  for (;;) {
    ::ERR_clear_error();
    errno = 0;
    const int result = ::SSL_connect(tls_.get());
    if (result == 1) return {};
    if (const long verdict = ::SSL_get_verify_result(tls_.get()); verdict != X509_V_OK) {
      return Error{.code = Code::hub_tls,
                   .detail = cat(printable(host), ": ", ::X509_verify_cert_error_string(verdict))};
    }
    if (::SSL_get_error(tls_.get(), result) == SSL_ERROR_SSL) {
      return Error{.code = Code::hub_tls, .detail = cat(printable(host), ": ", openssl_reason())};
    }
    const int64_t left = std::max<int64_t>(0, end - now_ms());
    INFERD_TRY_STATUS(tls_wait(result, static_cast<int>(left), "the TLS handshake"));
  }
}

Status Connection::write(std::string_view bytes, int timeout_ms) {
  while (!bytes.empty()) {
    ::ERR_clear_error();
    errno = 0;
    const int size = static_cast<int>(std::min<size_t>(bytes.size(), size_t{1} << 20));
    const ssize_t sent = tls_ ? ::SSL_write(tls_.get(), bytes.data(), size)
                              : ::send(fd_, bytes.data(), static_cast<size_t>(size), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (tls_) {
      INFERD_TRY_STATUS(tls_wait(static_cast<int>(sent), timeout_ms, "sending"));
    } else if (errno == EAGAIN) {
      INFERD_TRY_STATUS(wait(POLLOUT, timeout_ms, "sending"));
    } else if (errno != EINTR) {
      return network(cat("sending: ", std::strerror(errno)));
    }
  }
  return {};
}

Result<size_t> Connection::read(std::span<char> bytes, int timeout_ms) {
  for (;;) {
    ::ERR_clear_error();
    errno = 0;
    const ssize_t got = tls_ ? ::SSL_read(tls_.get(), bytes.data(), static_cast<int>(bytes.size()))
                             : ::recv(fd_, bytes.data(), bytes.size(), 0);
    if (got > 0) {
      INFERD_TRY_STATUS(tick(patience_));  // also while bytes come without a pause
      return static_cast<size_t>(got);
    }
    if (tls_) {
      if (::SSL_get_error(tls_.get(), static_cast<int>(got)) == SSL_ERROR_ZERO_RETURN) return size_t{0};
      INFERD_TRY_STATUS(tls_wait(static_cast<int>(got), timeout_ms, "receiving"));
    } else if (got == 0) {
      return size_t{0};
    } else if (errno == EAGAIN) {
      INFERD_TRY_STATUS(wait(POLLIN, timeout_ms, "receiving"));
    } else if (errno != EINTR) {
      return network(cat("receiving: ", std::strerror(errno)));
    }
  }
}

}  // namespace inferd
