// A fixed pool of pinned worker threads for compute. The calling thread is worker 0.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace inferd {

// A borrowed callable: two words, no allocation. Valid while the callable it was made from lives.
template <typename Signature>
class FunctionRef;

template <typename R, typename... Args>
class FunctionRef<R(Args...)> {
 public:
  template <typename F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>)
  FunctionRef(F&& callable)  // NOLINT: implicit by design
      : object_(const_cast<void*>(static_cast<const void*>(&callable))),
        call_([](void* object, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(object))(static_cast<Args>(args)...);
        }) {}
  R operator()(Args... args) const { return call_(object_, static_cast<Args>(args)...); }

 private:
  void* object_;
  R (*call_)(void*, Args...);
};

// CPUs this process may use: min(affinity mask, floor of the cgroup v1 or v2 quota), at least 1.
// `root` is "/" but for tests, which lay out their own proc and sys files under another folder.
int usable_cpus(const std::string& root = "/");

// The CPUs that the constructing thread may run on; restore() gives them back to the calling thread. A thread
// that loads a model has been worker 0 of a pool and would hand its one CPU down to every thread it starts
// later.
class SavedAffinity {
 public:
  SavedAffinity();
  void restore() const;

 private:
  std::vector<size_t> cpus_;
};

// Work items 0..count-1 handed out one by one; a worker that lost its core does not hold up the others.
class WorkCounter {
 public:
  explicit WorkCounter(int64_t count) : count_(count) {}
  // The next item, or -1 when none is left. Any thread.
  int64_t next() {
    const int64_t item = next_.fetch_add(1, std::memory_order_relaxed);
    return item < count_ ? item : -1;
  }

 private:
  std::atomic<int64_t> next_{0};
  const int64_t count_;
};

class ThreadPool {
 public:
  // Starts threads - 1 workers; `threads` >= 1. With `pin` each is pinned to one CPU of the affinity mask
  // that the constructing thread has, and a thread that calls run() is pinned as worker 0 when it does so for
  // the first time.
  explicit ThreadPool(int threads, bool pin = true);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return size_; }

  // Calls body(worker) once on every worker, 0 on the calling thread, and returns when all are done. What the
  // workers wrote is visible to the caller then. Not reentrant; one caller at a time. `body` must not throw.
  void run(FunctionRef<void(int)> body);

 private:
  void worker_loop(int worker);

  const int size_;
  const std::vector<size_t> cpus_;  // empty: not pinned
  std::thread::id pinned_caller_;
  const FunctionRef<void(int)>* body_ =
      nullptr;  // guarded by the order: written before generation_, read after it
  std::atomic<uint32_t> generation_{0};
  std::atomic<int> running_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

}  // namespace inferd
