// Safetensors files made for tests and as seeds of the fuzzer: one ordinary file, odd ones that must load,
// and hostile ones that must not. Not part of the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/errors.h"

namespace inferd {

// Length, header and `data_bytes` bytes 0, 1, 2 …, right or wrong as given.
std::vector<std::byte> raw_safetensors(std::string_view header, size_t data_bytes);
// The same with a length that need not be the header's.
std::vector<std::byte> raw_safetensors(uint64_t length, std::string_view header, size_t data_bytes);

// Metadata and tensors of every dtype.
std::vector<std::byte> ordinary_safetensors();

struct OddSafetensors {
  std::string name;
  std::vector<std::byte> bytes;
};
std::vector<OddSafetensors> odd_safetensors();

struct HostileSafetensors {
  std::string name;
  std::vector<std::byte> bytes;
  Code code;
  std::string detail;  // part of the message
  std::string where;   // part of the place
};
std::vector<HostileSafetensors> hostile_safetensors();

}  // namespace inferd
