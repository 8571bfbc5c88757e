#include "server/router.h"

#include <algorithm>
#include <array>
#include <new>

#include "base/strings.h"
#include "server/native_generate.h"
#include "server/openai_chat.h"
#include "server/openai_completions.h"
#include "server/pages.h"
#include "server/tokenize.h"

namespace inferd {
namespace {

using Handler = Handled (*)(ServerState& state, const HttpRequest& request);

struct Route {
  std::string_view method;
  std::string_view path;  // "/v1/models/*": anything not empty in place of the star
  bool open = false;      // needs no key
  bool while_draining = false;
  bool generates = false;
  Handler handle = nullptr;
};

Handled page(Result<HttpReply> reply, const HttpRequest& request) {
  if (!reply.ok()) return error_reply(reply.error(), request.request_id);
  return std::move(reply).value();
}

using Prepare = Result<Generation> (*)(const ModelView&, std::string_view);
using Format = std::unique_ptr<AnswerFormat> (*)(const ModelView&, const Generation&, std::string);

Handled generate(ServerState& state, const HttpRequest& request, Prepare prepare, Format format) {
  Result<Generation> generation = prepare(state.view, request.body);
  if (!generation.ok()) {
    Router(state).count_rejection(generation.error());
    return error_reply(generation.error(), request.request_id);
  }
  std::unique_ptr<AnswerFormat> answers = format(state.view, *generation, request.request_id);
  return std::make_unique<StreamSession>(*state.view.tokenizer, std::move(generation).value(),
                                         std::move(answers), request.request_id);
}

bool wants_json(const HttpRequest& request) {
  const std::string* accept = request.find("accept");
  return accept != nullptr && accept->find("application/json") != std::string::npos;
}

constexpr std::string_view kModelPrefix = "/v1/models/";

constexpr auto kRoutes = std::to_array<Route>({
    {.method = "POST",
     .path = "/v1/chat/completions",
     .generates = true,
     .handle = [](ServerState& s,
                  const HttpRequest& r) { return generate(s, r, chat_generation, chat_format); }},
    {.method = "POST",
     .path = "/v1/completions",
     .generates = true,
     .handle = [](ServerState& s,
                  const HttpRequest& r) { return generate(s, r, completion_generation, completion_format); }},
    {.method = "POST",
     .path = "/generate",
     .generates = true,
     .handle = [](ServerState& s,
                  const HttpRequest& r) { return generate(s, r, native_generation, native_format); }},
    {.method = "GET",
     .path = "/v1/models",
     .handle = [](ServerState& s, const HttpRequest&) -> Handled { return models_reply(s); }},
    {.method = "GET",
     .path = "/v1/models/*",
     .handle =
         [](ServerState& s, const HttpRequest& r) {
           return page(model_reply(s, std::string_view(r.path).substr(kModelPrefix.size())), r);
         }},
    {.method = "POST",
     .path = "/tokenize",
     .handle = [](ServerState& s, const HttpRequest& r) { return page(tokenize_reply(s.view, r.body), r); }},
    {.method = "POST",
     .path = "/detokenize",
     .handle = [](ServerState& s,
                  const HttpRequest& r) { return page(detokenize_reply(s.view, r.body), r); }},
    {.method = "GET",
     .path = "/metrics",
     .while_draining = true,
     .handle = [](ServerState& s, const HttpRequest& r) -> Handled {
       if (wants_json(r)) return HttpReply{.body = metrics_json(s)};
       return HttpReply{.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = metrics_text(s)};
     }},
    {.method = "GET",
     .path = "/metrics.json",
     .while_draining = true,
     .handle = [](ServerState& s, const HttpRequest&) -> Handled {
       return HttpReply{.body = metrics_json(s)};
     }},
    {.method = "GET",
     .path = "/healthz",
     .while_draining = true,
     .handle = [](ServerState& s, const HttpRequest&) -> Handled { return healthz_reply(s); }},
    {.method = "GET",
     .path = "/health/live",
     .open = true,
     .while_draining = true,
     .handle = [](ServerState&, const HttpRequest&) -> Handled { return live_reply(); }},
    {.method = "GET",
     .path = "/health/ready",
     .open = true,
     .while_draining = true,
     .handle = [](ServerState& s, const HttpRequest&) -> Handled { return ready_reply(s); }},
    {.method = "GET",
     .path = "/",
     .handle = [](ServerState& s, const HttpRequest&) -> Handled { return index_reply(s); }},
});
static_assert(kRoutes.size() <= kMaxRoutes);

bool matches(const Route& route, std::string_view path) {
  if (!route.path.ends_with('*')) return path == route.path;
  const std::string_view prefix = route.path.substr(0, route.path.size() - 1);
  return path.size() > prefix.size() && path.starts_with(prefix);
}

bool matches_method(const Route& route, std::string_view method) {
  return method == route.method || (method == "HEAD" && route.method == "GET");
}

Error unknown_route(std::string_view path) {
  std::vector<std::string> paths;
  for (const Route& route : kRoutes) paths.emplace_back(route.path);
  const std::optional<std::string> nearest = nearest_name(path, paths);
  return {.code = Code::req_route,
          .detail = cat(printable(path), nearest ? cat("; the nearest is ", *nearest) : "")};
}

}  // namespace

std::variant<size_t, HttpReply> Router::admit(const HttpRequest& request) const {
  const auto refuse = [&](const Error& error) { return error_reply(error, request.request_id); };
  if (Status origin = state_.access.check_origin(request); !origin.ok()) return refuse(origin.error());
  const auto found =
      std::ranges::find_if(kRoutes, [&](const Route& route) { return matches(route, request.path); });
  // Without a key nobody learns which routes there are.
  if (found == kRoutes.end() || !found->open) {
    if (Status key = state_.access.check_key(request); !key.ok()) return refuse(key.error());
  }
  if (found == kRoutes.end()) return refuse(unknown_route(request.path));
  const Route& route = *found;
  if (!matches_method(route, request.method)) {
    HttpReply reply =
        refuse({.code = Code::req_method, .detail = cat(printable(request.method), " ", route.path)});
    reply.headers.push_back({"Allow", route.method == "GET" ? "GET, HEAD" : std::string(route.method)});
    return reply;
  }
  if (!route.while_draining && state_.draining.load(std::memory_order_acquire)) {
    const Error error{.code = Code::engine_stopping};
    if (route.generates) count_rejection(error);
    return refuse(error);
  }
  return static_cast<size_t>(found - kRoutes.begin());
}

Handled Router::handle(size_t route, const HttpRequest& request) const {
  try {
    return kRoutes[route].handle(state_, request);
  } catch (const std::bad_alloc&) {  // this request was too much; the others go on
    if (state_.options.log != nullptr) {
      state_.options.log->error("server", request.request_id, " ", printable(request.path),
                                ": out of memory");
    }
    return error_reply({.code = Code::mem_alloc}, request.request_id);
  }
}

bool Router::generates(size_t route) {
  return kRoutes[route].generates;
}

void Router::count(std::optional<size_t> route, int status) const {
  const size_t status_class = status < 300 ? 0 : status < 500 ? 1 : 2;
  state_.metrics.http_requests[route.value_or(kRoutes.size())][status_class].add();
}

void Router::count_rejection(const Error& error) const {
  ServerMetrics& metrics = state_.metrics;
  switch (error.code) {
    case Code::req_context:
      metrics.rejected_context.add();
      break;
    case Code::kv_never_fits:
      metrics.rejected_kv.add();
      break;
    case Code::engine_stopping:
      metrics.rejected_draining.add();
      break;
    default:
      metrics.rejected_invalid.add();
  }
}

std::vector<std::string> route_labels() {
  std::vector<std::string> labels;
  for (const Route& route : kRoutes) labels.emplace_back(route.path);
  labels.emplace_back("other");
  return labels;
}

std::vector<RouteInfo> all_routes() {
  std::vector<RouteInfo> routes;
  for (const Route& route : kRoutes) routes.push_back({route.method, route.path, route.open});
  return routes;
}

}  // namespace inferd
