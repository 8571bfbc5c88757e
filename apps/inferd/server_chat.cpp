// A chat's model behind a running server, over its OpenAI-compatible routes.
#include <algorithm>

#include "chat_model.h"
#include "client/event_reader.h"
#include "client/http_client.h"
#include "environment.h"

namespace inferd {
namespace {

// The server's own error, from its JSON: the same code, with a fix for who sits at a terminal.
Error server_error(const HttpAnswer& answer, const LoopbackUrl& url, std::string_view body) {
  Error error{.code = Code::server_answer, .detail = cat("HTTP ", answer.status), .where = url.text()};
  const Result<Json> json = parse_json(body);
  const Json* inner = json.ok() ? json->find("error") : nullptr;
  const Json* code = inner != nullptr ? inner->find("code") : nullptr;
  const Json* message = inner != nullptr ? inner->find("message") : nullptr;
  if (message == nullptr || !message->is_string()) return error;
  error.detail += cat(": ", printable(message->as_string(), 300));
  if (code == nullptr || !code->is_string()) return error;
  for (const ErrorRow& row : error_table()) {
    if (row.id != code->as_string()) continue;
    error.code = row.code;
    std::string_view text = message->as_string();
    if (text.starts_with(row.text)) text.remove_prefix(row.text.size());
    if (text.starts_with(": ")) text.remove_prefix(2);
    error.detail = text;
  }
  if (error.code == Code::req_auth)
    error.fix = "give --api-key-file FILE with the key of this server, or --no-server";
  return error;
}

// Members of `object` that this program's own servers always send.
Result<const Json*> member(const Json& object, std::string_view name, const LoopbackUrl& url) {
  const Json* value = object.find(name);
  if (value != nullptr) return value;
  return Error{.code = Code::server_answer, .detail = cat("its answer has no ", name), .where = url.text()};
}

double number(const Json* object, std::string_view name) {
  const Json* value = object != nullptr ? object->find(name) : nullptr;
  return value != nullptr && value->is_number() ? value->as_number() : 0;
}

class ServerChat final : public ChatModel {
 public:
  ServerChat(ServerNote server, LoopbackUrl url, std::string key)
      : server_(std::move(server)), url_(std::move(url)), key_(std::move(key)) {}

  const std::string& name() const override { return server_.model; }
  std::string where() const override {
    return cat("the server at ", server_.url, " (pid ", server_.pid, ")");
  }
  std::string server_url() const override { return server_.url; }
  int64_t context() const override { return server_.context; }
  std::optional<SamplingParams> defaults() const override { return std::nullopt; }

  // Whether it answers and takes the key.
  Status greet() {
    HttpCall call = make_call("GET", "/health/ready");
    INFERD_TRY(const HttpAnswer ready, http_call(url_, call));
    if (ready.status != 200) {
      const Result<Json> json = parse_json(ready.body);
      const Json* status = json.ok() ? json->find("status") : nullptr;
      return Error{.code = Code::server_answer,
                   .detail = cat("it is ", status != nullptr && status->is_string() ? status->as_string()
                                                                                    : "not ready"),
                   .where = url_.text()};
    }
    call.path = "/v1/models";
    INFERD_TRY(const HttpAnswer models, http_call(url_, call));
    if (models.status != 200) return server_error(models, url_, models.body);
    return {};
  }

  Result<int64_t> count(const Json::Array& messages) override {
    INFERD_TRY(const Json reply, post("/tokenize", Json(Json::Object{{"messages", messages}})));
    INFERD_TRY(const Json* count, member(reply, "count", url_));
    return static_cast<int64_t>(count->is_number() ? count->as_number() : 0);
  }

  Result<ChatAnswer> answer(const Json::Array& messages, const Options& options,
                            const TextSink& sink) override {
    Json::Object body = {{"model", server_.model},
                         {"messages", messages},
                         {"stream", true},
                         {"stream_options", Json::Object{{"include_usage", true}}}};
    if (options.max_tokens > 0) body.emplace_back("max_tokens", int64_t{options.max_tokens});
    if (options.temperature) body.emplace_back("temperature", *options.temperature);
    if (options.top_p) body.emplace_back("top_p", *options.top_p);
    if (options.top_k) body.emplace_back("top_k", *options.top_k);
    if (options.min_p) body.emplace_back("min_p", *options.min_p);
    if (options.seed) body.emplace_back("seed", static_cast<int64_t>(*options.seed));
    HttpCall call = make_call("POST", "/v1/chat/completions");
    call.body = to_json(Json(std::move(body)));

    Stream stream{.sink = sink, .begin_ns = monotonic_clock().now_ns()};
    const Result<HttpAnswer> reply =
        http_call(url_, call, [&](std::string_view piece) { return take(stream, piece); });
    ChatAnswer& answer = stream.answer;
    if (reply.ok() && reply->status != 200) return server_error(*reply, url_, reply->body);
    if (stream.error) {
      answer.error = std::move(stream.error);
    } else if (!stream.done && !reply.ok() && reply.error().code != Code::interrupted) {
      answer.error = reply.error();
    } else if (!stream.done && reply.ok() && !stream.refused) {
      answer.error =
          Error{.code = Code::server_answer, .detail = "its answer is cut off", .where = url_.text()};
    }
    if (answer.error && answer.text.empty()) return *answer.error;
    if (!stream.done) {
      answer.end = ChatAnswer::End::interrupted;
      answer.output_tokens = stream.deltas;
    }
    if (stream.first_ns != 0)
      answer.first_token_s = static_cast<double>(stream.first_ns - stream.begin_ns) * 1e-9;
    return std::move(answer);
  }

 private:
  struct Stream {
    const TextSink& sink;
    int64_t begin_ns;
    EventReader events;
    ChatAnswer answer;
    std::optional<Error> error;
    int64_t first_ns = 0;
    int64_t deltas = 0;  // with text: no more than the tokens drawn
    bool refused = false;
    bool done = false;
  };

  HttpCall make_call(std::string method, std::string path) const {
    HttpCall call{.method = std::move(method), .path = std::move(path)};
    if (!key_.empty()) call.headers.emplace_back("Authorization", cat("Bearer ", key_));
    call.wake_fd = wakeup_descriptor();
    call.stop = [] {
      clear_wakeup();
      return interrupted().load();
    };
    return call;
  }

  Result<Json> post(const std::string& path, const Json& body) {
    HttpCall call = make_call("POST", path);
    call.body = to_json(body);
    INFERD_TRY(const HttpAnswer answer, http_call(url_, call));
    if (answer.status != 200) return server_error(answer, url_, answer.body);
    Result<Json> json = parse_json(answer.body);
    if (!json.ok())
      return Error{.code = Code::server_answer, .detail = "its answer is no JSON", .where = url_.text()};
    return json;
  }

  // False: the connection is not needed any more.
  bool take(Stream& stream, std::string_view piece) const {
    stream.events.push(piece);
    while (const auto data = stream.events.next()) {
      if (*data == "[DONE]") {  // the end of the body follows: who leaves before it counts as gone
        stream.done = true;
        continue;
      }
      const Result<Json> json = parse_json(*data);
      if (!json.ok()) {
        stream.error = Error{
            .code = Code::server_answer, .detail = "a part of its answer is no JSON", .where = url_.text()};
        return false;
      }
      if (json->find("error") != nullptr) {
        stream.error = server_error({.status = 200}, url_, *data);
        return false;
      }
      take_chunk(stream, *json);
      if (stream.refused) return false;
    }
    return true;
  }

  static void take_chunk(Stream& stream, const Json& chunk) {
    ChatAnswer& answer = stream.answer;
    if (const Json* usage = chunk.find("usage"); usage != nullptr && usage->is_object()) {
      answer.prompt_tokens = static_cast<int64_t>(number(usage, "prompt_tokens"));
      answer.output_tokens = static_cast<int64_t>(number(usage, "completion_tokens"));
      answer.cached_tokens =
          static_cast<int64_t>(number(usage->find("prompt_tokens_details"), "cached_tokens"));
    }
    if (const Json* timings = chunk.find("timings"))
      answer.tokens_per_second = number(timings, "predicted_per_second");
    if (const Json* seed = chunk.find("seed"); seed != nullptr && seed->is_integer())
      answer.seed = static_cast<uint64_t>(seed->as_integer());
    const Json* choices = chunk.find("choices");
    if (choices == nullptr || !choices->is_array() || choices->as_array().empty()) return;
    const Json& choice = choices->as_array().front();
    if (const Json* reason = choice.find("finish_reason"); reason != nullptr && reason->is_string())
      answer.end = reason->as_string() == "length" ? ChatAnswer::End::length : ChatAnswer::End::stop;
    const Json* delta = choice.find("delta");
    const Json* content = delta != nullptr ? delta->find("content") : nullptr;
    if (content == nullptr || !content->is_string() || content->as_string().empty()) return;
    if (stream.first_ns == 0) stream.first_ns = monotonic_clock().now_ns();
    ++stream.deltas;
    answer.text += content->as_string();
    stream.refused = !stream.sink(content->as_string());
  }

  const ServerNote server_;
  const LoopbackUrl url_;
  const std::string key_;
};

}  // namespace

Result<std::unique_ptr<ChatModel>> connect_chat_model(const ServerNote& server, const std::string& key) {
  INFERD_TRY(LoopbackUrl url, LoopbackUrl::parse(server.url));
  auto chat = std::make_unique<ServerChat>(server, std::move(url), key);
  INFERD_TRY_STATUS(chat->greet());
  return std::unique_ptr<ChatModel>(std::move(chat));
}

}  // namespace inferd
