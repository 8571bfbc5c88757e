#include "base/progress.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <vector>

#include "base/strings.h"

namespace inferd {
namespace {

class ManualClock final : public Clock {
 public:
  int64_t now_ns() const override { return now_; }
  void pass(double seconds) { now_ += static_cast<int64_t>(seconds * 1e9); }

 private:
  int64_t now_ = 1000;
};

constexpr int64_t kMiB = int64_t{1} << 20;

TEST(ProgressMeter, the_rate_is_that_of_the_last_ten_seconds) {
  ManualClock clock;
  ProgressMeter meter(clock, "fetch", "a.gguf", 100 * kMiB);
  ProgressEvent event;
  for (int second = 1; second <= 20; ++second) {  // 1 MiB/s, then 4 MiB/s
    clock.pass(1);
    event = meter.update((second <= 10 ? second : 10 + 4 * (second - 10)) * kMiB);
    if (second == 10) {
      EXPECT_NEAR(event.rate / kMiB, 1.0, 1e-9);
    }
  }
  EXPECT_NEAR(event.rate / kMiB, 4.0, 1e-9);  // the first ten seconds have left the window
  EXPECT_EQ(event.done, 50 * kMiB);
  EXPECT_NEAR(event.eta_s, 12.5, 1e-9);
}

TEST(ProgressMeter, done_never_falls_and_a_stall_is_timed) {
  ManualClock clock;
  ProgressMeter meter(clock, "fetch", "a.gguf", 100);
  clock.pass(1);
  EXPECT_EQ(meter.update(40).done, 40);
  clock.pass(3);
  const ProgressEvent restarted = meter.update(4);  // the download began again
  EXPECT_EQ(restarted.done, 40);
  EXPECT_NEAR(restarted.stalled_s, 3.0, 1e-9);
  clock.pass(1);
  const ProgressEvent moving = meter.update(14);  // bytes come again, though they are not new
  EXPECT_EQ(moving.done, 40);
  EXPECT_EQ(moving.stalled_s, 0);
  EXPECT_EQ(meter.update(1000).done, 100);  // more than the pinned size is not more than whole
}

TEST(ProgressMeter, what_was_here_before_counts_but_not_for_the_rate) {
  ManualClock clock;
  ProgressMeter meter(clock, "pull", "a.gguf", 100 * kMiB);
  meter.resume(60 * kMiB);
  clock.pass(1);
  const ProgressEvent event = meter.update(62 * kMiB);
  EXPECT_EQ(event.done, 62 * kMiB);
  EXPECT_NEAR(event.rate / kMiB, 2.0, 1e-9);
  EXPECT_NEAR(event.eta_s, 19.0, 1e-9);
  meter.resume(10 * kMiB);
  EXPECT_EQ(meter.update(62 * kMiB).done, 62 * kMiB);
  meter.resume(1000 * kMiB);
  EXPECT_EQ(meter.update(0).done, 100 * kMiB);
}

constexpr ProgressEvent kEvent{.phase = "fetch",
                               .file = "smollm2.gguf",
                               .done = 41313894,
                               .total = 98362432,
                               .rate = 7.5 * kMiB,
                               .eta_s = 7.2};

TEST(ProgressLine, leaves_out_the_least_telling_fields_as_it_gets_narrow) {
  EXPECT_EQ(progress_bar_line(kEvent, 5, 110),
            "fetch smollm2.gguf  42 % [################------------------------]    39.4/93.8 MiB    7.50 "
            "MiB/s      7 s");
  EXPECT_EQ(progress_bar_line(kEvent, 5, 80),
            "fetch smollm2.gguf  42 % [#####--------]    39.4/93.8 MiB    7.50 MiB/s      7 s");
  EXPECT_EQ(progress_bar_line(kEvent, 5, 60), "fetch smollm2.gguf  42 %    39.4/93.8 MiB    7.50 MiB/s");
  EXPECT_EQ(progress_bar_line(kEvent, 5, 40), "fetch smollm2.gguf  42 % [#####--------]");
  EXPECT_EQ(progress_bar_line(kEvent, 5, 20), "fetch smollm2.  42 %");
}

TEST(ProgressLine, fits_every_width_and_keeps_its_columns) {
  for (int columns = 1; columns <= 200; ++columns) {
    const size_t width = progress_bar_line(kEvent, 5, columns).size();
    EXPECT_LE(width, static_cast<size_t>(columns));
    for (int64_t done = 0; done <= kEvent.total; done += kEvent.total / 7) {
      ProgressEvent event = kEvent;
      event.done = done;
      event.eta_s = done == 0 ? -1 : 3725;
      EXPECT_EQ(progress_bar_line(event, 5, columns).size(), width)
          << columns << " columns, " << done << " bytes";
    }
  }
}

TEST(ProgressLine, plain_lines_name_everything) {
  EXPECT_EQ(progress_plain_line(kEvent, 5),
            "fetch smollm2.gguf  42 %  39.4 of 93.8 MiB  7.50 MiB/s  7 s left");
  ProgressEvent stalled = kEvent;
  stalled.stalled_s = 12;
  EXPECT_EQ(progress_plain_line(stalled, 5), "fetch smollm2.gguf  42 %  39.4 of 93.8 MiB  stalled 12 s");
  EXPECT_EQ(progress_plain_line({.phase = "wait", .file = "smollm2"}, 75), "wait smollm2  1:15");
}

// What a printer wrote, read back from a pipe.
class Printed {
 public:
  Printed() { EXPECT_EQ(::pipe(fds_.data()), 0); }
  ~Printed() { ::close(fds_[0]); }
  int fd() const { return fds_[1]; }
  std::string text() {
    ::close(fds_[1]);
    std::string text;
    std::array<char, 4096> piece;
    for (ssize_t got = 0; (got = ::read(fds_[0], piece.data(), piece.size())) > 0;)
      text.append(piece.data(), static_cast<size_t>(got));
    return text;
  }

 private:
  std::array<int, 2> fds_{};
};

TEST(ProgressPrinter, a_quick_phase_is_one_line) {
  Printed printed;
  ManualClock clock;
  ProgressPrinter printer(clock, printed.fd(), ProgressStyle::bar, [] { return 80; });
  printer.begin("load");
  clock.pass(1.9);
  printer.update({.phase = "load", .done = 50, .total = 100});
  printer.end("93.8 MiB");
  EXPECT_EQ(printed.text(), "  load          1.9 s  93.8 MiB\n");
}

TEST(ProgressPrinter, a_bar_is_redrawn_in_place_and_erased_at_the_end) {
  Printed printed;
  ManualClock clock;
  int columns = 40;
  ProgressPrinter printer(clock, printed.fd(), ProgressStyle::bar, [&] { return columns; });
  const ProgressEvent event{
      .phase = "fetch", .file = "a", .done = 50 * kMiB, .total = 100 * kMiB, .rate = kMiB};
  printer.update(event);
  clock.pass(2);
  printer.update(event);
  clock.pass(0.05);
  printer.update(event);  // sooner than a tenth of a second after the last: not drawn
  columns = 20;           // the terminal was made narrower
  clock.pass(1);
  printer.update(event);
  printer.end();
  EXPECT_EQ(printed.text(),
            "\rfetch a  50 %   50.0/100.0 MiB\x1b[K\rfetch a  50 %\x1b[K\r\x1b[K  fetch         3.1 s\n");
}

TEST(ProgressPrinter, off_a_terminal_there_is_a_line_every_five_per_cent_or_ten_seconds) {
  Printed printed;
  ManualClock clock;
  ProgressPrinter printer(clock, printed.fd(), ProgressStyle::lines, [] { return 80; });
  for (int tenth = 0; tenth <= 300; ++tenth) {  // 30 s: 1 % a second for ten seconds, then nothing
    printer.update({.phase = "fetch", .done = std::min(tenth, 100), .total = 1000, .rate = 10});
    clock.pass(0.1);
  }
  printer.abandon();
  EXPECT_EQ(printed.text(),
            "  fetch  5 %  50 of 1000 B  10 B/s\n"
            "  fetch  10 %  100 of 1000 B  10 B/s\n"
            "  fetch  10 %  100 of 1000 B  10 B/s\n"
            "  fetch  10 %  100 of 1000 B  10 B/s\n");
}

TEST(ProgressPrinter, a_note_has_a_line_of_its_own_and_the_bar_comes_back_below) {
  Printed printed;
  ManualClock clock;
  {
    ProgressPrinter printer(clock, printed.fd(), ProgressStyle::bar, [] { return 30; });
    printer.begin("wait");
    clock.pass(3);
    printer.update({.phase = "wait", .file = "a"});
    printer.note("stalled 12 s, retrying 2/5");
    clock.pass(1);
    printer.update({.phase = "wait", .file = "a"});
  }
  EXPECT_EQ(printed.text(),
            "\rwait a  3 s\x1b[K\r\x1b[K  stalled 12 s, retrying 2/5\n\rwait a  4 s\x1b[K\r\x1b[K");
}

TEST(ProgressPrinter, an_abandoned_phase_leaves_the_line_clean) {
  Printed printed;
  ManualClock clock;
  {
    ProgressPrinter printer(clock, printed.fd(), ProgressStyle::bar, [] { return 30; });
    printer.begin("wait");
    clock.pass(3);
    printer.update({.phase = "wait", .file = "a"});
  }
  EXPECT_EQ(printed.text(), "\rwait a  3 s\x1b[K\r\x1b[K");
}

}  // namespace
}  // namespace inferd
