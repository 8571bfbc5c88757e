// GET /metrics. Names and meanings are an interface: docs/metrics.md, held to these tables by a test.
#include "base/memory_info.h"
#include "base/strings.h"
#include "server/pages.h"
#include "server/router.h"

namespace inferd {
namespace {

class MetricWriter {
 public:
  void family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    out_ += cat("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
  }

  void value(double value, std::string_view labels = "") { sample("", labels, value); }
  void value(int64_t value, std::string_view labels = "") { sample("", labels, static_cast<double>(value)); }

  void histogram(const Histogram& histogram, std::string_view label = "") {
    const std::string_view comma = label.empty() ? "" : ",";
    const std::span<const double> bounds = histogram.bounds();
    int64_t below = 0;
    for (size_t i = 0; i < bounds.size(); ++i) {
      below += histogram.count(i);
      sample("_bucket", cat(label, comma, "le=\"", bounds[i], "\""), static_cast<double>(below));
    }
    below += histogram.count(bounds.size());
    sample("_bucket", cat(label, comma, "le=\"+Inf\""), static_cast<double>(below));
    sample("_sum", label, histogram.sum());
    sample("_count", label, static_cast<double>(below));
  }

  std::string take() { return std::move(out_); }

 private:
  void sample(std::string_view suffix, std::string_view labels, double value) {
    out_ += name_;
    out_ += suffix;
    if (!labels.empty()) out_ += cat("{", labels, "}");
    out_.push_back(' ');
    // Counts are whole: written without an exponent, so that they compare as text too.
    if (value == static_cast<double>(static_cast<int64_t>(value))) {
      append_any(out_, static_cast<int64_t>(value));
    } else {
      append_any(out_, value);
    }
    out_.push_back('\n');
  }

  std::string out_;
  std::string name_;
};

// A label's value, escaped as the format has it.
std::string label(std::string_view name, std::string_view value) {
  std::string out = cat(name, "=\"");
  for (const char c : value) {
    if (c == '\\' || c == '"') out.push_back('\\');
    if (c == '\n') {
      out += "\\n";
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
  return out;
}

int64_t cached_prompt_tokens(const EngineMetrics& m) {
  return m.prefix_hit_tokens.value();
}

double oldest_wait_seconds(const ServerState& s) {
  const int64_t arrival = s.engine().metrics().queue_oldest_ns.value();
  return arrival == 0 ? 0 : std::max(0.0, s.options.clock->seconds_since(arrival));
}

void write_requests(MetricWriter& w, const ServerState& s) {
  const EngineMetrics& m = s.engine().metrics();
  const ServerMetrics& h = s.metrics;
  const auto write = [&](std::string_view outcome, std::string_view reason, int64_t value) {
    w.value(value, cat(label("outcome", outcome), ",", label("reason", reason)));
  };
  write("finished", "stop", m.finished_stop.value());
  write("finished", "length", m.finished_length.value());
  write("cancelled", "client", m.finished_cancelled.value());
  write("failed", "error", m.finished_error.value());
  write("rejected", "invalid", h.rejected_invalid.value());
  write("rejected", "context", m.rejected_context.value() + h.rejected_context.value());
  write("rejected", "kv", m.rejected_kv.value() + h.rejected_kv.value());
  write("rejected", "full", m.rejected_full.value());
  write("rejected", "draining", m.rejected_draining.value() + h.rejected_draining.value());
}

void write_http(MetricWriter& w, const ServerState& s) {
  static constexpr std::array<std::string_view, 3> kClasses = {"2xx", "4xx", "5xx"};
  const std::vector<std::string> routes = route_labels();
  for (size_t route = 0; route < routes.size(); ++route) {
    for (size_t c = 0; c < kClasses.size(); ++c) {
      w.value(s.metrics.http_requests[route][c].value(),
              cat(label("route", routes[route]), ",", label("code", kClasses[c])));
    }
  }
}

struct Family {
  std::string_view name;
  std::string_view type;
  std::string_view help;
  void (*write)(MetricWriter& w, const ServerState& s);
};

constexpr auto kFamilies = std::to_array<Family>({
    {"inferd_requests_running", "gauge", "Choices that hold a slot, at the end of the last step.",
     [](MetricWriter& w, const ServerState& s) { w.value(s.engine().metrics().requests_running.value()); }},
    {"inferd_requests_waiting", "gauge", "Choices that wait for a slot, at the end of the last step.",
     [](MetricWriter& w, const ServerState& s) { w.value(s.engine().metrics().requests_waiting.value()); }},
    {"inferd_queue_oldest_seconds", "gauge",
     "Time since the arrival of the choice that has waited longest; 0 when none waits.",
     [](MetricWriter& w, const ServerState& s) { w.value(oldest_wait_seconds(s)); }},
    {"inferd_requests_total", "counter",
     "Choices that ended (finished: a stop token or string, or the length; cancelled: the client hung up, or "
     "the server shut down; failed: an error), and "
     "generation requests that were refused (rejected: invalid, beyond the context, beyond the KV pool, too "
     "many in flight, draining).",
     write_requests},
    {"inferd_kv_blocks", "gauge",
     "KV pages by state: named by a running sequence, kept for the prefix cache only, or free. They add up "
     "to the pool.",
     [](MetricWriter& w, const ServerState& s) {
       const EngineMetrics& m = s.engine().metrics();
       w.value(m.kv_blocks_active.value(), label("state", "active"));
       w.value(m.kv_blocks_cached.value(), label("state", "cached"));
       w.value(m.kv_blocks_free.value(), label("state", "free"));
     }},
    {"inferd_prompt_tokens_total", "counter",
     "Prompt tokens of admitted choices, once each: taken from the prefix cache or a sibling (cache), or "
     "computed (compute).",
     [](MetricWriter& w, const ServerState& s) {
       const EngineMetrics& m = s.engine().metrics();
       const int64_t cached = cached_prompt_tokens(m);
       w.value(cached, label("source", "cache"));
       w.value(std::max<int64_t>(0, m.prompt_tokens.value() - cached), label("source", "compute"));
     }},
    {"inferd_generation_tokens_total", "counter", "Tokens drawn, stop tokens included.",
     [](MetricWriter& w, const ServerState& s) { w.value(s.engine().metrics().generation_tokens.value()); }},
    {"inferd_preemptions_total", "counter",
     "Times that a running sequence gave its KV pages back and was queued again.",
     [](MetricWriter& w, const ServerState& s) { w.value(s.engine().metrics().preemptions.value()); }},
    {"inferd_steps_total", "counter", "Steps launched.",
     [](MetricWriter& w, const ServerState& s) { w.value(s.engine().metrics().steps.value()); }},
    {"inferd_time_to_first_token_seconds", "histogram",
     "From submission to the engine to the end of the step that drew the first token, per choice.",
     [](MetricWriter& w, const ServerState& s) { w.histogram(s.engine().metrics().ttft_seconds); }},
    {"inferd_inter_token_latency_seconds", "histogram",
     "Between two neighbouring tokens of a choice; all gaps pooled, the first token has none.",
     [](MetricWriter& w, const ServerState& s) { w.histogram(s.engine().metrics().inter_token_seconds); }},
    {"inferd_request_time_per_output_token_seconds", "histogram",
     "Per choice of at least two tokens: time from the first token to the last, divided by the tokens after "
     "the first.",
     [](MetricWriter& w, const ServerState& s) {
       w.histogram(s.engine().metrics().time_per_output_token_seconds);
     }},
    {"inferd_request_seconds", "histogram",
     "From submission to the engine to the end, per choice, however it ended.",
     [](MetricWriter& w, const ServerState& s) { w.histogram(s.engine().metrics().request_seconds); }},
    {"inferd_request_phase_seconds", "histogram",
     "Per choice: submission to first step (queue), first step to first token (prefill), first token to last "
     "(decode).",
     [](MetricWriter& w, const ServerState& s) {
       const EngineMetrics& m = s.engine().metrics();
       w.histogram(m.queue_seconds, label("phase", "queue"));
       w.histogram(m.prefill_seconds, label("phase", "prefill"));
       w.histogram(m.decode_seconds, label("phase", "decode"));
     }},
    {"inferd_step_seconds", "histogram",
     "Time of a step, from its launch (or the end of the one before) to its results.",
     [](MetricWriter& w, const ServerState& s) { w.histogram(s.engine().metrics().step_seconds); }},
    {"inferd_step_sequences", "histogram", "Sequences in a step.",
     [](MetricWriter& w, const ServerState& s) { w.histogram(s.engine().metrics().step_sequences); }},
    {"inferd_step_tokens", "histogram", "Tokens computed in a step, prompt chunks included.",
     [](MetricWriter& w, const ServerState& s) { w.histogram(s.engine().metrics().step_tokens); }},
    {"inferd_engine_up", "gauge",
     "1 while the engine's loop turns, 0 when it failed, or stalls with work in flight.",
     [](MetricWriter& w, const ServerState& s) {
       w.value(int64_t{!s.engine_failed() && !s.engine_stalled()});
     }},
    {"inferd_http_requests_total", "counter", "HTTP requests answered, by route and class of status.",
     write_http},
    {"inferd_http_requests_in_flight", "gauge",
     "HTTP requests from their first byte to the end of the answer, this one included.",
     [](MetricWriter& w, const ServerState& s) { w.value(s.in_flight.load(std::memory_order_relaxed)); }},
    {"inferd_http_connections", "gauge", "Open connections.",
     [](MetricWriter& w, const ServerState& s) { w.value(s.connections.load(std::memory_order_relaxed)); }},
    {"inferd_http_connections_total", "counter", "Connections taken.",
     [](MetricWriter& w, const ServerState& s) { w.value(s.metrics.connections_total.value()); }},
    {"inferd_http_connections_refused_total", "counter",
     "Connections closed at once: too many, or no file descriptor left.",
     [](MetricWriter& w, const ServerState& s) { w.value(s.metrics.connections_refused.value()); }},
    {"inferd_http_clients_gone_total", "counter",
     "Generation requests whose client hung up before the answer was complete.",
     [](MetricWriter& w, const ServerState& s) { w.value(s.metrics.clients_gone.value()); }},
    {"inferd_http_slow_readers_total", "counter",
     "Connections closed because the client did not read its answer.",
     [](MetricWriter& w, const ServerState& s) { w.value(s.metrics.slow_readers.value()); }},
    {"inferd_http_timeouts_total", "counter", "Connections closed because a request did not arrive in time.",
     [](MetricWriter& w, const ServerState& s) { w.value(s.metrics.timeouts.value()); }},
    {"inferd_resident_memory_bytes", "gauge", "Resident memory of the process.",
     [](MetricWriter& w, const ServerState&) { w.value(resident_memory()); }},
    {"inferd_uptime_seconds", "gauge", "Time since the server started to listen.",
     [](MetricWriter& w, const ServerState& s) { w.value(s.uptime_seconds()); }},
    {"inferd_build_info", "gauge", "Always 1; which program this is.",
     [](MetricWriter& w, const ServerState& s) {
       w.value(int64_t{1},
               cat(label("version", s.options.version), ",", label("git_sha", s.options.git_sha)));
     }},
    {"inferd_model_info", "gauge", "Always 1; which model is served, and on what.",
     [](MetricWriter& w, const ServerState& s) {
       w.value(int64_t{1}, cat(label("model", s.model.name), ",",
                               label("architecture", s.engine().runner().decoder().config().architecture),
                               ",", label("device", s.engine().runner().device().name()), ",",
                               label("ctx", cat(s.view.limits.ctx)), ",",
                               label("max_seqs", cat(s.view.limits.max_seqs))));
     }},
});

struct JsonRow {
  std::string_view name;
  std::string_view type;
  std::string_view help;
  Json (*value)(const ServerState& s);
};

constexpr auto kJsonRows = std::to_array<JsonRow>({
    {"requests_running", "integer", "Choices that hold a slot.",
     [](const ServerState& s) { return Json(s.engine().metrics().requests_running.value()); }},
    {"requests_waiting", "integer", "Choices that wait for a slot.",
     [](const ServerState& s) { return Json(s.engine().metrics().requests_waiting.value()); }},
    {"kv_blocks_total", "integer", "KV pages of the pool.",
     [](const ServerState& s) { return Json(s.engine().metrics().kv_blocks_total.value()); }},
    {"kv_blocks_active", "integer", "KV pages named by a running sequence.",
     [](const ServerState& s) { return Json(s.engine().metrics().kv_blocks_active.value()); }},
    {"kv_blocks_cached", "integer", "KV pages kept for the prefix cache only.",
     [](const ServerState& s) { return Json(s.engine().metrics().kv_blocks_cached.value()); }},
    {"kv_blocks_free", "integer", "KV pages that hold nothing.",
     [](const ServerState& s) { return Json(s.engine().metrics().kv_blocks_free.value()); }},
    {"preemptions_total", "integer", "Times that a running sequence gave its KV pages back.",
     [](const ServerState& s) { return Json(s.engine().metrics().preemptions.value()); }},
    {"prompt_tokens_total", "integer", "Prompt tokens of admitted choices.",
     [](const ServerState& s) { return Json(s.engine().metrics().prompt_tokens.value()); }},
    {"prefix_hit_tokens_total", "integer", "Of those, taken from the prefix cache or a sibling.",
     [](const ServerState& s) { return Json(cached_prompt_tokens(s.engine().metrics())); }},
    {"generation_tokens_total", "integer", "Tokens drawn.",
     [](const ServerState& s) { return Json(s.engine().metrics().generation_tokens.value()); }},
    {"step_sequences_max", "integer", "The most sequences that one step has had.",
     [](const ServerState& s) { return Json(s.engine().metrics().step_sequences_max.value()); }},
    {"waiting_sequences", "integer", "requests_waiting.",
     [](const ServerState& s) { return Json(s.engine().metrics().requests_waiting.value()); }},
    {"active_sequences", "integer", "requests_running.",
     [](const ServerState& s) { return Json(s.engine().metrics().requests_running.value()); }},
    {"completed_sequences", "integer", "Choices that ended at a stop or at their length.",
     [](const ServerState& s) {
       return Json(s.engine().metrics().finished_stop.value() + s.engine().metrics().finished_length.value());
     }},
    {"failed_sequences", "integer", "Choices that ended with an error.",
     [](const ServerState& s) { return Json(s.engine().metrics().finished_error.value()); }},
    {"admitted_sequences", "integer", "Choices that got a slot.",
     [](const ServerState& s) { return Json(s.engine().metrics().admitted.value()); }},
    {"evicted_sequences", "integer", "preemptions_total.",
     [](const ServerState& s) { return Json(s.engine().metrics().preemptions.value()); }},
    {"iterations", "integer", "Steps launched.",
     [](const ServerState& s) { return Json(s.engine().metrics().steps.value()); }},
    {"total_generated_tokens", "integer", "generation_tokens_total.",
     [](const ServerState& s) { return Json(s.engine().metrics().generation_tokens.value()); }},
    {"used_blocks", "integer", "kv_blocks_active.",
     [](const ServerState& s) { return Json(s.engine().metrics().kv_blocks_active.value()); }},
    {"free_blocks", "integer", "Pages that a request can get: kv_blocks_free and kv_blocks_cached.",
     [](const ServerState& s) {
       return Json(s.engine().metrics().kv_blocks_free.value() +
                   s.engine().metrics().kv_blocks_cached.value());
     }},
    {"max_blocks_used", "integer", "The most pages that were active at the end of a step.",
     [](const ServerState& s) { return Json(s.engine().metrics().kv_blocks_used_max.value()); }},
    {"tokens_per_second", "number", "Tokens drawn over the last five seconds, per second, to two decimals.",
     [](const ServerState& s) {
       const double rate =
           s.rate.per_second(s.options.clock->now_ns(), s.engine().metrics().generation_tokens.value());
       return Json(*parse_double(fixed(rate, 2)));
     }},
    {"last_ttft_s", "number or null", "Time to first token of the choice that got its first token last.",
     [](const ServerState& s) {
       const int64_t ns = s.engine().metrics().last_ttft_ns.value();
       return ns == 0 ? Json() : Json(static_cast<double>(ns) * 1e-9);
     }},
    {"peak_vram_mb", "number",
     "Most memory held, in 10^6 bytes: of the device; on the CPU, resident memory of the process.",
     [](const ServerState&) { return Json(static_cast<double>(peak_resident_memory()) * 1e-6); }},
    {"uptime_s", "number", "Time since the server started to listen.",
     [](const ServerState& s) { return Json(s.uptime_seconds()); }},
    {"model", "string", "The served name.", [](const ServerState& s) { return Json(s.model.name); }},
});

}  // namespace

std::string metrics_text(const ServerState& state) {
  MetricWriter writer;
  for (const Family& family : kFamilies) {
    writer.family(family.name, family.type, family.help);
    family.write(writer, state);
  }
  return writer.take();
}

std::string metrics_json(const ServerState& state) {
  Json::Object object;
  for (const JsonRow& row : kJsonRows) object.emplace_back(row.name, row.value(state));
  return to_json(Json(std::move(object)));
}

std::vector<MetricRow> metric_rows() {
  std::vector<MetricRow> rows;
  for (const Family& family : kFamilies) rows.push_back({family.name, family.type, family.help});
  return rows;
}

std::vector<MetricRow> metric_json_rows() {
  std::vector<MetricRow> rows;
  for (const JsonRow& row : kJsonRows) rows.push_back({row.name, row.type, row.help});
  return rows;
}

}  // namespace inferd
