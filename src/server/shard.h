// One I/O thread with its connections. The engine posts one closure to it for each step; it hands the events
// on to the connections that asked.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <thread>
#include <unordered_map>
#include <vector>

#include "server/http_connection.h"
#include "server/router.h"
#include "server/server_state.h"
#include "server/text_worker.h"

namespace inferd {

class Shard : public std::enable_shared_from_this<Shard> {
 public:
  Shard(ServerState& state, TextWorker& worker);
  ~Shard();

  // Any thread.
  void start();
  void adopt(int descriptor);  // a connected socket, which this takes
  void drain();  // finish_up() for all connections; on_idle is called whenever no request is under way
  void end_all(const Error& error);
  void close();  // everything; the thread ends
  void join();
  boost::asio::io_context& io() { return *io_; }
  // Set before start(); called on the shard's thread while it drains.
  std::function<void()> on_idle;

  // For connections, on the shard's thread.
  ServerState& state() { return state_; }
  const Router& router() const { return router_; }
  TextWorker& worker() { return worker_; }
  std::array<char, 65536>& scratch() { return scratch_; }  // what was just read from a socket
  bool draining() const { return draining_; }
  // Gives a request to the engine. Its events come to `connection` as those of request number `number` until
  // forget().
  Result<RequestId> submit(Request request, Connection& connection, size_t number);
  void forget(RequestId request);
  // Around a request, from its first byte to the end of its answer.
  void begin_request();
  void end_request();
  // Bytes of bodies held: false when there would be too many.
  bool hold_bytes(int64_t bytes);
  void release_bytes(int64_t bytes) { held_bytes_ -= bytes; }
  void remove(Connection& connection);

 private:
  class Sink;
  struct Reader {
    Connection* connection;
    size_t number;
  };

  void deliver(std::vector<Event> events);
  std::vector<std::shared_ptr<Connection>> all_connections() const;

  ServerState& state_;
  const Router router_;
  TextWorker& worker_;
  const std::shared_ptr<boost::asio::io_context> io_;
  std::shared_ptr<EventSink> sink_;
  std::shared_ptr<void> keep_running_;
  std::thread thread_;

  // The thread's own.
  std::array<char, 65536> scratch_;
  std::unordered_map<Connection*, std::shared_ptr<Connection>> connections_;
  std::unordered_map<RequestId, Reader> readers_;
  int64_t busy_ = 0;
  int64_t held_bytes_ = 0;
  bool draining_ = false;
  bool closed_ = false;
};

}  // namespace inferd
