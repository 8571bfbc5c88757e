// What a stranger sees, from a tree in which nothing is built to a chat, and when things go wrong: whole
// sessions on a pseudo-terminal, recorded in tests/golden/sessions.txt. INFERD_UPDATE_GOLDEN=1 writes it
// anew; read the difference before committing it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <regex>
#include <thread>

#include "base/strings.h"
#include "pull_home.h"
#include "support/terminal.h"

namespace inferd {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing_hub::content_answer;
using testing_hub::FakeFile;
using testing_hub::noise;
using testing_hub::WebReply;
using testing_hub::WebRequest;
using testing_hub::write_file;

// What differs between runs and machines, by names in capitals.
std::string scrubbed(std::string text, const std::string& folder) {
  for (const auto& [path, name] : {std::pair(folder, "FOLDER"), std::pair(test::golden_dir(), "GOLDEN"),
                                   std::pair(test::model_dir(), "MODELS")}) {
    for (size_t at = text.find(path); at != std::string::npos; at = text.find(path, at))
      text.replace(at, path.size(), name);
  }
  const auto replace = [&text](const char* pattern, const char* by) {
    text = std::regex_replace(text, std::regex(pattern), by);
  };
  replace(" {2,}[0-9.,]+ (ms|s)(?![a-z])", "  N s");
  replace("[0-9.,]+ (ms|s)(?![a-z])", "N s");
  replace("[0-9.,]+(\\s+)(B|KiB|MiB|GiB)(?![a-z])", "N$1MiB");
  replace("[0-9.]+ tok/s", "N tok/s");
  replace("[0-9]{2}:[0-9]{2}:[0-9]{2} info", "TIME info");
  replace("req-[0-9a-f]{16}", "req-N");
  replace("prompt [0-9]+( \\([0-9]+ cached\\))?,", "prompt N,");
  replace(" [0-9]+ %", " N %");
  replace("ctx [0-9,]+/", "ctx N/");
  replace("pid(\\s+)[0-9]+", "pid$1N");
  replace("kill [0-9]+", "kill N");
  replace("(127\\.0\\.0\\.1|localhost):[0-9]+", "$1:PORT");
  replace("--port [0-9]{4,5}(?=,)", "--port PORT");
  replace("port [0-9]{4,5}:", "port PORT:");
  replace("threads [0-9]+  cpu \\([a-z0-9_]+\\)", "threads N  cpu (ISA)");
  replace("cmake --build --preset release -j [0-9]+", "cmake --build --preset release -j N");
  replace("[0-9,]+ tokens in [0-9,]+ pages", "N tokens in N pages");
  return text;
}

class SessionTest : public PullHome {
 protected:
  static void TearDownTestSuite() {
    const std::string path = INFERD_SOURCE_DIR "/tests/golden/sessions.txt";
    std::string all;
    for (const auto& [title, text] : records()) all += cat("======== ", title, "\n", text, "\n");
    if (std::getenv("INFERD_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << all;
  }

  SessionTest() { fs::create_directories(work_); }

  // Compares a session with the recorded one of this title.
  void expect_recorded(const std::string& title, const std::string& text) {
    const std::string shown = scrubbed(text, scratch_.path);
    records()[title] = shown;
    if (std::getenv("INFERD_UPDATE_GOLDEN") != nullptr) return;
    const std::string all = test::read_file(INFERD_SOURCE_DIR "/tests/golden/sessions.txt");
    const std::string head = cat("======== ", title, "\n");
    const size_t begin = all.find(head);
    ASSERT_NE(begin, std::string::npos) << title << " is not in sessions.txt";
    const size_t from = begin + head.size();
    EXPECT_EQ(shown + "\n", all.substr(from, all.find("======== ", from) - from)) << title;
  }

  test::TerminalOptions options(int columns, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> variables = environment({cat("XDG_STATE_HOME=", scratch_.path, "/state"),
                                                      cat("XDG_RUNTIME_DIR=", scratch_.path, "/run"),
                                                      cat("XDG_CONFIG_HOME=", scratch_.path, "/config")});
    variables.insert(variables.end(), more.begin(), more.end());
    return {.columns = columns, .environment = variables, .folder = work_};
  }
  static std::string command_line(const std::vector<std::string>& arguments) {
    std::string line = "$ inferd";
    for (const std::string& argument : arguments)
      line += argument.find(' ') == std::string::npos ? cat(" ", argument) : cat(" \"", argument, "\"");
    return line + "\n";
  }
  static std::string ended(test::Terminal& terminal, seconds timeout = seconds(60)) {
    const std::optional<int> code = terminal.wait(timeout);
    std::string text = terminal.screen().whole_lines();
    if (!text.empty()) text += "\n";
    return cat(text, "[exit ", code ? cat(*code) : "never", "]\n");
  }
  // A command to its end.
  std::string step(const std::vector<std::string>& arguments, int columns,
                   const std::vector<std::string>& more = {}) const {
    test::Terminal terminal(kProgram, arguments, options(columns, more));
    return command_line(arguments) + ended(terminal);
  }
  static std::map<std::string, std::string>& records() {
    static std::map<std::string, std::string> all;
    return all;
  }

  const std::string work_ = scratch_.path + "/work";
};

std::string tiny_model() {
  return test::golden_dir() + "/tiny/llama/gguf/tiny-llama-f32.gguf";
}

// The answer of a real model may differ from chip to chip.
std::string without_answer(std::string text) {
  const size_t stats = text.find("\nTTFT ");
  const size_t line = text.find('\n');
  if (stats != std::string::npos && line < stats) text.replace(line + 1, stats - line - 1, "(an answer)");
  return text;
}

TEST_F(SessionTest, from_a_tree_in_which_nothing_is_built_to_a_chat) {
  const std::string tree = work_ + "/inferd";
  fs::create_directories(tree);
  for (const fs::directory_entry& entry : fs::directory_iterator(INFERD_SOURCE_DIR)) {
    const std::string name = entry.path().filename().string();
    if (name != "build" && name != ".git")
      fs::copy(entry.path(), fs::path(tree) / name, fs::copy_options::recursive);
  }
  // Its own data and state, but the compiler's cache of this user.
  const auto variable = [](const char* name) {
    return std::string(std::getenv(name) != nullptr ? std::getenv(name) : "");
  };
  const std::string caches = variable("XDG_CACHE_HOME");
  test::TerminalOptions place =
      options(80, {cat("HOME=", variable("HOME")), cat("XDG_DATA_HOME=", scratch_.path, "/data"),
                   cat("XDG_CACHE_HOME=", caches.empty() ? variable("HOME") + "/.cache" : caches)});
  fs::create_directories(scratch_.path + "/data/inferd/models");
  fs::create_symlink(test::model_dir() + "/smollm2.gguf", scratch_.path + "/data/inferd/models/smollm2.gguf");
  place.folder = tree;
  std::string record = "(the default model is in its folder already)\n$ cd inferd\n$ ./dev serve --port 0\n";
  test::Terminal server(tree + "/dev", {"serve", "--port", "0"}, place);
  server.expect_text("stop      Ctrl-C", seconds(900));
  test::Terminal chat(tree + "/build/release/inferd",
                      {"run", "smollm2", "--max-tokens", "12", "--temperature", "0"}, place);
  chat.expect_cursor(">>> |");
  std::string talk =
      cat("(in another terminal)\n$ build/release/inferd run smollm2 --max-tokens 12 --temperature 0\n",
          chat.screen().text());
  talk += without_answer(chat.ask("Why is the sky blue?\r")) + "\n>>>";
  talk += without_answer(chat.ask("And at night?\r")) + "\n>>>\n";
  chat.type("\x04");
  EXPECT_EQ(chat.wait(), 0);
  server.type("\x03");
  record += ended(server);
  // A request line may come before or behind what the other terminal showed.
  expect_recorded("a new tree, to a chat", record + "\n" + talk + "[exit 0]\n");
}

TEST_F(SessionTest, typing_errors) {
  for (const int columns : {80, 40}) {
    std::string record = step({"srve"}, columns);
    record += step({"serve", "--prot", "8001"}, columns);
    record += step({"serve", "--ctx", "lots"}, columns);
    record += step({"run"}, columns);
    record += step({"run", "smolm2", "hi"}, columns);
    record += step({"run", "./modle.gguf", "hi"}, columns);
    write_file(work_ + "/inferd.toml", "ctx = \"4k\"\nprot = 8001\n");
    record += cat("$ cat inferd.toml\nctx = \"4k\"\nprot = 8001\n", step({"serve"}, columns));
    write_file(work_ + "/inferd.toml", "[serve]\nctx = lots\n");
    record += cat("$ cat inferd.toml\n[serve]\nctx = lots\n", step({"serve"}, columns));
    fs::remove(work_ + "/inferd.toml");
    record += cat("(INFERD_PROT=8001)\n", step({"serve"}, columns, {"INFERD_PROT=8001"}));
    record += step({"doctor", "--explain", "E-CFG-2"}, columns);
    expect_recorded(cat("typing errors, ", columns, " columns"), record);
  }
}

TEST_F(SessionTest, ctrl_c_in_a_download_and_the_same_command_again) {
  const std::string bytes = noise(400000);
  repo_.files = {{"tiny-Q8_0.gguf", bytes}};
  std::atomic<bool> stall{true};
  on_file = [&](const WebRequest& request, WebReply& reply, const FakeFile& file) {
    if (!stall) return false;
    const std::string whole = content_answer(request, file.content, file.etag());
    reply.send(std::string_view(whole).substr(0, whole.find("\r\n\r\n") + 4 + file.content.size() / 2));
    reply.stall();
    return true;
  };
  start_server();
  for (const int columns : {80, 40}) {
    fs::remove_all(cache());
    stall = true;
    test::Terminal download(kProgram, {"pull", "hf:acme/tiny"}, options(columns));
    download.expect_text(" 50 %");
    download.type("\x03");
    std::string record = command_line({"pull", "hf:acme/tiny"}) + ended(download);
    EXPECT_EQ(part_bytes(repo_.files.back()), 200000);
    stall = false;
    record += step({"pull", "hf:acme/tiny"}, columns);
    expect_recorded(cat("Ctrl-C in a download, ", columns, " columns"), record);
  }
}

TEST_F(SessionTest, ctrl_c_in_a_load_and_in_an_answer) {
  const std::string model = test::model_dir() + "/smollm2.gguf";
  test::Terminal load(kProgram, {"run", model, "Count to one thousand."}, options(80));
  load.expect_text("  plan ");
  load.type("\x03");
  std::string record =
      "(Ctrl-C while it loads)\n" + command_line({"run", model, "Count to one thousand."}) + ended(load);
  const std::vector<std::string> arguments = {"run", model, "--ctx", "512", "--temperature", "0"};
  test::Terminal answer(kProgram, arguments, options(80));
  answer.expect_cursor(">>> |");
  record += "(Ctrl-C while it answers)\n" + command_line(arguments) + answer.screen().text();
  const size_t before = answer.screen().text().size();
  answer.type("Count to one thousand.\r");
  for (int i = 0; answer.screen().text().size() < before + 40; ++i) {
    ASSERT_LT(i, 4000) << answer.screen().text();
    answer.wait(milliseconds(5));
  }
  answer.type("\x03");
  answer.expect_cursor(">>> |");
  const std::string text = answer.screen().text();
  const size_t line = text.find('\n', before);
  record += cat(text.substr(before, line - before), "\n(a part of an answer)",
                text.substr(text.find("\nstopped")), "\n");
  answer.type("\x04");
  EXPECT_EQ(answer.wait(), 0);
  expect_recorded("Ctrl-C in a load and in an answer", record + "[exit 0]\n");
}

TEST_F(SessionTest, a_full_disk) {
  start_server();
  for (const int columns : {80, 40}) {
    // The second write fails as on a disk that another program fills meanwhile.
    test::Terminal full("/usr/bin/strace",
                        {"-f", "-o", "/dev/null", "-e", "trace=pwrite64", "-e",
                         "inject=pwrite64:error=ENOSPC:when=2+", kProgram, "pull", "hf:acme/tiny"},
                        options(columns));
    std::string record =
        "(another program fills the disk)\n" + command_line({"pull", "hf:acme/tiny"}) + ended(full);
    record += "(there is room again)\n" + step({"pull", "hf:acme/tiny"}, columns);
    expect_recorded(cat("a full disk, ", columns, " columns"), record);
    fs::remove_all(cache());
  }
}

TEST_F(SessionTest, a_taken_port) {
  test::Terminal first(kProgram, {"serve", tiny_model(), "--port", "0", "--threads", "1"}, options(80));
  first.expect_text("stop      Ctrl-C");
  std::smatch port;
  const std::string ready = first.screen().text();
  ASSERT_TRUE(std::regex_search(ready, port, std::regex("127\\.0\\.0\\.1:([0-9]+)")));
  for (const int columns : {80, 40}) {
    std::string record = step({"serve", tiny_model(), "--port", port[1]}, columns);
    record = std::regex_replace(record, std::regex(port[1].str()), "8000");
    record =
        std::regex_replace(record, std::regex("--port [0-9]+, which is free"), "--port PORT, which is free");
    expect_recorded(cat("a taken port, ", columns, " columns"), record);
  }
}

TEST_F(SessionTest, no_network) {
  // As a kernel without a route answers; five attempts take 15 seconds.
  const std::vector<std::string> nowhere = {"HF_ENDPOINT=https://192.0.2.1"};
  test::Terminal pull("/usr/bin/strace",
                      {"-f", "-o", "/dev/null", "-e", "trace=connect", "-e",
                       "inject=connect:error=ENETUNREACH", kProgram, "pull", "hf:acme/tiny"},
                      options(80, nowhere));
  expect_recorded("no network, a pull", command_line({"pull", "hf:acme/tiny"}) + ended(pull));
  for (const int columns : {80, 40}) {
    std::string record = step({"run", "hf:acme/tiny", "hi"}, columns, nowhere);
    record += step({"pull", "hf:acme/tiny", "--offline"}, columns, nowhere);
    record += step({"pull", "smollm2", "--offline"}, columns, nowhere);
    expect_recorded(cat("no network, ", columns, " columns"), record);
  }
}

TEST_F(SessionTest, a_terminal_that_changes_its_size) {
  test::Terminal chat(
      kProgram,
      {"run", tiny_model(), "--temperature", "0", "--max-tokens", "6", "--no-stats", "--isa", "portable"},
      options(80));
  chat.expect_cursor(">>> |");
  const std::string line = "a line that is longer than forty columns, typed at eighty of them";
  chat.type(line);
  chat.expect_cursor(cat(">>> ", line, "|"));
  // Above are times, which a narrow screen breaks at other places each time.
  const auto shown = [&chat] {
    const std::string text = chat.screen().text();
    return text.substr(text.find("/help")) + "\n";
  };
  std::string record = "(80 columns)\n" + shown();
  chat.resize(40, 24);
  chat.type("!");
  chat.expect_text("of them!");
  record += "(40 columns)\n" + shown();
  chat.type("\r");
  chat.expect_cursor(">>> |");
  chat.ask("/set temperature hot\r");
  record += "(and goes on)\n" + shown();
  expect_recorded("a terminal that changes its size", record);
}

TEST_F(SessionTest, colour_and_pipes) {
  const auto visible = [](std::string text) {
    std::erase(text, '\r');
    return std::regex_replace(text, std::regex("\x1b"), "ESC");
  };
  const std::vector<std::string> arguments = {"run",          tiny_model(), "hello", "--temperature", "0",
                                              "--max-tokens", "6",          "--isa", "portable"};
  std::string record;
  for (const std::string& variable :
       {std::string("TERM=xterm"), std::string("NO_COLOR=1"), std::string("TERM=dumb")}) {
    test::Terminal terminal(kProgram, arguments, options(80, {variable}));
    EXPECT_EQ(terminal.wait(), 0);
    record += cat("(", variable, ")\n", command_line(arguments), visible(terminal.raw()));
  }
  const test::Finished piped = test::run_process(kProgram, arguments, {.environment = environment()});
  EXPECT_EQ(piped.err.find('\x1b'), std::string::npos);
  record += cat("(into pipes; stdout)\n", visible(piped.out), "(stderr)\n", visible(piped.err));
  const std::vector<std::string> wrong = {"run", "smolm2", "hi"};
  record += cat("(an error into a pipe)\n", command_line(wrong),
                test::run_process(kProgram, wrong, {.environment = environment()}).err);
  expect_recorded("colour and pipes", record);
}

}  // namespace
}  // namespace inferd
