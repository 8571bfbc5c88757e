#include "base/strings.h"
#include "server/pages.h"

namespace inferd {
namespace {

std::string html_escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out.push_back(c);
    }
  }
  return out;
}

std::string row(std::string_view name, std::string_view value) {
  return cat("<tr><th>", html_escape(name), "</th><td>", html_escape(value), "</td></tr>\n");
}

std::string_view state_text(const ServerState& state) {
  if (state.engine_failed()) return "failed";
  if (state.draining.load(std::memory_order_acquire)) return "draining";
  return state.engine_stalled() ? "stalled" : "ready";
}

}  // namespace

HttpReply index_reply(const ServerState& state) {
  const EngineMetrics& metrics = state.engine().metrics();
  std::string rows = row("model", state.model.name);
  if (!state.model.aliases.empty()) rows += row("also called", join(state.model.aliases, ", "));
  rows += row("state", state_text(state));
  rows += row("context", cat(with_commas(state.view.limits.ctx), " tokens"));
  rows += row("device", state.engine().runner().device().name());
  for (const auto& [name, value] : state.model.facts) rows += row(name, value);
  rows += row("requests", cat(metrics.requests_running.value(), " running, ",
                              metrics.requests_waiting.value(), " waiting"));
  rows += row("up for", human_seconds(state.uptime_seconds()));
  rows += row("base URL for OpenAI clients", state.base_url + "/v1");

  std::string model;
  append_json_string(model, state.model.name);
  const bool chat = state.model.chat_template != nullptr;
  const std::string key = state.options.api_key ? " -H 'Authorization: Bearer KEY'" : "";
  const std::string body =
      cat("{\"model\": ", model,
          chat ? ", \"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]" : ", \"prompt\": \"Hello\"",
          ", \"max_tokens\": 100, \"stream\": true}");
  std::string quoted;  // for a shell: ' ends the quotes, \' is one, ' opens them again
  for (const char c : body) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  const std::string curl = cat("curl -N ", state.base_url, chat ? "/v1/chat/completions" : "/v1/completions",
                               key, " -H 'Content-Type: application/json' -d '", quoted, "'");

  HttpReply reply{.content_type = "text/html; charset=utf-8"};
  reply.headers.push_back(
      {"Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"});
  reply.body = cat(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>inferd: ",
      html_escape(state.model.name),
      "</title>\n<style>\n:root { color-scheme: light dark }\n"
      "body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem }\n"
      "th { text-align: left; font-weight: normal; padding-right: 2rem; vertical-align: top; opacity: .7 }\n"
      "pre { overflow-x: auto; padding: .8rem; border: 1px solid; border-radius: .3rem "
      "}\n</style>\n</head>\n<body>\n"
      "<h1>inferd</h1>\n<table>\n",
      rows, "</table>\n<h2>Try it</h2>\n<pre>", html_escape(curl),
      "</pre>\n<h2>Routes</h2>\n<ul>\n"
      "<li>POST /v1/chat/completions, POST /v1/completions, <a href=\"/v1/models\">GET /v1/models</a>: as "
      "OpenAI has them</li>\n"
      "<li>POST /generate, POST /tokenize, POST /detokenize</li>\n"
      "<li><a href=\"/metrics\">GET /metrics</a>, <a href=\"/metrics.json\">GET /metrics.json</a></li>\n"
      "<li><a href=\"/healthz\">GET /healthz</a>, <a href=\"/health/live\">GET /health/live</a>, "
      "<a href=\"/health/ready\">GET /health/ready</a></li>\n</ul>\n</body>\n</html>\n");
  return reply;
}

}  // namespace inferd
