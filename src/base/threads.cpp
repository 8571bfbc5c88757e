#include "base/threads.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <sstream>

#include "base/cgroup.h"
#include "base/check.h"
#include "base/strings.h"

namespace inferd {
namespace {

// How long a worker or the caller spins before it sleeps in the kernel. A futex round trip costs 14 to 22 us,
// the phases of a decode step follow each other within a few; longer spinning would only starve the other
// threads.
constexpr std::chrono::microseconds kSpin{50};

void pause_instruction() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Waits until value != old: spins, then sleeps.
template <typename T>
void wait_for_change(const std::atomic<T>& value, T old) {
  const auto until = std::chrono::steady_clock::now() + kSpin;
  for (int round = 0; value.load(std::memory_order_acquire) == old; ++round) {
    if (round % 64 == 63 && std::chrono::steady_clock::now() >= until) {
      value.wait(old, std::memory_order_acquire);
      return;
    }
    pause_instruction();
  }
}

std::vector<size_t> affinity_cpus() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  std::vector<size_t> cpus;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) {
    for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &mask)) cpus.push_back(cpu);
    }
  }
  return cpus;
}

// Best effort: a thread that could not be moved is only slower.
void allow_only(std::span<const size_t> cpus) {
  if (cpus.empty()) return;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const size_t cpu : cpus) CPU_SET(cpu, &mask);
  pthread_setaffinity_np(pthread_self(), sizeof mask, &mask);
}

void pin_to(const std::vector<size_t>& cpus, int worker) {
  if (!cpus.empty()) allow_only({&cpus[static_cast<size_t>(worker) % cpus.size()], 1});
}

// "max 100000" or "150000 100000" (cgroup v2 cpu.max): the quota in CPUs, if there is one.
std::optional<double> quota_v2(const std::string& text) {
  std::istringstream in(text);
  std::string quota;
  double period = 0;
  if (!(in >> quota >> period) || quota == "max" || period <= 0) return std::nullopt;
  const auto value = parse_double(quota);
  if (!value || *value <= 0) return std::nullopt;
  return *value / period;
}

std::optional<double> quota_v1(const std::string& folder) {
  const auto quota = read_small_file(folder + "/cpu.cfs_quota_us");
  const auto period = read_small_file(folder + "/cpu.cfs_period_us");
  if (!quota || !period) return std::nullopt;
  const auto quota_us = parse_double(trim(*quota));
  const auto period_us = parse_double(trim(*period));
  if (!quota_us || !period_us || *quota_us <= 0 || *period_us <= 0) return std::nullopt;
  return *quota_us / *period_us;
}

// The smallest CPU quota of this process's cgroup and all groups above it.
std::optional<double> cgroup_quota(const std::string& root) {
  std::optional<double> smallest;
  for_each_cgroup(root, "cpu", [&](const std::string& folder, bool v2) {
    std::optional<double> quota;
    if (!v2) {
      quota = quota_v1(folder);
    } else if (const auto text = read_small_file(folder + "/cpu.max")) {
      quota = quota_v2(*text);
    }
    if (quota && (!smallest || *quota < *smallest)) smallest = quota;
  });
  return smallest;
}

}  // namespace

int usable_cpus(const std::string& root) {
  int cpus = std::max<int>(1, static_cast<int>(affinity_cpus().size()));
  if (const auto quota = cgroup_quota(root)) cpus = std::min(cpus, std::max(1, static_cast<int>(*quota)));
  return cpus;
}

SavedAffinity::SavedAffinity() : cpus_(affinity_cpus()) {}
void SavedAffinity::restore() const {
  allow_only(cpus_);
}

ThreadPool::ThreadPool(int threads, bool pin)
    : size_(threads), cpus_(pin ? affinity_cpus() : std::vector<size_t>()) {
  INFERD_CHECK(threads >= 1, "threads ", threads);
  for (int worker = 1; worker < size_; ++worker) {
    workers_.emplace_back([this, worker] { worker_loop(worker); });
  }
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(FunctionRef<void(int)> body) {
  if (size_ == 1) {
    body(0);
    return;
  }
  if (pinned_caller_ != std::this_thread::get_id()) {
    pin_to(cpus_, 0);
    pinned_caller_ = std::this_thread::get_id();
  }
  body_ = &body;
  running_.store(size_ - 1, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  body(0);
  for (int left = running_.load(std::memory_order_acquire); left != 0;
       left = running_.load(std::memory_order_acquire)) {
    wait_for_change(running_, left);
  }
}

void ThreadPool::worker_loop(int worker) {
  pin_to(cpus_, worker);
  uint32_t seen = 0;
  while (true) {
    wait_for_change(generation_, seen);
    seen = generation_.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_relaxed)) return;
    (*body_)(worker);
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) running_.notify_one();
  }
}

}  // namespace inferd
