// From a MODEL argument to something that runs: find or fetch the file, read it, plan memory, load, start.
// Each phase is shown with its time. Used by serve, run, plan, tokenize and bench.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/progress.h"
#include "engine/engine.h"
#include "engine/memory_plan.h"
#include "hub/model_names.h"
#include "options.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace inferd {

// A model file, opened and understood, before anything large is loaded.
struct OpenModel {
  std::string name;  // short name, for people and requests
  std::string path;
  std::unique_ptr<GgufFile> file;
  DecoderConfig config;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::optional<ChatTemplate> chat_template;
  SamplingParams sampling;  // the model's own defaults, else temperature 1 and nothing else
};

// How backends are made: the program's own, or one that a test put in.
using BackendFactory = std::function<Result<Backend>(const Options&)>;
Result<Backend> make_backend(const Options& options);

// The whole file. E-IO-*.
Result<std::string> read_text_file(const std::string& path);

// A template with the model's own begin and end tokens; without a tokenizer they are undefined. E-TMPL-001
// names `origin`.
Result<ChatTemplate> parse_chat_template(std::string_view source, const std::string& origin,
                                         const Tokenizer* tokenizer);

// The template in a model file, for which nothing else of the model has to be supported but its tokenizer.
// E-TMPL-005 when it has none.
Result<ChatTemplate> own_chat_template(const std::string& path);

class ModelLoader {
 public:
  ModelLoader(const Options& options, ProgressPrinter& progress, BackendFactory make = make_backend)
      : options_(options), progress_(progress), make_(std::move(make)) {}

  // The file behind a MODEL argument; an empty name is the default model. Opens no connection: E-HUB-005 when
  // the file is not here.
  Result<ModelLocation> find_present(const std::string& model) const;
  // The same, but with --pull fetches first what is not here.
  Result<ModelLocation> find(const std::string& model);
  // Opens the file and builds tokenizer and template.
  Result<OpenModel> open(const ModelLocation& location);
  // The plan of an open model on a new backend, which start() takes.
  Result<MemoryPlan> plan(const OpenModel& model);
  // What this many sequences would need, each with a whole context of its own; it may be more than fits.
  Result<MemoryPlan> plan_whole_contexts(const OpenModel& model, int32_t ctx, int32_t seqs);
  // Loads the weights by the plan and makes an engine, not started. The file is not needed afterwards.
  Result<std::unique_ptr<Engine>> load(const OpenModel& model, const MemoryPlan& plan,
                                       EngineOptions engine_options);

 private:
  MemoryRequest memory_request() const;

  const Options& options_;
  ProgressPrinter& progress_;
  const BackendFactory make_;
  Backend backend_;
};

// Sizes of the scheduler that a plan stands for.
SchedulerOptions scheduler_options(const MemoryPlan& plan, bool prefix_cache);

}  // namespace inferd
