// HostDevice: plain host memory that runs everything at once, for backends that compute on the CPU.
#pragma once

#include "ops/device.h"

namespace inferd {

class HostDevice final : public Device {
 public:
  static constexpr int kPageTokens = 16;

  explicit HostDevice(std::string name) : name_(std::move(name)) {}

  std::string name() const override { return name_; }
  int lag() const override { return 0; }
  int kv_page_tokens() const override { return kPageTokens; }
  // Anonymous memory that the kernel hands out on first touch, in huge pages where it has them.
  Result<Buffer> allocate(int64_t bytes, std::string_view what) override;
  void upload(void* device, const void* host, int64_t bytes) override;
  void download(void* host, const void* device, int64_t bytes) override;
  uint64_t record() override { return ++mark_; }
  void wait(uint64_t mark) override;
  std::unique_ptr<Graph> capture(const std::function<void()>& body) override;
  void replay(Graph& graph) override;

 private:
  const std::string name_;
  uint64_t mark_ = 0;
};

}  // namespace inferd
