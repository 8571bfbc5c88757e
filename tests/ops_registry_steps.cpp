// Cases of the verbs that work on a step: its bookkeeping, rotation, the KV pool, attention.
#include <cmath>

#include "ops_registry.h"

namespace inferd::test {
namespace {

constexpr KvDType kKvTypes[] = {KvDType::f32, KvDType::f16, KvDType::bf16, KvDType::q8_0};

AttentionShape shape_of(int32_t heads, int32_t kv_heads, int32_t head_dim) {
  return {heads, kv_heads, head_dim, 1.0f / std::sqrt(static_cast<float>(head_dim))};
}

std::vector<float> qkv_of(Rig& rig, int64_t tokens, const AttentionShape& shape) {
  return rig.random().floats(tokens * shape.qkv_width());
}

// ---- The step itself

void add_begin_cases(std::vector<VerbCase>& cases) {
  const auto add = [&](const std::string& what, const std::vector<StepRow>& rows, int32_t padding,
                       int32_t updates) {
    cases.push_back({.name = cat("begin_step, ", what), .verb = "begin_step", .run = [=](Rig& rig) {
                       Step step(rows, 64, 16, rig.random(), padding);
                       // Slots change hands: five ids each, four of them prompt, the row's past already
                       // stored.
                       std::vector<SlotUpdate> entering;
                       for (int32_t i = 0; i < updates; ++i) {
                         entering.push_back({.slot = step.slot(static_cast<size_t>(i)),
                                             .length = rows[static_cast<size_t>(i)].past,
                                             .prompt_tokens = 4,
                                             .token_offset = 2 + 5 * i,
                                             .token_count = 5,
                                             .params = Step::plain_params()});
                         entering.back().params.seed = rig.random().bits();
                       }
                       std::vector<int32_t> ids;
                       for (int32_t i = 0; i < 2 + 5 * updates; ++i) ids.push_back(rig.random().below(1000));
                       BatchView& b = step.batch();
                       b.update_count = &updates;
                       b.updates = entering.data();
                       b.update_tokens = ids.data();
                       const PlacedStep placed = rig.place(step);
                       rig.ops().begin_step(placed.b, placed.state);
                     }});
  };
  add("nothing", {}, 0, 0);
  add("padding alone", {}, 3, 0);
  add("one decode row", {{31, 1, 1}}, 0, 0);
  add("rows, padding rows and newcomers", {{2, 2, 1}, {1, 4, 0}, {0, 0, 0}, {0, 3, 2}, {31, 33, 1}}, 2, 2);
  std::vector<StepRow> many;
  for (int32_t i = 0; i < 33; ++i) many.push_back({i, 1 + i % 3, i % 2});
  add("33 rows", many, 1, 0);
}

void add_copy_cases(std::vector<VerbCase>& cases) {
  for (const KvDType dtype : kKvTypes) {
    for (const int32_t count : {0, 1, 2}) {
      cases.push_back({.name = cat("copy_pages, ", count, " of ", kv_dtype_name(dtype)),
                       .verb = "copy_pages",
                       .run = [=](Rig& rig) {
                         const KvLayout layout{dtype, 3, 2, 7, 5};
                         std::vector<std::byte> bytes(static_cast<size_t>(5 * layout.page_bytes()));
                         for (std::byte& byte : bytes)
                           byte = static_cast<std::byte>(rig.random().bits() >> 24);
                         Step step({}, 16, 5, rig.random());
                         const PageCopy copies[] = {{1, 3}, {3, 4}};  // the second reads what the first wrote
                         step.batch().copy_count[0] = &count;
                         step.batch().copies[0] = copies;
                         const PlacedStep placed = rig.place(step);
                         rig.ops().copy_pages(rig.pool(layout, 5, Tolerance::exact, bytes), placed.b, 0);
                       }});
    }
  }
}

// ---- Rotation and the pool

// Rows of past and new tokens, a padding row in between.
const std::vector<StepRow> kRows = {{3, 9, 0}, {0, 0, 0}, {30, 2, 0}, {15, 1, 0}};

RopeView rope_of(Rig& rig, int32_t ctx, int32_t rotary, bool neighbours) {
  return {rig.input("cos_sin", rig.random().floats(int64_t{ctx} * rotary)), rotary, neighbours};
}

void add_rope_cases(std::vector<VerbCase>& cases) {
  const auto add = [&](const std::vector<StepRow>& rows, int32_t head_dim, int32_t rotary, bool neighbours) {
    cases.push_back({.name = cat("rope, ", rows.size(), " rows, ", rotary, " of ", head_dim,
                                 neighbours ? ", neighbours" : ", halves"),
                     .verb = "rope",
                     .tolerance = Tolerance::rotation,
                     .run = [=](Rig& rig) {
                       const AttentionShape shape = shape_of(3, 1, head_dim);
                       Step step(rows, 64, 16, rig.random(), 3);
                       const PlacedStep placed = rig.place(step);
                       rig.ops().begin_step(placed.b, placed.state);
                       const RopeView rope = rope_of(rig, 64, rotary, neighbours);
                       const MatrixView qkv = rig.updated("qkv", placed.b.tokens, shape.qkv_width(),
                                                          qkv_of(rig, placed.b.tokens, shape));
                       rig.ops().rope(qkv, placed.b, rope, shape);
                     }});
  };
  for (const bool neighbours : {false, true}) {
    add({}, 32, 32, neighbours);
    for (const int32_t head_dim : {2, 16, 31, 33, 80, 128}) {
      add(kRows, head_dim, head_dim / 2 * 2, neighbours);
      if (head_dim > 30) add(kRows, head_dim, head_dim / 4 * 2, neighbours);
    }
    add(std::vector<StepRow>(33, {7, 3, 0}), 64, 64, neighbours);  // enough for more than one thread
  }
}

void add_store_case(std::vector<VerbCase>& cases, KvDType dtype, const std::vector<StepRow>& rows,
                    int32_t head_dim, int32_t page_tokens) {
  const auto call = [=](Rig& rig, bool rotate, bool fused) {
    const AttentionShape shape = shape_of(3, 1, head_dim);
    Step step(rows, 64, page_tokens, rig.random(), 2);
    const PlacedStep placed = rig.place(step);
    rig.ops().begin_step(placed.b, placed.state);
    const KvView kv = rig.pool({dtype, 2, 1, head_dim, page_tokens}, step.pages(),
                               rotate ? Tolerance::itself : Tolerance::exact);
    const std::vector<float> values = qkv_of(rig, placed.b.tokens, shape);
    constexpr int32_t kLayer = 1;
    if (!rotate) {
      rig.ops().store_kv(kv, rig.input("qkv", placed.b.tokens, shape.qkv_width(), values), placed.b, 0,
                         kLayer, shape);
      return;
    }
    const RopeView rope = rope_of(rig, 64, head_dim / 2 * 2, false);
    const MatrixView qkv = rig.updated("qkv", placed.b.tokens, shape.qkv_width(), values);
    if (fused) {
      rig.ops().rope_store_kv(qkv, kv, placed.b, 0, kLayer, rope, shape);
    } else {
      rig.ops().Ops::rope_store_kv(qkv, kv, placed.b, 0, kLayer, rope, shape);
    }
  };
  const std::string what =
      cat(", ", rows.size(), " rows of ", head_dim, " on ", kv_dtype_name(dtype), " pages of ", page_tokens);
  cases.push_back({.name = cat("store_kv", what), .verb = "store_kv", .run = [call](Rig& rig) {
                     call(rig, false, false);
                   }});
  cases.push_back({.name = cat("rope_store_kv", what),
                   .verb = "rope_store_kv",
                   .tolerance = Tolerance::rotation,
                   .run = [call](Rig& rig) { call(rig, true, true); },
                   .default_body = [call](Rig& rig) { call(rig, true, false); }});
}

// Heads that hold the ends of the number range.
VerbCase store_extremes(KvDType dtype) {
  return {.name = cat("store_kv, extreme values on ", kv_dtype_name(dtype)),
          .verb = "store_kv",
          .run = [dtype](Rig& rig) {
            const AttentionShape shape = shape_of(1, 1, 19);
            const std::vector<std::vector<float>> heads = {{0.0f, -0.0f},
                                                           {1e-40f, -1e-42f},
                                                           {1e-37f, 0x1p-120f},
                                                           {0x1.fffffep-121f, -1e-38f},
                                                           {65504.0f, 65519.9f, 65520.0f, -1e6f},
                                                           {3.4e38f, -3.4e38f, 1.0f},
                                                           {0x1p-24f, 0x1p-25f, 0x1.8p-25f, 0x1.ffcp-15f},
                                                           {1.00390625f, 1.01171875f, 1.0009765625f},
                                                           {1.0f, NAN, 2.0f},
                                                           {1.0f, -INFINITY}};
            const auto tokens = static_cast<int32_t>(heads.size());
            Step step({{0, tokens, 0}}, 16, 16, rig.random());
            const PlacedStep placed = rig.place(step);
            rig.ops().begin_step(placed.b, placed.state);
            std::vector<float> values(static_cast<size_t>(tokens * shape.qkv_width()));
            for (size_t t = 0; t < heads.size(); ++t) {
              for (size_t i = 19; i < 57; ++i) values[t * 57 + i] = heads[t][(i - 19) % heads[t].size()];
            }
            const ConstMatrixView qkv = rig.input("qkv", tokens, shape.qkv_width(), values);
            rig.ops().store_kv(rig.pool({dtype, 1, 1, 19, 16}, step.pages()), qkv, placed.b, 0, 0, shape);
          }};
}

// ---- Attention

struct AttentionCall {
  AttentionShape shape;
  KvDType dtype;
  std::vector<StepRow> rows;
  std::vector<uint64_t> sequences;  // of each row: the seed of its q, k and v
  int32_t page_tokens = 16;
  int32_t chunk = 640;  // tokens of the earlier steps that stored the past
  int32_t padding = 0;
};

constexpr int32_t kLayer = 1;

// q, k and v of the positions first … first + count of a sequence; the same whatever else is asked for.
std::vector<float> sequence_part(const AttentionCall& a, uint64_t seed, int32_t first, int32_t count) {
  std::vector<float> values;
  for (int32_t position = first; position < first + count; ++position) {
    Random random(seed << 32 | static_cast<uint64_t>(position));
    const std::vector<float> token = random.floats(a.shape.qkv_width(), -1.5f, 1.5f);
    values.insert(values.end(), token.begin(), token.end());
  }
  return values;
}

void attend(Rig& rig, const AttentionCall& a) {
  int32_t ctx = 16;
  for (const StepRow& row : a.rows) ctx = std::max(ctx, row.past + row.q_len);
  Step step(a.rows, ctx, a.page_tokens, rig.random(), a.padding);
  const BatchView& host = step.batch();
  const KvView kv = rig.pool({a.dtype, 3, a.shape.kv_heads, a.shape.head_dim, a.page_tokens}, step.pages());
  std::vector<float> values;
  for (size_t r = 0; r < a.rows.size(); ++r) {
    const StepRow& row = a.rows[r];
    if (row.q_len == 0) continue;
    for (int32_t done = 0; done < row.past; done += a.chunk) {
      const int32_t count = std::min(a.chunk, row.past - done);
      Step past({{done, count, 0}}, ctx, a.page_tokens, rig.random());
      past.batch().block_table[0] = host.block_table[0] + static_cast<int64_t>(r) * host.max_blocks[0];
      const PlacedStep placed = rig.place(past);
      rig.ops().begin_step(placed.b, placed.state);
      const ConstMatrixView qkv =
          rig.input("past", count, a.shape.qkv_width(), sequence_part(a, a.sequences[r], done, count));
      rig.ops().store_kv(kv, qkv, placed.b, 0, kLayer, a.shape);
    }
    const std::vector<float> part = sequence_part(a, a.sequences[r], row.past, row.q_len);
    values.insert(values.end(), part.begin(), part.end());
  }
  values.resize(static_cast<size_t>(host.tokens * a.shape.qkv_width()));
  // What fell out of the window may not be read any more.
  for (size_t r = 0; r < a.rows.size(); ++r)
    step.forget_pages(r, a.shape.first_seen(a.rows[r].past), a.page_tokens);
  const PlacedStep placed = rig.place(step);
  rig.ops().begin_step(placed.b, placed.state);
  const ConstMatrixView qkv = rig.input("qkv", host.tokens, a.shape.qkv_width(), values);
  rig.ops().store_kv(kv, qkv, placed.b, 0, kLayer, a.shape);
  rig.ops().attention(rig.output("out", host.tokens, int64_t{a.shape.heads} * a.shape.head_dim), qkv, kv,
                      placed.b, 0, kLayer, a.shape);
}

std::vector<uint64_t> seeds_of(size_t count) {
  std::vector<uint64_t> seeds;
  for (size_t i = 0; i < count; ++i) seeds.push_back(100 + i);
  return seeds;
}

void add_attention_cases(std::vector<VerbCase>& cases) {
  // Lengths around pages of 16, the expanded parts of 64 and the segments of 256, a padding row among them.
  const std::vector<StepRow> lengths = {{0, 1},  {14, 1},   {15, 2},  {0, 0, 0},
                                        {62, 3}, {250, 11}, {511, 1}, {512, 1}};
  const auto add = [&](const std::string& what, const AttentionShape& shape, KvDType dtype,
                       const std::vector<StepRow>& rows, int32_t page_tokens) {
    cases.push_back(
        {.name = cat("attention, ", what, ", ", shape.heads, " over ", shape.kv_heads, " heads of ",
                     shape.head_dim, " on ", kv_dtype_name(dtype), " pages of ", page_tokens),
         .verb = "attention",
         .tolerance = Tolerance::attention,
         .run = [=](Rig& rig) {
           attend(rig, {shape, dtype, rows, seeds_of(rows.size()), page_tokens, 640, 2});
         }});
  };
  for (const KvDType dtype : kKvTypes) {
    add("nothing", shape_of(2, 1, 32), dtype, {}, 16);
    add("decode over three segments", shape_of(7, 1, 64), dtype, {{600, 1}}, 16);  // segments apart
    add("one token", shape_of(2, 1, 31), dtype, {{0, 1}}, 1);
    add("31 and 33 tokens", shape_of(2, 2, 33), dtype, {{0, 31}, {1, 33}}, 5);
    add("lengths around every border", shape_of(7, 1, 64), dtype, lengths, 16);
  }
  // Windows inside a vector of 16, a page, an expanded part and a segment, around their borders, and past
  // all.
  size_t kind = 0;
  for (const int32_t window : {1, 16, 17, 40, 100, 256, 300, 600}) {
    AttentionShape shape = shape_of(7, 1, 64);
    shape.window = window;
    const KvDType dtype = kKvTypes[kind++ % 4];
    add(cat("window ", window, ", lengths around every border"), shape, dtype, lengths, 16);
    add(cat("window ", window, ", decode"), shape, dtype, {{600, 1}}, 5);
    add(cat("window ", window, ", chunk of 40"), shape, dtype, {{550, 40}}, 16);
  }
  for (const KvDType dtype : kKvTypes) {
    for (const int32_t window : {0, 100}) {
      AttentionShape shape = shape_of(4, 2, 64);
      shape.softcap = 0.5f;  // the scores' standard deviation is a little more
      shape.window = window;
      add(cat("scores capped, window ", window, ", lengths around every border"), shape, dtype, lengths, 16);
    }
  }
  size_t turn = 0;
  for (const int32_t head_dim : {24, 80, 128}) {
    for (const int32_t ratio : {1, 3}) {
      add("lengths around every border", shape_of(2 * ratio, 2, head_dim), kKvTypes[turn % 4], lengths,
          turn % 2 == 0 ? 16 : 64);
      ++turn;
    }
  }
}

}  // namespace

std::vector<VerbCase> step_cases() {
  std::vector<VerbCase> cases;
  add_begin_cases(cases);
  add_copy_cases(cases);
  add_rope_cases(cases);
  for (const KvDType dtype : kKvTypes) {
    add_store_case(cases, dtype, {}, 32, 16);
    for (const int32_t head_dim : {1, 2, 15, 16, 17, 31, 33, 128})
      add_store_case(cases, dtype, kRows, head_dim, head_dim == 33 ? 5 : 16);
    add_store_case(cases, dtype, std::vector<StepRow>(33, {7, 3, 0}), 64, 16);
    cases.push_back(store_extremes(dtype));
  }
  add_attention_cases(cases);
  return cases;
}

std::vector<std::string> Comparison::check_attention_alone(KvDType dtype, int32_t window) {
  // Small, because the portable level is slow: two segments, three heads of 32 dims.
  constexpr int32_t kLength = 300;
  AttentionShape shape = shape_of(3, 1, 32);
  shape.window = window;
  const int64_t token_bytes = int64_t{shape.heads} * shape.head_dim * 4;
  std::vector<std::string> failures;
  const auto attended = [&](const AttentionCall& a, const std::string& name) {
    Outcome outcome = run(backend_, [&a](Rig& rig) { attend(rig, a); }, name, Tolerance::itself);
    failures.insert(failures.end(), outcome.failures.begin(), outcome.failures.end());
    return std::move(outcome.outputs.back().bytes);  // "out" is asked for last
  };
  const AttentionCall whole{shape, dtype, {{0, kLength}}, {1}};
  const std::vector<std::byte> wanted = attended(whole, "whole");
  // The tokens of sequence 1 from `past` on, which lie `skip` tokens into the call's output.
  const auto expect_tail = [&](const AttentionCall& a, int32_t past, int32_t skip, const std::string& name) {
    const std::vector<std::byte> got = attended(a, name);
    const int64_t count = (kLength - past) * token_bytes;
    if (!std::equal(wanted.end() - count, wanted.end(), got.begin() + skip * token_bytes)) {
      failures.push_back(
          cat("attention ", name, ", from position ", past, ", is not that of the whole sequence at once"));
    }
  };
  for (const int32_t past : {299, 298, 257, 256, 255, 100}) {
    expect_tail({shape, dtype, {{past, kLength - past}}, {1}, 16, 37}, past, 0, "after chunks of 37");
    expect_tail({shape, dtype, {{past, kLength - past}}, {1}, 64}, past, 0, "on pages of 64");
  }
  expect_tail({shape, dtype, {{290, 10}}, {1}, 5}, 290, 0, "on pages of 5");
  expect_tail({shape, dtype, {{280, 20}, {0, 0, 0}, {290, 10}, {299, 1}}, {2, 0, 1, 2}, 16, 64}, 290, 20,
              "among others");
  return failures;
}

}  // namespace inferd::test
