// Which route answers a request, and what it answers. Two stops: admit() when the header is complete,
// handle() with the body. Both are pure but for counters, so they run without sockets in tests; handle() may
// run on any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "server/server_state.h"
#include "server/stream_session.h"

namespace inferd {

// A reply that is ready, or a request for the engine.
using Handled = std::variant<HttpReply, std::unique_ptr<StreamSession>>;

class Router {
 public:
  explicit Router(ServerState& state) : state_(state) {}

  // The route's number, or the refusal: wrong Host or Origin, no such route, wrong method, no key, draining.
  std::variant<size_t, HttpReply> admit(const HttpRequest& request) const;

  Handled handle(size_t route, const HttpRequest& request) const;

  // Whether the route asks the model for tokens.
  static bool generates(size_t route);

  // Counts a reply that is about to be sent; `route`: none when admit() refused.
  void count(std::optional<size_t> route, int status) const;
  // Counts why a request for tokens was refused, once, whoever refused it first.
  void count_rejection(const Error& error) const;

 private:
  ServerState& state_;
};

// Label values for the routes in order, and last one for requests without a route.
std::vector<std::string> route_labels();

// Method and path pattern of each route, for docs and tests.
struct RouteInfo {
  std::string_view method;
  std::string_view path;
  bool open;  // needs no key
};
std::vector<RouteInfo> all_routes();

}  // namespace inferd
