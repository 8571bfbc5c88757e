// `inferd run` on a pseudo-terminal and over pipes, and the servers that it, `ps` and `stop` find. What a
// session looks like is recorded in tests/golden/chat_80.txt and chat_40.txt; INFERD_UPDATE_GOLDEN=1 writes
// them anew.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <regex>
#include <thread>

#include "base/json.h"
#include "base/strings.h"
#include "support/golden.h"
#include "support/http_client.h"
#include "support/process.h"
#include "support/terminal.h"

namespace inferd {
namespace {

using std::chrono::seconds;

const std::string kInferd = INFERD_BINARY_DIR "/inferd";
const std::string kSlow = INFERD_BINARY_DIR "/tests/fault_server";

std::string tiny_model() {
  return test::golden_dir() + "/tiny/llama/gguf/tiny-llama-f32.gguf";
}

class ChatTest : public testing::Test {
 protected:
  ChatTest() : folder_(cat(testing::TempDir(), "inferd-chat-", ::getpid())) {
    std::filesystem::create_directories(folder_ + "/run");
  }
  ~ChatTest() override { std::filesystem::remove_all(folder_); }

  std::vector<std::string> environment(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all = {cat("HOME=", folder_), cat("XDG_STATE_HOME=", folder_, "/state"),
                                    cat("XDG_RUNTIME_DIR=", folder_, "/run"), cat("XDG_DATA_HOME=", folder_)};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  static std::vector<std::string> run_arguments(const std::vector<std::string>& more = {}) {
    std::vector<std::string> all = {"run", tiny_model(), "--temperature", "0", "--threads", "1"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  // A chat that has shown its first prompt.
  std::unique_ptr<test::Terminal> chat(const std::vector<std::string>& more = {"--max-tokens", "6",
                                                                               "--no-stats"},
                                       test::TerminalOptions options = {},
                                       const std::string& program = kInferd) const {
    options.environment = environment(options.environment);
    options.folder = folder_;
    auto terminal = std::make_unique<test::Terminal>(program, run_arguments(more), options);
    terminal->expect_cursor(">>> |");
    return terminal;
  }
  test::Finished run(const std::vector<std::string>& arguments, const std::string& input = "") const {
    return test::run_process(kInferd, arguments, {.environment = environment(), .stdin_text = input});
  }
  Json saved(const std::string& name) const {
    const Result<Json> json = parse_json(test::read_file(cat(folder_, "/", name)));
    EXPECT_TRUE(json.ok());
    return json.ok() ? *json->find("messages") : Json();
  }
  static std::string content(const Json& messages, size_t at) {
    return messages.as_array().at(at).find("content")->as_string();
  }

  const std::string folder_;
};

TEST_F(ChatTest, a_session_reads_as_recorded) {
  std::ofstream(folder_ + "/bad.json") << R"({"messages": [{"role": "user"}]})";
  std::ofstream(folder_ + "/notes.txt") << "my notes\n";
  for (const int columns : {80, 40}) {
    const auto terminal =
        chat({"--max-tokens", "6", "--no-stats", "--isa", "portable"}, {.columns = columns, .rows = 24});
    std::string record;
    const auto step = [&](const std::string& typed) {
      record += cat(">>>", terminal->ask(typed + "\r"), "\n");
    };
    step("/help");
    step("hello");
    step("\"\"\"two\rlines\"\"\"");
    step("/set temperature hot");
    step("/set tempratur 0.2");
    step("/set temperature 0.2");
    step("/set seed 7");
    step("/set top_k");
    step("/set");
    step("/set temperature 0");
    step("/system answer in one word");
    step("/retry");
    step("/show");
    step(cat("/save chat", columns, ".json"));
    step("/save notes.txt");
    step("/clear");
    step("/save empty.json");
    step("/retry");
    step("/load absent.json");
    step("/load bad.json");
    step(cat("/load chat", columns, ".json"));
    step("/show");
    step("/system \"\"");
    step("/hlep");
    step("/clear now");
    step(" /this is a message");
    terminal->type("/bye\r");
    EXPECT_EQ(terminal->wait(), 0);
    EXPECT_TRUE(terminal->echoes());
    const std::string path = cat(INFERD_SOURCE_DIR, "/tests/golden/chat_", columns, ".txt");
    if (std::getenv("INFERD_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << record;
    EXPECT_EQ(record, test::read_file(path));
  }
  EXPECT_EQ(test::read_file(folder_ + "/notes.txt"), "my notes\n");
}

TEST_F(ChatTest, the_keys_that_shells_have) {
  const auto terminal = chat();
  const auto keys = [&](const std::string& bytes, const std::string& line) {
    terminal->type(bytes);
    terminal->expect_cursor(">>> " + line);
  };
  keys("helo world", "helo world|");
  keys("\x01", "|helo world");                // Ctrl-A
  keys("\x1b[C\x1b[C\x1b[C", "hel|o world");  // right
  keys("l", "hell|o world");
  keys(
      "\x1b"
      "f",
      "hello| world");             // Alt-F
  keys("\x1b[F", "hello world|");  // End
  keys(
      "\x1b"
      "b",
      "hello |world");           // Alt-B
  keys("\x0b", "hello |");       // Ctrl-K
  keys("\x19", "hello world|");  // Ctrl-Y
  keys("\x17", "hello |");       // Ctrl-W
  keys("\x15", "|");             // Ctrl-U
  keys("世界", "世界|");
  keys("\x1b[D", "世|界");  // left, over two columns
  keys("\x7f", "|界");
  keys("\x1b[3~", "|");               // Delete
  keys("\x1b[H\x05x\x1b[99~", "x|");  // Home, Ctrl-E, an unknown key
  keys("\x0cy", "xy|");               // Ctrl-L
  EXPECT_EQ(terminal->screen().text(), ">>> xy");
  keys("\x1a!", "xy!|");  // Ctrl-Z; nobody is there to go on with, so it goes on itself
  keys("\x15/se\t", "/set |");
  keys("te\t", "/set temperature |");
  keys("\x15/s\ta", "/sa|");
  EXPECT_NE(terminal->screen().text().find("/system  /set  /show  /save"), std::string::npos);
  terminal->type("\x15\x1b[200~one\rtwo\x1b[201~");
  terminal->expect_cursor("... two|");
  terminal->type("\x1b[A\x1b\r");  // up, Alt-Enter
  terminal->expect_cursor("... |");
  EXPECT_TRUE(terminal->screen().text().ends_with(">>> one\n...\n... two"));
}

TEST_F(ChatTest, what_was_typed_is_there_again_and_can_be_searched) {
  {
    const auto first = chat();
    first->ask("/show\r");
    first->ask("one 世界\r");
    first->ask("\"\"\"a\rb\"\"\"\r");
    first->type("\x04");
    EXPECT_EQ(first->wait(), 0);
  }
  const auto second = chat();
  second->type("new");
  second->type("\x1b[A");
  second->expect_cursor("... b\"\"\"|");
  second->type("\x1b[A\x1b[A");
  second->expect_cursor(">>> one 世界|");
  second->type("\x1b[A\x1b[A\x1b[A");
  second->expect_cursor(">>> /show|");
  second->type("\x1b[B\x1b[B\x1b[B\x1b[B");
  second->expect_cursor(">>> new|");
  second->type("\x12o");
  second->expect_cursor("(search 'o') one 世界|");
  second->type("\x12");
  second->expect_cursor("(search 'o') /show|");
  second->type("zz");
  second->expect_cursor("(nothing has 'ozz') /show|");
  second->type("\x7f\x7f\x05!");
  second->expect_cursor(">>> one 世界!|");
  second->type(
      "\x12"
      "a\x1b");  // Escape: as before
  second->expect_cursor(">>> one 世界!|");
}

TEST_F(ChatTest, ctrl_c_stops_the_answer_and_keeps_it) {
  const auto terminal = chat({"--max-tokens", "200"}, {.environment = {"INFERD_STEP_MS=20"}}, kSlow);
  const size_t before = terminal->screen().text().size();
  terminal->type("hello\r");
  // Some of the answer is there.
  for (int i = 0; terminal->screen().text().size() < before + 12; ++i) {
    ASSERT_LT(i, 4000) << terminal->screen().text();
    terminal->wait(std::chrono::milliseconds(5));
  }
  terminal->type("typed ahead\x03");
  terminal->expect_cursor(">>> typed ahead|");
  EXPECT_NE(terminal->screen().text().find("stopped  TTFT "), std::string::npos) << terminal->screen().text();
  terminal->ask("\x15/save stopped.json\r");
  const Json messages = saved("stopped.json");
  ASSERT_EQ(messages.as_array().size(), 2u);
  const test::Finished whole = run(run_arguments({"hello", "--max-tokens", "200", "--json"}));
  const std::string full = parse_json(whole.out)->find("text")->as_string();
  const std::string kept = content(messages, 1);
  EXPECT_FALSE(kept.empty());
  EXPECT_LT(kept.size(), full.size());
  EXPECT_TRUE(full.starts_with(kept)) << kept;
}

TEST_F(ChatTest, ctrl_c_at_the_prompt_and_leaving) {
  const auto terminal = chat();
  EXPECT_EQ(terminal->ask("\x03"), " ^C\n(Ctrl-D or /bye leaves)");
  EXPECT_EQ(terminal->ask("some text\x03"), " some text^C");
  EXPECT_EQ(terminal->ask("\"\"\"one\rtwo\x03"), " \"\"\"one\n... two^C");
  EXPECT_FALSE(terminal->echoes());
  terminal->type("\x04");
  EXPECT_EQ(terminal->wait(), 0);
  EXPECT_TRUE(terminal->echoes());
  EXPECT_FALSE(terminal->screen().pastes());
}

TEST_F(ChatTest, signals_leave_the_terminal_as_it_was) {
  const auto ended = chat();
  ended->signal(SIGTERM);
  EXPECT_EQ(ended->wait(), 130);
  EXPECT_TRUE(ended->echoes());
  // A step that takes long: the second Ctrl-C does not wait for its end.
  const auto stuck = chat({}, {.environment = {"INFERD_STEP_MS=15000"}}, kSlow);
  stuck->type("hello\r");
  stuck->expect_busy();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // now it is in the step
  stuck->type("\x03");
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  stuck->type("\x03");
  EXPECT_EQ(stuck->wait(seconds(5)), 130);
  EXPECT_TRUE(stuck->echoes());
}

TEST_F(ChatTest, a_resize_while_a_long_line_is_edited) {
  const auto terminal = chat();
  std::string words;
  for (int i = 0; i < 12; ++i) words += cat("word", i, " 世界 ");
  terminal->type(words);
  const auto expect_text = [&](int columns) {
    std::string cells;
    for (int i = 0;; ++i) {
      cells = terminal->screen().text();
      cells.erase(0, cells.rfind(">>> "));
      std::erase(cells, '\n');
      std::string expected = cat(">>> ", words);
      std::erase(expected, ' ');
      std::erase(cells, ' ');
      if (cells == expected) return;
      ASSERT_LT(i, 4000) << columns << " columns:\n" << terminal->screen().text();
      terminal->wait(std::chrono::milliseconds(5));
    }
  };
  expect_text(80);
  for (const int columns : {40, 100, 23, 80}) {
    terminal->resize(columns, 24);
    terminal->type("!");
    words += "!";
    expect_text(columns);
    EXPECT_EQ(terminal->screen().text().find(">>> ", terminal->screen().text().rfind(">>> ") + 1),
              std::string::npos);
  }
  terminal->type("\x15");
  terminal->expect_cursor(">>> |");
  EXPECT_EQ(terminal->ask("/set seed 1\r"), " /set seed 1\n  seed        1");
}

TEST_F(ChatTest, a_text_that_is_higher_than_the_terminal) {
  const auto terminal = chat({"--max-tokens", "6", "--no-stats"}, {.columns = 40, .rows = 6});
  terminal->type("\x1b[200~1\r2\r3\r4\r5\r6\r7\r8\x1b[201~");
  terminal->expect_cursor("... 8|");
  EXPECT_TRUE(terminal->screen().text().ends_with("... 3\n... 4\n... 5\n... 6\n... 7\n... 8"));
  terminal->type("\x1b[A\x1b[A\x1b[A\x1b[A\x1b[A\x1b[A\x1b[A");
  terminal->expect_cursor(">>> 1|");
  EXPECT_TRUE(terminal->screen().text().ends_with(">>> 1\n... 2\n... 3\n... 4\n... 5\n... 6"));
}

TEST_F(ChatTest, colour_only_where_it_is_wanted) {
  const std::vector<std::string> arguments = {"--max-tokens", "6"};
  const auto plain = chat(arguments, {.environment = {"NO_COLOR=1"}});
  const std::string answer = plain->ask("hello\r");
  EXPECT_TRUE(std::regex_search(answer, std::regex("\nTTFT [0-9.]+ m?s  [0-9.]+ tok/s  ctx [0-9]+/512$")))
      << answer;
  EXPECT_FALSE(plain->screen().dimmed());
  const auto coloured = chat(arguments);
  coloured->ask("hello\r");
  EXPECT_TRUE(coloured->screen().dimmed());
}

TEST_F(ChatTest, a_dumb_terminal_gets_no_escape_sequence) {
  test::Terminal terminal(kInferd, run_arguments({"--max-tokens", "6"}),
                          {.environment = environment({"TERM=dumb"}), .folder = folder_});
  terminal.expect_end("/help lists commands, Ctrl-D leaves.\n>>>");
  terminal.type("/set seed 3\n");
  terminal.expect_end("  seed        3\n>>>");
  terminal.type("hello\n");
  terminal.expect_end("/512\n>>>");
  terminal.type("\x04");
  EXPECT_EQ(terminal.wait(), 0);
  EXPECT_EQ(terminal.raw().find('\x1b'), std::string::npos);
}

TEST_F(ChatTest, over_pipes_lines_are_messages_and_the_first_error_is_the_exit_code) {
  const std::vector<std::string> arguments = run_arguments({"--max-tokens", "6"});
  const test::Finished once = run(run_arguments({"hello", "--max-tokens", "6"}));
  EXPECT_EQ(once.code, 0);
  const test::Finished piped = run(arguments, "hello\n\n/set temperature 1000\n/load nothing.json\n");
  EXPECT_EQ(piped.code, 2);
  EXPECT_EQ(piped.out, once.out);
  EXPECT_NE(
      piped.err.find("error[E-ARG-003]: bad option value: --temperature: got \"1000\", allowed are numbers "
                     "from 0 to 100"),
      std::string::npos)
      << piped.err;
  EXPECT_NE(piped.err.find("error[E-IO-001]"), std::string::npos) << piped.err;
  EXPECT_EQ(piped.err.find('\x1b'), std::string::npos);
  const test::Finished quotes = run(arguments, "\"\"\"\nhello\n\"\"\"");
  EXPECT_EQ(quotes.out, once.out);
  EXPECT_EQ(run(arguments, "\"\"\"hello").out, once.out);  // the end of the input closes them
  EXPECT_EQ(run(arguments, "").code, 0);
  const test::Finished full =
      test::run_process(kInferd, arguments,
                        {.environment = environment(), .stdout_path = "/dev/full", .stdin_text = "hello\n"});
  EXPECT_EQ(full.code, 73);
  EXPECT_NE(full.err.find("error[E-IO-006]"), std::string::npos) << full.err;
}

TEST_F(ChatTest, one_answer_as_json) {
  const test::Finished text = run(run_arguments({"hello", "--max-tokens", "6", "--no-stats"}));
  EXPECT_EQ(text.err.find("TTFT"), std::string::npos);
  const test::Finished once = run(run_arguments({"hello", "--max-tokens", "6", "--seed", "5", "--json"}));
  ASSERT_EQ(once.code, 0) << once.err;
  const Result<Json> json = parse_json(once.out);
  ASSERT_TRUE(json.ok()) << once.out;
  EXPECT_EQ(json->find("text")->as_string() + "\n", text.out);
  EXPECT_EQ(json->find("model")->as_string(), "tiny-llama-f32");
  EXPECT_TRUE(json->find("server")->is_null());
  EXPECT_EQ(json->find("finish_reason")->as_string(), "length");
  EXPECT_EQ(json->find("seed")->as_integer(), 5);
  EXPECT_EQ(json->find("context")->as_integer(), 512);
  const Json& usage = *json->find("usage");
  EXPECT_EQ(usage.find("completion_tokens")->as_integer(), 6);
  EXPECT_EQ(usage.find("total_tokens")->as_integer(), usage.find("prompt_tokens")->as_integer() + 6);
  EXPECT_GT(json->find("timings")->find("first_token_ms")->as_number(), 0);
  EXPECT_EQ(run(run_arguments({"--json"})).code, 2);
}

TEST_F(ChatTest, when_the_context_is_full_the_oldest_turns_are_dropped_and_named) {
  const auto terminal = chat({"--max-tokens", "8", "--no-stats", "--ctx", "320", "--system", "be brief"});
  for (int i = 1; i <= 2; ++i) {
    const std::string answer = terminal->ask(cat("question number ", i, "\r"));
    EXPECT_EQ(answer.find("dropped"), std::string::npos) << answer;
  }
  std::string answer;
  int turn = 3;
  for (; turn < 12 && answer.find("dropped") == std::string::npos; ++turn)
    answer = terminal->ask(cat("question number ", turn, "\r"));
  EXPECT_NE(answer.find("the context is full: turn 1 is dropped: question number 1\n"), std::string::npos)
      << answer;
  // What can never fit is refused, and nothing has changed.
  const std::string refused = terminal->ask(std::string(400, 'x') + "\r");
  EXPECT_NE(refused.find("error[E-REQ-006]"), std::string::npos) << refused;
  EXPECT_NE(refused.find("has 320\n"), std::string::npos) << refused;
  terminal->ask("/save all.json\r");
  const Json messages = saved("all.json");
  ASSERT_EQ(messages.as_array().size(), 1u + 2u * static_cast<size_t>(turn - 1));
  EXPECT_EQ(content(messages, 0), "be brief");
  EXPECT_EQ(content(messages, 1), "question number 1");
  EXPECT_NE(terminal->ask("/show\r").find("the first "), std::string::npos);
}

// Starts `inferd serve` in the test's own folders; it answers once this returns.
std::unique_ptr<test::Process> serve(const std::vector<std::string>& environment,
                                     const std::vector<std::string>& more = {},
                                     const std::string& program = kInferd) {
  std::vector<std::string> arguments = {"serve",     tiny_model(), "--port", "0",
                                        "--threads", "1",          "--ctx",  "512"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return std::make_unique<test::Process>(program, arguments,
                                         test::ProcessOptions{.environment = environment});
}

TEST_F(ChatTest, a_running_server_is_used_and_named) {
  const std::vector<std::string> question = {"run", tiny_model(),   "hello", "--temperature",
                                             "0",   "--max-tokens", "6",     "--no-stats"};
  const test::Finished alone = run(question);
  ASSERT_EQ(alone.code, 0) << alone.err;
  const auto server = serve(environment());
  const int port = test::wait_until_ready(*server);
  const std::string named =
      cat("using the server at http://127.0.0.1:", port, " (pid ", server->pid(), ")\n");
  const test::Finished over = run(question);
  EXPECT_EQ(over.code, 0) << over.err;
  EXPECT_EQ(over.err, named);
  EXPECT_EQ(over.out, alone.out);
  std::vector<std::string> own = question;
  own.emplace_back("--no-server");
  EXPECT_EQ(run(own).err.find("using the server"), std::string::npos);
  own.back() = "--no-prefix-cache";
  EXPECT_EQ(run(own).err.find("using the server"), std::string::npos);
  // What configuration says of engines holds for the server as well.
  EXPECT_EQ(test::run_process(kInferd, question, {.environment = environment({"INFERD_CTX=64"})}).err, named);

  // A whole conversation over it: as in this process.
  const std::string typed = "hello\n/system be brief\nand now?\n/retry\n";
  const test::Finished here = run(run_arguments({"--max-tokens", "6"}), typed);
  const test::Finished there = run({"run", tiny_model(), "--temperature", "0", "--max-tokens", "6"}, typed);
  EXPECT_TRUE(there.err.starts_with(named)) << there.err;
  EXPECT_EQ(there.out, here.out);
  std::vector<std::string> as_json = question;
  as_json.emplace_back("--json");
  const Result<Json> json = parse_json(run(as_json).out);
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(json->find("server")->as_string(), cat("http://127.0.0.1:", port));
  EXPECT_EQ(json->find("usage")->find("completion_tokens")->as_integer(), 6);
  // Nobody left before an answer's last byte.
  EXPECT_NE(test::get(port, "/metrics").body.find("inferd_http_clients_gone_total 0\n"), std::string::npos);
  // Errors of the server are its own.
  const test::Finished refused = run({"run", tiny_model(), std::string(3000, 'x'), "--max-tokens", "6"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("error[E-REQ-006]"), std::string::npos) << refused.err;

  const Result<Json> ps = parse_json(run({"ps", "--json"}).out);
  ASSERT_TRUE(ps.ok());
  ASSERT_EQ(ps->find("servers")->as_array().size(), 1u);
  const Json& row = ps->find("servers")->as_array().front();
  EXPECT_EQ(row.find("pid")->as_integer(), server->pid());
  EXPECT_EQ(row.find("port")->as_integer(), port);
  EXPECT_EQ(row.find("model")->as_string(), "tiny-llama-f32");
  EXPECT_EQ(row.find("state")->as_string(), "ready");
  EXPECT_EQ(row.find("running")->as_integer(), 0);
  EXPECT_EQ(row.find("context")->as_integer(), 512);
  const std::string table = run({"ps"}).out;
  EXPECT_TRUE(table.starts_with("PID ")) << table;
  EXPECT_NE(table.find("ready  0 running, 0 waiting\n"), std::string::npos) << table;

  const test::Finished stopped = run({"stop"});
  EXPECT_EQ(stopped.code, 0);
  EXPECT_TRUE(stopped.out.starts_with(cat("stopped tiny-llama-f32 (pid ", server->pid(), ") after ")))
      << stopped.out;
  EXPECT_EQ(server->wait(seconds(10)), 0);
  EXPECT_EQ(run({"ps"}).out, "");
  EXPECT_EQ(run({"stop"}).code, 69);
  EXPECT_EQ(run({"stop", "--all"}).code, 0);
}

TEST_F(ChatTest, an_answer_over_a_server_can_be_stopped) {
  const auto server = serve(environment({"INFERD_STEP_MS=20"}), {}, kSlow);
  const int port = test::wait_until_ready(*server);
  test::Terminal terminal(kInferd, {"run", tiny_model(), "--temperature", "0"},
                          {.environment = environment(), .folder = folder_});
  terminal.expect_cursor(">>> |");
  const size_t before = terminal.screen().text().size();
  terminal.type("hello\r");
  for (int i = 0; terminal.screen().text().size() < before + 12; ++i) {
    ASSERT_LT(i, 4000) << terminal.screen().text();
    terminal.wait(std::chrono::milliseconds(5));
  }
  terminal.type("\x03");
  terminal.expect_cursor(">>> |");
  EXPECT_NE(terminal.screen().text().find("stopped  TTFT "), std::string::npos) << terminal.screen().text();
  terminal.ask("/save stopped.json\r");
  EXPECT_FALSE(content(saved("stopped.json"), 1).empty());
  // It has stopped there too.
  for (int i = 0; test::get(port, "/metrics.json").json().find("requests_running")->as_integer() > 0; ++i) {
    ASSERT_LT(i, 1000);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  // A server that ends meanwhile is an error, and the chat goes on.
  EXPECT_EQ(run({"stop"}).code, 0);
  EXPECT_NE(terminal.ask("hello\r").find("error[E-SRV-003]"), std::string::npos) << terminal.screen().text();
  EXPECT_NE(terminal.ask("/show\r").find("turns       1\n"), std::string::npos) << terminal.screen().text();
}

TEST_F(ChatTest, what_a_server_had_said_before_it_was_killed_is_kept) {
  const auto server = serve(environment({"INFERD_STEP_MS=20"}), {}, kSlow);
  test::wait_until_ready(*server);
  test::Terminal terminal(kInferd, {"run", tiny_model(), "--temperature", "0"},
                          {.environment = environment(), .folder = folder_});
  terminal.expect_cursor(">>> |");
  const size_t before = terminal.screen().text().size();
  terminal.type("hello\r");
  for (int i = 0; terminal.screen().text().size() < before + 12; ++i) {
    ASSERT_LT(i, 4000) << terminal.screen().text();
    terminal.wait(std::chrono::milliseconds(5));
  }
  server->signal(SIGKILL);
  terminal.expect_cursor(">>> |");
  const std::string said = terminal.screen().text();
  EXPECT_NE(said.find("the answer is kept as far as it came; /retry asks again\nerror[E-SRV-003]"),
            std::string::npos)
      << said;
  terminal.ask("/save kept.json\r");
  const Json messages = saved("kept.json");
  ASSERT_EQ(messages.as_array().size(), 2u);
  EXPECT_FALSE(content(messages, 1).empty());
}

TEST_F(ChatTest, a_server_with_a_key) {
  const auto write_key = [&](const std::string& name, const std::string& key) {
    std::ofstream(cat(folder_, "/", name)) << key << "\n";
    std::filesystem::permissions(cat(folder_, "/", name), std::filesystem::perms(0600));
  };
  write_key("key", "a-key-of-many-characters");
  write_key("other", "another-key-of-characters");
  const auto server = serve(environment(), {"--api-key-file", folder_ + "/key"});
  test::wait_until_ready(*server);
  const std::vector<std::string> question = {"run", tiny_model(), "hello", "--max-tokens", "2"};
  // This user's own: the note says where the key is.
  const test::Finished own = run(question);
  EXPECT_EQ(own.code, 0) << own.err;
  EXPECT_TRUE(own.err.starts_with("using the server at ")) << own.err;
  EXPECT_NE(run({"ps"}).out.find("0 running"), std::string::npos);
  std::vector<std::string> wrong = question;
  wrong.insert(wrong.end(), {"--api-key-file", folder_ + "/other"});
  const test::Finished refused = run(wrong);
  EXPECT_EQ(refused.code, 77);
  EXPECT_NE(refused.err.find("error[E-REQ-011]"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("fix: give --api-key-file FILE with the key of this server, or --no-server"),
            std::string::npos)
      << refused.err;
  // The key has gone: said so, not passed over.
  std::filesystem::remove(folder_ + "/key");
  const test::Finished keyless = run(question);
  EXPECT_EQ(keyless.code, 65);
  EXPECT_NE(keyless.err.find(", or --no-server\n"), std::string::npos) << keyless.err;
  EXPECT_NE(run({"ps"}).out.find("ready  ?\n"), std::string::npos);
}

TEST_F(ChatTest, servers_are_stopped_by_name_pid_or_port_and_only_when_it_is_clear_which) {
  const auto first = serve(environment(), {"--alias", "one"});
  const auto second = serve(environment(), {"--alias", "two", "--drain-timeout", "2"});
  const int first_port = test::wait_until_ready(*first);
  const int second_port = test::wait_until_ready(*second);
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"stop"}, {"stop", "tiny-llama-f32"}, {"stop", tiny_model()}}) {
    const test::Finished unclear = run(arguments);
    EXPECT_EQ(unclear.code, 2);
    EXPECT_NE(unclear.err.find("error[E-SRV-002]"), std::string::npos) << unclear.err;
    EXPECT_NE(unclear.err.find(cat("pid ", first->pid(), "  port ", first_port)), std::string::npos)
        << unclear.err;
    EXPECT_NE(unclear.err.find(cat("pid ", second->pid(), "  port ", second_port)), std::string::npos)
        << unclear.err;
  }
  EXPECT_EQ(run({"stop", "twoo"}).code, 69);
  EXPECT_EQ(run({"stop", "--all", "one"}).code, 2);
  // One with a request in flight: it is told of, and waited for.
  test::HttpClient client(second_port);
  client.send(test::request_text(
      "POST", "/v1/completions",
      R"({"prompt":"hello","stream":true,"ignore_eos":true,"temperature":0,"max_tokens":400})"));
  EXPECT_NE(client.receive(), "");
  const test::Finished stopped = run({"stop", cat(second_port)});
  EXPECT_EQ(stopped.code, 0) << stopped.err;
  EXPECT_EQ(second->wait(seconds(10)), 0);
  std::string rest;
  for (std::string piece = client.receive(); !piece.empty(); piece = client.receive()) rest += piece;
  EXPECT_NE(rest.find("data: [DONE]"), std::string::npos) << rest;
  EXPECT_EQ(run({"stop", "one"}).code, 0);
  EXPECT_EQ(first->wait(seconds(10)), 0);
  const auto third = serve(environment());
  const auto fourth = serve(environment());
  test::wait_until_ready(*third);
  test::wait_until_ready(*fourth);
  EXPECT_EQ(run({"stop", cat(third->pid())}).code, 0);
  EXPECT_EQ(run({"stop", "--all"}).code, 0);
  EXPECT_EQ(third->wait(seconds(10)), 0);
  EXPECT_EQ(fourth->wait(seconds(10)), 0);
  EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/run/inferd"));
}

TEST_F(ChatTest, a_killed_server_is_not_listed) {
  {
    const auto server = serve(environment());
    test::wait_until_ready(*server);
    server->signal(SIGKILL);
    server->wait(seconds(10));
  }
  EXPECT_FALSE(std::filesystem::is_empty(folder_ + "/run/inferd"));
  EXPECT_EQ(run({"ps", "--json"}).out, "{\"servers\":[]}\n");
  EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/run/inferd"));
}

TEST_F(ChatTest, the_log_has_one_line_a_request_and_never_its_text) {
  for (const std::string format : {"text", "json"}) {
    const auto server = serve(environment(), {"--log-format", format});
    const int port = test::wait_until_ready(*server);
    const test::Headers id = {{"X-Request-Id", "the-id"}};
    test::get(port, "/health/ready");
    test::post(port, "/v1/completions",
               R"({"prompt":"a secret","temperature":0,"max_tokens":4,"ignore_eos":true})", id);
    test::post(port, "/v1/completions", R"({"prompt":"a secret","max_token":4})", {{"X-Request-Id", "bad"}});
    server->signal(SIGTERM);
    EXPECT_EQ(server->wait(seconds(10)), 0);
    const std::string log = server->stderr_text();
    EXPECT_EQ(log.find("secret"), std::string::npos) << log;
    EXPECT_EQ(log.find("health"), std::string::npos) << log;
    if (format == "text") {
      EXPECT_TRUE(std::regex_search(
          log,
          std::regex("[0-9:]{8} info  request: the-id POST /v1/completions 200 length, prompt [0-9]+, output "
                     "4, TTFT [0-9.]+ m?s, [0-9.]+ tok/s, [0-9.]+ m?s\n")))
          << log;
      EXPECT_TRUE(std::regex_search(log, std::regex("info  request: bad POST /v1/completions 400, "))) << log;
      continue;
    }
    std::vector<std::string> phases;
    std::optional<Json> request;
    for (const std::string_view line : split(log, '\n')) {
      if (line.empty()) continue;
      const Result<Json> json = parse_json(line);
      ASSERT_TRUE(json.ok()) << line;
      EXPECT_EQ(json->find("time")->as_string().size(), 24u);
      if (const Json* phase = json->find("phase")) phases.push_back(phase->as_string());
      const Json* of = json->find("id");
      if (of != nullptr && of->as_string() == "the-id") request = *json;
    }
    EXPECT_EQ(phases, (std::vector<std::string>{"read", "plan", "load", "ready"}));
    ASSERT_TRUE(request) << log;
    EXPECT_EQ(request->find("status")->as_integer(), 200);
    EXPECT_EQ(request->find("end")->as_string(), "length");
    EXPECT_EQ(request->find("output_tokens")->as_integer(), 4);
    EXPECT_GT(request->find("ttft_ms")->as_number(), 0);
    EXPECT_GT(request->find("tokens_per_second")->as_number(), 0);
  }
}

}  // namespace
}  // namespace inferd
