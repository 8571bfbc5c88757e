// GGUF files made for tests and as seeds of the fuzzer: one ordinary file, odd ones that must load, and
// hostile ones that must not. Not part of the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/errors.h"
#include "formats/gguf.h"

namespace inferd {

// Writes the fields of a file as given, right or wrong.
class RawGguf {
 public:
  RawGguf(uint64_t tensors, uint64_t keys, uint32_t version = 3) {
    raw("GGUF").u32(version).u64(tensors).u64(keys);
  }
  static RawGguf nothing() { return RawGguf(); }

  RawGguf& raw(std::string_view text);
  RawGguf& u8(uint8_t value) { return number(value); }
  RawGguf& u16(uint16_t value) { return number(value); }
  RawGguf& u32(uint32_t value) { return number(value); }
  RawGguf& u64(uint64_t value) { return number(value); }
  RawGguf& zeros(size_t count);
  RawGguf& align(size_t alignment);

  RawGguf& string(std::string_view text) { return u64(text.size()).raw(text); }
  RawGguf& key(std::string_view name, GgufValueType type) {
    return string(name).u32(static_cast<uint32_t>(type));
  }
  RawGguf& array(std::string_view name, GgufValueType element, uint64_t count) {
    return key(name, GgufValueType::array).u32(static_cast<uint32_t>(element)).u64(count);
  }
  RawGguf& tensor(std::string_view name, std::initializer_list<uint64_t> dims, uint32_t type,
                  uint64_t offset);

  std::vector<std::byte> bytes() const { return bytes_; }

 private:
  RawGguf() = default;
  template <typename T>
  RawGguf& number(T value) {
    return raw({reinterpret_cast<const char*>(&value), sizeof(value)});
  }
  std::vector<std::byte> bytes_;
};

// Every value type, arrays, four tensors of three types; about 2 KB, written by GgufWriter.
std::vector<std::byte> ordinary_gguf();

struct OddGguf {
  std::string name;
  std::vector<std::byte> bytes;
};
std::vector<OddGguf> odd_ggufs();

struct HostileGguf {
  std::string name;
  std::vector<std::byte> bytes;
  Code code;
  std::string detail;  // part of the message
  std::string where;   // part of the place
};
std::vector<HostileGguf> hostile_ggufs();

}  // namespace inferd
