// A queue from many threads to one: the only lock a request crosses on its way to the engine.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

namespace inferd {

template <typename T>
class Inbox {
 public:
  // Any thread. False, and the item is dropped, once the inbox is closed.
  bool push(T item) {
    {
      const std::scoped_lock lock(mutex_);
      if (closed_) return false;
      items_.push_back(std::move(item));
    }
    filled_.notify_one();
    return true;
  }

  // The owner's thread. Takes what is left; nothing comes in after it.
  std::deque<T> close() {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
    return std::exchange(items_, {});
  }

  // The owner's thread. Everything that has come in, oldest first; never waits.
  std::deque<T> take_all() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(items_, {});
  }

  // The owner's thread. Waits until something is there, or wake() was called, or the time has passed.
  std::deque<T> wait_all(std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    filled_.wait_for(lock, timeout, [this] { return !items_.empty() || woken_; });
    woken_ = false;
    return std::exchange(items_, {});
  }

  // Any thread. Ends a wait_all() without an item.
  void wake() {
    {
      const std::scoped_lock lock(mutex_);
      woken_ = true;
    }
    filled_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<T> items_;
  bool woken_ = false;
  bool closed_ = false;
};

}  // namespace inferd
