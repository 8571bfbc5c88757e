// plan: the memory a model would take, as it would be served and for other contexts and numbers of sequences.
#include <cstdio>

#include "commands.h"
#include "environment.h"

namespace inferd {
namespace {

struct Table {
  std::vector<MemoryPlan> rows;  // every sequence with its whole context
  struct Largest {
    int32_t seqs;
    int32_t ctx;  // 0: none fits
  };
  std::vector<Largest> largest;
};

// The largest context, in whole pages, with which so many sequences fit.
Result<int32_t> largest_context(ModelLoader& loader, const OpenModel& model, int32_t seqs) {
  constexpr int32_t kStep = 16;
  int32_t fits = 0;
  int32_t too_many = model.config.train_ctx / kStep + 1;
  while (too_many - fits > 1) {
    const int32_t middle = fits + (too_many - fits) / 2;
    INFERD_TRY(const MemoryPlan plan, loader.plan_whole_contexts(model, middle * kStep, seqs));
    (plan.fits() ? fits : too_many) = middle;
  }
  return fits * kStep;
}

Result<Table> make_table(ModelLoader& loader, const OpenModel& model, const Options& options) {
  Table table;
  std::vector<int32_t> contexts;
  if (options.ctx) {
    contexts = {*options.ctx};
  } else {
    for (int64_t ctx = 2048; ctx < model.config.train_ctx; ctx *= 4)
      contexts.push_back(static_cast<int32_t>(ctx));
    contexts.push_back(model.config.train_ctx);
  }
  const std::vector<int32_t> concurrency =
      options.max_seqs ? std::vector<int32_t>{*options.max_seqs} : std::vector<int32_t>{1, 8, 32};
  for (const int32_t ctx : contexts) {
    for (const int32_t seqs : concurrency) {
      INFERD_TRY(const MemoryPlan plan, loader.plan_whole_contexts(model, ctx, seqs));
      table.rows.push_back(plan);
    }
  }
  for (const int32_t seqs : concurrency) {
    INFERD_TRY(const int32_t ctx, largest_context(loader, model, seqs));
    table.largest.push_back({seqs, ctx});
  }
  return table;
}

int64_t buffers(const MemoryPlan& plan) {
  return plan.parts.activations + plan.parts.scratch + plan.parts.state;
}

std::string text_of(const Table& table) {
  const auto right = [](const std::string& text, size_t width) {
    return std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
  };
  std::string out =
      cat("every sequence with a whole context of its own:\n", right("ctx", 9), right("seqs", 6),
          right("weights", 11), right("KV pool", 11), right("buffers", 11), right("total", 11), "\n");
  for (const MemoryPlan& plan : table.rows) {
    out += cat(right(with_commas(plan.runner.ctx), 9), right(cat(plan.runner.max_seqs), 6),
               right(human_bytes(plan.weights), 11), right(human_bytes(plan.parts.kv), 11),
               right(human_bytes(buffers(plan)), 11), right(human_bytes(plan.total()), 11),
               plan.fits() ? "  fits\n" : "  too much\n");
  }
  out += "largest context that fits:";
  for (const Table::Largest& l : table.largest) {
    out += cat(&l == table.largest.data() ? "  " : ", ", l.ctx == 0 ? "none" : with_commas(l.ctx), " for ",
               l.seqs == 1 ? "one sequence" : cat(l.seqs, " at once"));
  }
  return out + "\n";
}

Json json_of(const Table& table) {
  Json::Array rows;
  for (const MemoryPlan& plan : table.rows) {
    rows.push_back(Json::Object{{"ctx", plan.runner.ctx},
                                {"max_seqs", plan.runner.max_seqs},
                                {"weights_bytes", plan.weights},
                                {"kv_bytes", plan.parts.kv},
                                {"buffers_bytes", buffers(plan)},
                                {"total_bytes", plan.total()},
                                {"fits", plan.fits()}});
  }
  Json::Array largest;
  for (const Table::Largest& l : table.largest)
    largest.push_back(Json::Object{{"max_seqs", l.seqs}, {"ctx", l.ctx}});
  return Json::Object{{"whole_contexts", std::move(rows)}, {"largest_context", std::move(largest)}};
}

}  // namespace

int plan_command(const Options& options) {
  ProgressPrinter progress = stderr_progress();
  ModelLoader loader(options, progress);
  const Result<ModelLocation> location =
      loader.find_present(options.arguments.empty() ? "" : options.arguments.front());
  if (!location.ok()) return report(location.error());
  const Result<OpenModel> model = loader.open(*location);
  if (!model.ok()) return report(model.error());
  const bool all_given = options.ctx && options.max_seqs;
  Result<Table> table = all_given ? Table() : make_table(loader, *model, options);
  if (!table.ok()) return report(table.error());
  const Result<MemoryPlan> plan = loader.plan(*model);
  if (!plan.ok()) {
    if (!options.json && !all_given) print(text_of(*table));
    return report(plan.error());
  }
  if (options.json) {
    print_json(Json::Object{{"model", model->name},
                            {"ctx", plan->runner.ctx},
                            {"max_seqs", plan->runner.max_seqs},
                            {"prefill_chunk", plan->runner.prefill_chunk},
                            {"kv_dtype", kv_dtype_name(plan->runner.kv_dtype)},
                            {"kv_blocks", plan->runner.kv_pages},
                            {"kv_tokens", plan->pool_tokens()},
                            {"weights_bytes", plan->weights},
                            {"kv_bytes", plan->parts.kv},
                            {"activations_bytes", plan->parts.activations},
                            {"scratch_bytes", plan->parts.scratch},
                            {"state_bytes", plan->parts.state},
                            {"process_bytes", plan->process},
                            {"total_bytes", plan->total()},
                            {"available_bytes", plan->available},
                            {"table", json_of(*table)}});
    return kExitOk;
  }
  print(cat(model->name, "  ctx ", with_commas(plan->runner.ctx), "  seqs ", plan->runner.max_seqs, "\n",
            plan->text()));
  if (!all_given) print("\n" + text_of(*table));
  return kExitOk;
}

}  // namespace inferd
