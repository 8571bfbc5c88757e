// Every kernel of every instruction set level of this machine against linear_spec.h, bit for bit; bf16 dot
// products, which round x, within their error, and a row among others against the row alone bit for bit.
#include <gtest/gtest.h>

#include <cmath>

#include "cpu/cpu_backend.h"
#include "cpu/linear_spec.h"
#include "ops_random.h"
#include "support/golden.h"

namespace inferd {
namespace {

using test::GuardedMatrix;
using test::OwnedGroup;
using test::Random;

constexpr DType kTypes[] = {DType::f32,    DType::f16,   DType::bf16,   DType::q4_0, DType::q4_1,
                            DType::q5_0,   DType::q5_1,  DType::q8_0,   DType::q4_k, DType::q5_k,
                            DType::q6_k,   DType::q2_k,  DType::q3_k,   DType::q8_k, DType::iq4_nl,
                            DType::iq4_xs, DType::mxfp4, DType::f8_e4m3};

Backend backend_of(IsaLevel level, int threads) {
  auto backend = make_cpu_backend({.threads = threads, .isa = level, .pin = false});
  EXPECT_TRUE(backend.ok());
  const Status reserved = (*backend).ops->reserve({.rows = 8,
                                                   .tokens = 80,
                                                   .logit_rows = 8,
                                                   .ctx = 64,
                                                   .heads = 2,
                                                   .kv_heads = 1,
                                                   .head_dim = 16,
                                                   .linear_cols = 1024,
                                                   .linear_rows = 512,
                                                   .vocab = 64});
  EXPECT_TRUE(reserved.ok());
  return std::move(backend).value();
}

std::unique_ptr<PackedWeight> pack(Ops& ops, const std::vector<OwnedGroup>& groups) {
  std::vector<RowGroup> views;
  for (const OwnedGroup& group : groups) views.push_back(group.group);
  auto packed = ops.pack(views);
  EXPECT_TRUE(packed.ok());
  EXPECT_EQ((*packed)->bytes(), ops.packed_bytes(views));
  return std::move(packed).value();
}

// (columns, rows) by the scalar formulas.
std::vector<float> by_spec(const std::vector<OwnedGroup>& groups, const std::vector<float>& x,
                           const std::vector<float>& bias) {
  const int64_t cols = groups.front().group.cols;
  std::vector<float> y;
  for (int64_t c = 0; c < std::ssize(x) / cols; ++c) {
    int64_t row = 0;
    for (const OwnedGroup& g : groups) {
      for (int64_t r = 0; r < g.group.rows; ++r, ++row) {
        const BlockScales& scales = g.group.scales;
        const float* of_row =
            scales.values.empty()
                ? nullptr
                : scales.values.data() + r / scales.block_rows * ((cols - 1) / scales.block_cols + 1);
        const float dot = cpu::spec::row(g.group.dtype, g.bytes.data() + r * row_bytes(g.group.dtype, cols),
                                         x.data() + c * cols, cols, of_row, scales.block_cols);
        y.push_back(bias.empty() ? dot : dot + bias[static_cast<size_t>(row)]);
      }
    }
  }
  return y;
}

class Linear : public testing::TestWithParam<IsaLevel> {
 protected:
  static bool rounds_x(DType type) { return GetParam() == IsaLevel::avx512_bf16 && type == DType::bf16; }

  // The outputs of the rows of weights whose kernels round x or don't, of (columns, rows of `groups`).
  static std::vector<float> outputs(const std::vector<float>& y, const std::vector<OwnedGroup>& groups,
                                    bool rounded) {
    std::vector<float> kept;
    for (auto at = y.begin(); at != y.end();) {
      for (const OwnedGroup& g : groups) {
        if (rounds_x(g.group.dtype) == rounded) kept.insert(kept.end(), at, at + g.group.rows);
        at += g.group.rows;
      }
    }
    return kept;
  }

  // Some rows of x alone or among others must give what the formulas give, byte for byte.
  void expect_spec(Ops& ops, const std::vector<OwnedGroup>& groups, int64_t columns,
                   const std::vector<int64_t>& batches, bool with_bias, uint64_t seed) {
    Random random(seed);
    int64_t rows = 0;
    for (const OwnedGroup& g : groups) rows += g.group.rows;
    const int64_t cols = groups.front().group.cols;
    const std::vector<float> x = random.floats(columns * cols, -3, 3);
    const std::vector<float> bias = with_bias ? random.floats(rows) : std::vector<float>();
    const std::vector<float> wanted = by_spec(groups, x, bias);
    const auto weight = pack(ops, groups);
    std::vector<float> alone;
    for (int64_t c = 0; c < columns; ++c) {
      GuardedMatrix in(1, cols, std::vector<float>(x.begin() + c * cols, x.begin() + (c + 1) * cols));
      GuardedMatrix out(1, rows);
      ops.linear(out.view(), in.view(), *weight, with_bias ? bias.data() : nullptr);
      const std::vector<float> y = out.packed();
      alone.insert(alone.end(), y.begin(), y.end());
    }
    const std::vector<float> rounded = outputs(alone, groups, true);
    const std::vector<float> unrounded = outputs(wanted, groups, true);
    double error = 0;
    double square = 0;
    for (size_t i = 0; i < rounded.size(); ++i) {
      error += std::pow(double{rounded[i]} - double{unrounded[i]}, 2);
      square += std::pow(double{unrounded[i]}, 2);
    }
    EXPECT_LE(error, 1e-5 * square);  // numerics.md: rounding x to bf16 gives about 3e-6

    for (const int64_t batch : batches) {
      GuardedMatrix in(batch, cols, std::vector<float>(x.begin(), x.begin() + batch * cols));
      GuardedMatrix out(batch, rows);
      ops.linear(out.view(), in.view(), *weight, with_bias ? bias.data() : nullptr);
      const std::vector<float> got = out.packed();
      ASSERT_TRUE(test::same_bits(got, {alone.begin(), alone.begin() + batch * rows}));
      ASSERT_TRUE(test::same_bits(outputs(got, groups, false),
                                  outputs({wanted.begin(), wanted.begin() + batch * rows}, groups, false)))
          << dtype_name(groups.front().group.dtype) << ", " << rows << " rows, " << cols << " cols, " << batch
          << " columns";
      ASSERT_TRUE(out.guards_intact());
    }
  }
};

TEST_P(Linear, equals_the_formula_at_every_batch_size) {
  const Backend backend = backend_of(GetParam(), 1);
  std::vector<int64_t> batches;
  for (int64_t batch = 1; batch <= 65; ++batch) batches.push_back(batch);
  for (const DType type : kTypes) {
    Random random(7);
    std::vector<OwnedGroup> groups;
    groups.push_back(test::random_group("w", type, 19, 256, random));
    expect_spec(*backend.ops, groups, 65, batches, true, 3);
  }
}

TEST_P(Linear, equals_the_formula_at_odd_shapes) {
  const Backend backend = backend_of(GetParam(), 2);
  uint64_t seed = 10;
  for (const DType type : kTypes) {
    const int64_t block = dtype_info(type).block_elements;
    for (const int64_t rows : {1, 2, 15, 16, 17, 31, 33, 200}) {
      for (const int64_t cols : {block, 2 * block, 3 * block, int64_t{block == 256 ? 1024 : 992}}) {
        Random random(++seed);
        std::vector<OwnedGroup> groups;
        groups.push_back(test::random_group("w", type, rows, cols, random));
        expect_spec(*backend.ops, groups, 6, {1, 2, 6}, false, seed);
      }
    }
  }
  for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
    for (const int64_t cols : {1, 7, 8, 33, 255}) {
      Random random(++seed);
      std::vector<OwnedGroup> groups;
      groups.push_back(test::random_group("w", type, 70, cols, random));
      expect_spec(*backend.ops, groups, 13, {1, 2, 3, 5, 13}, true, seed);
    }
  }
}

TEST_P(Linear, takes_scales_for_blocks_of_other_sizes) {
  const Backend backend = backend_of(GetParam(), 2);
  uint64_t seed = 60;
  for (const int64_t cols : {100, 128, 129, 300, 520}) {
    for (const auto& [block_rows, block_cols] :
         {std::pair<int64_t, int64_t>{37, cols}, {1, cols}, {1, 1024}, {3, 128}, {16, 256}, {128, 128}}) {
      Random random(++seed);
      std::vector<OwnedGroup> groups;
      groups.push_back(test::random_group("w", DType::f8_e4m3, 37, cols, random));
      test::add_scales(groups.front(), block_rows, block_cols, random);
      expect_spec(*backend.ops, groups, 6, {1, 2, 6}, true, seed);
    }
  }
}

TEST_P(Linear, refuses_scales_for_columns_that_it_does_not_keep_apart) {
  const Backend backend = backend_of(GetParam(), 1);
  Random random(70);
  OwnedGroup owned = test::random_group("w", DType::f8_e4m3, 4, 256, random);
  test::add_scales(owned, 64, 64, random);
  const auto refused = backend.ops->pack(std::span(&owned.group, 1));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::model_tensor_type);
  EXPECT_EQ(refused.error().detail,
            "w: scales for blocks of 64 columns; F8_E4M3 needs a multiple of 128, or all 256");
}

TEST_P(Linear, switches_type_inside_one_weight) {
  const Backend backend = backend_of(GetParam(), 2);
  Random random(21);
  std::vector<OwnedGroup> groups;
  for (const DType type : kTypes)
    groups.push_back(test::random_group("w", type, 5 + 2 * static_cast<int>(type), 512, random));
  expect_spec(*backend.ops, groups, 33, {1, 2, 3, 4, 5, 32, 33}, true, 22);
}

TEST_P(Linear, carries_a_nan_or_an_infinity_to_every_output_of_its_row_and_to_no_other) {
  const Backend backend = backend_of(GetParam(), 1);
  for (const DType type : kTypes) {
    Random random(41);
    std::vector<OwnedGroup> groups;
    groups.push_back(test::random_group("w", type, 20, 512, random));
    const auto weight = pack(*backend.ops, groups);
    for (const float bad : {NAN, INFINITY}) {
      std::vector<float> x = random.floats(3 * 512);
      x[512 + 300] = bad;
      GuardedMatrix in(3, 512, x);
      GuardedMatrix out(3, 20);
      backend.ops->linear(out.view(), in.view(), *weight, nullptr);
      for (int64_t r = 0; r < 20; ++r) {
        EXPECT_TRUE(std::isfinite(out.row(0)[r]) && std::isfinite(out.row(2)[r])) << dtype_name(type);
        EXPECT_FALSE(std::isfinite(out.row(1)[r])) << dtype_name(type) << " row " << r;
      }
    }
  }
}

TEST_P(Linear, takes_zero_and_tiny_activations_as_zero) {
  const Backend backend = backend_of(GetParam(), 1);
  for (const DType type : kTypes) {
    if (!is_quantised(type)) continue;
    Random random(51);
    std::vector<OwnedGroup> groups;
    groups.push_back(test::random_group("w", type, 20, 256, random));
    const auto weight = pack(*backend.ops, groups);
    for (const float tiny : {0.0f, 1e-40f, 0x1.fp-121f}) {
      GuardedMatrix in(1, 256, std::vector<float>(256, tiny));
      GuardedMatrix out(1, 20);
      backend.ops->linear(out.view(), in.view(), *weight, nullptr);
      for (int64_t r = 0; r < 20; ++r) EXPECT_EQ(out.row(0)[r], 0.0f) << dtype_name(type);
    }
  }
}

// Blocks of random bytes and their values by gguf-py: what gather_rows reads back out of the packed form.
TEST_P(Linear, gathers_golden_blocks_bit_for_bit) {
  const Backend backend = backend_of(GetParam(), 1);
  for (const DType type : kTypes) {
    // No golden files: nothing to expand, or not known to gguf-py.
    if (type == DType::f32 || type == DType::q8_k || type == DType::f8_e4m3) continue;
    const auto golden = test::read_npz(cat(test::golden_dir(), "/quant/", dtype_name(type), ".npz"));
    const test::NpyArray& values = golden.at("values");
    const std::string& raw = golden.at("raw").bytes;
    const int64_t cols = values.shape.at(1);
    const RowGroup group{"w", type, 64, cols, std::as_bytes(std::span(raw))};
    auto weight = backend.ops->pack(std::span(&group, 1));
    ASSERT_TRUE(weight.ok());
    std::vector<int32_t> ids;
    for (int32_t i = 0; i < 64; ++i) ids.push_back(63 - i);
    ids.push_back(-1);
    GuardedMatrix out(65, cols);
    backend.ops->gather_rows(out.view(), **weight, ids.data());
    ASSERT_TRUE(out.guards_intact());
    for (int64_t i = 0; i < 64; ++i) {
      for (int64_t c = 0; c < cols; ++c) {
        const float wanted = values.as<float>()[(63 - i) * cols + c];
        const float got = out.row(i)[c];
        ASSERT_TRUE(std::isnan(wanted) ? std::isnan(got)
                                       : std::bit_cast<uint32_t>(wanted) == std::bit_cast<uint32_t>(got))
            << dtype_name(type) << " row " << 63 - i << " col " << c << ": " << got << ", not " << wanted;
      }
    }
    EXPECT_EQ(out.row(64)[0], GuardedMatrix::kCanary);  // id −1: nothing written
  }
}

INSTANTIATE_TEST_SUITE_P(EveryLevel, Linear, testing::ValuesIn(available_isa_levels()),
                         [](const auto& instance) { return std::string(isa_name(instance.param)); });

TEST(CpuBackend, refuses_a_level_that_the_machine_lacks) {
  const std::vector<IsaLevel> has = {IsaLevel::portable, IsaLevel::avx2};
  EXPECT_TRUE(check_isa(IsaLevel::avx2, has).ok());
  const Status refused = check_isa(IsaLevel::avx512, has);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::cpu_isa);
  EXPECT_NE(refused.error().message().find("avx512"), std::string::npos);
  for (const IsaLevel level : {IsaLevel::portable, IsaLevel::avx2, IsaLevel::avx512, IsaLevel::avx512_bf16}) {
    EXPECT_EQ(make_cpu_backend({.threads = 1, .isa = level}).ok(),
              check_isa(level, available_isa_levels()).ok());
  }
}

}  // namespace
}  // namespace inferd
