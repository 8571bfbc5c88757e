#include "server/shard.h"

#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <utility>

namespace inferd {
namespace {

namespace asio = boost::asio;

// Closes the descriptor unless somebody took it, also when the closure that holds it never runs.
class OwnedDescriptor {
 public:
  explicit OwnedDescriptor(int descriptor) : descriptor_(descriptor) {}
  OwnedDescriptor(OwnedDescriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  ~OwnedDescriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int take() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_;
};

}  // namespace

// Outlives the shard when the engine still holds requests: their events then go nowhere.
class Shard::Sink final : public EventSink {
 public:
  Sink(std::shared_ptr<asio::io_context> io, std::weak_ptr<Shard> shard)
      : io_(std::move(io)), shard_(std::move(shard)) {}

  void on_events(std::vector<Event> events) override {
    asio::post(*io_, [shard = shard_, events = std::move(events)]() mutable {
      if (const std::shared_ptr<Shard> alive = shard.lock()) alive->deliver(std::move(events));
    });
  }

 private:
  const std::shared_ptr<asio::io_context> io_;
  const std::weak_ptr<Shard> shard_;
};

Shard::Shard(ServerState& state, TextWorker& worker)
    : state_(state), router_(state), worker_(worker), io_(std::make_shared<asio::io_context>(1)) {}

Shard::~Shard() {
  join();
}

void Shard::start() {
  sink_ = std::make_shared<Sink>(io_, weak_from_this());
  keep_running_ =
      std::make_shared<asio::executor_work_guard<asio::io_context::executor_type>>(io_->get_executor());
  thread_ = std::thread([this] { io_->run(); });
}

void Shard::adopt(int descriptor) {
  asio::post(*io_, [this, owned = OwnedDescriptor(descriptor)]() mutable {
    if (closed_) return;
    const std::shared_ptr<Connection> connection = open_connection(*io_, owned.take(), *this);
    connections_.emplace(connection.get(), connection);
    state_.connections.fetch_add(1, std::memory_order_relaxed);
  });
}

void Shard::drain() {
  asio::post(*io_, [this] {
    draining_ = true;
    for (const auto& connection : all_connections()) connection->finish_up();
    if (busy_ == 0 && on_idle) on_idle();
  });
}

void Shard::end_all(const Error& error) {
  asio::post(*io_, [this, error] {
    for (const auto& connection : all_connections()) connection->end(error);
  });
}

void Shard::close() {
  asio::post(*io_, [this] {
    closed_ = true;
    for (const auto& connection : all_connections()) connection->close();
    keep_running_.reset();
  });
}

void Shard::join() {
  if (thread_.joinable()) thread_.join();
}

Result<RequestId> Shard::submit(Request request, Connection& connection, size_t number) {
  request.sink = sink_;
  // Events of this request come through a closure on this thread, so never before the entry is made.
  Result<RequestId> id = state_.engine().submit(std::move(request));
  if (id.ok()) readers_.emplace(*id, Reader{&connection, number});
  return id;
}

void Shard::forget(RequestId request) {
  readers_.erase(request);
}

void Shard::deliver(std::vector<Event> events) {
  std::vector<Connection*> touched;
  for (Event& event : events) {
    const auto reader = readers_.find(event.request);
    if (reader == readers_.end()) continue;  // cancelled, or its connection is gone
    Connection* connection = reader->second.connection;
    if (touched.empty() || touched.back() != connection) touched.push_back(connection);
    connection->on_event(reader->second.number, std::move(event));
  }
  for (Connection* connection : touched) connection->wake();
}

void Shard::begin_request() {
  ++busy_;
  state_.in_flight.fetch_add(1, std::memory_order_relaxed);
}

void Shard::end_request() {
  --busy_;
  state_.in_flight.fetch_sub(1, std::memory_order_relaxed);
  if (draining_ && busy_ == 0 && on_idle) on_idle();
}

bool Shard::hold_bytes(int64_t bytes) {
  if (held_bytes_ + bytes > state_.options.max_bodies_bytes) return false;
  held_bytes_ += bytes;
  return true;
}

void Shard::remove(Connection& connection) {
  if (connections_.erase(&connection) > 0) state_.connections.fetch_sub(1, std::memory_order_relaxed);
}

std::vector<std::shared_ptr<Connection>> Shard::all_connections() const {
  std::vector<std::shared_ptr<Connection>> all;
  for (const auto& [key, connection] : connections_) all.push_back(connection);
  return all;
}

}  // namespace inferd
