// What libFuzzer calls with every input, and the test that replays tests/corpus/safetensors: parse the bytes,
// then use all that a loader would. A broken promise of the reader ends the process.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "formats/safetensors.h"

namespace inferd {
namespace {

// Reads every byte; the volatile keeps the compiler from leaving that out.
void touch(std::span<const std::byte> bytes) {
  uint64_t sum = 0;
  for (const std::byte byte : bytes) sum += static_cast<uint64_t>(byte);
  [[maybe_unused]] volatile uint64_t seen = sum;
}

// The tensors are the data: each begins where the one before it ends.
void read_tensors(const SafetensorsFile& file) {
  int64_t at = file.data_offset();
  for (const SafetensorsTensor& tensor : file.tensors()) {
    INFERD_CHECK(file.find(tensor.name) == &tensor);
    INFERD_CHECK(tensor.offset == at && tensor.data.data() == file.bytes().data() + at);
    INFERD_CHECK(std::ssize(tensor.data) == tensor.elements * safetensors_dtype_bytes(tensor.dtype));
    int64_t elements = 1;
    for (const int64_t dim : tensor.shape) elements *= dim;
    INFERD_CHECK(elements == tensor.elements);
    touch(tensor.data);
    at += std::ssize(tensor.data);
  }
  INFERD_CHECK(at == std::ssize(file.bytes()));
}

}  // namespace
}  // namespace inferd

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace inferd;
  const auto parsed = SafetensorsFile::parse(std::as_bytes(std::span(data, size)), "input");
  if (!parsed) {
    const Error& error = parsed.error();
    INFERD_CHECK(!error.detail.empty() && error.where.starts_with("input, "), error.terminal_text());
    INFERD_CHECK(error.terminal_text().size() < 2000, error.terminal_text());
    return 0;
  }
  read_tensors(*parsed);
  for (const auto& [key, text] : parsed->metadata()) {
    touch(std::as_bytes(std::span(key)));
    touch(std::as_bytes(std::span(text)));
  }
  return 0;
}
