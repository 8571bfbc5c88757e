// `inferd pull` and its kin as processes: killed, interrupted, traced, without a network, on bad disks.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/json.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "pull_home.h"

namespace inferd {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing_hub::content_answer;
using testing_hub::FakeFile;
using testing_hub::FakeRepo;
using testing_hub::names_in;
using testing_hub::noise;
using testing_hub::ScratchFolder;
using testing_hub::TestAuthority;
using testing_hub::WebReply;
using testing_hub::WebRequest;
using testing_hub::WebServer;
using testing_hub::write_file;

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define INFERD_TEST_SANITIZED 1
#endif
#endif

#if defined(INFERD_TEST_SANITIZED)
constexpr int kKills = 100;  // each process takes longer
#else
constexpr int kKills = 200;
#endif

class PullProcess : public PullHome {};

TEST_F(PullProcess, a_pulled_model_runs_by_the_same_name_by_path_and_by_folder) {
  start_server();
  const test::Finished pulled = run({"pull", "hf:acme/tiny"});
  ASSERT_EQ(pulled.code, 0) << pulled.err;
  EXPECT_EQ(pulled.out, snapshot_path() + "\n");
  EXPECT_NE(pulled.err.find(cat("sha256 ", repo_.files.back().hash())), std::string::npos) << pulled.err;
  server_.reset();  // nobody answers any more
  for (const std::string& name : {std::string("hf:acme/tiny"), std::string("hf:acme/tiny:q8_0"),
                                  std::string("hf:acme/tiny/tiny-Q8_0.gguf"), snapshot_path(),
                                  fs::path(snapshot_path()).parent_path().string()}) {
    const test::Finished answer = run({"run", name, "hello", "--max-tokens", "2", "--ctx", "64"});
    EXPECT_EQ(answer.code, 0) << name << "\n" << answer.err;
  }
  const test::Finished list = run({"list"});
  EXPECT_NE(list.out.find("hf:acme/tiny/tiny-Q8_0.gguf"), std::string::npos) << list.out;
  EXPECT_EQ(run({"pull", snapshot_path()}).out, snapshot_path() + "\n");
}

TEST_F(PullProcess, run_and_serve_fetch_only_when_told_to) {
  start_server();
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"run", "hf:acme/tiny", "hi"},
                                                    {"serve", "hf:acme/tiny", "--port", "0"},
                                                    {"show", "hf:acme/tiny"},
                                                    {"plan", "hf:acme/tiny"},
                                                    {"bench", "engine", "hf:acme/tiny"}}) {
    const test::Finished absent = run(arguments);
    EXPECT_EQ(absent.code, 65) << arguments[0];
    EXPECT_NE(absent.err.find("error[E-HUB-005]"), std::string::npos) << absent.err;
    EXPECT_NE(absent.err.find("fix: `inferd pull hf:acme/tiny`"), std::string::npos) << absent.err;
  }
  EXPECT_TRUE(server_->requests().empty());
  const test::Finished answer =
      run({"run", "hf:acme/tiny", "hello", "--pull", "--max-tokens", "2", "--ctx", "64"});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_FALSE(server_->requests().empty());
}

TEST_F(PullProcess, a_safetensors_model_is_fetched_but_not_loaded) {
  repo_.files = {{"config.json", "{}", false}, {"model.safetensors", noise(50000)}};
  start_server();
  const test::Finished pulled = run({"pull", "hf:acme/tiny"});
  ASSERT_EQ(pulled.code, 0) << pulled.err;
  EXPECT_EQ(names_in(std::string(trim(pulled.out))),
            (std::vector<std::string>{"config.json", "model.safetensors"}));
  for (const std::string& name : {std::string("hf:acme/tiny"), std::string(trim(pulled.out))}) {
    const test::Finished refused = run({"run", name, "hi"});
    EXPECT_EQ(refused.code, 65);
    EXPECT_NE(refused.err.find("error[E-MODEL-008]"), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find("a safetensors model"), std::string::npos) << refused.err;
  }
}

TEST_F(PullProcess, json_tells_progress_that_never_falls_and_what_was_fetched) {
  repo_.files = {{"config.json", "{}", false},
                 {"model-1.safetensors", noise(400000, 1)},
                 {"model-2.safetensors", noise(400000, 2)}};
  std::atomic<int> requests{0};
  on_file = [&](const WebRequest& request, WebReply& reply, const FakeFile& file) {
    // The first large file is cut, and has another ETag after that, so it begins anew.
    const int n = file.lfs ? requests++ : 9;
    const std::string whole = content_answer(request, file.content, n == 0 ? "old" : file.etag());
    for (size_t at = 0; at < (n == 0 ? whole.size() / 2 : whole.size()); at += 40000) {
      reply.send(std::string_view(whole).substr(at, 40000));
      std::this_thread::sleep_for(milliseconds(30));
    }
    return true;
  };
  start_server();
  const test::Finished pulled = run({"pull", "hf:acme/tiny", "--json"});
  ASSERT_EQ(pulled.code, 0) << pulled.err;
  int64_t done = 0, events = 0, notes = 0;
  std::string last;
  for (const std::string_view line : split(pulled.out, '\n')) {
    if (line.empty()) continue;
    const Json event = parse_json(line).value();
    last = event.find("event")->as_string();
    if (last == "note") ++notes;
    if (last == "done") {
      EXPECT_EQ(event.find("files")->as_array().size(), 3u);
      EXPECT_EQ(event.find("commit")->as_string(), repo_.commit);
    }
    if (last != "progress" || event.find("phase")->as_string() != "pull") continue;
    EXPECT_GE(event.find("done")->as_integer(), done);
    EXPECT_EQ(event.find("total")->as_integer(), 800002);
    done = event.find("done")->as_integer();
    ++events;
  }
  EXPECT_EQ(last, "done");
  EXPECT_EQ(done, 800002);
  EXPECT_GE(events, 4);
  EXPECT_GE(notes, 2);
}

// ---- killed

constexpr int64_t kPiece = 16384;

// Sends a file in pieces, each only when the last one has reached the disk, and kills the client after so
// many bytes of body of all files together. So what may have to be fetched again is at most one piece.
class KillAfter {
 public:
  KillAfter(int64_t bytes, std::function<int64_t(const FakeFile&)> bytes_on_disk)
      : left_(bytes), bytes_on_disk_(std::move(bytes_on_disk)) {}

  void set_client(pid_t pid) { pid_ = pid; }
  bool killed() const { return killed_; }

  void answer(const WebRequest& request, WebReply& reply, const FakeFile& file) {
    int64_t at = std::max<int64_t>(0, request.range_begin());
    const int64_t before = end_[file.path];
    EXPECT_GE(at, before - kPiece) << file.path << ": fetched again";
    refetched += std::max<int64_t>(0, before - at);
    const std::string whole = content_answer(request, file.content, file.etag());
    const size_t body = whole.find("\r\n\r\n") + 4;
    reply.send(std::string_view(whole).substr(0, body));
    for (size_t from = body; from < whole.size() && !reply.stopping();) {
      const int64_t size =
          std::min({kPiece, static_cast<int64_t>(whole.size() - from), std::max<int64_t>(left_, 0)});
      if (size > 0) reply.send(std::string_view(whole).substr(from, static_cast<size_t>(size)));
      from += static_cast<size_t>(size);
      left_ -= size;
      at += size;
      end_[file.path] = at;
      if (left_ <= 0) {
        while (pid_ == 0) std::this_thread::yield();
        killed_ = true;
        ::kill(pid_, SIGKILL);
        return;
      }
      while (!reply.stopping() && bytes_on_disk_(file) < at)
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }

  // For the next process.
  void aim(int64_t bytes) {
    left_ = bytes;
    pid_ = 0;
    killed_ = false;
  }
  void forget() { end_.clear(); }

  std::atomic<int64_t> refetched{0};

 private:
  std::atomic<int64_t> left_;
  const std::function<int64_t(const FakeFile&)> bytes_on_disk_;
  std::atomic<pid_t> pid_{0};
  std::atomic<bool> killed_{false};
  std::map<std::string, int64_t> end_;  // one request at a time
};

TEST_F(PullProcess, killed_at_random_bytes_it_never_leaves_a_wrong_file_and_fetches_at_most_one_piece_again) {
  repo_.files = {{"config.json", noise(3000, 7), false},
                 {"model-1.safetensors", noise(300000, 1)},
                 {"model-2.safetensors", noise(200000, 2)}};
  KillAfter kill(0, [this](const FakeFile& file) {
    return fs::exists(blob(file)) ? static_cast<int64_t>(file.content.size()) : part_bytes(file);
  });
  on_file = [&](const WebRequest& request, WebReply& reply, const FakeFile& file) {
    kill.answer(request, reply, file);
    return true;
  };
  start_server();
  std::mt19937_64 random(20261130);
  int kills = 0, completed = 0;
  while (kills < kKills) {
    kill.aim(std::uniform_int_distribution<int64_t>(0, 120000)(random));
    test::Process client(kProgram, {"pull", "hf:acme/tiny"}, {.environment = environment()});
    kill.set_client(client.pid());
    const std::optional<int> code = client.wait(seconds(30));
    ASSERT_TRUE(code) << "does not end";
    const int whole = check_final_files();
    if (kill.killed()) {
      ++kills;
      // Killed after the last byte it may have had the time to say that it was done.
      ASSERT_TRUE(*code == 128 + SIGKILL || (*code == 0 && whole == 3)) << client.stderr_text();
    } else {
      ASSERT_EQ(*code, 0) << client.stderr_text();
    }
    if (*code == 0) {
      ASSERT_EQ(whole, 3);
      ++completed;
      kill.forget();
      fs::remove_all(cache());
    }
  }
  EXPECT_GE(completed, kKills / 20);
  std::printf("%d kills, %d pulls completed, %lld bytes fetched again\n", kills, completed,
              static_cast<long long>(kill.refetched.load()));
}

// A command under strace that injects something; LeakSanitizer cannot work in a traced process.
test::Finished traced(const std::vector<std::string>& strace, const std::vector<std::string>& arguments,
                      std::vector<std::string> environment) {
  std::vector<std::string> all = strace;
  all.push_back(kProgram);
  all.insert(all.end(), arguments.begin(), arguments.end());
  environment.emplace_back("ASAN_OPTIONS=detect_leaks=0");
  return test::run_process("/usr/bin/strace", all, {.environment = std::move(environment)});
}

TEST_F(PullProcess, killed_at_any_call_that_changes_the_disk_the_next_run_completes_it) {
  start_server();
  int places = 0;
#if defined(INFERD_TEST_SANITIZED)
  const std::vector<std::string> calls = {"fsync", "rename", "symlink"};
#else
  const std::vector<std::string> calls = {"mkdir",  "flock",  "pwrite64", "ftruncate",
                                          "unlink", "rename", "symlink",  "fsync"};
#endif
  for (const std::string& call : calls) {
    for (int n = 1;; ++n) {
      fs::remove_all(cache());
      const test::Finished killed = traced({"-f", "-o", "/dev/null", "-e", "trace=" + call, "-e",
                                            cat("inject=", call, ":signal=KILL:when=", n)},
                                           {"pull", "hf:acme/tiny"}, environment());
      if (killed.code == 0) break;  // there is no n-th such call
      ASSERT_EQ(killed.code, 128 + SIGKILL) << call << " " << n << killed.err;
      check_final_files();
      const test::Finished next = run({"pull", "hf:acme/tiny"});
      ASSERT_EQ(next.code, 0) << call << " " << n << next.err;
      ASSERT_EQ(test::read_file(snapshot_path()), repo_.files.back().content) << call << " " << n;
      EXPECT_EQ(names_in(folder() + "/blobs"), std::vector<std::string>{repo_.files.back().hash()});
      EXPECT_EQ(names_in(folder()), (std::vector<std::string>{"blobs", "refs", "snapshots"}));
      ++places;
    }
  }
  EXPECT_GE(places, 9);
}

TEST_F(PullProcess, ctrl_c_ends_with_130_keeps_the_part_and_says_that_the_same_command_goes_on) {
  on_file = [](const WebRequest& request, WebReply& reply, const FakeFile& file) {
    if (request.range_begin() > 0) return false;
    const std::string whole = content_answer(request, file.content, file.etag());
    reply.send(std::string_view(whole).substr(0, whole.size() - 5000));
    reply.stall();
    return true;
  };
  start_server();
  const FakeFile& file = repo_.files.back();
  test::Process client(kProgram, {"pull", "hf:acme/tiny"}, {.environment = environment()});
  for (int i = 0; i < 2000 && part_bytes(file) < static_cast<int64_t>(file.content.size()) - 5000; ++i)
    std::this_thread::sleep_for(milliseconds(5));
  client.signal(SIGINT);
  EXPECT_EQ(client.wait(seconds(20)), 130);
  EXPECT_NE(client.stderr_text().find("error[E-SYS-001]"), std::string::npos) << client.stderr_text();
  EXPECT_NE(client.stderr_text().find("fix: run the same command again: it goes on from there"),
            std::string::npos);
  EXPECT_EQ(part_bytes(file), static_cast<int64_t>(file.content.size()) - 5000);
  EXPECT_EQ(run({"pull", "hf:acme/tiny"}).code, 0);
  EXPECT_EQ(server_->requests().back().range_begin(), static_cast<int64_t>(file.content.size()) - 5000);
}

// ---- disks

TEST_F(PullProcess, a_disk_that_gets_full_ends_with_73_and_loses_nothing) {
  start_server();
  int failed = 0;
  for (int n = 1;; ++n) {
    fs::remove_all(cache());
    const test::Finished full = traced(
        {"-f", "-o", "/dev/null", "-e", "trace=pwrite64", "-e", cat("inject=pwrite64:error=ENOSPC:when=", n)},
        {"pull", "hf:acme/tiny"}, environment());
    if (full.code == 0) break;
    EXPECT_EQ(full.code, 73) << full.err;
    EXPECT_NE(full.err.find("error[E-IO-004]"), std::string::npos) << full.err;
    EXPECT_NE(full.err.find("it goes on"), std::string::npos) << full.err;
    EXPECT_GE(part_bytes(repo_.files.back()), 0);
    EXPECT_EQ(check_final_files(), 0);
    EXPECT_EQ(run({"pull", "hf:acme/tiny"}).code, 0);
    ++failed;
  }
  EXPECT_GE(failed, 1);
}

TEST_F(PullProcess, a_flush_that_fails_is_an_error_and_the_next_run_completes_it) {
  start_server();
  int failed = 0;
  for (int n = 1;; ++n) {
    fs::remove_all(cache());
    const test::Finished broken =
        traced({"-f", "-o", "/dev/null", "-e", "trace=fsync", "-e", cat("inject=fsync:error=EIO:when=", n)},
               {"pull", "hf:acme/tiny"}, environment());
    if (broken.code == 0) break;
    EXPECT_EQ(broken.code, 73) << broken.err;
    check_final_files();
    EXPECT_EQ(run({"pull", "hf:acme/tiny"}).code, 0);
    ++failed;
  }
  EXPECT_GE(failed, 4);  // the part, the folders of blob, link and reference
}

TEST_F(PullProcess, a_read_only_cache_and_a_small_disk_are_refused_before_the_download) {
  if (std::system("unshare -rm true 2> /dev/null") != 0) GTEST_SKIP() << "no user namespaces here";
  start_server();
  fs::create_directories(cache());
  const test::Finished read_only =
      in_mount_namespace(cat("mount -t tmpfs -o ro tmpfs ", cache(), " && exec \"$@\""),
                         {"pull", "hf:acme/tiny"}, environment());
  EXPECT_EQ(read_only.code, 77) << read_only.err;
  EXPECT_NE(read_only.err.find("error[E-IO-002]"), std::string::npos) << read_only.err;
  const test::Finished small =
      in_mount_namespace(cat("mount -t tmpfs -o size=40k tmpfs ", cache(), " && exec \"$@\""),
                         {"pull", "hf:acme/tiny"}, environment());
  EXPECT_EQ(small.code, 73) << small.err;
  EXPECT_NE(small.err.find("is free"), std::string::npos) << small.err;
  for (const WebRequest& request : server_->requests()) EXPECT_TRUE(request.target.starts_with("/api/"));
}

TEST_F(PullProcess, a_cache_of_another_user_is_refused_and_left_as_it_was) {
  start_server();
  fs::create_directories(folder());
  write_file(folder() + "/kept", "kept");
  fs::permissions(folder(), fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read |
                                fs::perms::others_exec);
  if (!can_run_without_privilege()) GTEST_SKIP() << "capabilities cannot be dropped here";
  const test::Finished refused = run_without_privilege({"pull", "hf:acme/tiny"}, environment());
  EXPECT_EQ(refused.code, 77) << refused.err;
  EXPECT_NE(refused.err.find("error[E-IO-002]"), std::string::npos) << refused.err;
  EXPECT_EQ(names_in(folder()), std::vector<std::string>{"kept"});
  fs::permissions(folder(), fs::perms::owner_all);
}

TEST_F(PullProcess, without_a_home_it_says_what_to_set) {
  const test::Finished lost = run({"pull", "hf:acme/tiny"}, {"HOME="});
  EXPECT_EQ(lost.code, 65);
  EXPECT_NE(lost.err.find("error[E-IO-001]"), std::string::npos) << lost.err;
  EXPECT_NE(lost.err.find("set HOME or HF_HUB_CACHE"), std::string::npos) << lost.err;
  const test::Finished missing = run({"list"}, {cat("HOME=", scratch_.path, "/not/there")});
  EXPECT_EQ(missing.code, 0) << missing.err;
}

// ---- names

TEST_F(PullProcess, bad_names_are_refused_by_every_command_without_a_connection) {
  start_server();
  const std::string long_name(10000, 'x');
  const std::vector<std::pair<std::string, int>> table = {
      {"hf:", 2},
      {"hf:../..", 2},
      {"hf:acme/..", 2},
      {"hf:acme/tiny/../../../etc/passwd", 2},
      {"hf:acme/ti\nny", 2},
      {"hf:acme/tiny/\x1b[2J", 2},
      {"hf:acme/tiny/\xff\xfe", 2},
      {cat("hf:acme/", long_name), 2},
      {cat("hf:acme/tiny/", long_name), 2},
      {"..", 65},
      {"a\nb", 65},
      {"a\x07", 65},
      {long_name, 65},
      {cat("/", long_name), 65},
      {"", 65},
  };
  for (const auto& [name, code] : table) {
    for (const char* command : {"pull", "run", "serve", "plan"}) {
      if (name.empty() && std::string_view(command) != "pull") continue;  // means the default model
      std::vector<std::string> arguments = {command, "--", name};
      if (std::string_view(command) == "serve") arguments = {command, "--port", "0", "--", name};
      const test::Finished refused = run(arguments, {"LC_ALL=C", "LANG=C"});
      EXPECT_EQ(refused.code, code) << command << " " << name.substr(0, 60) << refused.err;
      EXPECT_TRUE(refused.err.starts_with("error[E-")) << refused.err;
      EXPECT_LT(refused.err.size(), 1500u) << refused.err;
      EXPECT_TRUE(is_valid_utf8(refused.err));
      for (const char c : refused.err) {
        const auto byte = static_cast<unsigned char>(c);
        EXPECT_TRUE(c == '\n' || (byte >= 0x20 && byte != 0x7f)) << refused.err;
      }
    }
  }
  EXPECT_TRUE(server_->requests().empty());
}

// ---- TLS

TEST_F(PullProcess, the_roots_come_from_ssl_cert_file) {
  const TestAuthority authority;
  write_file(scratch_.path + "/roots.pem", authority.pem());
  start_server(authority.issue("DNS:localhost,IP:127.0.0.1"));
  const std::string endpoint = cat("HF_ENDPOINT=https://localhost:", server_->port());
  const test::Finished stranger = run({"pull", "hf:acme/tiny"}, {endpoint});
  EXPECT_EQ(stranger.code, 69) << stranger.err;
  EXPECT_NE(stranger.err.find("error[E-HUB-011]"), std::string::npos) << stranger.err;
  const test::Finished trusted =
      run({"pull", "hf:acme/tiny"}, {endpoint, cat("SSL_CERT_FILE=", scratch_.path, "/roots.pem")});
  EXPECT_EQ(trusted.code, 0) << trusted.err;
}

// ---- offline

// Every line of the trace that connects or sends beyond this machine, or reads how to look names up.
std::vector<std::string> outgoing(const std::string& trace) {
  std::vector<std::string> lines;
  for (const std::string_view line : split(trace, '\n')) {
    const auto has = [&](std::string_view part) { return line.find(part) != std::string_view::npos; };
    const bool sends = has("connect(") || has("sendto(") || has("sendmsg(") || has("sendmmsg(");
    const bool named = has("sa_family=");
    const bool here = has("AF_UNIX") || has("inet_addr(\"127.") || has("\"::1\"") || has("AF_NETLINK");
    if ((sends && named && !here) || has("/etc/resolv.conf") || has("/etc/hosts") || has("nscd"))
      lines.emplace_back(line);
  }
  return lines;
}

TEST_F(PullProcess,
       the_trace_of_a_pull_shows_its_connection) {  // so that an empty trace below means something
  const std::string trace = scratch_.path + "/trace";
  const test::Finished online =
      traced({"-f", "-o", trace, "-e", "trace=%network,openat", "-e", "inject=connect:signal=INT:when=1"},
             {"pull", "hf:acme/tiny"}, environment({"HF_ENDPOINT=http://192.0.2.1:9"}));
  EXPECT_EQ(online.code, 130) << online.err;
  EXPECT_FALSE(outgoing(test::read_file(trace)).empty());
}

TEST_F(PullProcess, offline_and_outside_pull_no_name_is_looked_up_and_nothing_is_connected_to) {
  start_server();
  // The command line wins over the variable, as for every option.
  ASSERT_EQ(run({"pull", "hf:acme/tiny"}, {"INFERD_OFFLINE=1"}).code, 69);
  ASSERT_EQ(run({"pull", "hf:acme/tiny", "--offline=false"}, {"INFERD_OFFLINE=1"}).code, 0);
  const std::string endpoint = "HF_ENDPOINT=https://hub.invalid";
  struct Case {
    std::vector<std::string> arguments;
    std::vector<std::string> environment;
    int code;
  };
  const std::vector<std::string> answer = {"--max-tokens", "2", "--ctx", "64"};
  const std::vector<Case> cases = {
      {{"pull", "hf:acme/tiny", "--offline"}, {}, 0},
      {{"pull", "hf:acme/huge", "--offline"}, {}, 69},
      {{"pull", "hf:acme/huge"}, {"INFERD_OFFLINE=1"}, 69},
      {{"pull", "hf:acme/huge"}, {"HF_HUB_OFFLINE=1"}, 69},
      {{"pull", "smollm2"}, {"INFERD_OFFLINE=1"}, 69},
      {{"pull", "smollm2"}, {"HF_HUB_OFFLINE=1"}, 69},
      {{"run", "hf:acme/huge", "hi", "--pull", "--offline"}, {}, 69},
      {{"run", "smollm2", "hi", "--pull"}, {"HF_HUB_OFFLINE=1"}, 69},
      {{"run", "smollm2", "hi"}, {}, 65},
      {{"run", "hf:acme/huge", "hi"}, {}, 65},
      {{"serve", "hf:acme/huge", "--port", "0"}, {}, 65},
      {{"serve", "smollm2", "--port", "0"}, {}, 65},
      {{"run", "hf:acme/tiny", "hi", "--max-tokens", "2", "--ctx", "64"}, {}, 0},
      {{"run", "hf:acme/tiny", "hi", "--max-tokens", "2", "--ctx", "64", "--offline"}, {}, 0},
      {{"list"}, {}, 0},
      {{"show", "hf:acme/tiny"}, {}, 0},
      {{"plan", "hf:acme/tiny"}, {}, 0},
  };
  const std::string trace = scratch_.path + "/trace";
  for (const Case& one : cases) {
    std::vector<std::string> variables = one.environment;
    variables.push_back(endpoint);
    const test::Finished finished =
        traced({"-f", "-o", trace, "-e", "trace=%network,openat"}, one.arguments, environment(variables));
    EXPECT_EQ(finished.code, one.code) << join(one.arguments, " ") << "\n" << finished.err;
    EXPECT_EQ(outgoing(test::read_file(trace)), std::vector<std::string>()) << join(one.arguments, " ");
  }
}

TEST_F(PullProcess, a_server_that_answers_connects_to_nothing) {
  start_server();
  ASSERT_EQ(run({"pull", "hf:acme/tiny"}).code, 0);
  const std::string trace = scratch_.path + "/trace";
  std::vector<std::string> variables = environment({"HF_ENDPOINT=https://hub.invalid"});
  variables.emplace_back("ASAN_OPTIONS=detect_leaks=0");
  test::Process server("/usr/bin/strace",
                       {"-f", "-o", trace, "-e", "trace=%network,openat", kProgram, "serve", "hf:acme/tiny",
                        "--port", "0", "--ctx", "64", "--max-seqs", "1", "--threads", "1"},
                       {.environment = variables});
  test::wait_until_ready(server);
  const std::string child(
      trim(test::read_file(cat("/proc/", server.pid(), "/task/", server.pid(), "/children"))));
  ASSERT_TRUE(parse_int(child)) << child;
  ::kill(static_cast<pid_t>(*parse_int(child)), SIGTERM);
  EXPECT_EQ(server.wait(seconds(30)), 0) << server.stderr_text();
  const std::string text = test::read_file(trace);
  EXPECT_NE(text.find("listen("), std::string::npos);
  EXPECT_EQ(outgoing(text), std::vector<std::string>());
}

// Runs the program where there is no network but loopback; once it says that it is ready, it is told to end.
// 126: the kernel does not allow to make such a place.
int in_loopback_namespace(const std::vector<std::string>& arguments,
                          const std::vector<std::string>& environment) {
  int out[2];
  INFERD_CHECK(::pipe2(out, O_CLOEXEC) == 0, "pipe");
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) ::_exit(126);
    ifreq request{};
    std::snprintf(request.ifr_name, sizeof request.ifr_name, "lo");
    request.ifr_flags = IFF_UP;
    const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || ::ioctl(fd, SIOCSIFFLAGS, &request) != 0) ::_exit(126);
    ::dup2(out[1], 1);
    for (const char* of_tests : {"INFERD_TEST_MODELS", "INFERD_GOLDEN"}) ::unsetenv(of_tests);
    for (const std::string& entry : environment) ::putenv(const_cast<char*>(entry.c_str()));
    std::vector<char*> argv{const_cast<char*>(kProgram.c_str())};
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    ::execv(kProgram.c_str(), argv.data());
    ::_exit(127);
  }
  ::close(out[1]);
  std::string text;
  char piece[4096];
  for (ssize_t got = ::read(out[0], piece, sizeof piece); got > 0;
       got = ::read(out[0], piece, sizeof piece)) {
    text.append(piece, static_cast<size_t>(got));
    if (text.starts_with("ready ") && text.ends_with('\n')) ::kill(child, SIGTERM);
  }
  ::close(out[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST_F(PullProcess, with_loopback_only_everything_but_a_download_works) {
  start_server();
  ASSERT_EQ(run({"pull", "hf:acme/tiny"}).code, 0);
  const std::vector<std::string> variables = environment();
  const int possible = in_loopback_namespace({"version"}, variables);
  if (possible == 126) GTEST_SKIP() << "no network namespaces here";
  ASSERT_EQ(possible, 0);
  EXPECT_EQ(in_loopback_namespace({"pull", "hf:acme/tiny", "--offline"}, variables), 0);
  EXPECT_EQ(
      in_loopback_namespace({"run", "hf:acme/tiny", "hi", "--max-tokens", "2", "--ctx", "64"}, variables), 0);
  EXPECT_EQ(in_loopback_namespace({"serve", "hf:acme/tiny", "--port", "0", "--ctx", "64", "--max-seqs", "1"},
                                  variables),
            0);
  EXPECT_EQ(in_loopback_namespace({"list"}, variables), 0);
  EXPECT_EQ(in_loopback_namespace({"pull", "hf:acme/huge", "--offline"}, variables), 69);
}

}  // namespace
}  // namespace inferd
