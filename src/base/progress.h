// How a long operation says where it is: events with done, total, rate and time left, and the printer that
// shows them on stderr. A phase prints its name and time when it ends, and progress once it has run for two
// seconds.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"

namespace inferd {

struct ProgressEvent {
  std::string_view phase;  // "fetch"
  std::string_view file;   // "smollm2.gguf"; may be empty
  int64_t done = 0;        // bytes
  int64_t total = 0;       // bytes; 0: not known
  double rate = 0;         // bytes per second over the last ten seconds
  double eta_s = -1;       // seconds left at that rate; negative: not known
  double stalled_s = 0;    // seconds without a byte, also of what was fetched before and begins anew
};

// Turns a growing byte count into events: `done` never falls, the rate is that of the last ten seconds.
class ProgressMeter {
 public:
  // The two names must outlive the meter. `total` 0: not known.
  ProgressMeter(const Clock& clock, std::string_view phase, std::string_view file, int64_t total);
  ProgressEvent update(int64_t done);
  // `done` was here before this operation began: it counts, but not for the rate.
  void resume(int64_t done);

 private:
  struct Sample {
    int64_t at_ns;
    int64_t done;
  };
  const Clock& clock_;
  ProgressEvent event_;
  int64_t grew_ns_;
  int64_t seen_ = 0;            // given to the last update(), which may be less than `done`
  std::deque<Sample> samples_;  // at most one a tenth of a second
};

// bar: one line on a terminal, redrawn. lines: a plain line every ten seconds or five per cent, but never two
// within two seconds, for pipes, files and TERM=dumb. Neither uses colour.
enum class ProgressStyle { bar, lines };

// Columns of the terminal behind `fd` (TIOCGWINSZ), else 80.
int terminal_columns(int fd);

class ProgressPrinter {
 public:
  // `columns` is asked before each drawing, so a resize shows at once.
  ProgressPrinter(const Clock& clock, int fd, ProgressStyle style, std::function<int()> columns);
  ProgressPrinter(const ProgressPrinter&) = delete;
  ProgressPrinter& operator=(const ProgressPrinter&) = delete;
  ~ProgressPrinter();  // a phase that was not ended leaves no bar behind

  // Nothing is drawn from now on: each phase's end goes here instead.
  using PhaseLog = std::function<void(std::string_view phase, double seconds, std::string_view note)>;
  void log_to(PhaseLog log) { log_ = std::move(log); }

  // One phase at a time; one thread. begin() ends a phase that is still open.
  void begin(std::string_view phase);
  void update(const ProgressEvent& event);  // begins event.phase when another one, or none, is open
  void end(std::string_view note = {});     // "  fetch       12.3 s  note"; nothing when no phase is open
  void note(std::string_view text);         // a line of its own; the phase stays open
  // The open phase failed or was stopped: the bar is taken away, no line is printed.
  void abandon();

 private:
  void draw(std::string_view line);
  void erase();
  void write(std::string_view text);

  const Clock& clock_;
  const int fd_;
  const ProgressStyle style_;
  const std::function<int()> columns_;
  PhaseLog log_;
  std::string phase_;
  int64_t begin_ns_ = 0;
  int64_t shown_ns_ = 0;
  int64_t shown_done_ = 0;
  bool drawn_ = false;
};

// The text of a bar line, at most `columns` wide: fields are left out from the least to the most telling when
// it gets narrow, and those that stay keep their columns from one call to the next.
std::string progress_bar_line(const ProgressEvent& event, double elapsed_s, int columns);
// The same without a bar, for logs: "fetch smollm2.gguf  42 %  39.4 of 93.8 MiB  7.5 MiB/s  7 s left".
std::string progress_plain_line(const ProgressEvent& event, double elapsed_s);

}  // namespace inferd
