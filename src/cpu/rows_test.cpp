// Row verbs and the bookkeeping of a step: against plain loops in double, and every level against the
// portable one, byte for byte.
#include <gtest/gtest.h>

#include <cmath>

#include "cpu/cpu_backend.h"
#include "ops_batch.h"

namespace inferd {
namespace {

using test::GuardedMatrix;
using test::Pool;
using test::Random;
using test::Step;

Backend backend_of(IsaLevel level, int threads = 2) {
  auto backend = make_cpu_backend({.threads = threads, .isa = level, .pin = false});
  EXPECT_TRUE(backend.ok());
  return std::move(backend).value();
}

// Columns around vectors of 8 and 16 and their tails; rows enough for more than one thread.
constexpr int64_t kCols[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 64, 577};
constexpr int64_t kRows = 40;

class Rows : public testing::TestWithParam<IsaLevel> {};

TEST_P(Rows, rmsnorm_and_its_fused_form_equal_the_definition) {
  const Backend backend = backend_of(GetParam());
  for (const int64_t cols : kCols) {
    Random random(1);
    const std::vector<float> x = random.floats(kRows * cols, -4, 4);
    const std::vector<float> h = random.floats(kRows * cols, -4, 4);
    const std::vector<float> weight = random.floats(cols, 0.5f, 1.5f);
    GuardedMatrix stream(kRows, cols, x);
    GuardedMatrix added(kRows, cols, h);
    GuardedMatrix y(kRows, cols);
    backend.ops->add_rmsnorm(y.view(), stream.view(), added.view(), weight.data(), 1e-5f);
    for (int64_t r = 0; r < kRows; ++r) {
      double squares = 0;
      std::vector<double> sums;
      for (int64_t c = 0; c < cols; ++c) {
        sums.push_back(
            static_cast<double>(x[static_cast<size_t>(r * cols + c)] + h[static_cast<size_t>(r * cols + c)]));
        squares += sums.back() * sums.back();
      }
      for (int64_t c = 0; c < cols; ++c) {
        const auto i = static_cast<size_t>(c);
        const double wanted =
            sums[i] / std::sqrt(squares / static_cast<double>(cols) + 1e-5) * static_cast<double>(weight[i]);
        EXPECT_FLOAT_EQ(stream.row(r)[c], static_cast<float>(sums[i]));
        // A chain of up to 37 squares, one root and three products: a few units in the last place.
        EXPECT_NEAR(y.row(r)[c], wanted, 2e-6 * std::max(1.0, std::fabs(wanted))) << cols;
      }
    }
    EXPECT_TRUE(stream.guards_intact() && y.guards_intact());
    // Apart, and with y in place of h.
    GuardedMatrix apart(kRows, cols, x);
    GuardedMatrix z(kRows, cols);
    backend.ops->add(apart.view(), added.view());
    backend.ops->rmsnorm(z.view(), apart.view(), weight.data(), 1e-5f);
    EXPECT_TRUE(test::same_bits(y.packed(), z.packed())) << cols;
    EXPECT_TRUE(test::same_bits(stream.packed(), apart.packed())) << cols;
    GuardedMatrix again(kRows, cols, x);
    backend.ops->add_rmsnorm(added.view(), again.view(), added.view(), weight.data(), 1e-5f);
    EXPECT_TRUE(test::same_bits(added.packed(), y.packed())) << cols;
    backend.ops->rmsnorm(apart.view(), apart.view(), weight.data(), 1e-5f);
    EXPECT_TRUE(test::same_bits(apart.packed(), z.packed())) << "in place, " << cols;
  }
}

TEST_P(Rows, silu_mul_equals_the_definition_from_minus_to_plus_infinity) {
  const Backend backend = backend_of(GetParam());
  std::vector<float> gate;
  for (float z = -120; z <= 120; z += 0.37f) gate.push_back(z);
  gate.push_back(0);
  gate.push_back(-0.0f);
  gate.push_back(1e30f);
  gate.push_back(-1e30f);
  gate.push_back(INFINITY);
  gate.push_back(NAN);
  const int64_t cols = std::ssize(gate);
  std::vector<float> both = gate;
  for (int64_t i = 0; i < cols; ++i) both.push_back(i % 2 == 0 ? 1.0f : -0.5f);
  GuardedMatrix in(1, 2 * cols, both);
  GuardedMatrix y(1, cols);
  backend.ops->silu_mul(y.view(), in.view());
  EXPECT_TRUE(y.guards_intact());
  for (int64_t i = 0; i < cols; ++i) {
    const double z = static_cast<double>(gate[static_cast<size_t>(i)]);
    const double wanted = z / (1 + std::exp(-z)) * (i % 2 == 0 ? 1.0 : -0.5);
    if (std::isnan(wanted)) {
      EXPECT_TRUE(std::isnan(y.row(0)[i])) << z;
    } else if (std::isinf(wanted)) {
      EXPECT_EQ(y.row(0)[i], static_cast<float>(wanted)) << z;
    } else {
      // The exponential is within 1.5 units in the last place. Below −88 the true value is under 1e-36 and
      // may be anything that small; −1e30 comes out as −1e30 / e^88, still nothing beside other activations.
      EXPECT_NEAR(y.row(0)[i], wanted, std::max(4e-7 * std::fabs(wanted), z < -1e3 ? 1e-8 : 1e-35)) << z;
    }
  }
}

TEST_P(Rows, rope_rotates_both_kinds_of_pairs_and_leaves_the_rest) {
  const Backend backend = backend_of(GetParam());
  for (const bool neighbours : {false, true}) {
    for (const int32_t head_dim : {16, 32, 80}) {
      for (const int32_t rotary : {head_dim, head_dim / 2, 6}) {
        const AttentionShape shape{3, 2, head_dim, 1};
        Random random(5);
        Step step({{0, 9, 0}, {30, 2, 0}}, 64, 16, random, 3);
        backend.ops->begin_step(step.batch(), step.state());
        const std::vector<float> table = random.floats(int64_t{64} * rotary);
        const std::vector<float> x = random.floats(int64_t{14} * shape.qkv_width());
        GuardedMatrix qkv(14, shape.qkv_width(), x);
        backend.ops->rope(qkv.view(), step.batch(), {table.data(), rotary, neighbours}, shape);
        EXPECT_TRUE(qkv.guards_intact());
        for (int64_t t = 0; t < 14; ++t) {
          std::vector<double> wanted(x.begin() + t * shape.qkv_width(),
                                     x.begin() + (t + 1) * shape.qkv_width());
          const int32_t position = t < 9    ? static_cast<int32_t>(t)
                                   : t < 11 ? static_cast<int32_t>(t + 21)
                                            : -1;
          for (int32_t head = 0; position >= 0 && head < 5; ++head) {
            for (int32_t p = 0; p < rotary / 2; ++p) {
              double& a = wanted[static_cast<size_t>(head * head_dim + (neighbours ? 2 * p : p))];
              double& b =
                  wanted[static_cast<size_t>(head * head_dim + (neighbours ? 2 * p + 1 : p + rotary / 2))];
              const double c = static_cast<double>(table[static_cast<size_t>(position * rotary + 2 * p)]);
              const double s = static_cast<double>(table[static_cast<size_t>(position * rotary + 2 * p + 1)]);
              const double old = a;
              a = old * c - b * s;
              b = b * c + old * s;
            }
          }
          for (int64_t i = 0; i < shape.qkv_width(); ++i) {
            // Two products of numbers below one.
            ASSERT_NEAR(qkv.row(t)[i], wanted[static_cast<size_t>(i)], 3e-7)
                << t << " " << i << " " << neighbours;
          }
        }
      }
    }
  }
}

TEST_P(Rows, the_fused_rope_and_store_equals_its_parts) {
  const Backend backend = backend_of(GetParam());
  for (const KvDType dtype : {KvDType::f32, KvDType::f16, KvDType::bf16, KvDType::q8_0}) {
    const AttentionShape shape{3, 2, 40, 1};
    Random random(6);
    Step step({{3, 40, 0}, {0, 0, 0}, {17, 1, 0}}, 64, 16, random, 2);
    backend.ops->begin_step(step.batch(), step.state());
    const std::vector<float> table = random.floats(int64_t{64} * 40);
    const std::vector<float> x = random.floats(int64_t{43} * shape.qkv_width());
    const RopeView rope{table.data(), 40, false};
    GuardedMatrix apart(43, shape.qkv_width(), x);
    GuardedMatrix fused(43, shape.qkv_width(), x);
    Pool apart_pool(dtype, 2, 2, 40, 16, step.pages());
    Pool fused_pool(dtype, 2, 2, 40, 16, step.pages());
    backend.ops->rope(apart.view(), step.batch(), rope, shape);
    backend.ops->store_kv(apart_pool.view(), apart.view(), step.batch(), 0, 1, shape);
    backend.ops->rope_store_kv(fused.view(), fused_pool.view(), step.batch(), 0, 1, rope, shape);
    EXPECT_TRUE(test::same_bits(apart.packed(), fused.packed()));
    EXPECT_TRUE(apart_pool.bytes() == fused_pool.bytes()) << kv_dtype_name(dtype);
    EXPECT_TRUE(fused.guards_intact());
    // The other layer is untouched.
    const KvView& kv = fused_pool.view();
    EXPECT_TRUE(
        std::all_of(kv.base, kv.base + kv.layer_stride(), [](std::byte b) { return b == std::byte{0xFF}; }));
  }
}

TEST_P(Rows, select_rows_and_gather_skip_padding) {
  const Backend backend = backend_of(GetParam());
  Random random(7);
  const std::vector<float> x = random.floats(50 * 600);
  GuardedMatrix in(50, 600, x);
  GuardedMatrix y(60, 600);
  std::vector<int32_t> index;
  for (int32_t i = 0; i < 60; ++i) index.push_back(i % 7 == 3 ? -1 : (i * 13) % 50);
  backend.ops->select_rows(y.view(), in.view(), index.data());
  EXPECT_TRUE(y.guards_intact());
  for (int64_t i = 0; i < 60; ++i) {
    const int32_t from = index[static_cast<size_t>(i)];
    EXPECT_EQ(y.row(i)[599], from < 0 ? GuardedMatrix::kCanary : x[static_cast<size_t>(from * 600 + 599)]);
  }
}

INSTANTIATE_TEST_SUITE_P(EveryLevel, Rows, testing::ValuesIn(available_isa_levels()),
                         [](const auto& instance) { return std::string(isa_name(instance.param)); });

TEST(RowLevels, all_give_the_same_bytes) {
  for (const int64_t cols : kCols) {
    std::vector<std::vector<float>> results;
    std::vector<std::vector<std::byte>> pools;
    for (const IsaLevel level : available_isa_levels()) {
      const Backend backend = backend_of(level, 1);
      Random random(11);
      std::vector<float> all;
      const auto take = [&all](GuardedMatrix& m) {
        const std::vector<float> y = m.packed();
        all.insert(all.end(), y.begin(), y.end());
      };
      GuardedMatrix x(5, cols, random.floats(5 * cols, -9, 9));
      GuardedMatrix h(5, cols, random.floats(5 * cols, -9, 9));
      const std::vector<float> weight = random.floats(cols);
      GuardedMatrix y(5, cols);
      backend.ops->add_rmsnorm(y.view(), x.view(), h.view(), weight.data(), 1e-6f);
      take(x);
      take(y);
      GuardedMatrix gate_up(5, 2 * cols, random.floats(10 * cols, -100, 100));
      backend.ops->silu_mul(y.view(), gate_up.view());
      take(y);
      const auto head_dim = static_cast<int32_t>(cols);
      const AttentionShape shape{2, 1, head_dim, 1};
      Step step({{3, 5, 0}}, 16, 16, random);
      backend.ops->begin_step(step.batch(), step.state());
      const std::vector<float> table = random.floats(16 * cols);
      for (const bool neighbours : {false, true}) {
        GuardedMatrix qkv(5, shape.qkv_width(), random.floats(5 * shape.qkv_width(), -9, 9));
        backend.ops->rope(qkv.view(), step.batch(), {table.data(), head_dim / 2 * 2, neighbours}, shape);
        take(qkv);
        std::vector<std::byte> bytes;
        for (const KvDType dtype : {KvDType::f32, KvDType::f16, KvDType::bf16, KvDType::q8_0}) {
          Pool pool(dtype, 1, 1, head_dim, 16, step.pages());
          backend.ops->store_kv(pool.view(), qkv.view(), step.batch(), 0, 0, shape);
          bytes.insert(bytes.end(), pool.bytes().begin(), pool.bytes().end());
        }
        pools.push_back(bytes);
      }
      results.push_back(all);
    }
    for (size_t i = 1; i < results.size(); ++i) {
      EXPECT_TRUE(test::same_bits(results[i], results[0])) << cols << " cols, level " << i;
      EXPECT_TRUE(pools[2 * i] == pools[0] && pools[2 * i + 1] == pools[1]) << cols << " cols, level " << i;
    }
  }
}

TEST(BeginStep, enters_new_sequences_and_derives_the_batch) {
  const Backend backend = backend_of(IsaLevel::portable);
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
  const Backend backend = backend_of(IsaLevel::portable);
  Pool pool(KvDType::f16, 3, 2, 8, 4, 5);
  const KvView& kv = pool.view();
  Random random(2);
  for (int64_t i = 0; i < kv.pages * kv.layout.page_bytes(); ++i)
    kv.base[i] = static_cast<std::byte>(random.bits() >> 24);
  const std::vector<std::byte> before = pool.bytes();
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
