// Who listens on a TCP port of this machine, and which port nearby is free: what a taken port's error names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace inferd {

struct PortHolder {
  int32_t pid;
  std::string program;  // its command's name, as the kernel cuts it (15 characters)
};

// From /proc/net/tcp and tcp6, and the descriptors of the processes this user may look into; nothing when the
// holder is not among them. `root` is "/" but for tests.
std::optional<PortHolder> port_holder(int32_t port, const std::string& root = "/");

// The first port above `port` on which this machine's loopback can be listened on; nothing within 100.
std::optional<int32_t> free_port_above(int32_t port);

// An E-NET-001 with the holder and a free port added to what it says; other errors as they are.
Error with_port_holder(Error error, int32_t port);

}  // namespace inferd
