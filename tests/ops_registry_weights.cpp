// Cases of the verbs over packed weights, for every weight type.
#include <cmath>

#include "ops_registry.h"

namespace inferd::test {
namespace {

constexpr DType kTypes[] = {DType::f32,    DType::f16,   DType::bf16,   DType::q4_0, DType::q4_1,
                            DType::q5_0,   DType::q5_1,  DType::q8_0,   DType::q4_k, DType::q5_k,
                            DType::q6_k,   DType::q2_k,  DType::q3_k,   DType::q8_k, DType::iq4_nl,
                            DType::iq4_xs, DType::mxfp4, DType::f8_e4m3};

// A linear's x: none, one, two; around panels of 8 and 32.
constexpr int64_t kBatches[] = {0, 1, 2, 7, 31, 33};

std::vector<OwnedGroup> one_group(DType type, int64_t rows, int64_t cols, Random& random) {
  std::vector<OwnedGroup> groups;
  groups.push_back(random_group("w", type, rows, cols, random));
  return groups;
}

// All types in one weight, as files mix them.
std::vector<OwnedGroup> every_type(Random& random) {
  std::vector<OwnedGroup> groups;
  for (const DType type : kTypes) {
    groups.push_back(
        random_group(cat("w.", dtype_name(type)), type, 5 + 2 * static_cast<int>(type), 512, random));
  }
  return groups;
}

// One weight with every batch; all outputs together are held to the bound, as a single one may be any size
// when its terms cancel.
void linears(Rig& rig, std::vector<OwnedGroup> groups, bool with_bias, std::span<const int64_t> batches) {
  const auto weight = rig.pack(std::move(groups));
  const std::vector<float> bias = rig.random().floats(weight->rows());
  const float* bias_at = with_bias ? rig.input("bias", bias) : nullptr;
  for (const int64_t m : batches) {
    const ConstMatrixView x =
        rig.input(cat("x of ", m), m, weight->cols(), rig.random().floats(m * weight->cols(), -3, 3));
    rig.ops().linear(rig.output(cat("y of ", m), m, weight->rows()), x, *weight, bias_at);
  }
}

void add_linear_cases(std::vector<VerbCase>& cases, DType type) {
  const int64_t block = dtype_info(type).block_elements;
  const auto add = [&](int64_t rows, int64_t cols, bool with_bias) {
    cases.push_back({.name = cat("linear ", dtype_name(type), ", ", rows, " rows of ", cols,
                                 with_bias ? " with bias" : ""),
                     .verb = "linear",
                     .weight = type,
                     .tolerance = is_quantised(type)    ? Tolerance::int8_activations
                                  : type == DType::bf16 ? Tolerance::bf16_weights
                                                        : Tolerance::float_weights,
                     .run = [=](Rig& rig) {
                       linears(rig, one_group(type, rows, cols, rig.random()), with_bias, kBatches);
                     }});
  };
  // Rows around tiles of 16; cols of one block, two, five, or any number.
  const std::vector<int64_t> cols = block == 1    ? std::vector<int64_t>{1, 2, 31, 33, 255, 257}
                                    : block == 32 ? std::vector<int64_t>{32, 64, 96, 992, 1024, 1056}
                                                  : std::vector<int64_t>{256, 512, 768, 1280};
  constexpr int64_t kRows[] = {1, 2, 15, 16, 17, 31, 33};
  size_t at = 0;
  for (const int64_t rows : kRows) {
    add(rows, cols[at % cols.size()], at % 2 == 0);
    ++at;
  }
  for (const int64_t c : cols) add(19, c, ++at % 2 == 0);
  add(200, 512, true);
}

// Scales for a whole tensor, for each output, and none.
void add_scale_cases(std::vector<VerbCase>& cases) {
  constexpr int64_t kRows = 200;
  constexpr int64_t kCols = 515;
  for (const int64_t block_rows : {kRows, int64_t{1}, int64_t{0}}) {
    const std::string scales = block_rows == kRows ? "one scale"
                               : block_rows == 1   ? "a scale a row"
                                                   : "no scales";
    cases.push_back({.name = cat("linear F8_E4M3 with ", scales),
                     .verb = "linear",
                     .weight = DType::f8_e4m3,
                     .tolerance = Tolerance::float_weights,
                     .run = [=](Rig& rig) {
                       std::vector<OwnedGroup> groups = one_group(DType::f8_e4m3, kRows, kCols, rig.random());
                       groups.front().group.scales = {};
                       if (block_rows > 0) add_scales(groups.front(), block_rows, kCols, rig.random());
                       linears(rig, std::move(groups), true, kBatches);
                     }});
  }
}

void add_gather_cases(std::vector<VerbCase>& cases, DType type) {
  const int64_t block = dtype_info(type).block_elements;
  for (const int64_t cols : {block, 3 * block, block == 1 ? int64_t{33} : 2 * block}) {
    for (const int32_t count : {0, 1, 33}) {
      cases.push_back({.name = cat("gather_rows ", dtype_name(type), ", ", count, " rows of ", cols),
                       .verb = "gather_rows",
                       .weight = type,
                       .run = [=](Rig& rig) {
                         const auto table = rig.pack(one_group(type, 37, cols, rig.random()));
                         std::vector<int32_t> ids;
                         for (int32_t i = 0; i < count; ++i)
                           ids.push_back(i % 7 == 4 ? -1 : rig.random().below(37));
                         if (count > 2) ids[1] = 36;
                         rig.ops().gather_rows(rig.output("x", count, cols), *table, rig.input("ids", ids));
                       }});
    }
  }
}

// Rig::pack holds the weight against the groups; what gather_rows reads back is what was packed.
void add_pack_cases(std::vector<VerbCase>& cases) {
  for (const std::string_view verb : {"pack", "packed_bytes"}) {
    cases.push_back({.name = cat(verb, " of every type at once"), .verb = verb, .run = [](Rig& rig) {
                       const auto weight = rig.pack(every_type(rig.random()));
                       std::vector<int32_t> ids;
                       for (int32_t i = 0; i < weight->rows(); ++i) ids.push_back(i);
                       rig.ops().gather_rows(rig.output("rows", weight->rows(), weight->cols()), *weight,
                                             rig.input("ids", ids));
                     }});
  }
  cases.push_back(
      {.name = "pack refuses rows that are no whole blocks", .verb = "pack", .run = [](Rig& rig) {
         const RowGroup group{"blk.0.ffn_up.weight", DType::q4_k, 1, 300, {}};
         const auto packed = rig.ops().pack(std::span(&group, 1));
         rig.expect(!packed.ok() && packed.error().code == Code::model_tensor_type, "E-MODEL-006");
         rig.expect(!packed.ok() && packed.error().message().find("blk.0.ffn_up.weight") != std::string::npos,
                    "the message names the group");
       }});
  for (const std::string_view verb : {"scratch_bytes", "reserve"}) {
    cases.push_back({.name = cat(verb, " for other limits"),
                     .verb = verb,
                     .tolerance = Tolerance::int8_activations,
                     .run = [](Rig& rig) {
                       OpsLimits limits = registry_limits();
                       limits.tokens = limits.logit_rows = 3;
                       limits.linear_cols = 512;
                       rig.expect(
                           rig.ops().scratch_bytes(limits) <= rig.ops().scratch_bytes(registry_limits()),
                           "less for less");
                       rig.expect(rig.ops().reserve(limits).ok(), "room for less");
                       linears(rig, every_type(rig.random()), true, std::array<int64_t, 2>{1, 3});
                       rig.expect(rig.ops().reserve(registry_limits()).ok(), "room for more again");
                       linears(rig, every_type(rig.random()), true, std::array<int64_t, 1>{33});
                     }});
  }
}

}  // namespace

std::vector<VerbCase> weight_cases() {
  std::vector<VerbCase> cases;
  for (const DType type : kTypes) {
    add_linear_cases(cases, type);
    add_gather_cases(cases, type);
  }
  add_scale_cases(cases);
  cases.push_back({.name = "linear of every type at once",
                   .verb = "linear",
                   .tolerance = Tolerance::int8_activations,
                   .run = [](Rig& rig) { linears(rig, every_type(rig.random()), true, kBatches); }});
  add_pack_cases(cases);
  return cases;
}

std::vector<std::string> Comparison::check_batch_sizes(const std::vector<DType>& types) {
  constexpr int64_t kMost = 65;
  constexpr int64_t kRows = 19;
  constexpr int64_t kCols = 256;
  const auto body = [&](Rig& rig) {
    std::vector<OwnedGroup> groups;
    for (const DType type : types) groups.push_back(random_group("w", type, kRows, kCols, rig.random()));
    const auto weight = rig.pack(std::move(groups));
    const float* bias = rig.input("bias", rig.random().floats(weight->rows()));
    const ConstMatrixView x = rig.input("x", kMost, kCols, rig.random().floats(kMost * kCols, -3, 3));
    for (int64_t row = 0; row < kMost; ++row) {
      const ConstMatrixView alone{x.row_f32(row), DType::f32, 1, kCols, x.stride};
      rig.ops().linear(rig.output("alone", 1, weight->rows()), alone, *weight, bias);
    }
    for (int64_t m = 1; m <= kMost; ++m) {
      const ConstMatrixView first{x.data, DType::f32, m, kCols, x.stride};
      rig.ops().linear(rig.output("batch", m, weight->rows()), first, *weight, bias);
    }
  };
  Outcome outcome = run(backend_, body, "batch sizes", Tolerance::itself);
  for (Backend& equal : equals_) {
    const Outcome other = run(equal, body, "batch sizes", Tolerance::itself);
    const std::string what = difference(outcome.outputs, other.outputs);
    if (!what.empty()) outcome.failures.push_back(cat("not as ", equal.device->name(), " has it: ", what));
  }
  std::vector<std::byte> alone;
  for (int64_t row = 0; row < kMost; ++row) {
    const std::vector<std::byte>& y = outcome.outputs[static_cast<size_t>(row)].bytes;
    alone.insert(alone.end(), y.begin(), y.end());
  }
  for (int64_t m = 1; m <= kMost; ++m) {
    const std::vector<std::byte>& y = outcome.outputs[static_cast<size_t>(kMost + m - 1)].bytes;
    const auto at = std::mismatch(y.begin(), y.end(), alone.begin()).first;
    if (at != y.end()) {
      outcome.failures.push_back(
          cat(m, " rows: row ", (at - y.begin()) * m / std::ssize(y), " is not the row alone"));
    }
  }
  return outcome.failures;
}

}  // namespace inferd::test
