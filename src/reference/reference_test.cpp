#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "ops_batch.h"
#include "reference/dequant.h"
#include "reference/reference_backend.h"
#include "support/golden.h"

namespace inferd {
namespace {

using test::Pool;
using test::Random;
using test::Step;

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
                                         DType::q5_1, DType::q8_0, DType::q4_k, DType::q5_k, DType::q6_k,
                                         DType::q2_k, DType::q3_k, DType::iq4_nl, DType::iq4_xs,
                                         DType::mxfp4),
                         [](const auto& instance) { return std::string(dtype_name(instance.param)); });

// Has no golden file: gguf-py does not read it.
TEST(Dequantise, multiplies_the_bytes_of_q8_k_by_a_float) {
  BlockQ8_K blocks[2] = {};
  blocks[0].d = 0.1f;
  blocks[1].d = -3.0f;
  for (int i = 0; i < 256; ++i) blocks[0].q[i] = blocks[1].q[i] = static_cast<int8_t>(i - 128);
  blocks[0].sums[0] = 999;
  std::vector<float> out(512);
  reference::dequantise_row(out, DType::q8_k, std::as_bytes(std::span(blocks)));
  EXPECT_EQ(out[0], 0.1f * -128.0f);
  EXPECT_EQ(out[128], 0.0f);
  EXPECT_EQ(out[255], 0.1f * 127.0f);
  EXPECT_EQ(out[256], 384.0f);
  EXPECT_EQ(out[511], -381.0f);
}

// All codes without a sign, as the Python package ml_dtypes 0.6.0 has them (float8_e4m3fn).
TEST(Dequantise, knows_every_e4m3_number) {
  constexpr float kValues[128] = {
      0.0f,      0.001953125f, 0.00390625f, 0.005859375f, 0.0078125f, 0.009765625f, 0.01171875f, 0.013671875f,
      0.015625f, 0.017578125f, 0.01953125f, 0.021484375f, 0.0234375f, 0.025390625f, 0.02734375f, 0.029296875f,
      0.03125f,  0.03515625f,  0.0390625f,  0.04296875f,  0.046875f,  0.05078125f,  0.0546875f,  0.05859375f,
      0.0625f,   0.0703125f,   0.078125f,   0.0859375f,   0.09375f,   0.1015625f,   0.109375f,   0.1171875f,
      0.125f,    0.140625f,    0.15625f,    0.171875f,    0.1875f,    0.203125f,    0.21875f,    0.234375f,
      0.25f,     0.28125f,     0.3125f,     0.34375f,     0.375f,     0.40625f,     0.4375f,     0.46875f,
      0.5f,      0.5625f,      0.625f,      0.6875f,      0.75f,      0.8125f,      0.875f,      0.9375f,
      1.0f,      1.125f,       1.25f,       1.375f,       1.5f,       1.625f,       1.75f,       1.875f,
      2.0f,      2.25f,        2.5f,        2.75f,        3.0f,       3.25f,        3.5f,        3.75f,
      4.0f,      4.5f,         5.0f,        5.5f,         6.0f,       6.5f,         7.0f,        7.5f,
      8.0f,      9.0f,         10.0f,       11.0f,        12.0f,      13.0f,        14.0f,       15.0f,
      16.0f,     18.0f,        20.0f,       22.0f,        24.0f,      26.0f,        28.0f,       30.0f,
      32.0f,     36.0f,        40.0f,       44.0f,        48.0f,      52.0f,        56.0f,       60.0f,
      64.0f,     72.0f,        80.0f,       88.0f,        96.0f,      104.0f,       112.0f,      120.0f,
      128.0f,    144.0f,       160.0f,      176.0f,       192.0f,     208.0f,       224.0f,      240.0f,
      256.0f,    288.0f,       320.0f,      352.0f,       384.0f,     416.0f,       448.0f,      NAN,
  };
  for (int code = 0; code < 256; ++code) {
    const auto byte = static_cast<std::byte>(code);
    float value = 0;
    reference::dequantise_row({&value, 1}, DType::f8_e4m3, {&byte, 1});
    const float wanted = kValues[code % 128];
    if (std::isnan(wanted)) {
      EXPECT_TRUE(std::isnan(value)) << code;
    } else {
      EXPECT_EQ(value, code < 128 ? wanted : -wanted) << code;
      EXPECT_EQ(std::signbit(value), code >= 128) << code;
    }
  }
}

// Blocks of 2 x 3 in a matrix of 3 x 4: four scales, of which those at the edges have fewer elements.
TEST(BlockScales, multiply_the_elements_of_their_block) {
  const Backend backend = make_reference_backend();
  const std::vector<std::byte> ones(12, std::byte{0x38});
  const float scales[] = {0.5f, 3.0f, -2.0f, 0.1f};
  RowGroup group{"w", DType::f8_e4m3, 3, 4, ones, {scales, 2, 3}};
  const auto weight = backend.ops->pack(std::span(&group, 1));
  ASSERT_TRUE(weight.ok());
  std::vector<float> rows(12);
  const int32_t ids[] = {0, 1, 2};
  backend.ops->gather_rows(matrix_f32(rows.data(), 3, 4), **weight, ids);
  EXPECT_EQ(rows, (std::vector<float>{0.5f, 0.5f, 0.5f, 3, 0.5f, 0.5f, 0.5f, 3, -2, -2, -2, 0.1f}));

  group.scales.values = std::span(scales).first(3);
  const auto refused = backend.ops->pack(std::span(&group, 1));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::model_tensor_shape);
  EXPECT_EQ(refused.error().detail, "w: (3, 4) with 3 scales for blocks of (2, 3), needed are 4");
}

// The bookkeeping of a step, by literal values.
TEST(BeginStep, enters_new_sequences_and_derives_the_batch) {
  const Backend backend = make_reference_backend();
  Random random(1);
  Step step({{2, 2, 1}, {0, 0, 0}, {0, 3, 2}}, 16, 16, random, 1);
  BatchView& b = step.batch();
  const SeqState state = step.state();
  const int32_t a = step.slot(0);
  const int32_t c = step.slot(2);
  // Slot a changes hands: five ids, four of them prompt, two already stored.
  const int32_t count = 1;
  const int32_t tokens[] = {100, 101, 10, 11, 12, 13, 14};
  SlotUpdate update{
      .slot = a, .length = 2, .prompt_tokens = 4, .token_offset = 2, .token_count = 5, .params = {}};
  update.params.seed = 99;
  b.update_count = &count;
  b.updates = &update;
  b.update_tokens = tokens;
  state.stopped[a] = 1;
  backend.ops->begin_step(b, state);
  EXPECT_EQ(state.known[a], 5);
  EXPECT_EQ(state.length[a], 2);
  EXPECT_EQ(state.prompt_tokens[a], 4);
  EXPECT_EQ(state.stopped[a], 0);
  EXPECT_EQ(state.params[a].seed, 99u);
  const int32_t* of_c = state.ids + c * state.ctx;
  EXPECT_EQ(std::vector(b.ids, b.ids + 6), (std::vector{12, 13, of_c[0], of_c[1], of_c[2], -1}));
  EXPECT_EQ(std::vector(b.positions, b.positions + 6), (std::vector{2, 3, 0, 1, 2, -1}));
  EXPECT_EQ(std::vector(b.token_row, b.token_row + 6), (std::vector{0, 0, 2, 2, 2, -1}));
  EXPECT_EQ(std::vector(b.cu_seqlens_q, b.cu_seqlens_q + 4), (std::vector{0, 2, 2, 5}));
  EXPECT_EQ(std::vector(b.kv_lens, b.kv_lens + 3), (std::vector{4, 0, 3}));
  EXPECT_EQ(std::vector(b.logit_token, b.logit_token + 4), (std::vector{1, 3, 4, -1}));
}

TEST(CopyPages, copies_all_layers_in_order_and_nothing_else) {
  const Backend backend = make_reference_backend();
  Pool pool(KvDType::f16, 3, 2, 8, 4, 5);
  const KvView& kv = pool.view();
  Random random(2);
  for (int64_t i = 0; i < kv.pages * kv.layout.page_bytes(); ++i)
    kv.base[i] = static_cast<std::byte>(random.bits() >> 24);
  const std::vector<std::byte> before(pool.bytes().begin(), pool.bytes().end());
  BatchView b;
  const int32_t count = 2;
  const PageCopy copies[] = {{1, 3}, {3, 4}};  // the second reads what the first wrote
  b.copy_count[0] = &count;
  b.copies[0] = copies;
  backend.ops->copy_pages(kv, b, 0);
  const auto page = [&](const std::vector<std::byte>& bytes, int32_t layer, int32_t index) {
    const auto at = static_cast<int64_t>(layer * kv.layer_stride() + index * kv.layout.layer_page_bytes());
    return std::vector<std::byte>(bytes.begin() + at, bytes.begin() + at + kv.layout.layer_page_bytes());
  };
  for (int32_t layer = 0; layer < 3; ++layer) {
    for (const int32_t target : {1, 3, 4})
      EXPECT_EQ(page(pool.bytes(), layer, target), page(before, layer, 1));
    for (const int32_t kept : {0, 2}) EXPECT_EQ(page(pool.bytes(), layer, kept), page(before, layer, kept));
  }
}

}  // namespace
}  // namespace inferd
