// bench engine: prefill and decode speed on this machine, beside the read bandwidth of the same minute.
#include <algorithm>
#include <cstdio>

#include "commands.h"
#include "environment.h"
#include "lab/bench_engine.h"
#include "lab/read_bandwidth.h"

namespace inferd {
namespace {

std::vector<EngineBenchCase> cases_of(const Options& options) {
  std::vector<EngineBenchCase> cases;
  for (const int32_t batch : options.bench_batch) {
    for (const int32_t depth : options.bench_depth) {
      for (const int32_t tokens : options.bench_pp)
        cases.push_back({EngineBenchCase::Kind::prefill, tokens, depth, batch});
      for (const int32_t tokens : options.bench_tg)
        cases.push_back({EngineBenchCase::Kind::decode, tokens, depth, batch});
    }
  }
  return cases;
}

struct Measured {
  EngineBenchResult result;
  double read_bytes_per_s = 0;  // of the same number of threads, right after the test
  int64_t step_bytes = 0;       // weights a decode step reads

  // Of the bandwidth, that a decode of one sequence uses for the weights alone.
  double bandwidth_share() const {
    return result.median() / result.test.batch * static_cast<double>(step_bytes) / read_bytes_per_s;
  }
};

Json to_json_value(const Measured& measured) {
  Json value = to_json_value(measured.result);
  value.as_object().emplace_back("read_gb_per_s", measured.read_bytes_per_s * 1e-9);
  if (measured.result.test.kind == EngineBenchCase::Kind::decode) {
    value.as_object().emplace_back("weight_bytes_per_step", measured.step_bytes);
    value.as_object().emplace_back("read_bandwidth_share", measured.bandwidth_share());
  }
  return value;
}

void print_row(const Measured& measured) {
  const EngineBenchResult& r = measured.result;
  std::string line =
      cat(r.test.name(), "  threads ", r.threads, "  batch ", r.test.batch, "  depth ", r.test.depth, "  ",
          fixed(r.median(), 1), " tok/s (", fixed(r.lowest(), 1), " to ", fixed(r.highest(), 1), ")");
  if (r.test.kind == EngineBenchCase::Kind::decode) {
    line += cat("  ", fixed(100 * measured.bandwidth_share(), 0), " % of ",
                fixed(measured.read_bytes_per_s * 1e-9, 1), " GB/s");
  }
  std::fputs((line + "\n").c_str(), stdout);
  std::fflush(stdout);
}

Result<std::vector<Measured>> run_with_threads(const Options& options, ProgressPrinter& progress,
                                               int32_t threads) {
  // Before the engine's own pool keeps this thread to one CPU, which a later pool would take for all there
  // are.
  ThreadPool pool(threads);
  Options sized = options;
  const std::vector<EngineBenchCase> cases = cases_of(options);
  int32_t longest = 0;
  int32_t most_seqs = 1;
  int64_t most_tokens = 0;
  for (const EngineBenchCase& test : cases) {
    longest = std::max(longest, test.sequence_tokens());
    most_seqs = std::max(most_seqs, test.batch);
    most_tokens = std::max(most_tokens, int64_t{test.batch} * round_up(test.sequence_tokens(), 16));
  }
  if (!sized.ctx) sized.ctx = std::max(16, longest);
  sized.max_seqs = most_seqs;
  sized.threads = threads;
  ModelLoader loader(sized, progress);
  INFERD_TRY(const ModelLocation location, loader.find(options.arguments.front()));
  INFERD_TRY(OpenModel model, loader.open(location));
  // A page more for each sequence than it needs, so that nothing is preempted.
  const int64_t pages = most_tokens / 16 + 2 * int64_t{most_seqs};
  sized.kv_blocks = static_cast<int32_t>(pages);
  INFERD_TRY(const MemoryPlan plan, loader.plan(model));
  INFERD_TRY(std::unique_ptr<Engine> engine, loader.load(model, plan, {}));
  model.file.reset();
  std::vector<Measured> all;
  uint64_t salt = 1;
  for (const EngineBenchCase& test : cases) {
    if (interrupted()) return Error{.code = Code::interrupted};
    Measured measured;
    measured.result = run_engine_bench(*engine, test, threads, options.bench_repeat, salt);
    salt += static_cast<uint64_t>(options.bench_repeat) + 1;
    INFERD_TRY(const ReadBandwidth bandwidth, measure_read_bandwidth(pool));
    measured.read_bytes_per_s = bandwidth.median_bytes_per_s;
    measured.step_bytes = engine->runner().decoder().step_bytes();
    if (!options.json) print_row(measured);
    all.push_back(std::move(measured));
  }
  return all;
}

}  // namespace

int bench_engine_command(const Options& options) {
  watch_signals();
  ProgressPrinter progress = stderr_progress();
  std::vector<int32_t> threads = options.bench_threads;
  if (threads.empty()) threads.push_back(usable_cpus());
  Json::Array all;
  const SavedAffinity affinity;
  for (const int32_t count : threads) {
    affinity.restore();  // the last engine's pool kept this thread to one CPU
    const Result<std::vector<Measured>> measured = run_with_threads(options, progress, count);
    if (!measured.ok()) return report(measured.error());
    for (const Measured& one : *measured) all.push_back(to_json_value(one));
  }
  if (options.json) std::fputs((to_json(Json(std::move(all))) + "\n").c_str(), stdout);
  return kExitOk;
}

}  // namespace inferd
