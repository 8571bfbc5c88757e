// What libFuzzer calls with every input, and the test that replays tests/corpus/gguf: parse the bytes, then
// use all that a loader or `inferd show` would. A broken promise of the reader ends the process.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "base/json.h"
#include "formats/gguf.h"
#include "formats/gguf_dump.h"

namespace inferd {
namespace {

// Reads every byte; the volatile keeps the compiler from leaving that out.
void touch(std::span<const std::byte> bytes) {
  uint64_t sum = 0;
  for (const std::byte byte : bytes) sum += static_cast<uint64_t>(byte);
  [[maybe_unused]] volatile uint64_t seen = sum;
}

bool inside(std::span<const std::byte> part, std::span<const std::byte> whole) {
  return part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

// Through the getter that fits the type.
void read_value(const GgufFile& file, const GgufValue& value) {
  INFERD_CHECK(inside(value.payload, file.bytes()) && value.count >= 0);
  INFERD_CHECK(file.find(value.key) == &value);
  touch(value.payload);
  const bool array = value.type == GgufValueType::array;
  switch (value.element_type) {
    case GgufValueType::boolean:
      INFERD_CHECK(array || file.boolean(value.key).ok());
      break;
    case GgufValueType::float32:
    case GgufValueType::float64:
      INFERD_CHECK(array ? file.reals(value.key).ok() : file.real(value.key).ok());
      break;
    case GgufValueType::string: {
      if (!array) {
        touch(std::as_bytes(std::span(file.string(value.key).value())));
        break;
      }
      int64_t count = 0;
      const GgufStrings strings = file.strings(value.key).value();
      for (const std::string_view text : strings) {
        touch(std::as_bytes(std::span(text)));
        ++count;
      }
      INFERD_CHECK(count == value.count);
      break;
    }
    default: {
      const bool fits = array ? file.integers(value.key).ok() : file.integer(value.key).ok();
      INFERD_CHECK(fits || value.element_type == GgufValueType::uint64);
    }
  }
}

void read_tensor(const GgufFile& file, const GgufTensor& tensor) {
  INFERD_CHECK(file.find_tensor(tensor.name) == &tensor);
  INFERD_CHECK(inside(tensor.data, file.bytes()));
  INFERD_CHECK(tensor.offset >= file.data_offset() && tensor.elements > 0);
  INFERD_CHECK((tensor.offset - file.data_offset()) % file.alignment() == 0);
  touch(tensor.data);
  if (const auto dtype = file.dtype(tensor)) {
    const int64_t rows = tensor.elements / tensor.shape[0];
    INFERD_CHECK(rows * row_bytes(*dtype, tensor.shape[0]) == static_cast<int64_t>(tensor.data.size()));
  }
}

}  // namespace
}  // namespace inferd

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace inferd;
  const auto parsed = GgufFile::parse(std::as_bytes(std::span(data, size)), "input");
  if (!parsed) {
    const Error& error = parsed.error();
    INFERD_CHECK(!error.detail.empty() && error.where.starts_with("input, byte "), error.terminal_text());
    INFERD_CHECK(error.terminal_text().size() < 2000, error.terminal_text());
    return 0;
  }
  for (const GgufValue& value : parsed->values()) read_value(*parsed, value);
  for (const GgufTensor& tensor : parsed->tensors()) read_tensor(*parsed, tensor);
  INFERD_CHECK(!gguf_dump_text(*parsed).empty());
  INFERD_CHECK(!to_json(gguf_dump_json(*parsed)).empty());
  return 0;
}
