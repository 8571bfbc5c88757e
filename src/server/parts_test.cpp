// Parts of the server by themselves: the text of an answer, who may call, the rate of the last seconds.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "server/access.h"
#include "server/answer_text.h"
#include "server/openai_shapes.h"
#include "server/server_state.h"
#include "server/stream_session.h"
#include "support/tiny_server.h"

namespace inferd {
namespace {

const Tokenizer& tokenizer() {
  static const ModelView view = test::tiny_model_view();
  return *view.tokenizer;
}

StopMatcher stops(std::vector<std::string> strings) {
  return StopMatcher::create(std::move(strings)).value();
}

// All of an answer, one id a push.
std::string text_of(AnswerText& answer, const std::vector<int32_t>& ids) {
  std::string text;
  for (const int32_t id : ids) text += answer.push(id);
  return text + answer.finish();
}

TEST(AnswerText, holds_back_what_may_become_a_stop_string_and_gives_it_out_when_it_does_not) {
  const std::vector<int32_t> ids = tokenizer().encode("xENy");
  AnswerText answer(tokenizer(), stops({"END"}), 0);
  EXPECT_EQ(answer.push(ids[0]), "x");
  EXPECT_EQ(answer.push(ids[1]), "");
  EXPECT_EQ(answer.push(ids[2]), "");
  EXPECT_EQ(answer.push(ids[3]), "ENy");
  EXPECT_FALSE(answer.stopped());
  AnswerText cut(tokenizer(), stops({"END"}), 0);
  EXPECT_EQ(text_of(cut, tokenizer().encode("xEN")), "xEN");
}

TEST(AnswerText, a_stop_string_before_the_least_number_of_tokens_is_text) {
  const std::vector<int32_t> ids = tokenizer().encode("a.b.c.");
  ASSERT_EQ(ids.size(), 6u);
  for (const auto& [least, expected] : std::vector<std::pair<int64_t, std::string>>{
           {0, "a"}, {1, "a"}, {2, "a"}, {3, "a.b"}, {4, "a.b"}, {5, "a.b.c"}}) {
    AnswerText answer(tokenizer(), stops({"."}), least);
    EXPECT_EQ(text_of(answer, ids), expected) << least;
    const std::unique_ptr<StopCheck> check = make_stop_check(tokenizer(), stops({"."}), least);
    int64_t taken = 0;
    for (const int32_t id : ids) {
      ++taken;
      if (check->on_token(id)) break;
    }
    EXPECT_GE(taken, least) << "the engine ends where the text does, and never before the least number";
    EXPECT_EQ(taken, static_cast<int64_t>(expected.size()) + 1);
  }
}

TEST(AnswerText, characters_count_what_is_held_and_cut_too) {
  AnswerText answer(tokenizer(), stops({"!"}), 0);
  EXPECT_EQ(text_of(answer, tokenizer().encode("aé!")), "aé");
  EXPECT_EQ(answer.characters(), 3);
}

TEST(OpenAiShapes, tokens_that_are_no_text_are_written_as_bytes) {
  for (int32_t id = 0; id < tokenizer().vocab_size(); ++id) {
    const std::string_view bytes = tokenizer().token_bytes(id);
    if (bytes == "\xF0") {
      EXPECT_EQ(token_text(tokenizer(), id), "bytes:\\xf0");
    }
    if (bytes == "a") {
      EXPECT_EQ(token_text(tokenizer(), id), "a");
    }
  }
  std::string out;
  append_logprob(out, -std::numeric_limits<float>::infinity());
  out += " ";
  append_bytes(out, "\xF0\x9F");
  EXPECT_EQ(out, "-9999.0 [240,159]");
}

TEST(Access, hosts_are_read_out_of_authorities) {
  const std::vector<std::pair<std::string, std::string>> cases = {{"localhost", "localhost"},
                                                                  {"LOCALHOST:80", "localhost"},
                                                                  {"localhost.", "localhost"},
                                                                  {"127.0.0.1:8000", "127.0.0.1"},
                                                                  {"[::1]:8000", "::1"},
                                                                  {"[::1]", "::1"},
                                                                  {"[::1", ""},
                                                                  {"[evil]", ""},
                                                                  {"a:b", ""},
                                                                  {"a:80:90", ""},
                                                                  {"", ""},
                                                                  {":80", ""},
                                                                  {"user@localhost", "user@localhost"}};
  for (const auto& [authority, host] : cases) EXPECT_EQ(host_of_authority(authority), host) << authority;
}

TEST(Access, loopback_names_are_few) {
  for (const std::string_view name : {"localhost", "a.localhost", "127.0.0.1", "127.9.9.9", "::1"})
    EXPECT_TRUE(is_loopback_name(name)) << name;
  for (const std::string_view name :
       {"127.0.0.1.evil.com", "127.evil.com", "localhost.evil.com", "xlocalhost", "128.0.0.1", "0.0.0.0",
        "::", "127.1", "2130706433", "user@localhost", ""}) {
    EXPECT_FALSE(is_loopback_name(name)) << name;
  }
}

TEST(RateWindow, is_of_the_last_five_seconds_and_never_negative) {
  constexpr int64_t kSecond = 1'000'000'000;
  RateWindow window;
  EXPECT_EQ(window.per_second(0, 0), 0);
  for (int64_t half = 0; half <= 40; ++half) window.sample(half * kSecond / 2, half * 10);  // 20 a second
  EXPECT_DOUBLE_EQ(window.per_second(20 * kSecond, 400), 20);
  EXPECT_DOUBLE_EQ(window.per_second(21 * kSecond, 400),
                   16);                                // 80 since second 16, the oldest sample not too old
  EXPECT_EQ(window.per_second(60 * kSecond, 400), 0);  // nobody sampled for long
  // A clock that another part of the program moved back gives no negative rate.
  EXPECT_EQ(window.per_second(0, 400), 0);
}

// A clock for durations that jumps by an hour and more, both ways.
class JumpingClock final : public Clock {
 public:
  int64_t now_ns() const override {
    static constexpr int64_t kJumps[] = {0, 3'600'000'000'000, -3'600'000'000'000, 315'360'000'000'000'000,
                                         1};
    const size_t call = calls_.fetch_add(1);
    return 1'000'000'000'000'000'000 + kJumps[call % 5];
  }

 private:
  mutable std::atomic<size_t> calls_{0};
};

TEST(ClockJumps, totals_are_never_negative) {
  const JumpingClock clock;
  for (int i = 0; i < 1000; ++i) {
    Totals totals{.prompt_tokens = 5, .output_tokens = 7, .answers = 1};
    RequestStats stats;
    stats.arrival_ns = clock.now_ns();
    stats.first_scheduled_ns = clock.now_ns();
    stats.first_token_ns = clock.now_ns();
    stats.finished_ns = clock.now_ns();
    totals.queue_ms = elapsed_ms(stats.arrival_ns, stats.first_scheduled_ns);
    totals.prompt_ms = elapsed_ms(stats.first_scheduled_ns, stats.first_token_ns);
    totals.output_ms = elapsed_ms(stats.first_token_ns, stats.finished_ns);
    std::string out;
    append_timings(out, totals);
    ASSERT_EQ(out.find(":-"), std::string::npos) << out;
    ASSERT_TRUE(parse_json(out).ok());
  }
}

}  // namespace
}  // namespace inferd
