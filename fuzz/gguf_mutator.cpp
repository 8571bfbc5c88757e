// libFuzzer's mutation of GGUF files. Random bytes rarely get past the lengths and counts of the head, so
// most steps take a file apart into keys, tensors and data, change one field, and put it together with counts
// and lengths that fit; the rest leave it to libFuzzer, which also breaks what fits.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using Random = std::minstd_rand;

uint64_t below(Random& random, uint64_t bound) {
  return random() % bound;
}

// Values at which lengths, counts, sizes and offsets change their meaning.
uint64_t edge(Random& random) {
  static constexpr std::array<uint64_t, 20> kEdges = {0,
                                                      1,
                                                      2,
                                                      4,
                                                      8,
                                                      32,
                                                      64,
                                                      256,
                                                      65535,
                                                      65536,
                                                      uint64_t{1} << 24,
                                                      uint64_t{1} << 26,
                                                      uint64_t{1} << 31,
                                                      uint64_t{1} << 32,
                                                      uint64_t{1} << 42,
                                                      uint64_t{1} << 61,
                                                      uint64_t{1} << 62,
                                                      uint64_t{1} << 63,
                                                      UINT64_MAX - 31,
                                                      UINT64_MAX};
  return kEdges[below(random, kEdges.size())] + below(random, 3) - 1;
}

struct Reader {
  std::span<const uint8_t> bytes;
  bool failed = false;

  template <typename T>
  T number() {
    T value{};
    if (bytes.size() < sizeof(T)) {
      failed = true;
      return value;
    }
    std::memcpy(&value, bytes.data(), sizeof(T));
    bytes = bytes.subspan(sizeof(T));
    return value;
  }
  std::string take(uint64_t length) {
    if (length > bytes.size()) {
      failed = true;
      return {};
    }
    std::string taken(reinterpret_cast<const char*>(bytes.data()), length);
    bytes = bytes.subspan(length);
    return taken;
  }
  std::string string() { return take(number<uint64_t>()); }
};

template <typename T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}
void put_string(std::string& out, const std::string& text) {
  put(out, uint64_t{text.size()});
  out += text;
}

uint64_t fixed_bytes(uint32_t type) {
  static constexpr std::array<uint64_t, 13> kBytes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return type < kBytes.size() ? kBytes[type] : 0;
}

struct Key {
  std::string name;
  uint32_t type = 0;
  std::string value;  // as stored; for a string and an array without the head
  uint32_t element = 0;
  uint64_t count = 0;
};

struct Tensor {
  std::string name;
  std::vector<uint64_t> dims;
  uint32_t type = 0;
  uint64_t offset = 0;
};

struct File {
  uint32_t version = 3;
  std::vector<Key> keys;
  std::vector<Tensor> tensors;
  std::string rest;  // padding and data
};

std::optional<File> take_apart(std::span<const uint8_t> bytes) {
  Reader in{bytes};
  if (in.take(4) != "GGUF") return std::nullopt;
  File file;
  file.version = in.number<uint32_t>();
  const auto tensors = in.number<uint64_t>();
  const auto keys = in.number<uint64_t>();
  for (uint64_t i = 0; i < keys && !in.failed; ++i) {
    Key key{.name = in.string(), .type = in.number<uint32_t>()};
    if (key.type == 8) {
      key.value = in.string();
    } else if (key.type == 9) {
      key.element = in.number<uint32_t>();
      key.count = in.number<uint64_t>();
      if (key.element == 8) {
        for (uint64_t n = 0; n < key.count && !in.failed; ++n) put_string(key.value, in.string());
      } else {
        if (key.count > in.bytes.size()) return std::nullopt;
        key.value = in.take(key.count * fixed_bytes(key.element));
      }
    } else {
      key.value = in.take(fixed_bytes(key.type));
    }
    file.keys.push_back(std::move(key));
  }
  for (uint64_t i = 0; i < tensors && !in.failed; ++i) {
    Tensor tensor{.name = in.string()};
    const auto dims = in.number<uint32_t>();
    for (uint32_t n = 0; n < dims && !in.failed; ++n) tensor.dims.push_back(in.number<uint64_t>());
    tensor.type = in.number<uint32_t>();
    tensor.offset = in.number<uint64_t>();
    file.tensors.push_back(std::move(tensor));
  }
  if (in.failed) return std::nullopt;
  file.rest = in.take(in.bytes.size());
  return file;
}

std::string put_together(const File& file) {
  std::string out = "GGUF";
  put(out, file.version);
  put(out, uint64_t{file.tensors.size()});
  put(out, uint64_t{file.keys.size()});
  for (const Key& key : file.keys) {
    put_string(out, key.name);
    put(out, key.type);
    if (key.type == 8) put(out, uint64_t{key.value.size()});
    if (key.type == 9) {
      put(out, key.element);
      put(out, key.count);
    }
    out += key.value;
  }
  for (const Tensor& tensor : file.tensors) {
    put_string(out, tensor.name);
    put(out, static_cast<uint32_t>(tensor.dims.size()));
    for (const uint64_t dim : tensor.dims) put(out, dim);
    put(out, tensor.type);
    put(out, tensor.offset);
  }
  return out + file.rest;
}

void mutate_text(std::string& text) {
  static constexpr size_t kLongest = 64;
  const size_t size = std::min(text.size(), kLongest);
  text.resize(kLongest);
  text.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(text.data()), size, kLongest));
}

void mutate_key(Key& key, Random& random) {
  switch (below(random, 6)) {
    case 0:
      mutate_text(key.name);
      break;
    case 1:
      mutate_text(key.value);
      break;
    case 2:
      key.name = "general.alignment";
      break;
    case 3:  // another type, with as many bytes as it needs
      key.type = static_cast<uint32_t>(below(random, 13));
      if (key.type < 8 || key.type > 9) key.value.resize(fixed_bytes(key.type));
      break;
    case 4:  // an array of some type
      key.type = 9;
      key.element = static_cast<uint32_t>(below(random, 14));
      key.count = below(random, 4);
      key.value.resize(key.count * (key.element == 8 ? 8 : fixed_bytes(key.element)));
      break;
    default:
      key.count = edge(random);
  }
}

void mutate_tensor(Tensor& tensor, Random& random) {
  switch (below(random, 6)) {
    case 0:
      mutate_text(tensor.name);
      break;
    case 1:
      tensor.type = static_cast<uint32_t>(below(random, 45));
      break;
    case 2:
      tensor.offset = below(random, 2) == 0 ? edge(random) : 32 * below(random, 16);
      break;
    case 3:
      tensor.dims.resize(below(random, 6), 1);
      break;
    default:
      if (!tensor.dims.empty()) {
        tensor.dims[below(random, tensor.dims.size())] =
            below(random, 2) == 0 ? edge(random) : 1 + below(random, 64);
      }
  }
}

template <typename Item>
void mutate_list(std::vector<Item>& items, const std::vector<Item>& all, Random& random) {
  const uint64_t at = below(random, items.size() + 1);
  switch (below(random, 3)) {
    case 0:
      if (!all.empty())
        items.insert(items.begin() + static_cast<std::ptrdiff_t>(at), all[below(random, all.size())]);
      break;
    case 1:
      if (at < items.size()) items.erase(items.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    default:
      if (at < items.size()) std::swap(items[at], items[below(random, items.size())]);
  }
}

void mutate_file(File& file, const File& other, Random& random) {
  const auto steps = 1 + below(random, 4);
  for (uint64_t step = 0; step < steps; ++step) {
    switch (below(random, 10)) {
      case 0:
        file.rest.resize(below(random, 400));
        break;
      case 1:
        mutate_list(file.keys, other.keys, random);
        break;
      case 2:
        mutate_list(file.tensors, other.tensors, random);
        break;
      case 3:
        file.version = static_cast<uint32_t>(below(random, 5));
        break;
      case 4:
      case 5:
      case 6:
        if (!file.keys.empty()) mutate_key(file.keys[below(random, file.keys.size())], random);
        break;
      default:
        if (!file.tensors.empty()) mutate_tensor(file.tensors[below(random, file.tensors.size())], random);
    }
  }
}

size_t give_back(const std::string& made, uint8_t* out, size_t max_size) {
  const size_t size = std::min(made.size(), max_size);
  std::memcpy(out, made.data(), size);
  return size;
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  Random random(seed);
  auto file = below(random, 4) != 0 ? take_apart({data, size}) : std::nullopt;
  if (!file) return LLVMFuzzerMutate(data, size, max_size);
  mutate_file(*file, File(*file), random);
  return give_back(put_together(*file), data, max_size);
}

// Keys and tensors of one file among those of another.
extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* first, size_t first_size, const uint8_t* second,
                                            size_t second_size, uint8_t* out, size_t max_size,
                                            unsigned int seed) {
  Random random(seed);
  auto file = take_apart({first, first_size});
  const auto other = take_apart({second, second_size});
  if (!file || !other) return 0;
  mutate_list(file->keys, other->keys, random);
  mutate_list(file->tensors, other->tensors, random);
  return give_back(put_together(*file), out, max_size);
}
