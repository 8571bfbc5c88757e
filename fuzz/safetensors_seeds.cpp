// safetensors_seeds FOLDER: writes the files that the tests make, as a corpus to start safetensors_fuzz with.

#include <cstdio>
#include <fstream>

#include "formats/safetensors_samples.h"

namespace {

void write(const std::string& path, const std::vector<std::byte>& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: safetensors_seeds FOLDER\n");
    return 2;
  }
  const std::string folder = std::string(argv[1]) + "/";
  write(folder + "ordinary", inferd::ordinary_safetensors());
  for (const auto& file : inferd::odd_safetensors()) write(folder + "odd-" + file.name, file.bytes);
  for (const auto& file : inferd::hostile_safetensors()) write(folder + "hostile-" + file.name, file.bytes);
  return 0;
}
