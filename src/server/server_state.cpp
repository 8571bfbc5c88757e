#include "server/server_state.h"

namespace inferd {
namespace {

constexpr int64_t kWindowNs = 5'000'000'000;

}  // namespace

void RateWindow::sample(int64_t now_ns, int64_t count) {
  const std::scoped_lock lock(mutex_);
  samples_[next_] = {now_ns, count};
  next_ = (next_ + 1) % samples_.size();
  if (filled_ < samples_.size()) ++filled_;
}

double RateWindow::per_second(int64_t now_ns, int64_t count) const {
  const std::scoped_lock lock(mutex_);
  const Sample* oldest = nullptr;
  for (size_t i = 0; i < filled_; ++i) {
    const Sample& sample = samples_[i];
    if (now_ns - sample.time_ns <= kWindowNs && (oldest == nullptr || sample.time_ns < oldest->time_ns))
      oldest = &sample;
  }
  if (oldest == nullptr || now_ns <= oldest->time_ns) return 0;
  return static_cast<double>(count - oldest->count) * 1e9 / static_cast<double>(now_ns - oldest->time_ns);
}

ServerState::ServerState(ServedModel served, ServerOptions chosen, bool beyond_loopback)
    : model(std::move(served)),
      view(ModelView::of(model)),
      options(std::move(chosen)),
      access(options.host, beyond_loopback, options.api_key),
      started_ns(options.clock->now_ns()) {}

bool ServerState::engine_stalled() const {
  return engine().requests_in_flight() > 0 &&
         engine().heartbeat_age_ns() > options.stalled_engine_ms * 1'000'000;
}

}  // namespace inferd
