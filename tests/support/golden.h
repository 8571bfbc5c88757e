// Reads the golden files: expected results that other people's libraries wrote. Test code only; a file that
// is missing or odd ends the test program with its name.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"

namespace inferd::test {

// The folder of golden files: $INFERD_GOLDEN, else ../shared/golden beside the source tree.
std::string golden_dir();

// The folder of a tiny model with gguf/, golden.json and logits: of families that the golden files have no
// GGUF file of, tests/golden/tiny/FAMILY; else FAMILY of the golden files.
std::string tiny_dir(const std::string& family);

// The folder of real models (smollm2.gguf, …): $INFERD_TEST_MODELS, else the user's model folder.
std::string model_dir();

std::string read_file(const std::string& path);
std::string gunzip(const std::string& compressed);
Json read_json(const std::string& path);                     // also .json.gz
std::vector<Json> read_json_lines(const std::string& path);  // also .jsonl.gz

// A NumPy array: little-endian, C order.
struct NpyArray {
  std::string dtype;  // "<f4", "|u1", "<i8" …
  std::vector<int64_t> shape;
  std::string bytes;

  template <typename T>
  const T* as() const {
    return reinterpret_cast<const T*>(bytes.data());
  }
  int64_t elements() const;
};

NpyArray parse_npy(const std::string& file);
NpyArray read_npy(const std::string& path);
std::map<std::string, NpyArray> read_npz(const std::string& path);  // entries stored without compression

}  // namespace inferd::test
