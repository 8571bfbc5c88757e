#include "server/server.h"

#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstring>
#include <utility>

#include "base/strings.h"
#include "server/shard.h"

namespace inferd {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using std::chrono::milliseconds;

constexpr int kBacklog = 1024;
constexpr int kAcceptsAtOnce = 64;
constexpr milliseconds kBackOff{50};  // when no descriptor is left
constexpr milliseconds kTick{500};
constexpr milliseconds kLastWrites{500};  // for final events, when the grace is over
constexpr std::string_view kBusyReply =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: "
    "close\r\n\r\n";

Error listen_error(Code code, const ServerOptions& options, const std::string& why) {
  return {.code = code, .detail = cat(options.host, " port ", options.port, ": ", why)};
}

Result<asio::ip::tcp::endpoint> resolve(const ServerOptions& options) {
  error_code error;
  const asio::ip::address address = asio::ip::make_address(options.host, error);
  const auto port = static_cast<uint16_t>(options.port);
  if (!error) return asio::ip::tcp::endpoint(address, port);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int failed = ::getaddrinfo(options.host.c_str(), nullptr, &hints, &found); failed != 0) {
    return listen_error(Code::net_host, options, ::gai_strerror(failed));
  }
  // Of a name with several addresses ("localhost") the IPv4 one, which clients without IPv6 reach too.
  const addrinfo* chosen = found;
  while (chosen != nullptr && chosen->ai_family != AF_INET) chosen = chosen->ai_next;
  if (chosen == nullptr) chosen = found;
  asio::ip::tcp::endpoint endpoint;
  endpoint.resize(chosen->ai_addrlen);
  std::memcpy(endpoint.data(), chosen->ai_addr, chosen->ai_addrlen);
  ::freeaddrinfo(found);
  endpoint.port(port);
  return endpoint;
}

class ServerImpl final : public Server {
 public:
  ServerImpl(ServedModel model, const ServerOptions& options, bool beyond_loopback)
      : state_(std::move(model), options, beyond_loopback), worker_(std::make_unique<TextWorker>()) {
    for (int i = 0; i < options.shards; ++i) {
      shards_.push_back(std::make_shared<Shard>(state_, *worker_));
      shards_.back()->on_idle = [this] { close_if_drained(); };
    }
    acceptor_ = std::make_unique<asio::ip::tcp::acceptor>(home().io());
    back_off_ = std::make_unique<asio::steady_timer>(home().io());
    tick_ = std::make_unique<asio::steady_timer>(home().io());
    grace_ = std::make_unique<asio::steady_timer>(home().io());
  }

  ~ServerImpl() override {
    stop();
    wait();
    worker_.reset();  // its jobs know the shards
    acceptor_.reset();
    back_off_.reset();
    tick_.reset();
    grace_.reset();
    shards_.clear();
    if (spare_ >= 0) ::close(spare_);
  }

  Status listen(ListenSocket socket) {
    error_code error;
    const auto protocol = socket.is_ipv6() ? asio::ip::tcp::v6() : asio::ip::tcp::v4();
    acceptor_->assign(protocol, socket.release(), error);
    if (!error) acceptor_->listen(kBacklog, error);
    if (!error) acceptor_->non_blocking(true, error);
    if (error) return listen_error(Code::net_port, state_.options, error.message());
    const asio::ip::tcp::endpoint bound = acceptor_->local_endpoint(error);
    port_ = bound.port();
    std::string shown = bound.address().is_unspecified() ? (bound.address().is_v6() ? "::1" : "127.0.0.1")
                                                         : bound.address().to_string();
    if (shown.find(':') != std::string::npos) shown = cat("[", shown, "]");
    state_.base_url = cat("http://", shown, ":", port_);
    spare_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    for (const auto& shard : shards_) shard->start();
    asio::post(home().io(), [this] {
      accept_next();
      tick();
    });
    return {};
  }

  int port() const override { return port_; }
  std::string base_url() const override { return state_.base_url; }
  bool draining() const override { return state_.draining.load(std::memory_order_acquire); }
  int64_t requests_in_flight() const override { return state_.in_flight.load(std::memory_order_relaxed); }

  void drain() override {
    if (state_.draining.exchange(true, std::memory_order_acq_rel)) return;
    for (const auto& shard : shards_) shard->drain();
    asio::post(home().io(), [this] { end_after(milliseconds(state_.options.drain_grace_ms)); });
  }

  void stop() override {
    drain();
    asio::post(home().io(), [this] { end_after(milliseconds(0)); });
  }

  void wait() override {
    for (const auto& shard : shards_) shard->join();
  }

 private:
  Shard& home() { return *shards_.front(); }  // whose thread runs the listener and the timers

  void accept_next() {
    acceptor_->async_wait(asio::socket_base::wait_read, [this](error_code error) {
      if (error || !acceptor_->is_open()) return;
      for (int i = 0; i < kAcceptsAtOnce; ++i) {
        const int descriptor =
            ::accept4(acceptor_->native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (descriptor >= 0) {
          take(descriptor);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
          return refuse_and_back_off();
        } else if (errno != EINTR && errno != ECONNABORTED) {
          break;
        }
      }
      accept_next();
    });
  }

  void take(int descriptor) {
    state_.metrics.connections_total.add();
    if (state_.connections.load(std::memory_order_relaxed) >= state_.options.max_connections) {
      state_.metrics.connections_refused.add();
      const std::string body =
          error_json({.code = Code::net_busy, .detail = cat(state_.options.max_connections, " are allowed")},
                     new_request_id());
      const std::string reply = cat(kBusyReply, body);
      // A fresh socket takes this at once; if not, the client sees the connection closed.
      const ssize_t sent = ::send(descriptor, reply.data(), reply.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      static_cast<void>(sent);
      ::shutdown(descriptor, SHUT_WR);
      ::close(descriptor);
      return;
    }
    shards_[next_shard_]->adopt(descriptor);
    next_shard_ = (next_shard_ + 1) % shards_.size();
  }

  // No descriptor left: the spare one lets a waiting client be closed instead of left hanging, and a pause
  // keeps the loop from spinning on the listener that stays readable.
  void refuse_and_back_off() {
    if (spare_ >= 0) {
      ::close(spare_);
      if (const int descriptor = ::accept4(acceptor_->native_handle(), nullptr, nullptr, SOCK_CLOEXEC);
          descriptor >= 0) {
        state_.metrics.connections_refused.add();
        ::close(descriptor);
      }
    }
    spare_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (state_.options.log != nullptr && !said_full_)
      state_.options.log->warn("server", "no file descriptor left for new connections");
    said_full_ = true;
    back_off_->expires_after(kBackOff);
    back_off_->async_wait([this](error_code error) {
      if (!error && !closing_) accept_next();
    });
  }

  void tick() {
    state_.rate.sample(state_.options.clock->now_ns(), state_.engine().metrics().generation_tokens.value());
    tick_->expires_after(kTick);
    tick_->async_wait([this](error_code error) {
      if (!error && !closing_) tick();
    });
  }

  // On the home shard's thread.
  void end_after(milliseconds grace) {
    if (ending_ || closing_) return;
    grace_->expires_after(grace);
    grace_->async_wait([this](error_code error) {
      if (error || closing_) return;
      ending_ = true;
      const Error stopping{.code = Code::engine_stopping};
      for (const auto& shard : shards_) shard->end_all(stopping);
      grace_->expires_after(kLastWrites);
      grace_->async_wait([this](error_code late) {
        if (!late) close_all();
      });
    });
  }

  // On any shard's thread, while draining.
  void close_if_drained() {
    asio::post(home().io(), [this] {
      if (state_.in_flight.load(std::memory_order_relaxed) == 0) close_all();
    });
  }

  void close_all() {
    if (std::exchange(closing_, true)) return;
    error_code error;
    acceptor_->close(error);
    back_off_->cancel();
    tick_->cancel();
    grace_->cancel();
    for (const auto& shard : shards_) shard->close();
  }

  ServerState state_;
  std::unique_ptr<TextWorker> worker_;
  std::vector<std::shared_ptr<Shard>> shards_;
  int port_ = 0;

  // The home shard's thread's own.
  std::unique_ptr<asio::ip::tcp::acceptor> acceptor_;
  std::unique_ptr<asio::steady_timer> back_off_, tick_, grace_;
  size_t next_shard_ = 0;
  int spare_ = -1;
  bool said_full_ = false;
  bool ending_ = false;
  bool closing_ = false;
};

}  // namespace

Result<ListenSocket> ListenSocket::bind(const ServerOptions& options) {
  INFERD_TRY(const asio::ip::tcp::endpoint endpoint, resolve(options));
  const bool is_loopback = endpoint.address().is_loopback();
  if (!is_loopback && !options.api_key && !options.allow_open) {
    return Error{.code = Code::net_open, .detail = options.host};
  }
  const int descriptor = ::socket(endpoint.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return listen_error(Code::net_host, options, std::strerror(errno));
  ListenSocket socket(descriptor, endpoint.address().is_v6(), is_loopback);
  const int yes = 1;
  if (::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      ::bind(descriptor, endpoint.data(), static_cast<socklen_t>(endpoint.size())) != 0) {
    const bool not_ours = errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT;
    return listen_error(not_ours ? Code::net_host : Code::net_port, options, std::strerror(errno));
  }
  return socket;
}

ListenSocket::ListenSocket(int descriptor, bool is_ipv6, bool is_loopback)
    : descriptor_(descriptor), is_ipv6_(is_ipv6), is_loopback_(is_loopback) {}

ListenSocket::ListenSocket(ListenSocket&& other) noexcept
    : descriptor_(other.release()), is_ipv6_(other.is_ipv6_), is_loopback_(other.is_loopback_) {}

ListenSocket::~ListenSocket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

int ListenSocket::release() {
  return std::exchange(descriptor_, -1);
}

Result<std::unique_ptr<Server>> Server::start(ServedModel model, ServerOptions options, ListenSocket socket) {
  INFERD_CHECK(model.engine != nullptr && model.tokenizer != nullptr && !model.name.empty() &&
               options.shards >= 1 && (!options.api_key || !options.api_key->empty()));
  auto server = std::make_unique<ServerImpl>(std::move(model), options, !socket.is_loopback());
  INFERD_TRY_STATUS(server->listen(std::move(socket)));
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace inferd
