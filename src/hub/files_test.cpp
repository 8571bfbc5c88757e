#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>

#include "hub/atomic_file.h"
#include "hub/sha256.h"
#include "hub/test_wheel.h"

namespace inferd {
namespace {

using testing_hub::names_in;
using testing_hub::read_file;
using testing_hub::ScratchFolder;
using testing_hub::write_file;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// FIPS 180-4 examples (NIST's "SHA256.pdf") and the digest of a million times 'a'.
TEST(Sha256, gives_the_published_digests) {
  EXPECT_EQ(sha256_hex({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex(bytes_of("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Sha256 million;
  for (int i = 0; i < 1000; ++i) million.update(bytes_of(std::string(1000, 'a')));
  EXPECT_EQ(million.finish(), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, of_a_file_is_that_of_its_bytes) {
  const ScratchFolder scratch;
  const std::string path = scratch.path + "/file";
  const std::string content(20000000, 'x');  // several of the pieces that it is read in
  write_file(path, content);
  EXPECT_EQ(sha256_of_file(path).value(), sha256_hex(bytes_of(content)));
  EXPECT_EQ(sha256_of_file(path + "-absent").error().code, Code::io_not_found);
}

TEST(AtomicFile, has_its_name_only_after_commit) {
  const ScratchFolder scratch;
  const std::string& folder = scratch.path;
  AtomicFile file = AtomicFile::create(folder + "/temporary", folder + "/final").value();
  ASSERT_TRUE(file.write(bytes_of("hello")).ok());
  EXPECT_EQ(names_in(folder), std::vector<std::string>{"temporary"});
  ASSERT_TRUE(file.commit().ok());
  EXPECT_EQ(names_in(folder), std::vector<std::string>{"final"});
  EXPECT_EQ(read_file(folder + "/final"), "hello");
}

TEST(AtomicFile, without_commit_leaves_the_old_file_and_nothing_else) {
  const ScratchFolder scratch;
  const std::string& folder = scratch.path;
  write_file(folder + "/final", "old");
  {
    AtomicFile first = AtomicFile::create(folder + "/temporary", folder + "/final").value();
    ASSERT_TRUE(first.write(bytes_of("new")).ok());
    AtomicFile moved = std::move(first);
  }
  EXPECT_EQ(names_in(folder), std::vector<std::string>{"final"});
  EXPECT_EQ(read_file(folder + "/final"), "old");
}

TEST(AtomicFile, says_why_it_cannot_be_made) {
  const ScratchFolder scratch;
  const std::string& folder = scratch.path;
  write_file(folder + "/there", "");
  EXPECT_EQ(AtomicFile::create(folder + "/there", folder + "/final").error().code,
            Code::io_write);  // never opens an existing file
  EXPECT_EQ(AtomicFile::create(folder + "/absent/x", folder + "/final").error().code, Code::io_not_found);
  EXPECT_EQ(write_error(ENOSPC, "p").code, Code::io_disk_full);
  EXPECT_EQ(write_error(EDQUOT, "p").code, Code::io_disk_full);
  EXPECT_EQ(write_error(EROFS, "p").code, Code::io_permission);
  EXPECT_EQ(write_error(EIO, "p").code, Code::io_write);
}

TEST(AtomicFile, a_full_device_is_an_error_and_leaves_nothing) {
  const ScratchFolder scratch;
  const std::string& folder = scratch.path;
  const pid_t pid = ::fork();  // in a child, for a limit on file sizes cannot be lifted again
  if (pid == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{.rlim_cur = 1000, .rlim_max = 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    auto file = AtomicFile::create(folder + "/temporary", folder + "/final");
    const Status status = file->write(bytes_of(std::string(2000, 'a')));
    const bool refused = !status.ok() && status.error().code == Code::io_write;
    {
      const AtomicFile dropped = *std::move(file);
    }
    ::_exit(refused ? 0 : 1);
  }
  int status = -1;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(names_in(folder).empty());
}

}  // namespace
}  // namespace inferd
