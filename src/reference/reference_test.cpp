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
