// One client's connection: reads requests, has them answered, writes the answers. Everything runs on its
// shard's thread.
#pragma once

#include <memory>

#include "engine/request.h"

namespace boost::asio {
class io_context;
}

namespace inferd {

class Shard;

class Connection {
 public:
  virtual ~Connection() = default;

  // An event of the request that this connection submitted as number `request`; after the events of one step,
  // wake().
  virtual void on_event(size_t request, Event event) = 0;
  virtual void wake() = 0;

  // No further requests: closed at once when none is under way, else after it.
  virtual void finish_up() = 0;
  // The answer that is under way ends with this error, and the connection with it.
  virtual void end(const Error& error) = 0;
  virtual void close() = 0;
};

// Takes the descriptor, a connected socket. The connection lives until it is closed; `shard` must outlive it.
std::shared_ptr<Connection> open_connection(boost::asio::io_context& io, int descriptor, Shard& shard);

}  // namespace inferd
