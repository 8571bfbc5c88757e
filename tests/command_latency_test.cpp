// What a person waits for at each key: help, and completion while no server runs. From the start of the
// process to its end, beside the model folder of this user.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/strings.h"
#include "support/process.h"

namespace inferd {
namespace {

constexpr int kRounds = 200;

// Milliseconds of each call, in order of size.
std::vector<double> times_of(const std::vector<std::vector<std::string>>& commands) {
  std::vector<double> times;
  for (int i = 0; i < kRounds; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const test::Finished finished =
        test::run_process(INFERD_BINARY_DIR "/inferd", commands[static_cast<size_t>(i) % commands.size()]);
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
    EXPECT_EQ(finished.code, 0) << finished.err;
    EXPECT_FALSE(finished.out.empty());
  }
  std::ranges::sort(times);
  return times;
}

// The 95th of a hundred is under the bound; the figures are printed.
void expect_quick(std::string_view what, const std::vector<double>& times, double bound_ms) {
  const double p95 = times[times.size() * 95 / 100];
  std::printf("%s: p50 %.2f ms, p95 %.2f ms, longest %.2f ms, of %zu\n", std::string(what).c_str(),
              times[times.size() / 2], p95, times.back(), times.size());
  EXPECT_LT(p95, bound_ms) << what;
}

TEST(CommandLatency, help_and_completion) {
  expect_quick("--help", times_of({{"--help"}, {"serve", "--help"}, {"run", "--help"}, {"pull", "--help"}}),
               20);
  expect_quick("completion",
               times_of({{"complete", ""},
                         {"complete", "run", ""},
                         {"complete", "serve", "-"},
                         {"complete", "serve", "--kv-dtype", ""},
                         {"complete", "rm", "s"}}),
               50);
}

}  // namespace
}  // namespace inferd
