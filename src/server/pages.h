// The replies that show the server's state: models, health, metrics, the page at /.
#pragma once

#include "server/server_state.h"

namespace inferd {

// OpenAI's list, the served name first, then its aliases.
HttpReply models_reply(const ServerState& state);
Result<HttpReply> model_reply(const ServerState& state, std::string_view name);

// {"status","model","engine_alive","device"}, always 200.
HttpReply healthz_reply(const ServerState& state);
// 200: the loop that answers turns.
HttpReply live_reply();
// 200, or 503 with the reason: draining, failed, stalled.
HttpReply ready_reply(const ServerState& state);

// A page without scripts, for people.
HttpReply index_reply(const ServerState& state);

// Prometheus text format 0.0.4, or the JSON of metrics_json().
std::string metrics_text(const ServerState& state);
std::string metrics_json(const ServerState& state);

// Name, type and definition of each metric, for docs/metrics.md and its test.
struct MetricRow {
  std::string_view name;
  std::string_view type;
  std::string_view help;
};
std::vector<MetricRow> metric_rows();
// The same of the JSON's keys; the type is that of the JSON value.
std::vector<MetricRow> metric_json_rows();

}  // namespace inferd
