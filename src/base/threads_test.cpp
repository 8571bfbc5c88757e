#include "base/threads.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/memory_info.h"
#include "base/queue.h"
#include "base/strings.h"

namespace inferd {
namespace {

TEST(ThreadPool, every_worker_runs_each_body_once_and_the_caller_sees_what_they_wrote) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    std::vector<int> calls(static_cast<size_t>(threads));
    for (int round = 0; round < 2000; ++round) {
      pool.run([&](int worker) { ++calls[static_cast<size_t>(worker)]; });
      for (const int count : calls) ASSERT_EQ(count, round + 1);
      if (round % 500 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));  // workers fall asleep
    }
  }
}

TEST(ThreadPool, a_work_counter_hands_out_each_item_once) {
  ThreadPool pool(3);
  std::vector<int> done(1000);
  WorkCounter work(1000);
  pool.run([&](int) {
    for (int64_t item = work.next(); item >= 0; item = work.next()) ++done[static_cast<size_t>(item)];
  });
  EXPECT_EQ(done, std::vector<int>(1000, 1));
}

TEST(ThreadPool, the_caller_is_pinned_and_gets_its_cpus_back) {
  const int before = usable_cpus();
  const SavedAffinity saved;
  ThreadPool pool(2);
  pool.run([](int) {});
  EXPECT_EQ(usable_cpus(), 1);
  std::thread heir([before, &saved] {
    saved.restore();
    EXPECT_EQ(usable_cpus(), before);
  });
  heir.join();
  saved.restore();
  EXPECT_EQ(usable_cpus(), before);
}

TEST(Inbox, keeps_the_order_of_each_sender_and_wakes_the_owner) {
  Inbox<int> inbox;
  std::thread sender([&] {
    for (int i = 0; i < 1000; ++i) inbox.push(i);
  });
  std::vector<int> seen;
  while (seen.size() < 1000) {
    for (const int item : inbox.wait_all(std::chrono::milliseconds(1000))) seen.push_back(item);
  }
  sender.join();
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(seen[static_cast<size_t>(i)], i);
  std::thread waker([&] { inbox.wake(); });
  EXPECT_TRUE(inbox.wait_all(std::chrono::milliseconds(10000)).empty());
  waker.join();
}

class CgroupRoot {
 public:
  CgroupRoot() : root_(cat(testing::TempDir(), ::getpid(), "-cgroup_root/")) {}
  ~CgroupRoot() { std::filesystem::remove_all(root_); }
  CgroupRoot(const CgroupRoot&) = delete;
  CgroupRoot& operator=(const CgroupRoot&) = delete;
  void file(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  int cpus() const { return usable_cpus(root_); }
  int64_t memory() const { return available_memory(root_); }

 private:
  std::string root_;
};

// The machine that runs the test has at least one CPU, so only quotas below 2 have one expected value
// everywhere.
TEST(UsableCpus, follows_the_smallest_quota_rounded_down_but_never_to_zero) {
  {
    const CgroupRoot v2;
    v2.file("proc/self/cgroup", "0::/a/b\n");
    v2.file("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    v2.file("sys/fs/cgroup/a/cpu.max", "190000 100000\n");
    EXPECT_EQ(v2.cpus(), 1);
    v2.file("sys/fs/cgroup/a/cpu.max", "20000 100000\n");
    EXPECT_EQ(v2.cpus(), 1);
  }
  {
    const CgroupRoot v1;
    v1.file("proc/self/cgroup", "4:memory:/x\n3:cpu,cpuacct:/x\n");
    v1.file("sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "150000\n");
    v1.file("sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(v1.cpus(), 1);
  }
  {
    const CgroupRoot free;
    free.file("proc/self/cgroup", "0::/\n");
    free.file("sys/fs/cgroup/cpu.max", "max 100000\n");
    EXPECT_GE(free.cpus(), 1);
    EXPECT_LE(free.cpus(), static_cast<int>(std::thread::hardware_concurrency()));
  }
}

TEST(AvailableMemory, is_the_smaller_of_the_machine_and_the_group) {
  const CgroupRoot machine;
  machine.file("proc/meminfo", "MemTotal: 900 kB\nMemAvailable:    800 kB\n");
  machine.file("proc/self/cgroup", "0::/a\n");
  EXPECT_EQ(machine.memory(), 800 * 1024);
  machine.file("sys/fs/cgroup/a/memory.max", "max\n");
  machine.file("sys/fs/cgroup/a/memory.current", "1000\n");
  EXPECT_EQ(machine.memory(), 800 * 1024);
  machine.file("sys/fs/cgroup/a/memory.max", "5000\n");
  EXPECT_EQ(machine.memory(), 4000);
  machine.file("proc/self/cgroup", "7:memory:/x\n");
  machine.file("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "3000\n");
  machine.file("sys/fs/cgroup/memory/x/memory.usage_in_bytes", "3500\n");
  EXPECT_EQ(machine.memory(), 0);
  EXPECT_GT(resident_memory(), 100000);
  EXPECT_GE(peak_resident_memory() + (1 << 20), resident_memory());  // the kernel counts in batches
}

}  // namespace
}  // namespace inferd
