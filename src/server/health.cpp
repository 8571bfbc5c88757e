#include "base/strings.h"
#include "server/pages.h"

namespace inferd {
namespace {

Json model_object(const ServerState& state, const std::string& name) {
  return Json(Json::Object{{"id", Json(name)},
                           {"object", Json("model")},
                           {"created", Json(state.model.created)},
                           {"owned_by", Json("inferd")},
                           {"root", Json(state.model.name)},
                           {"max_model_len", Json(int64_t{state.view.limits.ctx})}});
}

}  // namespace

HttpReply models_reply(const ServerState& state) {
  Json::Array models = {model_object(state, state.model.name)};
  for (const std::string& alias : state.model.aliases) models.push_back(model_object(state, alias));
  return json_reply(Json(Json::Object{{"object", Json("list")}, {"data", Json(std::move(models))}}));
}

Result<HttpReply> model_reply(const ServerState& state, std::string_view name) {
  if (state.view.has_name(name)) return json_reply(model_object(state, std::string(name)));
  return Error{.code = Code::req_model,
               .detail = cat(printable(name), "; GET /v1/models lists them"),
               .param = "model"};
}

HttpReply healthz_reply(const ServerState& state) {
  const bool alive = !state.engine_failed() && !state.engine_stalled();
  return json_reply(Json(Json::Object{{"status", Json(alive ? "ok" : "degraded")},
                                      {"model", Json(state.model.name)},
                                      {"engine_alive", Json(alive)},
                                      {"device", Json(state.engine().runner().device().name())}}));
}

HttpReply live_reply() {
  return json_reply(Json(Json::Object{{"status", Json("ok")}}));
}

HttpReply ready_reply(const ServerState& state) {
  std::string_view reason;
  if (state.engine_failed()) {
    reason = "failed";
  } else if (state.draining.load(std::memory_order_acquire) ||
             state.engine().state() == Engine::State::draining) {
    reason = "draining";
  } else if (state.engine_stalled()) {
    reason = "stalled";
  }
  HttpReply reply =
      json_reply(Json(Json::Object{{"status", Json(reason.empty() ? std::string_view("ready") : reason)}}));
  if (!reason.empty()) {
    reply.status = 503;
    reply.headers.push_back({"Retry-After", "1"});
  }
  return reply;
}

}  // namespace inferd
