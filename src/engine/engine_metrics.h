// What the engine counts. Written on its thread (submit() refusals: any), read by the server.
#pragma once

#include "base/metrics.h"

namespace inferd {

// Upper bounds in seconds: the OpenTelemetry generative AI conventions' buckets for time to first token, with
// finer low ends for a fast machine.
inline constexpr std::array<double, 19> kTtftBounds = {.001, .005, .01, .02, .04, .06, .08, .1, .25, .5,
                                                       .75,  1,    2.5, 5,   7.5, 10,  20,  40, 80};
inline constexpr std::array<double, 15> kItlBounds = {.001, .002, .003, .005, .0075, .01, .015, .02,
                                                      .03,  .05,  .075, .1,   .2,    .5,  1};
inline constexpr std::array<double, 14> kRequestBounds = {.01,  .02,  .04,  .08,   .16,   .32,   .64,
                                                          1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92};
inline constexpr std::array<double, 8> kStepSequenceBounds = {1, 2, 4, 8, 16, 32, 64, 128};
inline constexpr std::array<double, 11> kStepTokenBounds = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};

struct EngineMetrics {
  // Gauges, set at the end of each step.
  Gauge requests_running;  // choices that hold a slot
  Gauge requests_waiting;  // choices that wait for one
  Gauge queue_oldest_ns;   // monotonic arrival of the longest waiting request; 0: none
  Gauge kv_blocks_total;
  Gauge kv_blocks_active;  // named by a running sequence
  Gauge kv_blocks_cached;  // kept for the prefix cache only
  Gauge kv_blocks_free;
  Gauge step_sequences_max;  // the most rows that one step has had
  Gauge last_ttft_ns;        // of the request that last got its first token; 0: none yet
  Gauge kv_blocks_used_max;

  // Counters.
  Counter steps;
  Counter admitted;  // choices that got a slot for the first time
  Counter preemptions;
  Counter prefills_chunked;  // prompt chunks that were not the whole rest of a prompt
  Counter page_forks;        // partial pages copied for a fork
  Counter prompt_tokens;     // of admitted choices, once each
  Counter prefix_hit_tokens;
  Counter generation_tokens;
  Counter finished_stop, finished_length, finished_cancelled, finished_error;  // choices
  Counter rejected_full, rejected_context, rejected_kv, rejected_draining;     // requests refused by submit()

  Histogram ttft_seconds{kTtftBounds};
  Histogram inter_token_seconds{kItlBounds};
  Histogram time_per_output_token_seconds{kItlBounds};  // (finished − first token) / (output tokens − 1)
  Histogram request_seconds{kRequestBounds};
  Histogram queue_seconds{kRequestBounds};    // arrival to first scheduled
  Histogram prefill_seconds{kRequestBounds};  // first scheduled to first token
  Histogram decode_seconds{kRequestBounds};   // first token to finished
  Histogram step_seconds{kItlBounds};
  Histogram step_sequences{kStepSequenceBounds};
  Histogram step_tokens{kStepTokenBounds};
};

}  // namespace inferd
