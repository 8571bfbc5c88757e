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

// All positions' K (which = 0) or V (1) of one KV head, as stored.
std::vector<std::vector<double>> stored_head(const Shape& s, const Sequence& sequence, int32_t which,
                                             int32_t kv_head) {
  std::vector<std::vector<double>> heads;
  const int64_t at = int64_t{s.shape.heads + which * s.shape.kv_heads + kv_head} * s.shape.head_dim;
  for (auto row = sequence.qkv.begin(); row != sequence.qkv.end(); row += sequence.width) {
    heads.push_back(stored(s.dtype, &*row + at, s.shape.head_dim));
  }
  return heads;
}

// One query by a plain loop in double.
std::vector<double> plain(float scale, const float* q, const std::vector<std::vector<double>>& k,
                          const std::vector<std::vector<double>>& v, size_t visible) {
  std::vector<double> scores(visible);
  for (size_t t = 0; t < visible; ++t) {
    for (size_t d = 0; d < k[t].size(); ++d)
      scores[t] += static_cast<double>(q[d]) * k[t][d] * static_cast<double>(scale);
  }
  const double largest = *std::max_element(scores.begin(), scores.end());
  double total = 0;
  std::vector<double> y(v[0].size());
  for (size_t t = 0; t < visible; ++t) {
    const double weight = std::exp(scores[t] - largest);
    total += weight;
    for (size_t d = 0; d < y.size(); ++d) y[d] += weight * v[t][d];
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
  std::vector<Shape> shapes;
  constexpr KvDType kDTypes[] = {KvDType::f32, KvDType::f16, KvDType::bf16, KvDType::q8_0};
  for (const KvDType dtype : kDTypes) shapes.push_back({shape_of(7, 1, 64), dtype});
  for (const int32_t head_dim : {24, 32, 80, 128}) {
    for (const int32_t ratio : {1, 3, 7})
      shapes.push_back({shape_of(ratio, 2, head_dim), kDTypes[shapes.size() % 4]});
  }
  uint64_t seed = 0;
  for (const Shape& s : shapes) {
    ++seed;
    // Lengths around pages of 16 tokens, vectors, expanded parts of 64 and segments of 256.
    const std::vector<StepRow> rows = {{0, 1}, {14, 1}, {15, 2}, {62, 3}, {250, 11}, {511, 1}, {512, 1}};
    std::vector<Sequence> sequences;
    for (size_t i = 0; i < rows.size(); ++i) {
      sequences.push_back(random_sequence(s.shape, rows[i].past + rows[i].q_len, seed * 100 + i));
    }
    const std::vector<float> y = run(backend, s, rows, sequences, 16, 100, seed, 2);
    double error = 0;
    int64_t first_token = 0;
    for (size_t r = 0; r < rows.size(); first_token += rows[r].q_len, ++r) {
      for (int32_t kv_head = 0; kv_head < s.shape.kv_heads; ++kv_head) {
        const auto k = stored_head(s, sequences[r], 0, kv_head);
        const auto v = stored_head(s, sequences[r], 1, kv_head);
        const int32_t ratio = s.shape.heads / s.shape.kv_heads;
        for (int32_t i = 0; i < rows[r].q_len; ++i) {
          for (int32_t head = kv_head * ratio; head < (kv_head + 1) * ratio; ++head) {
            const float* q =
                sequences[r].qkv.data() + (rows[r].past + i) * sequences[r].width + head * s.shape.head_dim;
            const float* got = y.data() + ((first_token + i) * s.shape.heads + head) * s.shape.head_dim;
            const auto wanted = plain(s.shape.scale, q, k, v, static_cast<size_t>(rows[r].past + i + 1));
            for (size_t d = 0; d < wanted.size(); ++d) {
              ASSERT_TRUE(std::isfinite(got[d]));
              error = std::max(error, std::fabs(static_cast<double>(got[d]) - wanted[d]));
            }
          }
        }
      }
    }
    // Values are up to 1.5; a float chain of 128 terms and an exponential good to 1e-7 stay well inside 1e-5.
    EXPECT_LT(error, 1e-5) << "head_dim " << s.shape.head_dim << " heads " << s.shape.heads << " "
                           << kv_dtype_name(s.dtype);
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
