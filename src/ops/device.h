// Device: where memory lies and in which order work on it is done. One of the two seams between the engine
// and a backend (the other is Ops). A device runs what it is given in order, as one stream; all calls come
// from the engine's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tensor/buffer.h"

namespace inferd {

// The device is gone or wrong (a failed launch, an uncorrectable memory error). Thrown by Device and Ops,
// caught in one place, the engine's step: the requests in flight fail and the process ends.
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Work captured once and replayed: the same function with its arguments, which all are addresses of device
// memory.
class Graph {
 public:
  virtual ~Graph() = default;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual std::string name() const = 0;  // "cpu (avx512)", for people

  // How many steps the host may launch before it reads the results of the first: 0 when launch() has finished
  // the work by the time it returns (CPU), 1 when the device runs behind (CUDA).
  virtual int lag() const = 0;

  // Tokens a KV page holds on this backend.
  virtual int kv_page_tokens() const = 0;

  // Memory that the buffer gives back when destroyed. Contents unspecified. E-MEM-002 names `what` and the
  // size. Called at load only.
  virtual Result<Buffer> allocate(int64_t bytes, std::string_view what) = 0;

  // In stream order. The host memory stays untouched until the work recorded after it is done (wait()).
  virtual void upload(void* device, const void* host, int64_t bytes) = 0;
  virtual void download(void* host, const void* device, int64_t bytes) = 0;

  // A mark after everything given so far; marks count up. wait() returns when that mark has been passed.
  virtual uint64_t record() = 0;
  virtual void wait(uint64_t mark) = 0;

  // Captures what `body` gives to the device, without running it; null when this backend runs eagerly only.
  virtual std::unique_ptr<Graph> capture(const std::function<void()>& body) = 0;
  virtual void replay(Graph& graph) = 0;
};

}  // namespace inferd
