// What the operating system says about memory: of the machine, its cgroup, and this process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace inferd {

// Bytes this process could still take: the smaller of MemAvailable and what the cgroup (v1 or v2) leaves.
// `root` is "/" but for tests.
int64_t available_memory(const std::string& root = "/");

// MemAvailable alone, which the cgroup may cut.
int64_t machine_available_memory(const std::string& root = "/");

// Resident memory of this process now, and its peak.
int64_t resident_memory();
int64_t peak_resident_memory();

}  // namespace inferd
