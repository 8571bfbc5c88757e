#include "load.h"

#include <fstream>
#include <sstream>

#include "base/memory_info.h"
#include "environment.h"
#include "pull_name.h"

namespace inferd {
namespace {

Result<Tokenizer> read_tokenizer(const GgufFile& file) {
  TokenizerData data;
  INFERD_TRY(data.model, file.string("tokenizer.ggml.model"));
  INFERD_TRY(data.pre, file.string("tokenizer.ggml.pre", "default"));
  INFERD_TRY(const GgufStrings token_strings, file.strings("tokenizer.ggml.tokens"));
  const std::vector<std::string_view> tokens(token_strings.begin(), token_strings.end());
  INFERD_TRY(const GgufIntegers type_numbers, file.integers("tokenizer.ggml.token_type"));
  std::vector<int32_t> types;
  for (int64_t i = 0; i < type_numbers.size(); ++i) types.push_back(static_cast<int32_t>(type_numbers[i]));
  std::vector<std::string_view> merges;
  std::vector<double> scores;
  if (data.model == "llama") {
    INFERD_TRY(const GgufReals score_numbers, file.reals("tokenizer.ggml.scores"));
    for (int64_t i = 0; i < score_numbers.size(); ++i) scores.push_back(score_numbers[i]);
    if (file.find("tokenizer.ggml.add_space_prefix") != nullptr) {
      INFERD_TRY(data.add_space_prefix, file.boolean("tokenizer.ggml.add_space_prefix"));
    }
    INFERD_TRY(data.remove_extra_whitespaces, file.boolean("tokenizer.ggml.remove_extra_whitespaces", false));
  } else {
    INFERD_TRY(const GgufStrings merge_strings, file.strings("tokenizer.ggml.merges"));
    merges.assign(merge_strings.begin(), merge_strings.end());
  }
  data.tokens = tokens;
  data.types = types;
  data.merges = merges;
  data.scores = scores;
  const auto id = [&file](std::string_view name) -> Result<std::optional<int32_t>> {
    const std::string key = cat("tokenizer.ggml.", name, "_token_id");
    if (file.find(key) == nullptr) return std::optional<int32_t>();
    INFERD_TRY(const int64_t value, file.integer(key));
    if (value < 0 || value > INT32_MAX) {
      return Error{
          .code = Code::tokenizer_data, .detail = cat("id ", value), .where = cat(file.name(), ": ", key)};
    }
    return std::optional<int32_t>(static_cast<int32_t>(value));
  };
  INFERD_TRY(data.bos, id("bos"));
  INFERD_TRY(data.eos, id("eos"));
  INFERD_TRY(data.eot, id("eot"));
  INFERD_TRY(data.unk, id("unknown"));
  INFERD_TRY(data.pad, id("padding"));
  if (file.find("tokenizer.ggml.add_bos_token") != nullptr) {
    INFERD_TRY(data.add_bos, file.boolean("tokenizer.ggml.add_bos_token"));
  }
  INFERD_TRY(data.add_eos, file.boolean("tokenizer.ggml.add_eos_token", false));
  return Tokenizer::create(data);
}

// general.sampling.*: what the model's authors recommend.
Result<SamplingParams> read_sampling(const GgufFile& file) {
  SamplingParams params;
  INFERD_TRY(params.temperature, file.real("general.sampling.temp", params.temperature));
  INFERD_TRY(params.top_k, file.integer("general.sampling.top_k", params.top_k));
  INFERD_TRY(params.top_p, file.real("general.sampling.top_p", params.top_p));
  INFERD_TRY(params.min_p, file.real("general.sampling.min_p", params.min_p));
  INFERD_TRY(params.repetition_penalty,
             file.real("general.sampling.penalty_repeat", params.repetition_penalty));
  const Status valid = validate(params, 1);
  if (!valid.ok()) {
    return Error{.code = Code::model_metadata,
                 .detail = valid.error().detail,
                 .where = cat(file.name(), ": general.sampling")};
  }
  return params;
}

std::optional<std::string> token_text(const Tokenizer& tokenizer, std::optional<int32_t> id) {
  if (!id) return std::nullopt;
  return std::string(tokenizer.token_bytes(*id));
}

// Threads, connections and the allocator's slack, which come after the plan is made: 5 to 6.5 MiB whatever
// the model, measured with tools/measure_plan.py.
constexpr int64_t kServing = int64_t{5632} << 10;

}  // namespace

Result<ModelLocation> ModelLoader::find_present(const std::string& model) const {
  const std::string name = model_or_default(model);
  INFERD_TRY(ModelLocation location, locate_name(name));
  if (location.present) return location;
  return Error{.code = Code::hub_absent,
               .detail = location.name,
               .where = location.path,
               .fix = cat("`inferd pull ", name, "`")};
}

Result<ModelLocation> ModelLoader::find(const std::string& model) {
  Result<ModelLocation> location = find_present(model);
  if (location.ok() || location.error().code != Code::hub_absent || !options_.pull) return location;
  const Result<PulledName> pulled =
      pull_name(model_or_default(model), options_.offline,
                {.progress = [this](const ProgressEvent& event) { progress_.update(event); },
                 .note = [this](const std::string& text) { progress_.note(text); }});
  if (!pulled.ok()) {
    progress_.abandon();
    return pulled.error();
  }
  progress_.end(pulled->path);
  return find_present(model);
}

Result<std::string> read_text_file(const std::string& path) {
  INFERD_TRY(const MappedFile file, MappedFile::open(path));
  return std::string(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
}

Result<ChatTemplate> parse_chat_template(std::string_view source, const std::string& origin,
                                         const Tokenizer* tokenizer) {
  ChatTemplateOptions options;
  if (tokenizer != nullptr) {
    options.bos_token = token_text(*tokenizer, tokenizer->bos());
    options.eos_token = token_text(*tokenizer, tokenizer->eos());
  }
  Result<ChatTemplate> parsed = ChatTemplate::parse(source, std::move(options));
  if (parsed.ok()) return parsed;
  Error error = std::move(parsed).error();
  error.where = error.where.empty() ? origin : cat(origin, ", ", error.where);
  return error;
}

Result<ChatTemplate> own_chat_template(const std::string& path) {
  INFERD_TRY(const GgufFile file, GgufFile::open(path));
  INFERD_TRY(const std::string_view source, file.string("tokenizer.chat_template", ""));
  if (source.empty()) return Error{.code = Code::template_missing, .where = path};
  INFERD_TRY(const Tokenizer tokenizer, read_tokenizer(file));
  return parse_chat_template(source, cat(path, ": tokenizer.chat_template"), &tokenizer);
}

Result<OpenModel> ModelLoader::open(const ModelLocation& location) {
  progress_.begin("read");
  OpenModel model;
  model.name = location.name;
  model.path = location.path;
  INFERD_TRY(GgufFile file, GgufFile::open(location.path));
  INFERD_TRY(model.config, read_decoder_config(file));
  INFERD_TRY(Tokenizer tokenizer, read_tokenizer(file));
  if (tokenizer.vocab_size() > model.config.vocab) {
    return Error{
        .code = Code::tokenizer_data,
        .detail = cat(tokenizer.vocab_size(), " tokens, the embedding has ", model.config.vocab, " rows"),
        .where = cat(location.path, ": tokenizer.ggml.tokens")};
  }
  INFERD_TRY(model.sampling, read_sampling(file));
  INFERD_TRY(const std::string_view own_template, file.string("tokenizer.chat_template", ""));
  std::string source(own_template);
  if (!options_.chat_template.empty()) {
    INFERD_TRY(source, read_text_file(options_.chat_template));
  }
  if (!source.empty()) {
    INFERD_TRY(model.chat_template, parse_chat_template(source,
                                                        options_.chat_template.empty()
                                                            ? cat(location.path, ": tokenizer.chat_template")
                                                            : options_.chat_template,
                                                        &tokenizer));
  }
  model.tokenizer = std::make_shared<const Tokenizer>(std::move(tokenizer));
  model.file = std::make_unique<GgufFile>(std::move(file));
  progress_.end(
      cat(model.config.architecture, ", ", with_commas(model.config.vocab), " tokens in the vocabulary"));
  return model;
}

MemoryRequest ModelLoader::memory_request() const {
  MemoryRequest request;
  request.ctx = options_.ctx;
  request.max_seqs = options_.max_seqs;
  request.prefill_chunk = options_.prefill_chunk;
  request.kv_bytes = options_.kv_memory;
  request.kv_pages = options_.kv_blocks;
  request.kv_dtype = options_.kv_dtype;
  request.process_bytes = resident_memory() + kServing;
  request.available_bytes = available_memory();
  return request;
}

Result<MemoryPlan> ModelLoader::plan_whole_contexts(const OpenModel& model, int32_t ctx, int32_t seqs) {
  if (backend_.device == nullptr) {
    INFERD_TRY(backend_, make_(options_));
  }
  MemoryRequest request = memory_request();
  const int64_t available = request.available_bytes;
  request.available_bytes = int64_t{1} << 60;  // a plan that does not fit is wanted too
  request.ctx = ctx;
  request.max_seqs = seqs;
  request.kv_bytes.reset();
  request.kv_pages = static_cast<int32_t>(ceil_div(ctx, backend_.device->kv_page_tokens())) * seqs;
  INFERD_TRY(MemoryPlan plan, plan_memory(*model.file, model.config, backend_, request));
  plan.available = available;
  return plan;
}

Result<MemoryPlan> ModelLoader::plan(const OpenModel& model) {
  progress_.begin("plan");
  INFERD_TRY(backend_, make_(options_));
  // The tokenizer is built: the file's header has been read and is not needed any more.
  model.file->mapping()->release(0, model.file->mapping()->size());
  INFERD_TRY(const MemoryPlan plan, plan_memory(*model.file, model.config, backend_, memory_request()));
  progress_.end(cat(human_bytes(plan.total()), " of memory, ctx ", with_commas(plan.runner.ctx), ", seqs ",
                    plan.runner.max_seqs));
  return plan;
}

SchedulerOptions scheduler_options(const MemoryPlan& plan, bool prefix_cache) {
  return {
      .max_seqs = plan.runner.max_seqs,
      .ctx = plan.runner.ctx,
      .prefill_chunk = plan.runner.prefill_chunk,
      .pool = {.pages = plan.runner.kv_pages, .page_tokens = plan.page_tokens, .prefix_cache = prefix_cache}};
}

Result<std::unique_ptr<Engine>> ModelLoader::load(const OpenModel& model, const MemoryPlan& plan,
                                                  EngineOptions engine_options) {
  progress_.begin("load");
  ProgressMeter meter(monotonic_clock(), "load", model.name, 0);
  const Decoder::Progress on_progress = [&](int64_t done, int64_t total) {
    ProgressEvent event = meter.update(done);
    event.total = total;
    progress_.update(event);
  };
  INFERD_TRY(std::unique_ptr<Decoder> decoder, Decoder::load(*model.file, model.config, plan.runner.ctx,
                                                             *backend_.device, *backend_.ops, on_progress));
  INFERD_TRY(std::unique_ptr<Runner> runner,
             Runner::create(std::move(backend_), std::move(decoder), plan.runner,
                            model.tokenizer->banned_mask(model.config.vocab)));
  engine_options.scheduler = scheduler_options(plan, !options_.no_prefix_cache);
  auto engine = std::make_unique<Engine>(std::move(runner), std::move(engine_options));
  progress_.end(cat(human_bytes(plan.weights), " of weights"));
  return engine;
}

}  // namespace inferd
