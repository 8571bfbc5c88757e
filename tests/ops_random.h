// Random inputs for tests of verbs, the same on every run and machine: a counter-based generator, no global
// state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/rng.h"
#include "ops/ops.h"
#include "tensor/half.h"
#include "tensor/quant_blocks.h"

namespace inferd::test {

class Random {
 public:
  explicit Random(uint64_t seed) : seed_(seed) {}

  uint32_t bits() { return static_cast<uint32_t>(uniform_draw(seed_, next_++, 0, 0) * 0x1.0p32); }
  // In [0, n).
  int32_t below(int32_t n) { return static_cast<int32_t>(uniform_draw(seed_, next_++, 0, 0) * n); }
  // In [low, high).
  float uniform(float low, float high) {
    return low + static_cast<float>(uniform_draw(seed_, next_++, 0, 0)) * (high - low);
  }
  std::vector<float> floats(int64_t count, float low = -1, float high = 1) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = uniform(low, high);
    return values;
  }

 private:
  uint64_t seed_;
  uint32_t next_ = 0;
};

// Rows of a weight as a file stores them: random quants with scales that keep values around 1.
inline std::vector<std::byte> random_rows(DType type, int64_t rows, int64_t cols, Random& random) {
  std::vector<std::byte> bytes(static_cast<size_t>(rows * row_bytes(type, cols)));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.bits() >> 24);
  const auto block_bytes = static_cast<size_t>(dtype_info(type).block_bytes);
  const auto put_half = [&](size_t at, float value) {
    const uint16_t half = f32_to_f16(value);
    std::memcpy(bytes.data() + at, &half, 2);
  };
  for (size_t at = 0; at < bytes.size(); at += block_bytes) {
    switch (type) {
      case DType::f32: {
        const float value = random.uniform(-1, 1);
        std::memcpy(bytes.data() + at, &value, 4);
        break;
      }
      case DType::f16:
        put_half(at, random.uniform(-1, 1));
        break;
      case DType::bf16: {
        const uint16_t half = f32_to_bf16(random.uniform(-1, 1));
        std::memcpy(bytes.data() + at, &half, 2);
        break;
      }
      case DType::q4_0:
        put_half(at, random.uniform(-0.1f, 0.1f));
        break;
      case DType::q5_0:
        put_half(at, random.uniform(-0.05f, 0.05f));
        break;
      case DType::q8_0:
        put_half(at, random.uniform(-0.01f, 0.01f));
        break;
      case DType::q4_1:
        put_half(at, random.uniform(-0.1f, 0.1f));
        put_half(at + offsetof(BlockQ4_1, m), random.uniform(-1, 1));
        break;
      case DType::q5_1:
        put_half(at, random.uniform(-0.05f, 0.05f));
        put_half(at + offsetof(BlockQ5_1, m), random.uniform(-1, 1));
        break;
      case DType::q4_k:
      case DType::q5_k:
        put_half(at, random.uniform(0.0f, 0.004f));
        put_half(at + offsetof(BlockQ4_K, dmin), random.uniform(0.0f, 0.03f));
        break;
      case DType::q6_k:
        put_half(at + offsetof(BlockQ6_K, d), random.uniform(-0.0005f, 0.0005f));
        break;
      case DType::q2_k:
        put_half(at + offsetof(BlockQ2_K, d), random.uniform(0.0f, 0.04f));
        put_half(at + offsetof(BlockQ2_K, dmin), random.uniform(0.0f, 0.04f));
        break;
      case DType::q3_k:
        put_half(at + offsetof(BlockQ3_K, d), random.uniform(-0.01f, 0.01f));
        break;
      case DType::q8_k: {
        const float d = random.uniform(-0.01f, 0.01f);
        std::memcpy(bytes.data() + at, &d, 4);
        break;
      }
      case DType::iq4_nl:
        put_half(at, random.uniform(-0.01f, 0.01f));
        break;
      case DType::iq4_xs:
        put_half(at, random.uniform(-0.0004f, 0.0004f));
        break;
      case DType::mxfp4:
        bytes[at] = static_cast<std::byte>(121 + random.below(4));
        break;
      case DType::f8_e4m3:
        if ((bytes[at] & std::byte{0x7F}) == std::byte{0x7F}) bytes[at] = std::byte{0x38};  // no NaN
        break;
    }
  }
  return bytes;
}

// A row group with its bytes.
struct OwnedGroup {
  std::vector<std::byte> bytes;
  RowGroup group;
  std::vector<float> scales = {};
};

// Scales for blocks of that size, such that the numbers of random bytes come to about 1.
inline void add_scales(OwnedGroup& owned, int64_t block_rows, int64_t block_cols, Random& random) {
  const int64_t count =
      (owned.group.rows + block_rows - 1) / block_rows * ((owned.group.cols + block_cols - 1) / block_cols);
  owned.scales = random.floats(count, 0.001f, 0.02f);
  owned.group.scales = {owned.scales, block_rows, block_cols};
}

inline OwnedGroup random_group(const std::string& name, DType type, int64_t rows, int64_t cols,
                               Random& random) {
  OwnedGroup owned{random_rows(type, rows, cols, random), {name, type, rows, cols, {}}};
  owned.group.data = owned.bytes;
  if (type == DType::f8_e4m3) add_scales(owned, 128, 128, random);
  return owned;
}

// A matrix of floats with a guard band behind every row and around the whole: check() says whether a verb
// wrote there.
class GuardedMatrix {
 public:
  GuardedMatrix(int64_t rows, int64_t cols, int64_t guard = 19)
      : rows_(rows),
        cols_(cols),
        stride_(cols + guard),
        guard_(guard),
        values_(static_cast<size_t>(guard + rows * stride_), kCanary) {}
  GuardedMatrix(int64_t rows, int64_t cols, const std::vector<float>& values) : GuardedMatrix(rows, cols) {
    for (int64_t r = 0; r < rows; ++r) {
      std::copy_n(values.begin() + r * cols, cols, view().row_f32(r));
    }
  }

  MatrixView view() { return {values_.data() + guard_, DType::f32, rows_, cols_, stride_}; }
  float* row(int64_t r) { return view().row_f32(r); }
  std::vector<float> packed() {
    std::vector<float> out;
    for (int64_t r = 0; r < rows_; ++r) out.insert(out.end(), row(r), row(r) + cols_);
    return out;
  }
  bool guards_intact() const {
    for (size_t i = 0; i < values_.size(); ++i) {
      const int64_t at = static_cast<int64_t>(i) - guard_;
      const bool inside = at >= 0 && at % stride_ < cols_;
      if (!inside && std::bit_cast<uint32_t>(values_[i]) != std::bit_cast<uint32_t>(kCanary)) return false;
    }
    return true;
  }

  static constexpr float kCanary = -1.2345678e33f;

 private:
  int64_t rows_, cols_, stride_, guard_;
  std::vector<float> values_;
};

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

}  // namespace inferd::test
