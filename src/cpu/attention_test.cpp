// Attention on the CPU: against a plain double loop over the stored K and V, and against itself, byte for
// byte: every instruction set level, chunk, batch, page size and number of threads.
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
using test::StepRow;

struct Shape {
  AttentionShape shape;
  KvDType dtype;
};

Backend backend_of(IsaLevel level, int threads, int32_t ctx) {
  auto backend = make_cpu_backend({.threads = threads, .isa = level, .pin = false});
  EXPECT_TRUE(backend.ok());
  EXPECT_TRUE((*backend)
                  .ops
                  ->reserve({.rows = 8,
                             .tokens = 1024,
                             .logit_rows = 8,
                             .ctx = ctx,
                             .heads = 16,
                             .kv_heads = 4,
                             .head_dim = 128,
                             .linear_cols = 256,
                             .linear_rows = 256,
                             .vocab = 64})
                  .ok());
  return std::move(backend).value();
}

// q, k and v of every position of one sequence.
struct Sequence {
  int64_t width;
  std::vector<float> qkv;
};

Sequence random_sequence(const AttentionShape& shape, int32_t length, uint64_t seed) {
  Random random(seed);
  return {shape.qkv_width(), random.floats(int64_t{length} * shape.qkv_width(), -1.5f, 1.5f)};
}

// What attention gives for `rows` of sequences, run as one step after the past was stored by earlier steps of
// `chunk` tokens. Result: (tokens of the step, heads · head_dim).
std::vector<float> run(const Backend& backend, const Shape& s, const std::vector<StepRow>& rows,
                       const std::vector<Sequence>& sequences, int32_t page_tokens, int32_t chunk,
                       uint64_t seed, int32_t padding = 0) {
  Random random(seed);
  int32_t ctx = 16;
  for (const StepRow& row : rows) ctx = std::max(ctx, row.past + row.q_len);
  // The pool must be the same for the past and for the step, so the tables are made for the step.
  Step step(rows, ctx, page_tokens, random, padding);
  Pool pool(s.dtype, 3, s.shape.kv_heads, s.shape.head_dim, page_tokens, step.pages());
  const AttentionShape& shape = s.shape;
  BatchView& b = step.batch();
  const SeqState state = step.state();
  constexpr int32_t kLayer = 1;

  // Store the past through a batch of one row that borrows the step's table.
  for (size_t r = 0; r < rows.size(); ++r) {
    for (int32_t done = 0; done < rows[r].past; done += chunk) {
      const int32_t count = std::min(chunk, rows[r].past - done);
      Step past({{done, count, 0}}, ctx, page_tokens, random);
      BatchView& pb = past.batch();
      pb.block_table[0] = b.block_table[0] + static_cast<int64_t>(r) * b.max_blocks[0];
      pb.max_blocks[0] = b.max_blocks[0];
      backend.ops->begin_step(pb, past.state());
      const float* at = sequences[r].qkv.data() + done * sequences[r].width;
      GuardedMatrix qkv(count, sequences[r].width, std::vector<float>(at, at + count * sequences[r].width));
      backend.ops->store_kv(pool.view(), qkv.view(), pb, 0, kLayer, shape);
    }
  }
  backend.ops->begin_step(b, state);
  GuardedMatrix qkv(b.tokens, shape.qkv_width());
  GuardedMatrix out(b.tokens, int64_t{shape.heads} * shape.head_dim);
  for (int32_t t = 0; t < b.tokens; ++t) {
    if (b.token_row[t] < 0) continue;
    const Sequence& sequence = sequences[static_cast<size_t>(b.token_row[t])];
    std::copy_n(sequence.qkv.data() + b.positions[t] * sequence.width, sequence.width, qkv.row(t));
  }
  backend.ops->store_kv(pool.view(), qkv.view(), b, 0, kLayer, shape);
  backend.ops->attention(out.view(), qkv.view(), pool.view(), b, 0, kLayer, shape);
  EXPECT_TRUE(out.guards_intact());
  for (int32_t t = b.tokens - padding; t < b.tokens; ++t) EXPECT_EQ(out.row(t)[0], GuardedMatrix::kCanary);
  std::vector<float> y = out.packed();
  y.resize(static_cast<size_t>((b.tokens - padding) * shape.heads * shape.head_dim));
  return y;
}

// K or V as the pool's type keeps it.
std::vector<double> stored(KvDType type, const float* x, int32_t n) {
  std::vector<double> out(static_cast<size_t>(n));
  float largest = 0;
  for (int32_t d = 0; d < n; ++d) largest = std::max(largest, std::fabs(x[d]));
  for (int32_t d = 0; d < n; ++d) {
    double& y = out[static_cast<size_t>(d)];
    switch (type) {
      case KvDType::f32:
        y = static_cast<double>(x[d]);
        break;
      case KvDType::f16:
        y = static_cast<double>(f16_to_f32(f32_to_f16(x[d])));
        break;
      case KvDType::bf16:
        y = static_cast<double>(bf16_to_f32(f32_to_bf16(x[d])));
        break;
      case KvDType::q8_0:
        y = std::nearbyint(static_cast<double>(x[d] * (127.0f / largest))) *
            static_cast<double>(largest / 127.0f);
        break;
    }
  }
  return out;
}

// One query by a plain loop in double.
std::vector<double> plain(const Shape& s, const Sequence& sequence, int32_t position, int32_t head) {
  const int32_t dim = s.shape.head_dim;
  const int32_t kv_head = head / (s.shape.heads / s.shape.kv_heads);
  const auto at = [&](int32_t t, int32_t which) {
    return sequence.qkv.data() + t * sequence.width + int64_t{which} * dim;
  };
  std::vector<double> scores;
  for (int32_t t = 0; t <= position; ++t) {
    const std::vector<double> k = stored(s.dtype, at(t, s.shape.heads + kv_head), dim);
    double score = 0;
    for (int32_t d = 0; d < dim; ++d)
      score += static_cast<double>(at(position, head)[d]) * k[static_cast<size_t>(d)];
    scores.push_back(score * static_cast<double>(s.shape.scale));
  }
  const double largest = *std::max_element(scores.begin(), scores.end());
  double total = 0;
  std::vector<double> y(static_cast<size_t>(dim));
  for (int32_t t = 0; t <= position; ++t) {
    const double weight = std::exp(scores[static_cast<size_t>(t)] - largest);
    const std::vector<double> v = stored(s.dtype, at(t, s.shape.heads + s.shape.kv_heads + kv_head), dim);
    total += weight;
    for (int32_t d = 0; d < dim; ++d) y[static_cast<size_t>(d)] += weight * v[static_cast<size_t>(d)];
  }
  for (double& value : y) value /= total;
  return y;
}

AttentionShape shape_of(int32_t ratio, int32_t kv_heads, int32_t head_dim) {
  return {ratio * kv_heads, kv_heads, head_dim, 1.0f / std::sqrt(static_cast<float>(head_dim))};
}

class Attention : public testing::TestWithParam<IsaLevel> {};

TEST_P(Attention, equals_a_plain_loop_in_double) {
  const Backend backend = backend_of(GetParam(), 2, 700);
  int32_t seed = 0;
  for (const int32_t head_dim : {32, 64, 80, 128, 24}) {
    for (const int32_t ratio : {1, 3, 7}) {
      for (const KvDType dtype : {KvDType::f32, KvDType::f16, KvDType::bf16, KvDType::q8_0}) {
        ++seed;
        const Shape s{shape_of(ratio, 2, head_dim), dtype};
        // Lengths around pages of 16 tokens, vectors, expanded parts of 64 and segments of 256.
        const std::vector<StepRow> rows = {
            {0, 1}, {14, 1}, {15, 2}, {62, 3}, {255, 1}, {250, 11}, {511 + seed % 2, 1}};
        std::vector<Sequence> sequences;
        for (size_t i = 0; i < rows.size(); ++i) {
          sequences.push_back(
              random_sequence(s.shape, rows[i].past + rows[i].q_len, static_cast<uint64_t>(seed) * 100 + i));
        }
        const std::vector<float> y =
            run(backend, s, rows, sequences, 16, 100, static_cast<uint64_t>(seed), 2);
        double error = 0;
        size_t at = 0;
        for (size_t r = 0; r < rows.size(); ++r) {
          for (int32_t i = 0; i < rows[r].q_len; ++i) {
            for (int32_t head = 0; head < s.shape.heads; ++head) {
              for (const double wanted : plain(s, sequences[r], rows[r].past + i, head)) {
                ASSERT_TRUE(std::isfinite(y[at]));
                error = std::max(error, std::fabs(static_cast<double>(y[at++]) - wanted));
              }
            }
          }
        }
        // Values are up to 1.5; a float chain of 128 terms and an exponential good to 1e-7 stay well inside
        // 1e-5.
        EXPECT_LT(error, 1e-5) << "head_dim " << head_dim << " ratio " << ratio << " "
                               << kv_dtype_name(dtype);
      }
    }
  }
}

// The bits of a token depend on its sequence only.
TEST_P(Attention, gives_the_same_bytes_alone_batched_chunked_and_on_any_pages_and_threads) {
  // Small, because the portable level is slow: two segments, three heads of 32 dims.
  constexpr int32_t kLength = 300;
  for (const KvDType dtype : {KvDType::f32, KvDType::bf16, KvDType::q8_0}) {
    const Shape s{shape_of(3, 1, 32), dtype};
    const int64_t width = int64_t{s.shape.heads} * s.shape.head_dim;
    const Sequence sequence = random_sequence(s.shape, kLength, 77);
    const Backend one = backend_of(GetParam(), 1, kLength);
    const std::vector<float> whole = run(one, s, {{0, kLength}}, {sequence}, 16, 16, 1);
    const auto expect_tail = [&](const std::vector<float>& y, size_t skip, int32_t past, const char* what) {
      const std::vector<float> wanted(whole.begin() + past * width, whole.end());
      const auto begin = y.begin() + static_cast<int64_t>(skip);
      ASSERT_TRUE(test::same_bits({begin, begin + std::ssize(wanted)}, wanted)) << what << ", past " << past;
    };
    for (const int threads : {1, 2, 5}) {
      const Backend backend = backend_of(GetParam(), threads, kLength);
      for (const int32_t past : {299, 298, 257, 256, 255, 100}) {
        expect_tail(run(backend, s, {{past, kLength - past}}, {sequence}, 16, 37, 5), 0, past, "alone");
        expect_tail(run(backend, s, {{past, kLength - past}}, {sequence}, 64, kLength, 6), 0, past,
                    "pages of 64");
      }
      expect_tail(run(backend, s, {{290, 10}}, {sequence}, 5, kLength, 7), 0, 290, "pages of 5");
      const Sequence other = random_sequence(s.shape, kLength, 78);
      const std::vector<float> batched = run(backend, s, {{280, 20}, {0, 0, 0}, {290, 10}, {299, 1}},
                                             {other, sequence, sequence, other}, 16, 64, 8);
      expect_tail(batched, static_cast<size_t>(20 * width), 290, "batched");
    }
  }
}

TEST(AttentionLevels, all_give_the_same_bytes) {
  const std::vector<IsaLevel> levels = available_isa_levels();
  for (const KvDType dtype : {KvDType::f32, KvDType::f16, KvDType::bf16, KvDType::q8_0}) {
    for (const int32_t head_dim : {24, 64, 80, 128}) {
      const Shape s{shape_of(7, 1, head_dim), dtype};
      const Sequence sequence = random_sequence(s.shape, 280, 99);
      std::vector<float> first;
      for (const IsaLevel level : levels) {
        const Backend backend = backend_of(level, 1, 280);
        const std::vector<float> y = run(backend, s, {{240, 40}}, {sequence}, 16, 280, 3);
        if (first.empty()) first = y;
        EXPECT_TRUE(test::same_bits(y, first))
            << isa_name(level) << " " << kv_dtype_name(dtype) << " " << head_dim;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryLevel, Attention, testing::ValuesIn(available_isa_levels()),
                         [](const auto& instance) { return std::string(isa_name(instance.param)); });

}  // namespace
}  // namespace inferd
