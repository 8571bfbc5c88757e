#include "support/engine_harness.h"

#include <bit>

namespace inferd::test {
namespace {

template <typename T>
T must(Result<T> result) {
  INFERD_CHECK(result.ok(), result.error().terminal_text());
  return std::move(result).value();
}

}  // namespace

std::shared_ptr<EngineHarness> EngineHarness::create(Backend backend, const std::string& gguf_path,
                                                     const HarnessOptions& options) {
  const GgufFile file = must(GgufFile::open(gguf_path));
  const DecoderConfig config = must(read_decoder_config(file));
  auto decoder = must(Decoder::load(file, config, options.ctx, *backend.device, *backend.ops));
  const int32_t page_tokens = backend.device->kv_page_tokens();
  const int32_t pages = options.kv_pages > 0
                            ? options.kv_pages
                            : static_cast<int32_t>(ceil_div(options.ctx, page_tokens)) * options.max_seqs;
  auto runner = must(Runner::create(std::move(backend), std::move(decoder),
                                    {.ctx = options.ctx,
                                     .max_seqs = options.max_seqs,
                                     .prefill_chunk = options.prefill_chunk,
                                     .kv_pages = pages,
                                     .kv_dtype = options.kv_dtype},
                                    options.banned));
  EngineOptions engine_options;
  engine_options.max_queue = options.max_queue;
  engine_options.scheduler = {.max_seqs = options.max_seqs,
                              .ctx = options.ctx,
                              .prefill_chunk = options.prefill_chunk,
                              .pool = {.pages = pages,
                                       .page_tokens = page_tokens,
                                       .prefix_cache = options.prefix_cache,
                                       .hash_mask = options.hash_mask}};
  auto harness = std::make_shared<EngineHarness>();
  harness->engine_ = std::make_unique<Engine>(std::move(runner), std::move(engine_options));
  return harness;
}

RequestId EngineHarness::submit(Request request) {
  request.sink = shared_from_this();
  return must(engine_->submit(std::move(request)));
}

void EngineHarness::run() {
  while (engine_->step()) {
  }
}

void EngineHarness::on_events(std::vector<Event> events) {
  for (Event& event : events) {
    const std::pair key(event.request, event.choice);
    INFERD_CHECK(!stats_.contains(key), "an event after the finished event");
    Outcome& outcome = outcomes_[key];
    if (event.kind == Event::Kind::token) {
      outcome.ids.push_back(event.id);
      outcome.logprob_bits.push_back(std::bit_cast<uint32_t>(event.logprob));
      for (const TopLogprob& top : event.top)
        outcome.top.emplace_back(top.id, std::bit_cast<uint32_t>(top.logprob));
    } else {
      outcome.reason = event.reason;
      if (event.error) outcome.error = event.error->message();
      stats_[key] = event.stats;
    }
  }
}

}  // namespace inferd::test
