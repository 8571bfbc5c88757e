// One thread for long texts: parsing and encoding megabytes must not hold up the streams of an I/O thread.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "base/queue.h"

namespace inferd {

class TextWorker {
 public:
  TextWorker();
  // Drops the jobs that have not begun.
  ~TextWorker();
  TextWorker(const TextWorker&) = delete;
  TextWorker& operator=(const TextWorker&) = delete;

  // Any thread. Jobs run one after another, in order.
  void run(std::function<void()> job) { jobs_.push(std::move(job)); }

 private:
  void loop();

  Inbox<std::function<void()>> jobs_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace inferd
