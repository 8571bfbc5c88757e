// Cases of the verbs that treat every row by itself.
#include <cmath>

#include "ops_registry.h"

namespace inferd::test {
namespace {

struct Shape {
  int64_t rows;
  int64_t cols;
  std::string text() const { return cat(rows, " rows of ", cols); }
};

// None, one, two; around vectors of 8, 16 and 32; and enough for more than one thread.
constexpr Shape kShapes[] = {{0, 33}, {1, 1},  {2, 2},  {31, 15}, {33, 16},
                             {2, 17}, {1, 31}, {5, 33}, {33, 64}, {65, 577}};

std::vector<float> floats(Rig& rig, const Shape& s, float largest) {
  return rig.random().floats(s.rows * s.cols, -largest, largest);
}

void add_norm_cases(std::vector<VerbCase>& cases, const Shape& s) {
  cases.push_back({.name = cat("rmsnorm, ", s.text()),
                   .verb = "rmsnorm",
                   .tolerance = Tolerance::norm,
                   .run = [s](Rig& rig) {
                     const ConstMatrixView x = rig.input("x", s.rows, s.cols, floats(rig, s, 4));
                     const float* weight = rig.input("weight", rig.random().floats(s.cols, 0.5f, 1.5f));
                     rig.ops().rmsnorm(rig.output("y", s.rows, s.cols), x, weight, 1e-5f);
                   }});
  cases.push_back({.name = cat("rmsnorm in place, ", s.text()),
                   .verb = "rmsnorm",
                   .tolerance = Tolerance::norm,
                   .run = [s](Rig& rig) {
                     const MatrixView x = rig.updated("x", s.rows, s.cols, floats(rig, s, 4));
                     const float* weight = rig.input("weight", rig.random().floats(s.cols, 0.5f, 1.5f));
                     rig.ops().rmsnorm(x, x, weight, 1e-5f);
                   }});
  // The fusion and its default body, with y apart and with y in place of h.
  const auto fusion = [&](bool in_place) {
    const auto call = [s, in_place](Rig& rig, bool fused) {
      const MatrixView x = rig.updated("x", s.rows, s.cols, floats(rig, s, 4), Tolerance::exact);
      const std::vector<float> added = floats(rig, s, 4);
      const float* weight = rig.input("weight", rig.random().floats(s.cols, 0.5f, 1.5f));
      const MatrixView y =
          in_place ? rig.updated("y", s.rows, s.cols, added) : rig.output("y", s.rows, s.cols);
      const ConstMatrixView h = in_place ? ConstMatrixView(y) : rig.input("h", s.rows, s.cols, added);
      if (fused) {
        rig.ops().add_rmsnorm(y, x, h, weight, 1e-6f);
      } else {
        rig.ops().Ops::add_rmsnorm(y, x, h, weight, 1e-6f);
      }
    };
    cases.push_back({.name = cat(in_place ? "add_rmsnorm in place, " : "add_rmsnorm, ", s.text()),
                     .verb = "add_rmsnorm",
                     .tolerance = Tolerance::norm,
                     .run = [call](Rig& rig) { call(rig, true); },
                     .default_body = [call](Rig& rig) { call(rig, false); }});
  };
  fusion(false);
  fusion(true);
}

// Heads of q and k that differ in number, and heads of v that stay.
void add_qk_norm_cases(std::vector<VerbCase>& cases) {
  for (const int64_t rows : {0, 1, 2, 33}) {
    for (const int32_t head_dim : {1, 15, 16, 33, 128}) {
      cases.push_back({.name = cat("qk_norm, ", rows, " rows, heads of ", head_dim),
                       .verb = "qk_norm",
                       .tolerance = Tolerance::norm,
                       .run = [rows, head_dim](Rig& rig) {
                         const AttentionShape shape{3, 2, head_dim, 1};
                         const Shape s{rows, shape.qkv_width()};
                         const MatrixView qkv = rig.updated("qkv", s.rows, s.cols, floats(rig, s, 4));
                         const float* q = rig.input("q_weight", rig.random().floats(head_dim, 0.5f, 1.5f));
                         const float* k = rig.input("k_weight", rig.random().floats(head_dim, 0.5f, 1.5f));
                         rig.ops().qk_norm(qkv, q, k, 1e-6f, shape);
                       }});
    }
  }
}

void add_elementwise_cases(std::vector<VerbCase>& cases, const Shape& s) {
  cases.push_back({.name = cat("add, ", s.text()), .verb = "add", .run = [s](Rig& rig) {
                     const MatrixView x = rig.updated("x", s.rows, s.cols, floats(rig, s, 4));
                     rig.ops().add(x, rig.input("h", s.rows, s.cols, floats(rig, s, 4)));
                   }});
  cases.push_back({.name = cat("reduce, ", s.text()), .verb = "reduce", .run = [s](Rig& rig) {
                     rig.ops().reduce(rig.updated("h", s.rows, s.cols, floats(rig, s, 4)));
                   }});
  cases.push_back({.name = cat("silu_mul, ", s.text()),
                   .verb = "silu_mul",
                   .tolerance = Tolerance::gate,
                   .run = [s](Rig& rig) {
                     const ConstMatrixView gate_up =
                         rig.input("gate_up", s.rows, 2 * s.cols, floats(rig, {s.rows, 2 * s.cols}, 20));
                     rig.ops().silu_mul(rig.output("y", s.rows, s.cols), gate_up);
                   }});
  cases.push_back({.name = cat("gelu_mul, ", s.text()),
                   .verb = "gelu_mul",
                   .tolerance = Tolerance::gate,
                   .run = [s](Rig& rig) {
                     const ConstMatrixView gate_up =
                         rig.input("gate_up", s.rows, 2 * s.cols, floats(rig, {s.rows, 2 * s.cols}, 5));
                     rig.ops().gelu_mul(rig.output("y", s.rows, s.cols), gate_up);
                   }});
  cases.push_back({.name = cat("scale, ", s.text()), .verb = "scale", .run = [s](Rig& rig) {
                     rig.ops().scale(rig.updated("x", s.rows, s.cols, floats(rig, s, 4)), 25.298221f);
                   }});
  cases.push_back({.name = cat("softcap, ", s.text()),
                   .verb = "softcap",
                   .tolerance = Tolerance::gate,
                   .run = [s](Rig& rig) {
                     rig.ops().softcap(rig.updated("x", s.rows, s.cols, floats(rig, s, 90)), 30);
                   }});
  cases.push_back({.name = cat("select_rows, ", s.text()), .verb = "select_rows", .run = [s](Rig& rig) {
                     const ConstMatrixView x = rig.input("x", 50, s.cols, floats(rig, {50, s.cols}, 1));
                     std::vector<int32_t> index;
                     for (int64_t i = 0; i < s.rows; ++i)
                       index.push_back(i % 7 == 3 ? -1 : rig.random().below(50));
                     rig.ops().select_rows(rig.output("y", s.rows, s.cols), x, rig.input("index", index));
                   }});
}

// Magnitudes from the smallest to infinity, around where the kernel changes its formula.
VerbCase softcap_extremes() {
  return {.name = "softcap, extreme values",
          .verb = "softcap",
          .tolerance = Tolerance::gate,
          .run = [](Rig& rig) {
            std::vector<float> values = {0.0f, -0.0f, 0.625f, 0x1.3ffffep-1f, 0x1.400002p-1f, NAN};
            for (float x = 1e-30f; x < 1e30f; x *= 1.37f) values.push_back(x);
            for (float x = 0.6f; x < 0.65f; x += 0.001f) values.push_back(x);
            values.push_back(INFINITY);
            for (size_t i = 0, n = values.size(); i < n; ++i) values.push_back(-values[i]);
            rig.ops().softcap(rig.updated("x", 1, std::ssize(values), values), 1);
          }};
}

VerbCase gelu_extremes() {
  return {.name = "gelu_mul, extreme gates",
          .verb = "gelu_mul",
          .tolerance = Tolerance::gate,
          .run = [](Rig& rig) {
            std::vector<float> values;
            for (float z = -10; z <= 10; z += 0.0137f) values.push_back(z);
            for (const float z : {0.0f, -0.0f, -11.0f, -120.0f, 120.0f, 1e-30f, 1e10f, INFINITY, NAN})
              values.push_back(z);
            const int64_t cols = std::ssize(values);
            for (int64_t i = 0; i < cols; ++i) values.push_back(i % 2 == 0 ? 1.0f : -0.5f);
            const ConstMatrixView gate_up = rig.input("gate_up", 1, 2 * cols, values);
            rig.ops().gelu_mul(rig.output("y", 1, cols), gate_up);
          }};
}

// Gates from −87 to 87, where the exponential has a normal result, and what lies beyond either end.
VerbCase gate_extremes() {
  return {.name = "silu_mul, extreme gates",
          .verb = "silu_mul",
          .tolerance = Tolerance::gate,
          .run = [](Rig& rig) {
            std::vector<float> values;
            for (float z = -87; z <= 87; z += 0.37f) values.push_back(z);
            for (const float z : {0.0f, -0.0f, 120.0f, 1e30f, INFINITY, NAN}) values.push_back(z);
            const int64_t cols = std::ssize(values);
            for (int64_t i = 0; i < cols; ++i) values.push_back(i % 2 == 0 ? 1.0f : -0.5f);
            const ConstMatrixView gate_up = rig.input("gate_up", 1, 2 * cols, values);
            rig.ops().silu_mul(rig.output("y", 1, cols), gate_up);
          }};
}

}  // namespace

std::vector<VerbCase> row_cases() {
  std::vector<VerbCase> cases;
  for (const Shape& s : kShapes) {
    add_elementwise_cases(cases, s);
    add_norm_cases(cases, s);
  }
  add_qk_norm_cases(cases);
  cases.push_back(gate_extremes());
  cases.push_back(gelu_extremes());
  cases.push_back(softcap_extremes());
  return cases;
}

}  // namespace inferd::test
