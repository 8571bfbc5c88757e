// Commands where the place is wrong: a home that is missing or a file, a locale without UTF-8, a cache of
// which half is gone or that may not be written to, and two processes at one model. Each ends with a coded
// error or does its work; nothing that was whole is lost.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/json.h"
#include "base/utf8.h"
#include "pull_home.h"
#include "support/terminal.h"

namespace inferd {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing_hub::content_answer;
using testing_hub::FakeFile;
using testing_hub::names_in;
using testing_hub::WebReply;
using testing_hub::WebRequest;
using testing_hub::write_file;

std::string tiny_model() {
  return test::golden_dir() + "/tiny/llama/gguf/tiny-llama-q8_0.gguf";
}

class BadPlaces : public PullHome {
 protected:
  static void expect_coded(const test::Finished& finished, const std::string& what) {
    EXPECT_LT(finished.code, 126) << what << "\n" << finished.err;
    EXPECT_TRUE(is_valid_utf8(finished.err)) << what;
    if (finished.code == 0) return;
    const std::string said = finished.err + finished.out;
    // What doctor finds is its output.
    if (said.find("FAIL  ") == std::string::npos) {
      EXPECT_NE(finished.err.find("error[E-"), std::string::npos) << what << "\n" << said;
    }
    EXPECT_NE(said.find("  fix: "), std::string::npos) << what << "\n" << said;
  }
};

TEST_F(BadPlaces, every_command_without_a_home) {
  const std::string file = scratch_.path + "/file";
  write_file(file, "a file");
  const std::vector<std::string> short_run = {"--max-tokens", "2", "--ctx", "64", "--threads", "1"};
  const auto with = [&](std::vector<std::string> command) {
    command.insert(command.end(), short_run.begin(), short_run.end());
    return command;
  };
  struct Case {
    std::vector<std::string> arguments;
    int code;  // -1: 0, or a coded error
  };
  const std::vector<Case> commands = {
      {{"version"}, 0},
      {{"man"}, 0},
      {{"config"}, 0},
      {{"completion", "bash"}, 0},
      {{"ps"}, 0},
      {{"stop"}, 69},
      {{"list"}, -1},
      {{"doctor", "--port", "0"}, -1},
      {{"show", tiny_model()}, 0},
      {{"plan", tiny_model()}, 0},
      {{"tokenize", tiny_model(), "hello"}, 0},
      {with({"run", tiny_model(), "hello"}), 0},
      {with({"run", "smollm2", "hello"}), 65},
      {{"serve", "smollm2", "--port", "0"}, 65},
      {{"show", "hf:acme/tiny"}, 65},
      {{"rm", "-y", "smollm2"}, 65},
      {{"rm", "-y", "hf:acme/tiny"}, 65},
      {{"pull", "hf:acme/tiny", "--offline"}, -1},
      {{"pull", "smollm2", "--offline"}, -1},
      {{"bench", "engine", tiny_model(), "--pp", "4", "--tg", "2", "--repeat", "1", "--threads", "1"}, 0},
  };
  for (const std::string& home :
       {std::string(), scratch_.path + "/not/there", file, std::string("relative")}) {
    for (const Case& one : commands) {
      if (one.arguments[0] == "bench" && !home.empty()) continue;  // it measures the memory first
      const test::Finished finished =
          run(one.arguments, {cat("HOME=", home), "XDG_STATE_HOME=", "XDG_RUNTIME_DIR=", "XDG_CONFIG_HOME="});
      const std::string what = cat("HOME=", home, " inferd ", join(one.arguments, " "));
      expect_coded(finished, what);
      if (one.code >= 0) {
        EXPECT_EQ(finished.code, one.code) << what << "\n" << finished.err;
      }
    }
    EXPECT_EQ(names_in(scratch_.path), std::vector<std::string>{"file"}) << home;
  }
}

TEST_F(BadPlaces, a_home_that_may_not_be_written_to) {
  if (!can_run_without_privilege()) GTEST_SKIP() << "capabilities cannot be dropped here";
  start_server();
  fs::permissions(scratch_.path, fs::perms::owner_read | fs::perms::owner_exec);
  const std::vector<std::string> variables =
      environment({"XDG_STATE_HOME=", "XDG_RUNTIME_DIR=", "XDG_CONFIG_HOME="});
  const test::Finished pull = run_without_privilege({"pull", "hf:acme/tiny"}, variables);
  EXPECT_EQ(pull.code, 77) << pull.err;
  EXPECT_NE(pull.err.find("error[E-IO-002]"), std::string::npos) << pull.err;
  const test::Finished answer =
      run_without_privilege({"run", tiny_model(), "hi", "--max-tokens", "2", "--ctx", "64"}, variables);
  EXPECT_EQ(answer.code, 0) << answer.err;
  const test::Finished doctor = run_without_privilege({"doctor", "--port", "0"}, variables);
  EXPECT_EQ(doctor.code, 0) << doctor.out;
  EXPECT_NE(doctor.out.find("cannot be written to"), std::string::npos) << doctor.out;
  fs::permissions(scratch_.path, fs::perms::owner_all);
  EXPECT_EQ(names_in(scratch_.path), std::vector<std::string>());
}

TEST_F(BadPlaces, a_locale_without_utf8_changes_nothing) {
  const std::vector<std::string> question = {"run",
                                             tiny_model(),
                                             "h\xc3\xa9llo \xe4\xb8\x96\xe7\x95\x8c",
                                             "--temperature",
                                             "0",
                                             "--max-tokens",
                                             "4",
                                             "--ctx",
                                             "128",
                                             "--no-stats"};
  const test::Finished usual = run(question, {"LC_ALL=C.UTF-8"});
  ASSERT_EQ(usual.code, 0) << usual.err;
  for (const char* locale : {"LC_ALL=C", "LC_ALL=POSIX", "LC_ALL=en_US.ISO-8859-1", "LC_ALL=not a locale"}) {
    const test::Finished answer = run(question, {locale});
    EXPECT_EQ(answer.code, 0) << locale << answer.err;
    EXPECT_EQ(answer.out, usual.out) << locale;
    // Latin-1 bytes are no text here.
    for (const std::vector<std::string>& arguments :
         {std::vector<std::string>{"run", tiny_model(), "h\xe9llo"},
          {"run", tiny_model(), "hello", "--system", "h\xe9llo"},
          {"tokenize", tiny_model(), "h\xe9llo"}}) {
      const test::Finished latin = run(arguments, {locale});
      EXPECT_EQ(latin.code, 2) << locale << latin.err;
      EXPECT_NE(latin.err.find("no UTF-8: byte 233 at offset 1"), std::string::npos) << latin.err;
      expect_coded(latin, locale);
    }
    const test::Finished name = run({"run", "mod\xe9le", "hi"}, {locale});
    EXPECT_EQ(name.code, 65);
    expect_coded(name, locale);
    EXPECT_EQ(run({"config", "--ctx", "\xe9"}, {locale}).code, 2);
  }
  const test::Finished piped =
      test::run_process(kProgram, {"run", tiny_model(), "--max-tokens", "4", "--no-stats"},
                        {.environment = environment({"LC_ALL=C"}), .stdin_text = "h\xe9llo\nhello\n"});
  EXPECT_EQ(piped.code, 2);
  EXPECT_NE(piped.out, "") << "the second message is answered";
  expect_coded(piped, "a pipe");
  test::Terminal terminal(
      kProgram,
      {"run", tiny_model(), "--temperature", "0", "--max-tokens", "4", "--ctx", "128", "--no-stats"},
      {.environment = environment({"LC_ALL=C"}), .folder = scratch_.path});
  terminal.expect_cursor(">>> |");
  terminal.type("\xe4\xb8\x96\xe7\x95\x8c\x1b[D");
  terminal.expect_cursor(">>> \xe4\xb8\x96|\xe7\x95\x8c");
}

TEST_F(BadPlaces, a_cache_of_which_parts_are_gone) {
  start_server();
  const FakeFile* model = &repo_.files.back();
  struct Damage {
    const char* what;
    std::function<void()> make;
    int run_code;  // of `run` before the next pull
  };
  const std::vector<Damage> table = {
      {"the blob", [&] { fs::remove(blob(*model)); }, 65},
      {"all blobs", [&] { fs::remove_all(folder() + "/blobs"); }, 65},
      {"the link", [&] { fs::remove(snapshot_path()); }, 65},
      {"all snapshots", [&] { fs::remove_all(folder() + "/snapshots"); }, 65},
      {"the reference", [&] { fs::remove(folder() + "/refs/main"); }, 65},
      {"all references", [&] { fs::remove_all(folder() + "/refs"); }, 65},
      {"the reference is of another commit",
       [&] { write_file(folder() + "/refs/main", std::string(40, 'a')); }, 65},
      {"the reference is no commit", [&] { write_file(folder() + "/refs/main", "../../etc"); }, 65},
      {"the reference is empty", [&] { write_file(folder() + "/refs/main", ""); }, 65},
      {"the blob is cut", [&] { fs::resize_file(blob(*model), 1000); }, 65},
      {"the blob is empty", [&] { fs::resize_file(blob(*model), 0); }, 65},
      {"the link leads to itself",
       [&] {
         fs::remove(snapshot_path());
         fs::create_symlink(snapshot_path(), snapshot_path());
       },
       65},
      {"the locks", [&] { fs::remove_all(cache() + "/.locks"); }, 0},
      {"the locks are a file",
       [&] {
         fs::remove_all(cache() + "/.locks");
         write_file(cache() + "/.locks", "x");
       },
       0},
      {"a part that is longer than the file",
       [&] {
         fs::remove(blob(*model));
         write_file(blob(*model) + ".incomplete", std::string(model->content.size() + 5000, 'x'));
       },
       65},
      {"a part of other bytes",
       [&] {
         fs::remove(blob(*model));
         write_file(blob(*model) + ".incomplete", std::string(1000, 'x'));
       },
       65},
  };
  for (const Damage& damage : table) {
    fs::remove_all(cache());
    ASSERT_EQ(run({"pull", "hf:acme/tiny"}).code, 0);
    damage.make();
    const test::Finished answer =
        run({"run", "hf:acme/tiny", "hi", "--max-tokens", "2", "--ctx", "64", "--threads", "1"});
    EXPECT_EQ(answer.code, damage.run_code) << damage.what << "\n" << answer.err;
    for (const std::vector<std::string>& looks :
         {std::vector<std::string>{"list"}, {"show", "hf:acme/tiny", "--verify"}, {"doctor", "--port", "0"}})
      expect_coded(run(looks), cat(damage.what, ": ", looks[0]));
    const test::Finished pull = run({"pull", "hf:acme/tiny"});
    expect_coded(pull, damage.what);
    if (std::string_view(damage.what) == "the locks are a file") {
      EXPECT_EQ(pull.code, 73) << pull.err;
      continue;
    }
    EXPECT_EQ(pull.code, 0) << damage.what << "\n" << pull.err;
    EXPECT_TRUE(test::read_file(snapshot_path()) == model->content) << damage.what;
    const test::Finished removed = run({"rm", "-y", "hf:acme/tiny"});
    EXPECT_EQ(removed.code, 0) << damage.what << "\n" << removed.err;
    EXPECT_FALSE(fs::exists(blob(*model))) << damage.what;
  }
}

TEST_F(BadPlaces, two_processes_that_pull_and_remove_one_model) {
  on_file = [&](const WebRequest& request, WebReply& reply, const FakeFile& file) {
    const std::string whole = content_answer(request, file.content, file.etag());
    for (size_t at = 0; at < whole.size(); at += 20000) {
      reply.send(std::string_view(whole).substr(at, 20000));
      std::this_thread::sleep_for(milliseconds(1));
    }
    return true;
  };
  start_server();
  std::mt19937_64 random(20261130);
  std::map<int, int> pulls, removals;
  for (int round = 0; round < 40; ++round) {
    if (round % 2 == 0) fs::remove_all(cache());
    const auto start = [&](const std::vector<std::string>& arguments) {
      std::this_thread::sleep_for(
          std::chrono::microseconds(std::uniform_int_distribution<int>(0, 8000)(random)));
      return std::make_unique<test::Process>(kProgram, arguments,
                                             test::ProcessOptions{.environment = environment()});
    };
    std::vector<std::unique_ptr<test::Process>> processes;
    processes.push_back(start({"pull", "hf:acme/tiny"}));
    processes.push_back(start({"rm", "-y", "hf:acme/tiny"}));
    processes.push_back(start({"pull", "hf:acme/tiny"}));
    for (size_t i = 0; i < processes.size(); ++i) {
      const std::optional<int> code = processes[i]->wait(seconds(30));
      ASSERT_TRUE(code) << "does not end";
      ++(i == 1 ? removals : pulls)[*code];
      expect_coded({*code, "", processes[i]->stderr_text()}, i == 1 ? "rm" : "pull");
    }
    check_final_files();
    const test::Finished after = run({"pull", "hf:acme/tiny"});
    ASSERT_EQ(after.code, 0) << after.err;
    ASSERT_TRUE(test::read_file(snapshot_path()) == repo_.files.back().content);
  }
  // Not here (yet), or somebody fetches it: both are 65.
  for (const auto& [code, times] : removals) EXPECT_TRUE(code == 0 || code == 65) << code << " " << times;
  EXPECT_GE(removals[0], 1);
  EXPECT_GE(removals[65], 1);
  EXPECT_GE(pulls[0], 40);
  std::printf("80 pulls: %d whole; 40 removals: %d done, %d refused\n", pulls[0], removals[0], removals[65]);
}

}  // namespace
}  // namespace inferd
