#include "ops_registry.h"

#include <sanitizer/asan_interface.h>

#include <cmath>
#include <limits>

#include "reference/reference_backend.h"

namespace inferd::test {
namespace {

constexpr int64_t kGuardBytes = 256;
constexpr int64_t kGapFloats = 19;  // between the rows of a matrix: rows start at any multiple of a float

// A NaN as F32, F16 and BF16, and no number that a verb writes.
constexpr uint32_t kPattern = 0x7FA5C3E1;

std::vector<std::byte> pattern_bytes(int64_t count) {
  std::vector<std::byte> bytes(static_cast<size_t>(count));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(kPattern >> (i % 4 * 8) & 0xFF);
  return bytes;
}

uint64_t seed_of(std::string_view name) {  // FNV-1a
  uint64_t hash = 0xCBF29CE484222325;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3;
  return hash;
}

std::vector<float> floats_of(const Output& output) {
  std::vector<float> values(output.bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), output.bytes.data(), output.bytes.size());
  return values;
}

// Outputs of a case against those of `reference`.
class Judge {
 public:
  Judge(Report& report, const Bounds& bounds) : report_(report), bounds_(bounds) {}

  void compare(const std::vector<Output>& wanted, const std::vector<Output>& got) {
    for (const Output& o : wanted) {
      if (!o.floats) continue;
      for (const float w : floats_of(o)) {
        if (!std::isfinite(w)) continue;
        Sums& sums = sums_[static_cast<size_t>(o.tolerance)];
        sums.wanted += static_cast<double>(w) * static_cast<double>(w);
        ++sums.count;
      }
    }
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i].tolerance == Tolerance::itself) continue;
      if (wanted[i].floats) {
        compare_floats(wanted[i], got[i]);
      } else if (const std::string what = difference({wanted[i]}, {got[i]}); !what.empty()) {
        report_.failures.push_back("not as reference has it: " + what);
      }
    }
    for (size_t i = 0; i < kTolerances; ++i) {
      const Bound& bound = bounds_[i];
      const Sums& sums = sums_[i];
      if (!bound.nmse.has_value() || sums.wanted == 0) continue;
      const double nmse = sums.error / sums.wanted;
      report_.used = std::max(report_.used, nmse / *bound.nmse);
      if (!(nmse <= *bound.nmse)) report_.failures.push_back(cat("NMSE ", nmse, ", at most ", *bound.nmse));
    }
  }

 private:
  struct Sums {
    double wanted = 0;  // of squares
    double error = 0;   // of squares
    int64_t count = 0;
  };

  void compare_floats(const Output& wanted, const Output& got) {
    const Bound& bound = bounds_[static_cast<size_t>(wanted.tolerance)];
    Sums& sums = sums_[static_cast<size_t>(wanted.tolerance)];
    const double rms = std::sqrt(sums.wanted / static_cast<double>(std::max<int64_t>(1, sums.count)));
    const std::vector<float> w = floats_of(wanted);
    const std::vector<float> g = floats_of(got);
    for (size_t i = 0; i < w.size(); ++i) {
      const auto w_bits = std::bit_cast<uint32_t>(w[i]);
      const auto g_bits = std::bit_cast<uint32_t>(g[i]);
      if (w_bits == g_bits ||
          (std::isnan(w[i]) && std::isnan(g[i]) && w_bits != kPattern && g_bits != kPattern))
        continue;
      const double error = static_cast<double>(g[i]) - static_cast<double>(w[i]);
      const double limit =
          bound.absolute + bound.relative * std::fabs(static_cast<double>(w[i])) + bound.of_rms * rms;
      const bool comparable = std::isfinite(w[i]) && std::isfinite(g[i]);
      if (comparable) sums.error += error * error;
      if (comparable && bound.nmse.has_value()) continue;
      if (comparable && limit > 0) report_.used = std::max(report_.used, std::fabs(error) / limit);
      if (comparable && std::fabs(error) <= limit) continue;
      report_.failures.push_back(cat(
          wanted.name, "[", i, "] is ", g[i], g_bits == kPattern ? " (not written)" : "", ", in reference ",
          w[i], w_bits == kPattern ? " (not written)" : "", "; at most ", limit, " apart"));
      return;
    }
  }

  Report& report_;
  const Bounds& bounds_;
  std::array<Sums, kTolerances> sums_;
};

}  // namespace

std::string difference(const std::vector<Output>& a, const std::vector<Output>& b) {
  if (a.size() != b.size()) return cat(a.size(), " outputs and ", b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].bytes.size() != b[i].bytes.size())
      return cat(a[i].name, ": ", a[i].bytes.size(), " bytes and ", b[i].bytes.size());
    const auto at = std::mismatch(a[i].bytes.begin(), a[i].bytes.end(), b[i].bytes.begin()).first;
    if (at != a[i].bytes.end()) return cat(a[i].name, ": byte ", at - a[i].bytes.begin(), " differs");
  }
  return {};
}

const Bounds& cpu_bounds() {
  static const Bounds bounds = [] {
    Bounds b;
    const auto set = [&b](Tolerance t, const Bound& bound) { b[static_cast<size_t>(t)] = bound; };
    set(Tolerance::exact, {.reason = "the same bits"});
    set(Tolerance::norm, {.absolute = 2e-6,
                          .relative = 2e-6,
                          .reason = "sixteen chains of squares against one, a root and two products: a few "
                                    "units in the last place"});
    set(Tolerance::rotation,
        {.absolute = 3e-7, .reason = "two products of numbers up to one, one of them fused"});
    set(Tolerance::gate, {.absolute = 1e-35,
                          .relative = 4e-7,
                          .reason = "the exponential is within 1.5 units in the last place, the reference's "
                                    "within one; below −88 it ends"});
    // Tighter than the 1e-4 · rms of docs/numerics.md.
    set(Tolerance::attention,
        {.absolute = 1e-5,
         .reason = "values up to 1.5; chains of 256 positions and an exponential good to 1e-7"});
    for (const Tolerance t : {Tolerance::float_weights, Tolerance::bf16_weights})
      set(t, {.of_rms = 1e-4, .reason = "numerics: cpu against reference, float weights"});
    set(Tolerance::int8_activations,
        {.nmse = 5e-4, .reason = "numerics: cpu against reference, quantised weights"});
    set(Tolerance::log_probability,
        {.absolute = 2e-6,
         .relative = 2e-7,
         .reason = "float exponentials summed in double, one rounding to float at the end"});
    return b;
  }();
  return bounds;
}

const Bounds& cpu_bf16_dot_bounds() {
  static const Bounds bounds = [] {
    Bounds b = cpu_bounds();
    b[static_cast<size_t>(Tolerance::bf16_weights)] = {
        .nmse = 1e-5, .reason = "numerics: cpu against reference, bf16 weights with bf16 dot products"};
    return b;
  }();
  return bounds;
}

OpsLimits registry_limits() {
  return {.rows = 72,
          .tokens = 640,
          .logit_rows = 72,
          .ctx = 640,
          .heads = 16,
          .kv_heads = 4,
          .head_dim = 128,
          .linear_cols = 1280,
          .linear_rows = 512,
          .vocab = 30000};
}

const std::vector<VerbCase>& all_cases() {
  static const std::vector<VerbCase> cases = [] {
    std::vector<VerbCase> all;
    for (auto part : {row_cases(), weight_cases(), step_cases(), sample_cases()}) {
      std::move(part.begin(), part.end(), std::back_inserter(all));
    }
    return all;
  }();
  return cases;
}

// ---- Rig

Rig::Rig(Backend& backend, uint64_t seed, Tolerance tolerance, bool host_memory)
    : backend_(backend), random_(seed), tolerance_(tolerance), host_memory_(host_memory) {}

Rig::~Rig() {
  for (const Region& region : regions_) watch(region, false);
}

// Has AddressSanitizer refuse every access to the guards around a region, or allow it again.
void Rig::watch(const Region& region, bool on) const {
  if (!host_memory_) return;
  auto* begin = static_cast<std::byte*>(region.buffer.data());
  ASAN_UNPOISON_MEMORY_REGION(begin, region.image.size());
  if (!on) return;
  ASAN_POISON_MEMORY_REGION(begin, kGuardBytes);
  ASAN_POISON_MEMORY_REGION(begin + region.image.size() - kGuardBytes, kGuardBytes);
}

std::byte* Rig::add(Region region, const void* values) {
  const int64_t span = region.rows == 0 ? 0 : (region.rows - 1) * region.stride_bytes + region.row_bytes;
  region.image = pattern_bytes(2 * kGuardBytes + span);
  if (values != nullptr && region.row_bytes > 0) {
    for (int64_t r = 0; r < region.rows; ++r) {
      std::memcpy(region.image.data() + kGuardBytes + r * region.stride_bytes,
                  static_cast<const std::byte*>(values) + r * region.row_bytes,
                  static_cast<size_t>(region.row_bytes));
    }
  }
  auto buffer = backend_.device->allocate(std::ssize(region.image), region.name);
  INFERD_CHECK(buffer.ok(), region.name);
  region.buffer = std::move(buffer).value();
  backend_.device->upload(region.buffer.data(), region.image.data(), std::ssize(region.image));
  // The image is the upload's source, and a device may read it later: its heap block stays where it is.
  watch(region, true);
  regions_.push_back(std::move(region));
  return static_cast<std::byte*>(regions_.back().buffer.data()) + kGuardBytes;
}

MatrixView Rig::matrix(const std::string& name, Use use, int64_t rows, int64_t cols, const float* values,
                       Tolerance tolerance) {
  const int64_t stride = cols + kGapFloats;
  std::byte* data = add({name, use, tolerance, true, rows, cols * 4, stride * 4, {}, {}}, values);
  return {data, DType::f32, rows, cols, stride};
}

void* Rig::place(const std::string& name, Use use, const void* values, int64_t bytes) {
  return add({name, use, Tolerance::exact, false, 1, bytes, bytes, {}, {}}, values);
}

ConstMatrixView Rig::input(const std::string& name, int64_t rows, int64_t cols,
                           const std::vector<float>& values) {
  INFERD_CHECK(std::ssize(values) >= rows * cols, name);
  return matrix(name, Use::input, rows, cols, values.data(), Tolerance::exact);
}

MatrixView Rig::output(const std::string& name, int64_t rows, int64_t cols,
                       std::optional<Tolerance> tolerance) {
  return matrix(name, Use::output, rows, cols, nullptr, tolerance.value_or(tolerance_));
}

MatrixView Rig::updated(const std::string& name, int64_t rows, int64_t cols, const std::vector<float>& values,
                        std::optional<Tolerance> tolerance) {
  INFERD_CHECK(std::ssize(values) >= rows * cols, name);
  return matrix(name, Use::output, rows, cols, values.data(), tolerance.value_or(tolerance_));
}

MatrixView Rig::lost(const std::string& name, int64_t rows, int64_t cols, const std::vector<float>& values) {
  return matrix(name, Use::lost, rows, cols, values.data(), Tolerance::exact);
}

KvView Rig::pool(const KvLayout& layout, int32_t pages, Tolerance tolerance, std::vector<std::byte> bytes) {
  KvView kv{layout, pages, nullptr};
  const int64_t size = pages * layout.page_bytes();
  if (bytes.empty()) bytes.assign(static_cast<size_t>(size), std::byte{0xFF});
  kv.base = add({"pool", Use::output, tolerance, false, 1, size, size, {}, {}}, bytes.data());
  return kv;
}

SampleResult* Rig::results(int64_t count) {
  return reinterpret_cast<SampleResult*>(add(
      {"results", Use::results, tolerance_, false, count, kSize<SampleResult>, kSize<SampleResult>, {}, {}},
      nullptr));
}

PlacedStep Rig::place(Step& step) {
  const auto copy = [this]<typename T>(const char* name, const T* values, int64_t count) {
    return static_cast<const T*>(place(name, Use::input, values, count * kSize<T>));
  };
  const BatchView& host = step.batch();
  BatchView b = host;
  b.row = copy("rows", host.row, host.rows);
  b.block_table[0] = copy("block_table", host.block_table[0], int64_t{host.rows} * host.max_blocks[0]);
  int64_t update_tokens = 0;
  for (int32_t i = 0; i < *host.update_count; ++i) {
    update_tokens =
        std::max<int64_t>(update_tokens, host.updates[i].token_offset + host.updates[i].token_count);
  }
  b.update_count = copy("update_count", host.update_count, 1);
  b.updates = copy("updates", host.updates, *host.update_count);
  b.update_tokens = copy("update_tokens", host.update_tokens, update_tokens);
  b.copy_count[0] = copy("copy_count", host.copy_count[0], 1);
  b.copies[0] = copy("copies", host.copies[0], *host.copy_count[0]);
  b.cu_seqlens_q = output<int32_t>("cu_seqlens_q", host.rows + 1);
  b.kv_lens = output<int32_t>("kv_lens", host.rows);
  b.ids = output<int32_t>("ids", host.tokens);
  b.positions = output<int32_t>("positions", host.tokens);
  b.token_row = output<int32_t>("token_row", host.tokens);
  b.logit_token = output<int32_t>("logit_token", host.logit_rows);

  SeqState state = step.state();
  state.ids = updated("state.ids", state.ids, int64_t{state.slots} * state.ctx);
  state.known = updated("state.known", state.known, state.slots);
  state.length = updated("state.length", state.length, state.slots);
  state.prompt_tokens = updated("state.prompt_tokens", state.prompt_tokens, state.slots);
  state.stopped = updated("state.stopped", state.stopped, state.slots);
  state.params = updated("state.params", state.params, state.slots);
  return {b, state};
}

std::unique_ptr<PackedWeight> Rig::pack(std::vector<OwnedGroup> groups) {
  std::vector<RowGroup> views;
  for (const OwnedGroup& group : groups) views.push_back(group.group);
  auto packed = ops().pack(views);
  INFERD_CHECK(packed.ok(), packed.error().message());
  std::unique_ptr<PackedWeight> weight = std::move(packed).value();
  expect(weight->bytes() == ops().packed_bytes(views), "packed_bytes() is what pack() takes");
  int64_t rows = 0;
  expect(weight->groups().size() == views.size(), "a group for each that was given");
  for (size_t i = 0; i < views.size(); ++i) {
    const PackedWeight::Group& group = weight->groups()[i];
    expect(group.name == views[i].name && group.dtype == views[i].dtype && group.rows == views[i].rows &&
               group.first_row == rows,
           cat("group ", i, " keeps name, type and place"));
    rows += views[i].rows;
  }
  expect(weight->rows() == rows && weight->cols() == views.front().cols,
         "rows and cols of the packed weight");
  for (OwnedGroup& group : groups) {
    std::fill(group.bytes.begin(), group.bytes.end(), std::byte{0xFF});
    std::fill(group.scales.begin(), group.scales.end(), std::numeric_limits<float>::quiet_NaN());
  }
  return weight;
}

void Rig::expect(bool holds, const std::string& what) {
  if (!holds) failures_.push_back("does not hold: " + what);
}

std::vector<Output> Rig::finish(std::vector<std::string>& failures) {
  backend_.device->wait(backend_.device->record());
  std::vector<Output> outputs;
  for (const Region& region : regions_) {
    watch(region, false);
    std::vector<std::byte> now(region.image.size());
    backend_.device->download(now.data(), region.buffer.data(), std::ssize(now));
    backend_.device->wait(backend_.device->record());
    Output output{region.name, region.tolerance, region.floats, {}};
    bool intact = true;
    for (int64_t i = 0; i < std::ssize(now); ++i) {
      const int64_t at = i - kGuardBytes;
      const bool inside = at >= 0 && region.row_bytes > 0 && at < region.rows * region.stride_bytes &&
                          at % region.stride_bytes < region.row_bytes;
      const auto index = static_cast<size_t>(i);
      if (inside && region.use != Use::input) {
        output.bytes.push_back(now[index]);
      } else if (intact && now[index] != region.image[index]) {
        intact = false;  // the first byte is enough
        failures_.push_back(inside ? cat("input ", region.name, " is written to at byte ", at)
                                   : cat("guard of ", region.name, " is written to, at byte ", at, " of ",
                                         std::ssize(now) - 2 * kGuardBytes));
      }
    }
    if (region.use != Use::results) {
      if (region.use == Use::output) outputs.push_back(std::move(output));
      continue;
    }
    // Numbers and log-probabilities apart.
    Output numbers{"log-probabilities", region.tolerance, true, {}};
    for (int64_t r = 0; r < region.rows; ++r) {
      std::byte* at = output.bytes.data() + r * kSize<SampleResult>;
      const auto move_out = [&](size_t begin, int64_t bytes) {
        numbers.bytes.insert(numbers.bytes.end(), at + begin, at + begin + bytes);
        std::fill_n(at + begin, bytes, std::byte{0});
      };
      move_out(offsetof(SampleResult, logprob), kSize<float>);
      move_out(offsetof(SampleResult, top_logprobs), kMaxTopLogprobs * kSize<float>);
    }
    outputs.push_back(std::move(output));
    outputs.push_back(std::move(numbers));
  }
  std::move(failures_.begin(), failures_.end(), std::back_inserter(failures));
  failures_.clear();
  return outputs;
}

// ---- Comparison

Comparison::Comparison(const Subject& subject)
    : subject_(subject), reference_(make_reference_backend()), backend_(subject.make()) {
  for (const auto& make : subject.equals) equals_.push_back(make());
  const auto reserve = [](Backend& backend) {
    INFERD_CHECK(backend.ops->reserve(registry_limits()).ok(), "reserve");
  };
  reserve(reference_);
  reserve(backend_);
  for (Backend& equal : equals_) reserve(equal);
}

Comparison::Outcome Comparison::run(Backend& backend, const Body& body, std::string_view name,
                                    Tolerance tolerance) const {
  Rig rig(backend, seed_of(name), tolerance, subject_.host_memory);
  body(rig);
  Outcome outcome;
  outcome.outputs = rig.finish(outcome.failures);
  return outcome;
}

Report Comparison::check(const VerbCase& c) {
  Report report;
  const auto run_on = [&](Backend& backend, const Body& body, const std::string& whose) {
    Outcome outcome = run(backend, body, c.name, c.tolerance);
    for (const std::string& failure : outcome.failures) report.failures.push_back(whose + failure);
    return std::move(outcome.outputs);
  };
  const std::vector<Output> got = run_on(backend_, c.run, "");
  Judge(report, *subject_.bounds).compare(run_on(reference_, c.run, "reference: "), got);
  if (c.default_body) {
    if (const std::string what = difference(got, run_on(backend_, c.default_body, "default body: "));
        !what.empty()) {
      report.failures.push_back("not as the default body has it: " + what);
    }
  }
  for (Backend& equal : equals_) {
    if (const std::string what = difference(got, run_on(equal, c.run, equal.device->name() + ": "));
        !what.empty()) {
      report.failures.push_back(cat("not as ", equal.device->name(), " has it: ", what));
    }
  }
  return report;
}

}  // namespace inferd::test
