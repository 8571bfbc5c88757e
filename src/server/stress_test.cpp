// Many clients at once, and those who leave, stall, or send poison: nothing may leak, and nobody else may
// notice.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "base/strings.h"
#include "support/http_client.h"
#include "support/tiny_server.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define INFERD_SLOW_BUILD 1
#endif
#endif

namespace inferd {
namespace {

using namespace std::chrono_literals;
using test::get;
using test::HttpClient;
using test::HttpResponse;
using test::post;
using test::request_text;
using test::TinyServer;

#ifdef INFERD_SLOW_BUILD
constexpr bool kSlowBuild = true;
#else
constexpr bool kSlowBuild = false;
#endif

int64_t number(const Json& json, std::string_view key) {
  return json.find(key)->as_integer();
}

// The value of one sample of the metrics page; -1: not there.
int64_t sample(const std::string& page, std::string_view name) {
  const size_t at = page.find(cat("\n", name, " "));
  if (at == std::string::npos) return -1;
  const size_t begin = at + name.size() + 2;
  return static_cast<int64_t>(*parse_double(page.substr(begin, page.find('\n', begin) - begin)));
}

template <typename Condition>
bool eventually(Condition condition) {
  for (int i = 0; i < 10000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(1ms);
  }
  return false;
}

void random_hang_ups(int shards) {
  TinyServer server({.max_seqs = 8, .max_queue = 64, .server = {.shards = shards}});
  // A shard opens what it needs for itself with its first connection.
  for (int i = 0; i < shards; ++i) get(server.port(), "/health/live");
  EXPECT_TRUE(eventually(
      [&] { return sample(get(server.port(), "/metrics").body, "inferd_http_connections") <= 1; }));
  EXPECT_TRUE(server.settle());
  std::this_thread::sleep_for(50ms);
  const int descriptors = test::open_descriptors();
  const int total = kSlowBuild ? 100 : 1000;
  std::atomic<int> next{0};
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&, c] {
      std::mt19937 random(static_cast<unsigned>(c) + 1);
      const auto pick = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)); };
      while (next.fetch_add(1) < total) {
        HttpClient client(server.port());
        const std::string prompt(static_cast<size_t>(1 + pick(120)), static_cast<char>('a' + pick(26)));
        std::string body = cat(R"({"max_tokens":)", 1 + pick(100), R"(,"ignore_eos":true,"n":)", 1 + pick(3));
        if (pick(2) == 0) body += R"(,"stream":true)";
        if (pick(4) == 0) body += R"(,"stop":["q","zz"])";
        if (pick(2) == 0) {
          client.send(
              request_text("POST", "/v1/completions", cat(body, R"(,"prompt":[")", prompt, R"(","b"]})")));
        } else {
          client.send(request_text("POST", "/v1/chat/completions",
                                   cat(body, R"(,"messages":[{"role":"user","content":")", prompt, "\"}]}")));
        }
        const bool peeks = pick(3) == 0;
        if (peeks) {
          client.receive(std::chrono::milliseconds(pick(20)));
        } else if (pick(2) == 0) {
          std::this_thread::sleep_for(std::chrono::microseconds(pick(8000)));
        }
        switch (pick(peeks ? 3 : 4)) {
          case 0:
            client.close();
            break;
          case 1:
            client.reset();
            break;
          case 2:
            client.shut_down_sending();
            EXPECT_TRUE(client.wait_closed());
            break;
          default:
            client.read_response();
            break;
        }
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_TRUE(server.settle());
  EXPECT_EQ(server.metrics().kv_blocks_active.value(), 0);
  EXPECT_TRUE(eventually([&] { return test::open_descriptors() == descriptors; }))
      << test::open_descriptors() << " of " << descriptors;
  const Json json = get(server.port(), "/metrics.json").json();
  EXPECT_EQ(number(json, "kv_blocks_free") + number(json, "kv_blocks_cached"),
            number(json, "kv_blocks_total"));
  EXPECT_GT(server.metrics().finished_cancelled.value(), total / 10);
  EXPECT_GT(server.metrics().finished_length.value(), total / 10);
}

TEST(HangUps, a_thousand_at_random_moments_leave_nothing_behind) {
  random_hang_ups(1);
}

TEST(HangUps, with_two_shards_too) {
  random_hang_ups(2);
}

TEST(HangUps, a_half_closed_connection_counts_as_gone_and_frees_its_pages) {
  TinyServer server({.step_delay = 2ms});
  HttpClient client(server.port());
  client.send(request_text("POST", "/v1/completions",
                           R"({"prompt":"abc","max_tokens":200,"stream":true,"ignore_eos":true})"));
  EXPECT_FALSE(client.receive().empty());
  const int64_t before = server.metrics().steps.value();
  client.shut_down_sending();
  EXPECT_TRUE(server.settle());
  // A cancel is seen at the next step; the network and a busy machine may take a few more.
  EXPECT_LT(server.metrics().steps.value() - before, 100);
  EXPECT_EQ(sample(get(server.port(), "/metrics").body, "inferd_http_clients_gone_total"), 1);
}

// Bodies for streams that are compared byte for byte.
std::vector<std::string> golden_bodies(int count) {
  std::vector<std::string> bodies;
  for (int i = 0; i < count; ++i) {
    bodies.push_back(cat(
        R"({"prompt":"stream )", i,
        R"( of many","max_tokens":40,"ignore_eos":true,"stream":true,"logprobs":2,"return_token_ids":true,"seed":)",
        i, i % 2 == 0 ? R"(,"temperature":0})" : R"(,"temperature":1.1,"top_p":0.9})"));
  }
  return bodies;
}

// What of a stream depends on the request alone: the choices of each chunk.
std::string fingerprint(const HttpResponse& response) {
  std::string out;
  for (const std::string& event : response.events()) {
    if (event == "[DONE]") {
      out += "DONE";
      continue;
    }
    const Json chunk = parse_json(event).value();
    const Json* choices = chunk.find("choices");
    out += choices == nullptr ? event : to_json(*choices);
  }
  return out;
}

TEST(Poison, other_streams_do_not_change_by_a_byte) {
  TinyServer server({.max_seqs = 8,
                     .max_queue = 200,
                     .chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}"});
  const std::vector<std::string> bodies = golden_bodies(24);
  std::vector<std::string> expected;
  for (const std::string& body : bodies)
    expected.push_back(fingerprint(post(server.port(), "/v1/completions", body)));

  const std::vector<std::string> poison = {
      R"({"prompt":"a","temperature":NaN})",
      R"({"prompt":"a","n":1000000000})",
      R"({"prompt":[-1]})",
      R"({"prompt":[288]})",
      R"({"prompt":"a","min_tokens":99999,"max_tokens":null})",
      R"({"prompt":"a","logit_bias":{"99999":1}})",
      R"({"prompt":"a","max_tokens":2147483647})",
      cat(R"({"prompt":")", std::string(500000, '^'), "\"}"),
      cat(R"({"prompt":"a","metadata":)", std::string(100000, '['), "}"),
      R"({"prompt":"a","temperature":100,"max_tokens":50,"ignore_eos":true,"logprobs":20,"n":8})",
      R"({"prompt":"a","repetition_penalty":10,"presence_penalty":2,"frequency_penalty":-2,"max_tokens":60,"min_p":1})",
      R"({"prompt":"\u0000\ud83d\ude00","stop":["\u0000"],"max_tokens":9})",
  };
  std::atomic<bool> stop{false};
  std::atomic<int> sent{0};
  std::thread poisoner([&] {
    std::mt19937 random(5);
    while (!stop) {
      const std::string& body = poison[random() % poison.size()];
      HttpClient client(server.port());
      client.send(request_text("POST", "/v1/completions", body));
      if (random() % 3 == 0) {
        client.reset();
      } else {
        EXPECT_LT(client.read_response().status, 500);
      }
      ++sent;
    }
  });
  const int rounds = kSlowBuild ? 1 : 5;
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::thread> clients;
    for (size_t i = 0; i < bodies.size(); ++i) {
      clients.emplace_back([&, i] {
        const HttpResponse response = post(server.port(), "/v1/completions", bodies[i]);
        EXPECT_EQ(response.status, 200) << response.body;
        EXPECT_EQ(fingerprint(response), expected[i]) << "stream " << i;
      });
    }
    for (std::thread& client : clients) client.join();
  }
  stop = true;
  poisoner.join();
  EXPECT_GT(sent.load(), 5);
  EXPECT_GT(server.metrics().step_sequences_max.value(), 4);
  EXPECT_TRUE(server.settle());
}

TEST(Metrics, counts_equal_what_the_clients_saw) {
  TinyServer server({.max_seqs = 4});
  int64_t prompt_tokens = 0, output_tokens = 0, cached_tokens = 0, stops = 0, lengths = 0, answers = 0;
  for (int i = 0; i < 30; ++i) {
    const int n = 1 + i % 3;
    const Json json = post(server.port(), "/v1/completions",
                           cat(R"({"prompt":"count )", i % 5, R"(","max_tokens":)", 5 + i,
                               R"(,"stop":"e","seed":)", i, R"(,"n":)", n, "}"))
                          .json();
    const Json& usage = *json.find("usage");
    // A prompt counts once a choice in the engine, once a request in the usage.
    prompt_tokens += n * number(usage, "prompt_tokens");
    output_tokens += number(usage, "completion_tokens");
    cached_tokens += number(*usage.find("prompt_tokens_details"), "cached_tokens");
    for (const Json& choice : json.find("choices")->as_array()) {
      ++answers;
      (choice.find("finish_reason")->as_string() == "stop" ? stops : lengths) += 1;
    }
  }
  for (int i = 0; i < 7; ++i)
    EXPECT_EQ(post(server.port(), "/v1/completions", R"({"prompt":"a","n":0})").status, 400);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(post(server.port(), "/v1/completions", R"({"prompt":"a","max_tokens":999})").status, 400);
  EXPECT_EQ(get(server.port(), "/nowhere").status, 404);
  EXPECT_TRUE(server.settle());
  const std::string page = get(server.port(), "/metrics").body;
  EXPECT_EQ(sample(page, R"(inferd_requests_total{outcome="finished",reason="stop"})"), stops);
  EXPECT_EQ(sample(page, R"(inferd_requests_total{outcome="finished",reason="length"})"), lengths);
  EXPECT_EQ(sample(page, R"(inferd_requests_total{outcome="rejected",reason="invalid"})"), 7);
  EXPECT_EQ(sample(page, R"(inferd_requests_total{outcome="rejected",reason="context"})"), 3);
  EXPECT_EQ(sample(page, "inferd_generation_tokens_total"), output_tokens);
  const int64_t cache = sample(page, R"(inferd_prompt_tokens_total{source="cache"})");
  EXPECT_EQ(cache + sample(page, R"(inferd_prompt_tokens_total{source="compute"})"), prompt_tokens);
  EXPECT_GE(cache, cached_tokens);
  EXPECT_EQ(sample(page, "inferd_time_to_first_token_seconds_count"), answers);
  EXPECT_EQ(sample(page, "inferd_inter_token_latency_seconds_count"), output_tokens - answers);
  EXPECT_EQ(sample(page, R"(inferd_http_requests_total{route="/v1/completions",code="2xx"})"), 30);
  EXPECT_EQ(sample(page, R"(inferd_http_requests_total{route="/v1/completions",code="4xx"})"), 10);
  EXPECT_EQ(sample(page, R"(inferd_http_requests_total{route="other",code="4xx"})"), 1);
  EXPECT_EQ(sample(page, R"(inferd_kv_blocks{state="active"})"), 0);
  const Json json = get(server.port(), "/metrics.json").json();
  EXPECT_EQ(number(json, "generation_tokens_total"), output_tokens);
  EXPECT_EQ(number(json, "total_generated_tokens"), output_tokens);
  EXPECT_EQ(number(json, "prompt_tokens_total"), prompt_tokens);
  EXPECT_EQ(number(json, "completed_sequences"), answers);
  EXPECT_EQ(get(server.port(), "/metrics", {{"Accept", "application/json"}}).header("content-type"),
            "application/json");
}

TEST(SlowReaders, one_who_does_not_read_is_dropped_and_the_others_go_on) {
  TinyServer server({.max_seqs = 16, .server = {.stream_buffer_bytes = 8192}});
  HttpClient stalled(server.port(), 1024);
  stalled.send(request_text(
      "POST", "/v1/completions",
      R"({"prompt":"a","max_tokens":250,"n":8,"logprobs":20,"return_token_ids":true,"stream":true,)"
      R"("ignore_eos":true})"));
  const HttpResponse other = post(server.port(), "/v1/completions",
                                  R"({"prompt":"b","max_tokens":100,"stream":true,"ignore_eos":true})");
  EXPECT_EQ(other.events().back(), "[DONE]");
  EXPECT_TRUE(eventually(
      [&] { return sample(get(server.port(), "/metrics").body, "inferd_http_slow_readers_total") == 1; }));
  EXPECT_TRUE(server.settle());
  EXPECT_GT(server.metrics().finished_cancelled.value(), 0);
}

TEST(SlowReaders, one_who_reads_slowly_gets_everything) {
  TinyServer server({.step_delay = 1ms, .server = {.stream_buffer_bytes = 32768}});
  HttpClient slow(server.port(), 4096);
  slow.send(request_text("POST", "/v1/completions",
                         R"({"prompt":"a","max_tokens":60,"stream":true,"ignore_eos":true,"seed":1,)"
                         R"("stream_options":{"include_usage":true}})"));
  std::string bytes;
  while (bytes.find("[DONE]") == std::string::npos) {
    const std::string more = slow.receive();
    ASSERT_FALSE(more.empty());
    bytes += more;
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_NE(bytes.find(R"("completion_tokens":60)"), std::string::npos);
}

TEST(SlowReaders, a_silent_stream_has_a_heartbeat) {
  TinyServer server({.start_engine = false, .server = {.ping_interval_ms = 50}});
  HttpClient client(server.port());
  client.send(request_text("POST", "/v1/completions", R"({"prompt":"a","max_tokens":3,"stream":true})"));
  std::string bytes;
  while (bytes.find(": ping\n\n") == std::string::npos) {
    const std::string more = client.receive();
    ASSERT_FALSE(more.empty());
    bytes += more;
  }
  server.engine().start();
  while (bytes.find("[DONE]") == std::string::npos) {
    const std::string more = client.receive();
    ASSERT_FALSE(more.empty());
    bytes += more;
  }
}

// Every stream that had begun ends with its final event, whenever the drain comes.
TEST(Drain, at_random_moments_every_stream_gets_its_final_event) {
  std::mt19937 random(9);
  const int rounds = kSlowBuild ? 8 : 50;
  int cut = 0, whole = 0;
  for (int round = 0; round < rounds; ++round) {
    const bool short_grace = round % 2 == 0;
    TinyServer server({.max_seqs = 4,
                       .step_delay = 300us,
                       .server = {.shards = 1 + round % 3 / 2, .drain_grace_ms = short_grace ? 10 : 10000}});
    std::vector<std::thread> clients;
    std::atomic<int> cuts{0}, wholes{0}, refusals{0}, lost{0};
    for (int c = 0; c < 8; ++c) {
      clients.emplace_back([&] {
        HttpClient client(server.port());
        if (!client.send(
                request_text("POST", "/v1/completions",
                             R"({"prompt":"drain me","max_tokens":60,"ignore_eos":true,"stream":true})"))) {
          ++lost;
          return;
        }
        const HttpResponse response = client.read_response();
        if (response.status == 503) {
          ++refusals;
        } else if (response.status == 0) {
          ++lost;  // connected after the listener closed
        } else if (response.complete && response.events().size() >= 2 &&
                   response.events().back() == "[DONE]") {
          const std::vector<std::string> events = response.events();
          const std::string& last = events[events.size() - 2];
          ++(last.find("E-ENG-003") != std::string::npos ? cuts : wholes);
        } else {
          ADD_FAILURE() << "no final event: " << response.status << " " << response.body;
        }
      });
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 60000));
    const auto began = std::chrono::steady_clock::now();
    server.server().drain();
    server.server().wait();
    const auto took = std::chrono::steady_clock::now() - began;
    if (short_grace) {
      EXPECT_LT(took, kSlowBuild ? 5000ms : 1500ms);
    }
    for (std::thread& client : clients) client.join();
    cut += cuts;
    whole += wholes;
    EXPECT_EQ(cuts + wholes + refusals + lost, 8);
  }
  EXPECT_GT(cut, 0);
  EXPECT_GT(whole, 0);
}

TEST(Drain, readiness_turns_and_nothing_new_is_taken_while_the_old_go_on) {
  TinyServer server({.step_delay = 5ms});
  HttpClient running(server.port()), kept(server.port());
  kept.send(request_text("GET", "/health/live"));
  EXPECT_EQ(kept.read_response().status, 200);
  running.send(request_text("POST", "/v1/completions",
                            R"({"prompt":"a","max_tokens":100,"ignore_eos":true,"stream":true})"));
  EXPECT_FALSE(running.receive().empty());
  server.server().drain();
  const HttpResponse ready = get(server.port(), "/health/ready");
  EXPECT_EQ(ready.status, 503);
  EXPECT_EQ(ready.body, R"({"status":"draining"})");
  EXPECT_EQ(get(server.port(), "/health/live").status, 200);
  const HttpResponse refused = post(server.port(), "/v1/completions", R"({"prompt":"a"})");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.header("connection"), "close");
  EXPECT_EQ(refused.header("retry-after"), "1");
  EXPECT_TRUE(kept.wait_closed(5s));  // idle ones are closed
  std::string bytes;
  while (bytes.find("[DONE]") == std::string::npos) {
    const std::string more = running.receive();
    ASSERT_FALSE(more.empty());
    bytes += more;
  }
  EXPECT_NE(bytes.find(R"("finish_reason":"length")"), std::string::npos);
  server.server().wait();
  EXPECT_FALSE(HttpClient(server.port()).connected());
}

TEST(Drain, stop_ends_a_long_grace_at_once) {
  TinyServer server({.step_delay = 5ms, .server = {.drain_grace_ms = 60000}});
  HttpClient streaming(server.port()), waiting(server.port());
  const std::string body = R"({"prompt":"a","max_tokens":200,"ignore_eos":true)";
  streaming.send(request_text("POST", "/v1/completions", body + R"(,"stream":true})"));
  waiting.send(request_text("POST", "/v1/completions", body + "}"));
  EXPECT_FALSE(streaming.receive().empty());
  const auto began = std::chrono::steady_clock::now();
  server.server().drain();
  server.server().stop();
  server.server().wait();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s);
  std::string bytes;
  for (std::string more = streaming.receive(); !more.empty(); more = streaming.receive()) bytes += more;
  EXPECT_NE(bytes.find("E-ENG-003"), std::string::npos);
  EXPECT_NE(bytes.find("[DONE]"), std::string::npos);
  EXPECT_EQ(waiting.read_response().status, 503);
  EXPECT_TRUE(eventually([&] { return server.metrics().kv_blocks_active.value() == 0; }));
}

// 1,000 streams need 2,000 descriptors here, since the clients live in this process too.
TEST(ManyStreams, all_finish_and_pages_still_answer) {
  const size_t streams = kSlowBuild ? 60 : 1000;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  TinyServer server({.ctx = 128, .max_seqs = 64, .max_queue = 1100});
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (size_t i = 0; i < streams; ++i) {
    clients.push_back(std::make_unique<HttpClient>(server.port()));
    ASSERT_TRUE(clients.back()->send(request_text(
        "POST", "/v1/completions", R"({"prompt":"a","max_tokens":32,"ignore_eos":true,"stream":true})")));
  }
  std::vector<double> page_ms;
  std::atomic<bool> reading{true};
  std::thread watcher([&] {
    while (reading) {
      const auto began = std::chrono::steady_clock::now();
      EXPECT_EQ(get(server.port(), "/metrics").status, 200);
      page_ms.push_back(
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count());
      std::this_thread::sleep_for(2ms);
    }
  });
  size_t complete = 0;
  for (const auto& client : clients) {
    const HttpResponse response = client->read_response(120s);
    const std::vector<std::string> events = response.events();
    if (response.complete && !events.empty() && events.back() == "[DONE]") ++complete;
  }
  reading = false;
  watcher.join();
  EXPECT_EQ(complete, streams);
  std::ranges::sort(page_ms);
  RecordProperty("metrics_p99_ms", cat(page_ms[page_ms.size() * 99 / 100]));
  EXPECT_TRUE(server.settle());
}

}  // namespace
}  // namespace inferd
