// The registry of verb cases: one table of calls over odd shapes that every backend is held to.
//
// A case says what is called with which inputs, and how close its outputs must come to those of `reference`;
// it knows no backend. All memory of a call goes through the Device, so a backend joins by a Subject. Every
// buffer has guard bytes before and behind it, and between the rows of a matrix: nothing may be written
// there, to an input, or where `reference` writes nothing.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "ops_batch.h"
#include "ops_random.h"

namespace inferd::test {

// What an output is held to. The numbers belong to a backend (Bounds), the kind to the case.
enum class Tolerance {
  exact,             // moves, integers, single roundings
  norm,              // a sum of squares in another order, a root
  rotation,          // two products and their sum, fused or not
  gate,              // an exponential and a division
  attention,         // sums over positions in another order
  float_weights,     // sums over columns in another order
  bf16_weights,      // the same, or activations rounded to bf16 where the chip multiplies those
  int8_activations,  // activations rounded to 8 bits
  log_probability,   // a logarithm of a sum of exponentials
  itself,  // not compared with `reference`: with the verb's default body and the Subject's equals only
};
inline constexpr size_t kTolerances = 10;

// |got − wanted| ≤ absolute + relative · |wanted| + of_rms · rms(wanted), and, where nmse is set,
// Σ (got − wanted)² ≤ nmse · Σ wanted². rms and sums are over all outputs of a case that share the tolerance.
struct Bound {
  double absolute = 0;
  double relative = 0;
  double of_rms = 0;
  std::optional<double> nmse = {};  // instead of the bound of each element
  std::string_view reason = {};
};
using Bounds = std::array<Bound, kTolerances>;
const Bounds& cpu_bounds();
const Bounds& cpu_bf16_dot_bounds();  // of the levels with bf16 dot products

// A backend under test.
struct Subject {
  std::string name;
  std::function<Backend()> make;
  std::vector<std::function<Backend()>> equals;  // these must give the same bytes
  const Bounds* bounds = nullptr;
  bool host_memory = true;  // its buffers are this process's memory: AddressSanitizer watches the guards, too
};
inline void PrintTo(const Subject& subject, std::ostream* out) {
  *out << subject.name;
}

struct Output {
  std::string name;
  Tolerance tolerance;
  bool floats;  // compared as numbers; else as bytes
  std::vector<std::byte> bytes;
};

// The first byte in which outputs of the same call differ, for people; empty when there is none.
std::string difference(const std::vector<Output>& a, const std::vector<Output>& b);

// A BatchView and a SeqState in device memory.
struct PlacedStep {
  BatchView b;
  SeqState state;
};

// Memory for the calls of one case on one backend.
class Rig {
 public:
  Rig(Backend& backend, uint64_t seed, Tolerance tolerance, bool host_memory);
  ~Rig();
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  Ops& ops() { return *backend_.ops; }
  Random& random() { return random_; }  // the same numbers for a case on every backend

  // Matrices of floats. An input must come back as it went; an output holds nothing but the guards' pattern
  // before the call. Outputs without a tolerance of their own take the case's.
  ConstMatrixView input(const std::string& name, int64_t rows, int64_t cols,
                        const std::vector<float>& values);
  MatrixView output(const std::string& name, int64_t rows, int64_t cols,
                    std::optional<Tolerance> tolerance = {});
  MatrixView updated(const std::string& name, int64_t rows, int64_t cols, const std::vector<float>& values,
                     std::optional<Tolerance> tolerance = {});
  // An input that the verb may lose: only its guards are looked at.
  MatrixView lost(const std::string& name, int64_t rows, int64_t cols, const std::vector<float>& values);

  // Arrays of plain structs and numbers; outputs are exact.
  template <typename T>
  const T* input(const std::string& name, const std::vector<T>& values) {
    return static_cast<const T*>(place(name, Use::input, values.data(), std::ssize(values) * kSize<T>));
  }
  template <typename T>
  T* output(const std::string& name, int64_t count) {
    return static_cast<T*>(place(name, Use::output, nullptr, count * kSize<T>));
  }
  template <typename T>
  T* updated(const std::string& name, const T* values, int64_t count) {
    return static_cast<T*>(place(name, Use::output, values, count * kSize<T>));
  }

  // A pool of pages whose bytes are 0xFF, NaN in every KV type's values or scales, or as given.
  KvView pool(const KvLayout& layout, int32_t pages, Tolerance tolerance = Tolerance::exact,
              std::vector<std::byte> bytes = {});
  // `step` as it is in host memory; its derived part is an output.
  PlacedStep place(Step& step);
  // Results of sample(): ids and counts are exact, log-probabilities have the case's tolerance.
  SampleResult* results(int64_t count);

  // Packs, checks what the weight says of itself, and forgets the groups' bytes.
  std::unique_ptr<PackedWeight> pack(std::vector<OwnedGroup> groups);

  // A failure of the case unless `holds`.
  void expect(bool holds, const std::string& what);

  // Waits for the device, checks guards and inputs, and hands out the outputs in the order they were asked
  // for. The last call.
  std::vector<Output> finish(std::vector<std::string>& failures);

 private:
  enum class Use { input, output, lost, results };
  struct Region {
    std::string name;
    Use use;
    Tolerance tolerance;
    bool floats;
    int64_t rows;
    int64_t row_bytes;
    int64_t stride_bytes;
    Buffer buffer;
    std::vector<std::byte> image;  // what was uploaded, guards included
  };
  template <typename T>
  static constexpr auto kSize = static_cast<int64_t>(sizeof(T));

  std::byte* add(Region region, const void* values);
  MatrixView matrix(const std::string& name, Use use, int64_t rows, int64_t cols, const float* values,
                    Tolerance tolerance);
  void* place(const std::string& name, Use use, const void* values, int64_t bytes);
  void watch(const Region& region, bool on) const;

  Backend& backend_;
  Random random_;
  Tolerance tolerance_;
  bool host_memory_;
  std::vector<Region> regions_;
  std::vector<std::string> failures_;
};

struct VerbCase {
  std::string name;       // "linear/Q4_K, 33 rows of 768", once in the table
  std::string_view verb;  // as ops.h calls it
  std::optional<DType> weight = {};
  Tolerance tolerance = Tolerance::exact;
  std::function<void(Rig&)> run;
  std::function<void(Rig&)> default_body = {};  // of a fusion: must give the same bytes
};

// The table, verb by verb.
std::vector<VerbCase> row_cases();     // ops_registry_rows.cpp
std::vector<VerbCase> weight_cases();  // ops_registry_weights.cpp
std::vector<VerbCase> step_cases();    // ops_registry_steps.cpp
std::vector<VerbCase> sample_cases();  // ops_registry_sample.cpp
const std::vector<VerbCase>& all_cases();

// What every backend of the registry reserves.
OpsLimits registry_limits();

struct Report {
  std::vector<std::string> failures;
  double used = 0;  // the largest part of a bound that was used
};

// Runs cases on a subject, on `reference`, and on what the subject must equal.
class Comparison {
 public:
  explicit Comparison(const Subject& subject);
  Report check(const VerbCase& c);

  // The equal-bytes rules of docs/numerics.md; each returns what broke.
  // Row i of a linear over M rows is the row alone, M = 1 … 65, and what the subject's equals have.
  std::vector<std::string> check_batch_sizes(const std::vector<DType>& types);  // ops_registry_weights.cpp
  // A token's attention depends on its sequence alone: not on batch, chunks or pages.
  std::vector<std::string> check_attention_alone(KvDType dtype, int32_t window);  // ops_registry_steps.cpp
  // A drawn token and its log-probabilities do not depend on batch-mates.
  std::vector<std::string> check_sample_alone();  // ops_registry_sample.cpp

 private:
  struct Outcome {
    std::vector<Output> outputs;
    std::vector<std::string> failures;
  };
  using Body = std::function<void(Rig&)>;
  Outcome run(Backend& backend, const Body& body, std::string_view name, Tolerance tolerance) const;

  const Subject& subject_;
  Backend reference_;
  Backend backend_;
  std::vector<Backend> equals_;
};

}  // namespace inferd::test
