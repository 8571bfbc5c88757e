#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "reference/dequant.h"
#include "support/golden.h"

namespace inferd {
namespace {

// Blocks of random bytes and their values by gguf-py, bit for bit (the golden README: gguf-py and ggml's C
// agree).
class Dequantise : public testing::TestWithParam<DType> {};

TEST_P(Dequantise, equals_the_golden_blocks_bit_for_bit) {
  const DType type = GetParam();

  const auto golden = test::read_npz(cat(test::golden_dir(), "/quant/", dtype_name(type), ".npz"));
  const test::NpyArray& raw = golden.at("raw");
  const test::NpyArray& values = golden.at("values");
  const auto cols = static_cast<size_t>(values.shape.at(1));
  const auto bytes = static_cast<size_t>(raw.shape.at(1));
  ASSERT_EQ(values.shape.at(0), 64);
  std::vector<float> out(cols);
  for (size_t row = 0; row < 64; ++row) {
    reference::dequantise_row(out, type, std::as_bytes(std::span(raw.bytes).subspan(row * bytes, bytes)));
    for (size_t i = 0; i < cols; ++i) {
      const float wanted = values.as<float>()[row * cols + i];
      if (std::isnan(wanted)) {
        ASSERT_TRUE(std::isnan(out[i])) << row << " " << i;
      } else {
        ASSERT_EQ(std::bit_cast<uint32_t>(out[i]), std::bit_cast<uint32_t>(wanted)) << row << " " << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryType, Dequantise,
                         testing::Values(DType::f16, DType::bf16, DType::q4_0, DType::q4_1, DType::q5_0,
                                         DType::q5_1, DType::q8_0, DType::q4_k, DType::q5_k, DType::q6_k),
                         [](const auto& instance) { return std::string(dtype_name(instance.param)); });

}  // namespace
}  // namespace inferd
