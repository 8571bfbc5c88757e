#include "server/text_worker.h"

namespace inferd {

TextWorker::TextWorker() : thread_([this] { loop(); }) {}

TextWorker::~TextWorker() {
  stopping_.store(true, std::memory_order_release);
  jobs_.wake();
  thread_.join();
}

void TextWorker::loop() {
  while (!stopping_.load(std::memory_order_acquire)) {
    for (const std::function<void()>& job : jobs_.wait_all(std::chrono::hours(1))) {
      if (stopping_.load(std::memory_order_acquire)) return;
      job();
    }
  }
}

}  // namespace inferd
