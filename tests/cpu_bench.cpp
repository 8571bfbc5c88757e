// Times the CPU backend's linear on the shapes of real models: cpu_bench [threads] [isa] [type]. A
// developer's tool.
//
// GEMV walks through copies of the weight that together exceed the caches, as a decode step does. Calls are
// short and a number is the one that a tenth of the calls beat, so that it means something on a machine that
// others use too; the read bandwidth beside it is measured in the same way and minute.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/clock.h"
#include "base/threads.h"
#include "cpu/cpu_backend.h"
#include "ops_random.h"

namespace inferd {
namespace {

// Seconds that a tenth of the calls beat.
template <typename Body>
double typical_best(int calls, const Body& body) {
  std::vector<double> seconds;
  for (int i = 0; i < calls; ++i) {
    const int64_t start = monotonic_clock().now_ns();
    body(i);
    seconds.push_back(monotonic_clock().seconds_since(start));
  }
  std::nth_element(seconds.begin(), seconds.begin() + calls / 10, seconds.end());
  return seconds[static_cast<size_t>(calls / 10)];
}

// GB/s of all threads summing one large buffer.
double read_bandwidth(Device& device, int threads) {
  constexpr int64_t kBytes = int64_t{256} << 20;
  Buffer buffer = device.allocate(kBytes, "bandwidth probe").value();
  auto* words = static_cast<uint64_t*>(buffer.data());
  constexpr int64_t kWords = kBytes / 8;
  for (int64_t i = 0; i < kWords; ++i) words[i] = static_cast<uint64_t>(i);
  ThreadPool pool(threads, false);
  std::vector<uint64_t> sums(static_cast<size_t>(threads));
  constexpr int64_t kCallWords = (int64_t{2} << 20) / 8;
  const double seconds = typical_best(1000, [&](int call) {
    constexpr int64_t kPart = 8192;
    const uint64_t* begin = words + call * kCallWords % kWords;
    WorkCounter work(kCallWords / kPart);
    pool.run([&](int worker) {
      uint64_t a = 0, b = 0, c = 0, d = 0;
      for (int64_t part = work.next(); part >= 0; part = work.next()) {
        const uint64_t* at = begin + part * kPart;
        for (int64_t i = 0; i < kPart; i += 32) {  // a word or two of every cache line
          a ^= at[i] ^ at[i + 1];
          b ^= at[i + 8] ^ at[i + 9];
          c ^= at[i + 16] ^ at[i + 17];
          d ^= at[i + 24] ^ at[i + 25];
        }
      }
      sums[static_cast<size_t>(worker)] += a ^ b ^ c ^ d;
    });
  });
  volatile uint64_t sink = sums.front();
  static_cast<void>(sink);
  return static_cast<double>(kCallWords * 8) / seconds * 1e-9;
}

void bench_linear(const Backend& backend, DType type, int64_t rows, int64_t cols, double bandwidth) {
  test::Random random(1);
  const test::OwnedGroup group = test::random_group("w", type, rows, cols, random);
  const int64_t one = backend.ops->packed_bytes(std::span(&group.group, 1));
  const int64_t copies = std::max<int64_t>(1, (int64_t{96} << 20) / one);
  std::vector<std::unique_ptr<PackedWeight>> weights;
  const double pack_seconds = typical_best(static_cast<int>(copies), [&](int) {
    weights.push_back(backend.ops->pack(std::span(&group.group, 1)).value());
  });
  const std::vector<float> x = random.floats(512 * cols);
  std::vector<float> y(static_cast<size_t>(512 * rows));
  std::printf("%-5s %6lld x %-5lld", std::string(dtype_name(type)).c_str(), static_cast<long long>(rows),
              static_cast<long long>(cols));
  const auto run = [&](const PackedWeight& weight, int64_t columns) {
    backend.ops->linear(matrix_f32(y.data(), columns, weight.rows()), matrix_f32(x.data(), columns, cols),
                        weight, nullptr);
  };
  for (const int64_t columns : {1, 2, 3, 4, 8, 16, 32}) {
    const double seconds = typical_best(columns < 4 ? 400 : 100, [&](int call) {
      run(*weights[static_cast<size_t>(call) % weights.size()], columns);
    });
    const double gbs = static_cast<double>(one) / seconds * 1e-9;
    if (columns == 1) {
      std::printf(" | M=1 %5.1f GB/s %3.0f%%", gbs, 100 * gbs / bandwidth);
    } else {
      std::printf(" %lld:%.1f", static_cast<long long>(columns), gbs);
    }
  }
  // Prefill on a part of the rows, so that a call is short.
  RowGroup part = group.group;
  part.rows = std::min<int64_t>(rows, 256);
  part.data = part.data.first(static_cast<size_t>(part.rows * row_bytes(type, cols)));
  const auto weight = backend.ops->pack(std::span(&part, 1)).value();
  const double seconds = typical_best(60, [&](int) { run(*weight, 96); });
  std::printf(" | M=96 %6.1f GMAC/s | pack %.2f GB/s\n",
              static_cast<double>(part.rows * cols * 96) / seconds * 1e-9,
              static_cast<double>(group.bytes.size()) / pack_seconds * 1e-9);
  std::fflush(stdout);
}

int run(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : usable_cpus();
  CpuOptions options{.threads = threads};
  if (argc > 2) options.isa = parse_isa(argv[2]);
  const std::string filter = argc > 3 ? argv[3] : "";
  auto backend = make_cpu_backend(options);
  if (!backend.ok()) {
    std::fprintf(stderr, "%s\n", backend.error().message().c_str());
    return 1;
  }
  const Status reserved = backend->ops->reserve({.rows = 32,
                                                 .tokens = 512,
                                                 .logit_rows = 32,
                                                 .ctx = 1024,
                                                 .heads = 14,
                                                 .kv_heads = 2,
                                                 .head_dim = 64,
                                                 .linear_cols = 8192,
                                                 .linear_rows = 8192,
                                                 .vocab = 1000});
  if (!reserved.ok()) return 1;
  const double bandwidth = read_bandwidth(*backend->device, threads);
  std::printf("%s, %d threads, read %.1f GB/s\n", backend->device->name().c_str(), threads, bandwidth);
  struct Shape {
    DType type;
    int64_t rows, cols;
  };
  for (const Shape s :
       {Shape{DType::q5_0, 9728, 896}, Shape{DType::q5_0, 896, 896}, Shape{DType::q8_0, 16384, 896},
        Shape{DType::q4_k, 896, 4864}, Shape{DType::q6_k, 896, 4864}, Shape{DType::q5_k, 1024, 4096},
        Shape{DType::q4_1, 3072, 576}, Shape{DType::q4_1, 576, 1536}, Shape{DType::q4_0, 4096, 1024},
        Shape{DType::q5_1, 4096, 1024}, Shape{DType::bf16, 2048, 1024}, Shape{DType::f16, 2048, 1024},
        Shape{DType::f32, 2048, 1024}}) {
    if (filter.empty() || to_lower_ascii(dtype_name(s.type)) == filter) {
      bench_linear(*backend, s.type, s.rows, s.cols, bandwidth);
    }
  }
  return 0;
}

}  // namespace
}  // namespace inferd

int main(int argc, char** argv) {
  return inferd::run(argc, argv);
}
