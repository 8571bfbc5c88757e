#include "base/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <utility>

#include "base/strings.h"

namespace inferd {
namespace {

constexpr int64_t kSecond = 1000000000;
constexpr int64_t kRateWindow = 10 * kSecond;
constexpr int64_t kSampleSpacing = kSecond / 10;
constexpr int64_t kQuietTime = 2 * kSecond;  // a phase shorter than this shows no progress
constexpr int64_t kDrawSpacing = kSecond / 10;
constexpr int64_t kLineSpacing = 10 * kSecond;
constexpr double kStalledFrom = 5.0;  // seconds without growth before "stalled" is said

std::string padded(std::string text, size_t width) {
  if (text.size() < width) text.insert(0, width - text.size(), ' ');
  return text;
}

int percent(const ProgressEvent& event) {
  return static_cast<int>(static_cast<double>(event.done) / static_cast<double>(event.total) * 100.0);
}

// "7 s", "2:05", "1:02:05": short, and of one width for most of a download.
std::string clock_time(double seconds) {
  const int64_t whole = std::llround(seconds);
  const auto two = [](int64_t value) { return cat(value < 10 ? "0" : "", value); };
  if (whole < 60) return cat(whole, " s");
  if (whole < 3600) return cat(whole / 60, ":", two(whole % 60));
  return cat(whole / 3600, ":", two(whole / 60 % 60), ":", two(whole % 60));
}

std::string amounts(const ProgressEvent& event, std::string_view between) {
  const std::string total = human_bytes(event.total);
  std::string done = human_bytes(event.done);
  const std::string unit = total.substr(total.find(' '));
  if (done.ends_with(unit)) done.resize(done.size() - unit.size());  // "39.4/93.8 MiB" says the unit once
  return cat(done, between, total);
}

std::string speed(const ProgressEvent& event) {
  if (event.stalled_s >= kStalledFrom) return cat("stalled ", clock_time(event.stalled_s));
  return cat(human_bytes(static_cast<int64_t>(event.rate)), "/s");
}

bool shows_eta(const ProgressEvent& event) {
  return event.eta_s >= 0 && event.stalled_s < kStalledFrom;
}

std::string title(const ProgressEvent& event) {
  return event.file.empty() ? std::string(event.phase) : cat(event.phase, " ", event.file);
}

}  // namespace

ProgressMeter::ProgressMeter(const Clock& clock, std::string_view phase, std::string_view file, int64_t total)
    : clock_(clock), event_{.phase = phase, .file = file, .total = total}, grew_ns_(clock.now_ns()) {
  samples_.push_back({grew_ns_, 0});
}

ProgressEvent ProgressMeter::update(int64_t done) {
  const int64_t now = clock_.now_ns();
  if (event_.total > 0) done = std::min(done, event_.total);
  if (done > seen_) grew_ns_ = now;
  seen_ = done;
  event_.done = std::max(event_.done, done);
  if (now - samples_.back().at_ns >= kSampleSpacing) samples_.push_back({now, event_.done});
  while (samples_.size() > 2 && now - samples_[1].at_ns >= kRateWindow) samples_.pop_front();
  const int64_t span_ns = now - samples_.front().at_ns;
  const auto grown = static_cast<double>(event_.done - samples_.front().done);
  event_.rate = span_ns > 0 ? grown * 1e9 / static_cast<double>(span_ns) : 0;
  event_.eta_s = event_.total > 0 && event_.rate > 0
                     ? static_cast<double>(event_.total - event_.done) / event_.rate
                     : -1;
  event_.stalled_s = static_cast<double>(now - grew_ns_) * 1e-9;
  return event_;
}

void ProgressMeter::resume(int64_t done) {
  if (event_.total > 0) done = std::min(done, event_.total);
  const int64_t more = done - event_.done;
  if (more <= 0) return;
  event_.done = seen_ = done;
  grew_ns_ = clock_.now_ns();
  for (Sample& sample : samples_) sample.done += more;
}

int terminal_columns(int fd) {
  winsize size{};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string progress_bar_line(const ProgressEvent& event, double elapsed_s, int columns) {
  const auto width = static_cast<size_t>(std::max(columns, 1));
  std::string name = title(event);
  if (event.total <= 0) {
    std::string line = cat(name, "  ", clock_time(elapsed_s));
    line.resize(std::min(line.size(), width));
    return line;
  }
  constexpr size_t kAmountWidth = 16, kSpeedWidth = 13, kEtaWidth = 8, kLeastBar = 10;
  const std::string share = padded(cat(percent(event), " %"), 6);
  const std::string amount = padded(amounts(event, "/"), kAmountWidth + 1);
  const std::string rate = padded(speed(event), kSpeedWidth + 1);
  const std::string eta = padded(shows_eta(event) ? clock_time(event.eta_s) : std::string(), kEtaWidth + 1);
  size_t room = width - std::min(width, share.size());
  if (name.size() > room) name.resize(room);
  room -= name.size();
  std::string tail;
  for (const std::string* field : {&amount, &rate, &eta}) {
    if (field->size() > room) break;
    room -= field->size();
    tail += *field;
  }
  std::string bar;
  if (room >= kLeastBar + 3) {  // a space and two brackets around it
    const size_t cells = std::min<size_t>(room - 3, 40);
    const auto full = static_cast<size_t>(static_cast<double>(event.done) / static_cast<double>(event.total) *
                                          static_cast<double>(cells));
    bar = cat(" [", std::string(full, '#'), std::string(cells - full, '-'), "]");
  }
  std::string line = cat(name, share, bar, tail);
  line.resize(std::min(line.size(), width));
  return line;
}

std::string progress_plain_line(const ProgressEvent& event, double elapsed_s) {
  if (event.total <= 0) return cat(title(event), "  ", clock_time(elapsed_s));
  std::string line =
      cat(title(event), "  ", percent(event), " %  ", amounts(event, " of "), "  ", speed(event));
  if (shows_eta(event)) line += cat("  ", clock_time(event.eta_s), " left");
  return line;
}

ProgressPrinter::ProgressPrinter(const Clock& clock, int fd, ProgressStyle style,
                                 std::function<int()> columns)
    : clock_(clock), fd_(fd), style_(style), columns_(std::move(columns)) {}

ProgressPrinter::~ProgressPrinter() {
  abandon();
}

void ProgressPrinter::begin(std::string_view phase) {
  end();
  phase_ = phase;
  begin_ns_ = shown_ns_ = clock_.now_ns();
  shown_done_ = 0;
}

void ProgressPrinter::update(const ProgressEvent& event) {
  if (event.phase != phase_) begin(event.phase);
  const int64_t now = clock_.now_ns();
  if (log_ || now - begin_ns_ < kQuietTime) return;
  const double elapsed_s = static_cast<double>(now - begin_ns_) * 1e-9;
  if (style_ == ProgressStyle::bar) {
    if (drawn_ && now - shown_ns_ < kDrawSpacing) return;
    draw(progress_bar_line(event, elapsed_s,
                           columns_() - 3));  // room for the "^C" that the terminal writes behind it
  } else {
    const bool five_percent_more = now - shown_ns_ >= kQuietTime && event.total > 0 &&
                                   event.done - shown_done_ >= (event.total + 19) / 20;
    if (now - shown_ns_ < kLineSpacing && !five_percent_more) return;
    write(cat("  ", progress_plain_line(event, elapsed_s), "\n"));
  }
  shown_ns_ = now;
  shown_done_ = event.done;
}

void ProgressPrinter::end(std::string_view note) {
  if (phase_.empty()) return;
  erase();
  std::string name = std::exchange(phase_, {});
  if (log_) return log_(name, clock_.seconds_since(begin_ns_), note);
  if (name.size() < 10) name.resize(10, ' ');
  std::string time = padded(human_seconds(clock_.seconds_since(begin_ns_)), 8);
  write(cat("  ", name, " ", time, note.empty() ? "" : "  ", note, "\n"));
}

void ProgressPrinter::note(std::string_view text) {
  erase();
  write(cat("  ", text, "\n"));
}

void ProgressPrinter::abandon() {
  erase();
  phase_.clear();
}

void ProgressPrinter::draw(std::string_view line) {
  // Erase to the end of the line after the new text, not the old line before it: no flicker.
  write(cat("\r", line, "\x1b[K"));
  drawn_ = true;
}

void ProgressPrinter::erase() {
  if (std::exchange(drawn_, false)) write("\r\x1b[K");
}

void ProgressPrinter::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // progress that cannot be shown stops nothing
    text.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace inferd
