// Two coroutines a connection, both on the shard's one thread: read_loop() takes bytes as they come, also
// while an answer is under way, so that it sees the client hang up; serve() parses, waits and writes. They
// meet in plain members: one sets, wakes the other, and each looks again after every wait.
//
// A half-closed connection counts as gone: who has shut down sending cannot be told from who has left.
#include "server/http_connection.h"

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <charconv>
#include <utility>

#include "base/strings.h"
#include "server/http_parser.h"
#include "server/shard.h"
#include "server/sse.h"

namespace inferd {
namespace {

namespace asio = boost::asio;
using asio::awaitable;
using boost::system::error_code;
using std::chrono::milliseconds;
using Time = std::chrono::steady_clock::time_point;

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);

// Bytes that are kept before the parser takes them; more wait in the kernel. Above a header's limit, so that
// the parser can always see one whole.
constexpr size_t kInputLimit = size_t{160} << 10;
// The same of later requests, while an answer is under way.
constexpr size_t kPipelineLimit = size_t{16} << 10;
// Longer bodies are parsed on the text worker.
constexpr size_t kInlineBody = size_t{64} << 10;
// A client that still sends after it was refused is listened to while it sends, so that it comes to read the
// refusal.
constexpr milliseconds kLingerQuiet{2000};
constexpr size_t kLingerBytes = size_t{64} << 20;
constexpr milliseconds kForever{std::chrono::hours(24)};
constexpr size_t kMaxRequestId = 128;
constexpr size_t kLoggedPath = 100;
// A request that is on its way when the server begins to drain gets so long to arrive and be told.
constexpr milliseconds kLastArrival{1000};

Time now() {
  return std::chrono::steady_clock::now();
}

bool is_valid_request_id(std::string_view id) {
  if (id.empty() || id.size() > kMaxRequestId) return false;
  for (const char c : id) {
    if (c <= 0x20 || c >= 0x7f) return false;
  }
  return true;
}

// A path as part of a log line: percent-decoded ones may hold anything.
std::string escaped(std::string_view path) {
  const std::string quoted = printable(path, kLoggedPath);
  return quoted.substr(1, quoted.size() - 2);
}

class HttpConnection final : public Connection, public std::enable_shared_from_this<HttpConnection> {
 public:
  HttpConnection(asio::io_context& io, int descriptor, Shard& shard)
      : io_(io), socket_(io), wake_(io), room_(io), shard_(shard), options_(shard.state().options) {
    error_code error;
    socket_.assign(asio::ip::tcp::v4(), descriptor,
                   error);  // v6 sockets too: the protocol is not looked at again
    socket_.non_blocking(true, error);
    socket_.set_option(asio::ip::tcp::no_delay(true), error);
    socket_.set_option(asio::socket_base::send_buffer_size(static_cast<int>(options_.stream_buffer_bytes)),
                       error);
  }

  void start() {
    const auto on_exit = [self = shared_from_this()](const std::exception_ptr& failure) {
      if (failure != nullptr) self->on_exception(failure);
    };
    asio::co_spawn(io_, read_loop(shared_from_this()), on_exit);
    asio::co_spawn(io_, serve(shared_from_this()), on_exit);
  }

  void on_event(size_t request, Event event) override {
    if (session_ != nullptr) session_->on_event(request, std::move(event));
  }
  void wake() override { wake_.cancel(); }

  void finish_up() override {
    last_request_ = true;
    last_arrival_ = now() + kLastArrival;
    wake();
  }

  void end(const Error& error) override {
    last_request_ = true;
    if (!answering_) return close();
    ending_ = error;
    wake();
  }

  void close() override {
    if (closed_) return;
    closed_ = true;
    error_code error;
    socket_.close(error);
    wake();
    room_.cancel();
  }

 private:
  static awaitable<void> read_loop(std::shared_ptr<HttpConnection> self);
  static awaitable<void> serve(std::shared_ptr<HttpConnection> self);
  awaitable<bool> serve_request(bool first);
  awaitable<bool> wait_for_request(bool first);
  awaitable<bool> serve_arrived();
  awaitable<bool> read_header(HttpParser& parser, Time deadline);
  awaitable<bool> read_body(HttpParser& parser);
  awaitable<bool> answer(HttpParser& parser, size_t route);
  awaitable<bool> handle_elsewhere(std::shared_ptr<HttpRequest> request, size_t route,
                                   std::optional<Handled>& handled);
  awaitable<bool> run_session(const HttpRequest& request, size_t route);
  awaitable<bool> stream(const HttpRequest& request, size_t route);
  awaitable<bool> collect(const HttpRequest& request, size_t route);
  awaitable<bool> send_reply(const HttpRequest& request, const HttpReply& reply, std::optional<size_t> route);
  awaitable<bool> refuse(HttpParser& parser, Error error);
  awaitable<void> linger();
  awaitable<bool> written();
  awaitable<bool> wait_until(Time deadline);

  void end_request();
  Status submit_all();
  void leave_engine();
  void start_write();
  bool next_write(bool chunked);
  void take_request_id(HttpParser& parser);
  void on_exception(const std::exception_ptr& failure);
  void log_done(const HttpRequest& request, std::optional<int> status);
  bool gone() const { return peer_gone_ || broken_ || closed_; }
  void drop_slow_reader() {
    shard_.state().metrics.slow_readers.add();
    close();
  }

  asio::io_context& io_;
  asio::ip::tcp::socket socket_;
  asio::steady_timer wake_;  // serve() sleeps on it
  asio::steady_timer room_;  // read_loop() sleeps on it while the input is full
  Shard& shard_;
  const ServerOptions& options_;

  std::string input_;        // not parsed yet
  bool discarding_ = false;  // what comes is thrown away
  size_t discarded_ = 0;
  bool peer_gone_ = false;  // end of file, or an error
  bool closed_ = false;

  std::string sending_;
  size_t sent_ = 0;
  bool writing_ = false;  // one write at a time
  bool broken_ = false;   // a write failed
  Time progress_{};       // when the last write took something, or began

  bool busy_ = false;       // with a request, from its first byte to the end of its answer
  bool answering_ = false;  // of that, with the answer
  bool generates_ = false;  // of that, with tokens
  bool last_request_ = false;
  Time last_arrival_ = Time::max();  // deadline of what is being read when the server drains
  bool keep_alive_ = true;
  bool http_1_0_ = false;
  int64_t body_bytes_ = 0;  // held with the shard
  Time began_{};
  std::optional<Error> ending_;
  std::unique_ptr<StreamSession> session_;
  std::vector<RequestId> submitted_;
};

// True: woken. False: the deadline has passed.
awaitable<bool> HttpConnection::wait_until(Time deadline) {
  wake_.expires_at(deadline);
  const auto result = co_await wake_.async_wait(kAwait);
  co_return std::get<0>(result) == asio::error::operation_aborted;
}

awaitable<void> HttpConnection::read_loop(std::shared_ptr<HttpConnection> self) {
  while (!self->closed_) {
    if (!self->discarding_ && self->input_.size() >= (self->answering_ ? kPipelineLimit : kInputLimit)) {
      self->room_.expires_after(kForever);
      const auto woken = co_await self->room_.async_wait(kAwait);
      static_cast<void>(woken);
      continue;
    }
    const auto waited = co_await self->socket_.async_wait(asio::socket_base::wait_read, kAwait);
    if (std::get<0>(waited) || self->closed_) break;
    error_code error;
    auto& scratch = self->shard_.scratch();
    const size_t size = self->socket_.read_some(asio::buffer(scratch), error);
    if (error == asio::error::would_block || error == asio::error::interrupted) continue;
    if (error) break;
    if (self->discarding_) {
      self->discarded_ += size;
    } else {
      self->input_.append(scratch.data(), size);
    }
    self->wake();
  }
  self->peer_gone_ = true;
  self->wake();
}

awaitable<void> HttpConnection::serve(std::shared_ptr<HttpConnection> self) {
  bool go_on = co_await self->serve_request(true);
  while (go_on) go_on = co_await self->serve_request(false);
  self->close();
  self->shard_.remove(*self);
}

// False: the connection ends.
awaitable<bool> HttpConnection::serve_request(bool first) {
  const bool arrived = co_await wait_for_request(first);
  if (!arrived) co_return false;
  began_ = now();
  busy_ = true;
  shard_.begin_request();
  const bool go_on = co_await serve_arrived();
  end_request();
  co_return go_on;
}

void HttpConnection::end_request() {
  shard_.release_bytes(std::exchange(body_bytes_, 0));
  answering_ = false;
  generates_ = false;
  if (std::exchange(busy_, false)) shard_.end_request();
}

// True once the first bytes of a request are there, or, when the server drains, in the kernel.
awaitable<bool> HttpConnection::wait_for_request(bool first) {
  const Time idle_end = now() + milliseconds(first ? options_.header_timeout_ms : options_.idle_timeout_ms);
  for (;;) {
    // Empty lines before a request are to be skipped (RFC 9112, section 2.2).
    input_.erase(0, std::min(input_.find_first_not_of("\r\n"), input_.size()));
    if (!input_.empty()) co_return true;
    if (gone()) co_return false;
    error_code error;
    if (last_request_) co_return socket_.available(error) > 0;
    const bool woken = co_await wait_until(idle_end);
    if (!woken && now() >= idle_end && input_.empty()) {
      shard_.state().metrics.timeouts.add();
      co_return false;
    }
  }
}

awaitable<bool> HttpConnection::serve_arrived() {
  HttpParser parser({.body_bytes = options_.max_body_bytes});
  const bool complete = co_await read_header(parser, began_ + milliseconds(options_.header_timeout_ms));
  if (!complete) co_return false;

  const auto admitted = shard_.router().admit(parser.request());
  if (const HttpReply* refusal = std::get_if<HttpReply>(&admitted)) {
    if (parser.has_body()) keep_alive_ = false;
    const bool sent = co_await send_reply(parser.request(), *refusal, std::nullopt);
    if (sent && parser.has_body()) co_await linger();
    co_return (sent && keep_alive_);
  }
  const bool body_complete = co_await read_body(parser);
  if (!body_complete) co_return false;

  answering_ = true;
  const bool answered = co_await answer(parser, std::get<size_t>(admitted));
  // Whole requests that came before the client shut down sending are still answered.
  co_return (answered && keep_alive_ && !ending_);
}

// The client's X-Request-Id, or one of ours; a bad one is refused by the caller.
void HttpConnection::take_request_id(HttpParser& parser) {
  HttpRequest& request = parser.request();
  const std::string* given = request.find("x-request-id");
  request.request_id = given != nullptr && is_valid_request_id(*given) ? *given : new_request_id();
}

awaitable<bool> HttpConnection::read_header(HttpParser& parser, Time deadline) {
  for (;;) {
    Result<size_t> taken = parser.feed(input_);
    if (!taken.ok()) {
      const Error error = std::move(taken).error();
      const bool go_on = co_await refuse(parser, error);
      co_return go_on;
    }
    input_.erase(0, *taken);
    room_.cancel();
    if (parser.state() != HttpParser::State::header) break;
    if (gone()) co_return false;
    const bool woken = co_await wait_until(std::min(deadline, last_arrival_));
    if (!woken && now() >= std::min(deadline, last_arrival_)) {
      shard_.state().metrics.timeouts.add();
      const Error late{.code = Code::req_timeout,
                       .detail = cat("no whole header after ", options_.header_timeout_ms, " ms")};
      const bool go_on = co_await refuse(parser, late);
      co_return go_on;
    }
  }
  take_request_id(parser);
  http_1_0_ = parser.http_1_0();
  keep_alive_ = parser.keep_alive() && !last_request_ && !shard_.draining();
  const std::string* given = parser.request().find("x-request-id");
  if (given != nullptr && *given != parser.request().request_id) {
    const Error bad{.code = Code::req_http,
                    .detail = cat("X-Request-Id is ", printable(*given, 40), ", allowed is 1 to ",
                                  kMaxRequestId, " printable ASCII characters without spaces")};
    const bool go_on = co_await refuse(parser, bad);
    co_return go_on;
  }
  co_return true;
}

awaitable<bool> HttpConnection::read_body(HttpParser& parser) {
  const Time deadline = now() + milliseconds(options_.body_timeout_ms);
  if (parser.expects_continue() && parser.state() == HttpParser::State::body && input_.empty()) {
    sending_ = "HTTP/1.1 100 Continue\r\n\r\n";
    start_write();
    const bool sent = co_await written();
    if (!sent) co_return false;
  }
  while (parser.state() != HttpParser::State::done) {
    Result<size_t> taken = parser.feed(input_);
    if (!taken.ok()) {
      const Error error = std::move(taken).error();
      const bool go_on = co_await refuse(parser, error);
      co_return go_on;
    }
    input_.erase(0, *taken);
    room_.cancel();
    const auto held = static_cast<int64_t>(parser.request().body.size());
    if (!shard_.hold_bytes(held - body_bytes_)) {
      const Error full{.code = Code::engine_full,
                       .detail = "the bodies of other requests fill the memory that is set aside for them"};
      const bool go_on = co_await refuse(parser, full);
      co_return go_on;
    }
    body_bytes_ = held;
    if (parser.state() == HttpParser::State::done) break;
    if (gone()) co_return false;
    const bool woken = co_await wait_until(std::min(deadline, last_arrival_));
    if (!woken && now() >= std::min(deadline, last_arrival_)) {
      shard_.state().metrics.timeouts.add();
      const Error late{.code = Code::req_timeout,
                       .detail = cat("no whole body after ", options_.body_timeout_ms, " ms")};
      const bool go_on = co_await refuse(parser, late);
      co_return go_on;
    }
  }
  co_return true;
}

// Sends an error after which the connection is of no use; always false.
awaitable<bool> HttpConnection::refuse(HttpParser& parser, Error error) {
  keep_alive_ = false;
  parser.request().body = {};
  shard_.release_bytes(std::exchange(body_bytes_, 0));
  if (parser.request().request_id.empty()) take_request_id(parser);
  const HttpReply reply = error_reply(error, parser.request().request_id);
  const bool sent = co_await send_reply(parser.request(), reply, std::nullopt);
  if (sent) co_await linger();
  co_return false;
}

awaitable<void> HttpConnection::linger() {
  error_code error;
  socket_.shutdown(asio::socket_base::shutdown_send, error);
  discarding_ = true;
  input_.clear();
  room_.cancel();
  const Time end = now() + milliseconds(options_.body_timeout_ms);
  while (!gone()) {
    const size_t before = discarded_;
    const bool woken = co_await wait_until(std::min(end, now() + kLingerQuiet));
    if ((!woken && discarded_ == before) || now() >= end || discarded_ > kLingerBytes) break;
  }
}

// False: the connection ends.
awaitable<bool> HttpConnection::answer(HttpParser& parser, size_t route) {
  const auto request = std::make_shared<HttpRequest>(std::move(parser.request()));
  generates_ = Router::generates(route);
  std::optional<Handled> handled;
  if (request->body.size() <= kInlineBody) {
    handled = shard_.router().handle(route, *request);
  } else {
    const bool done = co_await handle_elsewhere(request, route, handled);
    if (!done) co_return false;
  }
  if (const HttpReply* reply = std::get_if<HttpReply>(&*handled)) {
    const bool sent = co_await send_reply(*request, *reply, route);
    co_return sent;
  }
  request->body = {};
  session_ = std::move(std::get<std::unique_ptr<StreamSession>>(*handled));
  const bool answered = co_await run_session(*request, route);
  leave_engine();
  session_.reset();
  co_return answered;
}

awaitable<bool> HttpConnection::handle_elsewhere(std::shared_ptr<HttpRequest> request, size_t route,
                                                 std::optional<Handled>& handled) {
  // Written by the worker, then read here after the closure that it posts.
  struct Slot {
    std::optional<Handled> handled;
    bool ready = false;
  };
  const auto slot = std::make_shared<Slot>();
  shard_.worker().run([self = shared_from_this(), slot, request, route] {
    slot->handled = self->shard_.router().handle(route, *request);
    asio::post(self->io_, [self, slot] {
      slot->ready = true;
      self->wake();
    });
  });
  while (!slot->ready) {
    if (gone()) co_return false;
    if (ending_) {
      const HttpReply reply = error_reply(*ending_, request->request_id);
      keep_alive_ = false;
      const bool sent = co_await send_reply(*request, reply, route);
      static_cast<void>(sent);
      co_return false;
    }
    const bool woken = co_await wait_until(now() + kForever);
    static_cast<void>(woken);
  }
  handled = std::move(slot->handled);
  co_return true;
}

Status HttpConnection::submit_all() {
  std::vector<Request> requests = session_->take_requests();
  for (size_t i = 0; i < requests.size(); ++i) {
    INFERD_TRY(const RequestId id, shard_.submit(std::move(requests[i]), *this, i));
    submitted_.push_back(id);
  }
  return {};
}

// Whatever still runs has no reader any more.
void HttpConnection::leave_engine() {
  for (const RequestId id : submitted_) {
    shard_.forget(id);
    if (!session_->completed()) shard_.state().engine().cancel(id);
  }
  submitted_.clear();
}

awaitable<bool> HttpConnection::run_session(const HttpRequest& request, size_t route) {
  if (gone()) co_return false;
  if (Status submitted = submit_all(); !submitted.ok()) {
    const HttpReply reply = error_reply(submitted.error(), request.request_id);
    const bool sent = co_await send_reply(request, reply, route);
    co_return sent;
  }
  session_->begin();
  bool answered = false;
  if (session_->streams()) {
    answered = co_await stream(request, route);
  } else {
    answered = co_await collect(request, route);
  }
  if (!answered) {
    shard_.state().metrics.clients_gone.add();
    log_done(request, std::nullopt);
  }
  co_return answered;
}

awaitable<bool> HttpConnection::collect(const HttpRequest& request, size_t route) {
  while (!session_->finished()) {
    if (gone()) co_return false;
    if (ending_) {
      session_->fail(*ending_);
      break;
    }
    const bool woken = co_await wait_until(now() + kForever);
    static_cast<void>(woken);
  }
  if (ending_) keep_alive_ = false;
  const HttpReply reply = session_->take_reply();
  const bool sent = co_await send_reply(request, reply, route);
  co_return sent;
}

// Moves what the session has to the socket, as one chunk; with the last of it the end of the chunks. False:
// nothing to send.
bool HttpConnection::next_write(bool chunked) {
  std::string& output = session_->output();
  if (output.empty()) return false;
  if (!chunked) {
    sending_ = std::exchange(output, {});
  } else {
    std::array<char, 20> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), output.size(), 16);
    sending_.assign(digits.data(), end.ptr);
    sending_ += "\r\n";
    sending_ += output;
    sending_ += session_->finished() ? "\r\n0\r\n\r\n" : "\r\n";
    output.clear();
  }
  return true;
}

awaitable<bool> HttpConnection::stream(const HttpRequest& request, size_t route) {
  const bool chunked = !http_1_0_;
  if (!chunked) keep_alive_ = false;
  shard_.router().count(route, 200);
  sending_ = reply_head({.status = 200,
                         .content_type = kSseType,
                         .chunked = chunked,
                         .keep_alive = keep_alive_,
                         .request_id = request.request_id},
                        {{"X-Accel-Buffering", "no"}});
  start_write();
  const milliseconds stall(options_.stall_timeout_ms);
  const milliseconds ping(options_.ping_interval_ms);
  for (;;) {
    // Who leaves after the last byte was sent has not left early.
    const bool all_sent = session_->finished() && session_->output().empty() && !writing_;
    if (all_sent && !broken_ && !closed_) break;
    if (gone()) co_return false;
    if (ending_) session_->fail(*ending_);
    if (writing_) {
      if (static_cast<int64_t>(session_->output().size()) > options_.stream_buffer_bytes ||
          now() >= progress_ + stall) {
        drop_slow_reader();
        co_return false;
      }
      const bool woken = co_await wait_until(progress_ + stall);
      static_cast<void>(woken);
      continue;
    }
    if (next_write(chunked)) {
      start_write();
      continue;
    }
    const bool woken = co_await wait_until(progress_ + ping);
    if (!woken && !session_->finished() && session_->output().empty() && now() >= progress_ + ping)
      session_->output() = kSsePing;
  }
  log_done(request, 200);
  co_return true;
}

void HttpConnection::start_write() {
  if (!writing_) progress_ = now();
  writing_ = true;
  socket_.async_write_some(asio::buffer(sending_.data() + sent_, sending_.size() - sent_),
                           [self = shared_from_this()](error_code error, size_t size) {
                             self->progress_ = now();
                             self->sent_ += size;
                             if (!error && self->sent_ < self->sending_.size()) return self->start_write();
                             self->writing_ = false;
                             self->broken_ = self->broken_ || error;
                             self->sending_.clear();
                             self->sent_ = 0;
                             self->wake();
                           });
}

// Waits for the write under way; false when it failed.
awaitable<bool> HttpConnection::written() {
  const milliseconds stall(options_.stall_timeout_ms);
  while (writing_) {
    if (now() >= progress_ + stall) {
      drop_slow_reader();
      co_return false;
    }
    const bool woken = co_await wait_until(progress_ + stall);
    static_cast<void>(woken);
  }
  co_return !broken_ && !closed_;
}

awaitable<bool> HttpConnection::send_reply(const HttpRequest& request, const HttpReply& reply,
                                           std::optional<size_t> route) {
  if (closed_) co_return false;
  shard_.router().count(route, reply.status);
  if (last_request_) keep_alive_ = false;
  sending_ = reply_head({.status = reply.status,
                         .content_type = reply.content_type,
                         .content_length = static_cast<int64_t>(reply.body.size()),
                         .keep_alive = keep_alive_,
                         .request_id = request.request_id},
                        reply.headers);
  if (request.method != "HEAD") sending_ += reply.body;
  start_write();
  const bool sent = co_await written();
  if (sent) log_done(request, reply.status);
  co_return sent;
}

// One line a request: those for an answer as they are asked for, those of pages and probes for debugging.
// Never text. Without a status the client left before its answer was whole.
void HttpConnection::log_done(const HttpRequest& request, std::optional<int> status) {
  const LogLevel level = generates_ ? LogLevel::info : LogLevel::debug;
  if (options_.log == nullptr || !options_.log->wants(level)) return;
  const double seconds = std::chrono::duration<double>(now() - began_).count();
  const std::string_view path = std::string_view(request.path).substr(0, kLoggedPath);
  std::string text = cat(request.request_id, " ", request.method, " ", escaped(path), " ");
  Json::Object fields = {{"id", request.request_id}, {"method", request.method}, {"path", path}};
  if (status) {
    text += cat(*status);
    fields.emplace_back("status", *status);
  } else {
    text += "gone";
    fields.emplace_back("status", Json());
  }
  if (session_ != nullptr) {
    const Totals& totals = session_->totals();
    const double ttft_ms = totals.queue_ms + totals.prompt_ms;
    const double rate = totals.output_ms > 0 ? static_cast<double>(totals.output_tokens - totals.answers) *
                                                   1000 / totals.output_ms
                                             : 0;
    if (!session_->outcome().empty()) text += cat(" ", session_->outcome());
    text += cat(", prompt ", totals.prompt_tokens,
                totals.cached_tokens > 0 ? cat(" (", totals.cached_tokens, " cached)") : "", ", output ",
                session_->drawn());
    fields.emplace_back("end", session_->outcome().empty() ? Json() : Json(session_->outcome()));
    fields.emplace_back("prompt_tokens", totals.prompt_tokens);
    fields.emplace_back("cached_tokens", totals.cached_tokens);
    fields.emplace_back("output_tokens", session_->drawn());
    if (ttft_ms > 0) {
      text += cat(", TTFT ", human_seconds(ttft_ms / 1000));
      fields.emplace_back("ttft_ms", ttft_ms);
    }
    if (rate > 0) {
      text += cat(", ", fixed(rate, 1), " tok/s");
      fields.emplace_back("tokens_per_second", rate);
    }
  }
  fields.emplace_back("seconds", seconds);
  options_.log->record(level, "request", cat(text, ", ", human_seconds(seconds)), fields);
}

void HttpConnection::on_exception(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& exception) {
    if (options_.log != nullptr) options_.log->error("server", "a connection failed: ", exception.what());
  }
  if (session_ != nullptr) {
    leave_engine();
    session_.reset();
  }
  end_request();
  close();
  shard_.remove(*this);
}

}  // namespace

std::shared_ptr<Connection> open_connection(asio::io_context& io, int descriptor, Shard& shard) {
  auto connection = std::make_shared<HttpConnection>(io, descriptor, shard);
  connection->start();
  return connection;
}

}  // namespace inferd
