// The program as a process: start, signals, a dying device.
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <random>

#include "support/golden.h"
#include "support/http_client.h"
#include "support/process.h"

namespace inferd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define INFERD_TEST_SANITIZED 1
#endif
#endif

#if defined(INFERD_TEST_SANITIZED)
constexpr int kEvery = 7;  // of the points; each process takes ten times as long
#else
constexpr int kEvery = 1;
#endif

std::string tiny_model() {
  return test::golden_dir() + "/tiny/llama/gguf/tiny-llama-q8_0.gguf";
}

std::vector<std::string> serve_arguments(const std::string& drain = "1") {
  return {"serve",      tiny_model(), "--port", "0",   "--threads",       "1",
          "--max-seqs", "16",         "--ctx",  "512", "--drain-timeout", drain};
}

// One streamed completion, and what became of it.
struct Stream {
  explicit Stream(int port, int max_tokens = 400) : client(port) {
    const std::string body =
        cat(R"({"prompt": "hello", "stream": true, "ignore_eos": true, "temperature": 0, "max_tokens": )",
            max_tokens, "}");
    client.send(test::request_text("POST", "/v1/completions", body, {{"Content-Type", "application/json"}}));
  }
  void finish() {
    response = client.read_response(seconds(20));
    ended = std::chrono::steady_clock::now();
  }
  bool has_error() const {
    for (const std::string& event : response.events()) {
      if (event.find("\"error\"") != std::string::npos) return true;
    }
    return response.status >= 500;
  }
  bool has_finish() const {
    for (const std::string& event : response.events()) {
      if (event.find("\"finish_reason\":\"") != std::string::npos) return true;
    }
    return false;
  }

  test::HttpClient client;
  test::HttpResponse response;
  std::chrono::steady_clock::time_point ended;
};

std::vector<std::unique_ptr<Stream>> open_streams(int port, int count) {
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < count; ++i) streams.push_back(std::make_unique<Stream>(port));
  return streams;
}

void finish_all(std::vector<std::unique_ptr<Stream>>& streams) {
  std::vector<std::thread> readers;
  for (auto& stream : streams) readers.emplace_back([&stream] { stream->finish(); });
  for (std::thread& reader : readers) reader.join();
}

TEST(ServeProcess, says_ready_answers_and_leaves_with_0_on_sigterm_and_130_on_sigint) {
  for (const auto& [number, code] : {std::pair(SIGTERM, 0), std::pair(SIGINT, 130)}) {
    test::Process server(INFERD_BINARY_DIR "/inferd", serve_arguments());
    const int port = test::wait_until_ready(server);
    EXPECT_EQ(test::get(port, "/health/ready").status, 200);
    Stream stream(port, 8);
    stream.finish();
    EXPECT_EQ(stream.response.status, 200);
    EXPECT_TRUE(stream.has_finish());
    server.signal(number);
    EXPECT_EQ(server.wait(seconds(5)), code);
  }
}

TEST(ServeProcess, a_second_signal_leaves_at_once) {
  test::Process server(INFERD_BINARY_DIR "/inferd", serve_arguments("60"));
  const int port = test::wait_until_ready(server);
  auto streams = open_streams(port, 4);
  server.signal(SIGTERM);
  std::this_thread::sleep_for(milliseconds(50));
  const auto before = std::chrono::steady_clock::now();
  server.signal(SIGTERM);
  EXPECT_TRUE(server.wait(seconds(5)).has_value());
  EXPECT_LT(std::chrono::steady_clock::now() - before, seconds(1));
}

TEST(ServeProcess, a_fault_in_any_step_ends_every_stream_with_an_error_and_the_process_with_70) {
  for (int step = 1; step <= 50; step += kEvery) {
    test::Process server(INFERD_BINARY_DIR "/tests/fault_server", serve_arguments(),
                         {.environment = {cat("INFERD_FAULT_STEP=", step)}});
    const int port = test::wait_until_ready(server);
    auto streams = open_streams(port, 16);
    std::thread probe([port] {
      // Red until it is gone: never ready again after the fault. The fault comes within the first steps.
      while (true) {
        const int status = test::get(port, "/health/ready").status;
        if (status == 503) return;
        ASSERT_NE(status, 0) << "gone before it was seen red";
        std::this_thread::sleep_for(milliseconds(5));
      }
    });
    finish_all(streams);
    probe.join();
    ASSERT_EQ(server.wait(seconds(10)), 70) << "step " << step;
    auto first = streams.front()->ended;
    auto last = first;
    for (const auto& stream : streams) {
      EXPECT_TRUE(stream->has_error()) << "step " << step << ": " << stream->response.body;
      first = std::min(first, stream->ended);
      last = std::max(last, stream->ended);
    }
    EXPECT_LT(last - first, seconds(1)) << "step " << step;
    const std::string wanted = cat("exit 70: the engine failed: injected fault in step ", step, "\n");
    EXPECT_TRUE(server.stderr_text().ends_with(wanted)) << server.stderr_text();
  }
}

TEST(ServeProcess, sigterm_at_any_moment_gives_every_stream_its_final_event_and_exit_0) {
  std::mt19937 random(3);
  for (int run = 0; run < 50; run += kEvery) {
    test::Process server(INFERD_BINARY_DIR "/inferd", serve_arguments("1"));
    const int port = test::wait_until_ready(server);
    auto streams = open_streams(port, 16);
    std::this_thread::sleep_for(milliseconds(random() % 200));
    server.signal(SIGTERM);
    const auto told = std::chrono::steady_clock::now();
    finish_all(streams);
    ASSERT_EQ(server.wait(seconds(10)), 0) << "run " << run;
    EXPECT_LT(std::chrono::steady_clock::now() - told, seconds(2))
        << "run " << run;  // the grace and one second
    for (const auto& stream : streams) {
      // A request that came after the signal was refused with 503, or its connection was never taken.
      const bool refused = stream->response.status == 503 || stream->response.status == 0;
      EXPECT_TRUE(refused || stream->has_finish() || stream->has_error())
          << "run " << run << ": " << stream->response.body;
      EXPECT_TRUE(refused || stream->response.complete) << "run " << run;
    }
  }
}

// Not under UBSan, whose check of a vptr opens a pipe to see whether memory may be read, and takes the object
// for a broken one when no descriptor is left for it.
#if !defined(INFERD_TEST_SANITIZED)
int open_descriptors(pid_t pid) {
  const std::filesystem::directory_iterator all(cat("/proc/", pid, "/fd"));
  return static_cast<int>(std::distance(begin(all), end(all)));
}

void set_descriptor_limit(pid_t pid, int limit) {
  rlimit all{};
  ::prlimit(pid, RLIMIT_NOFILE, nullptr, &all);
  all.rlim_cur = static_cast<rlim_t>(limit);
  ::prlimit(pid, RLIMIT_NOFILE, &all, nullptr);
}

TEST(ServeProcess, when_no_descriptor_is_left_clients_are_turned_away_and_it_recovers) {
  test::Process server(INFERD_BINARY_DIR "/inferd", serve_arguments());
  const int port = test::wait_until_ready(server);
  EXPECT_EQ(test::get(port, "/health/live").status, 200);
  set_descriptor_limit(server.pid(), open_descriptors(server.pid()) + 3);
  {
    std::vector<std::unique_ptr<test::HttpClient>> clients;
    for (int i = 0; i < 10; ++i) clients.push_back(std::make_unique<test::HttpClient>(port));
    int turned_away = 0;
    for (const auto& client : clients) turned_away += client->wait_closed(milliseconds(500)) ? 1 : 0;
    EXPECT_GE(turned_away, 5);
    set_descriptor_limit(server.pid(), 1024);
  }
  // It pauses a moment before it accepts again, and whoever came before the limit rose may still be turned
  // away.
  test::HttpResponse metrics = test::get(port, "/metrics");
  for (int i = 0; i < 100 && metrics.status != 200; ++i) {
    std::this_thread::sleep_for(milliseconds(50));
    metrics = test::get(port, "/metrics");
  }
  const std::string& page = metrics.body;
  EXPECT_NE(page.find("inferd_http_connections_refused_total"), std::string::npos);
  EXPECT_EQ(page.find("inferd_http_connections_refused_total 0\n"), std::string::npos);
}
#endif

TEST(ServeProcess, what_cannot_be_served_is_an_error_with_a_code) {
  const auto run = [](const std::vector<std::string>& arguments, const test::ProcessOptions& options = {}) {
    return test::run_process(INFERD_BINARY_DIR "/inferd", arguments, options);
  };
  test::Process first(INFERD_BINARY_DIR "/inferd", serve_arguments());
  const int port = test::wait_until_ready(first);
  const test::Finished taken = run({"serve", tiny_model(), "--port", cat(port)});
  EXPECT_EQ(taken.code, 69);
  EXPECT_NE(taken.err.find("error[E-NET-001]"), std::string::npos) << taken.err;
  const test::Finished open_host = run({"serve", tiny_model(), "--port", "0", "--host", "0.0.0.0"});
  EXPECT_EQ(open_host.code, 77);
  EXPECT_NE(open_host.err.find("error[E-NET-003]"), std::string::npos) << open_host.err;
  EXPECT_EQ(run({"serve", "/nowhere/model.gguf"}).code, 65);
  EXPECT_EQ(run({"srve"}).code, 2);
  EXPECT_EQ(run({"serve", tiny_model(), "--ctx", "100000"}).code, 2);
  EXPECT_EQ(run({"serve", tiny_model(), "--kv-memory", "120GiB", "--kv-dtype", "f32"}).code, 71);
  const test::Finished full = run({"list"}, {.stdout_path = "/dev/full"});
  EXPECT_EQ(full.code, 73);
  EXPECT_NE(full.err.find("error[E-IO-006]"), std::string::npos) << full.err;
}

}  // namespace
}  // namespace inferd
