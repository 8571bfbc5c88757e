#include "hub/child_process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>

#include "base/clock.h"
#include "hub/test_wheel.h"

namespace inferd {
namespace {

using testing_hub::ScratchFolder;
using testing_hub::write_file;

const std::vector<std::string> kEnvironment = {"PATH=/usr/bin:/bin", "COLOUR=blue"};

ChildProcess shell(const std::string& script, const std::vector<std::string>& environment = kEnvironment) {
  return ChildProcess::start("/bin/sh", {"sh", "-c", script}, environment).value();
}

// True within five seconds.
bool soon(const std::function<bool()>& condition) {
  for (int i = 0; i < 250; ++i) {
    if (condition()) return true;
    ::usleep(20000);
  }
  return false;
}

// No such process, or one that is dead and waits for whoever adopted it to notice.
bool is_gone(pid_t pid) {
  const std::string stat = testing_hub::read_file(cat("/proc/", pid, "/stat"));
  return stat.empty() || stat.find(") Z ") != std::string::npos;
}

pid_t printed_pid(ChildProcess& child) {
  while (child.output().find('\n') == std::string::npos) {
    if (child.wait(20)) break;
  }
  return static_cast<pid_t>(parse_int(child.output().substr(0, child.output().find('\n'))).value());
}

TEST(ChildProcess, both_outputs_and_the_status_are_collected) {
  ChildProcess child =
      shell("echo out; echo err >&2; echo \"$COLOUR\"; cat; exit 7");  // cat ends: stdin is /dev/null
  while (!child.wait(100)) {
  }
  EXPECT_EQ(child.output(), "out\nerr\nblue\n");
  EXPECT_EQ(child.exit_status(), 7);
}

TEST(ChildProcess, a_flood_of_output_neither_blocks_it_nor_fills_memory) {
  ChildProcess child = shell("yes 0123456789 | head -c 5000000; echo end");
  while (!child.wait(100)) {
  }
  EXPECT_EQ(child.exit_status(), 0);
  EXPECT_EQ(child.output().size(), size_t{16} << 10);
  EXPECT_TRUE(child.output().ends_with("end\n"));
}

TEST(ChildProcess, what_cannot_be_run_is_an_error) {
  const auto child = ChildProcess::start("/nowhere/python3", {"python3"}, kEnvironment);
  ASSERT_FALSE(child.ok());
  EXPECT_EQ(child.error().detail, "cannot run /nowhere/python3: No such file or directory");
}

TEST(ChildProcess, stop_ends_the_whole_group_also_one_that_ignores_the_request) {
  ChildProcess child = shell("trap '' TERM; sleep 1000 & echo $!; while :; do sleep 1000; done");
  const pid_t grandchild = printed_pid(child);
  ASSERT_FALSE(is_gone(grandchild));
  child.stop(50);
  EXPECT_EQ(child.exit_status(), 128 + SIGKILL);
  EXPECT_TRUE(soon([&] { return is_gone(grandchild); }));
}

TEST(ChildProcess, what_the_leader_leaves_behind_ends_with_it) {
  ChildProcess child = shell("sleep 1000 & echo $!");
  const pid_t grandchild = printed_pid(child);
  while (!child.wait(100)) {
  }
  EXPECT_EQ(child.exit_status(), 0);
  EXPECT_TRUE(soon([&] { return is_gone(grandchild); }));
}

TEST(ChildProcess, dies_when_its_parent_is_killed) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    ChildProcess child = shell("echo $$; exec sleep 1000");
    const pid_t pid = printed_pid(child);
    if (::write(pipe[1], &pid, sizeof pid) != sizeof pid) ::_exit(1);
    ::pause();
  }
  pid_t child = 0;
  ASSERT_EQ(::read(pipe[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  ASSERT_FALSE(is_gone(child));
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  EXPECT_TRUE(soon([&] { return is_gone(child); }));
  for (const int fd : pipe) ::close(fd);
}

TEST(ChildProcess, inherits_no_file_but_the_three) {
  const int open_here = ::dup(0);  // not close-on-exec
  ChildProcess child = shell("ls /proc/self/fd");
  while (!child.wait(100)) {
  }
  EXPECT_EQ(child.output(), "0\n1\n2\n3\n");  // 3 is the folder that ls reads
  ::close(open_here);
}

TEST(FindProgram, looks_through_the_given_path) {
  const ScratchFolder scratch;
  write_file(scratch.path + "/tool", "#!/bin/sh\n");
  EXPECT_EQ(find_program("tool", {"PATH=/nowhere:" + scratch.path}), std::nullopt);  // not executable
  std::filesystem::permissions(scratch.path + "/tool", std::filesystem::perms::owner_all);
  EXPECT_EQ(find_program("tool", {"A=b", "PATH=/nowhere:" + scratch.path}), scratch.path + "/tool");
  EXPECT_EQ(find_program("tool", {"XPATH=" + scratch.path}), std::nullopt);
}

}  // namespace
}  // namespace inferd
