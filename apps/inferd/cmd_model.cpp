// list, show, tokenize: commands that look at models without running them.
#include <algorithm>
#include <cstdio>
#include <map>

#include "base/memory_info.h"
#include "commands.h"
#include "environment.h"
#include "formats/gguf_dump.h"
#include "hub/remove_model.h"
#include "pull_name.h"

namespace inferd {
namespace {

std::string pad(std::string text, size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

std::string list_line(const std::string& name, const std::string& size, const std::string& type,
                      const std::string& ctx, const std::string& fits) {
  return cat(pad(name, 32), "  ", pad(size, 10), "  ", pad(type, 6), "  ", pad(ctx, 9), "  ", fits, "\n");
}

// The file's hash against the one it should have, and all that loading reads besides the weights.
int verify(const Options& options, ModelLoader& loader, const ModelLocation& location) {
  const std::string pinned(location.known != nullptr ? location.known->sha256 : "");
  const Result<FileHash> hash = hash_model_file(location.path, pinned);
  if (!hash.ok()) return report(hash.error());
  if (!hash->ok()) {
    return report({.code = Code::model_hash,
                   .detail = cat(hash->kind, " ", hash->value, ", not ", hash->wanted),
                   .where = location.path});
  }
  const Result<OpenModel> model = loader.open(location);
  if (!model.ok()) return report(model.error());
  const Result<Backend> backend = make_backend(options);
  if (!backend.ok()) return report(backend.error());
  const Result<int64_t> weights =
      Decoder::weight_bytes(*model->file, model->config, model->config.train_ctx, *backend->ops);
  if (!weights.ok()) return report(weights.error());
  const std::string source = hash->wanted.empty() ? "nobody has said what it should be" : "as it should be";
  if (options.json) {
    print_json(Json::Object{{"path", location.path},
                            {"hash", hash->kind},
                            {"value", hash->value},
                            {"wanted", hash->wanted.empty() ? Json() : Json(hash->wanted)},
                            {"tensors", static_cast<int64_t>(model->file->tensors().size())},
                            {"weights_bytes", *weights}});
    return kExitOk;
  }
  print(cat("hash        ", hash->kind, " ", hash->value, ": ", source, "\nstructure   ",
            model->config.architecture, ", ", model->file->tensors().size(), " tensors, ",
            human_bytes(*weights), " of weights: complete\n"));
  return kExitOk;
}

// What list says of a file beside its size; empty strings for one that cannot be read as a model.
struct ListedFacts {
  std::string type;  // that most of its bytes have
  int64_t ctx = 0;
  std::string fits;  // "yes", "no", or the code of what is wrong
};

ListedFacts facts_of(const Options& options, const std::string& path) {
  const auto wrong = [](const Error& error) {
    return ListedFacts{.fits = std::string(error_row(error.code).id)};
  };
  const Result<GgufFile> file = GgufFile::open(path);
  if (!file.ok()) return wrong(file.error());
  const Result<DecoderConfig> config = read_decoder_config(*file);
  if (!config.ok()) return wrong(config.error());
  std::map<std::string, size_t> bytes;
  for (const GgufTensor& tensor : file->tensors()) bytes[ggml_type_name(tensor.type)] += tensor.data.size();
  ListedFacts facts{.ctx = config->train_ctx};
  const auto most = std::ranges::max_element(bytes, {}, [](const auto& entry) { return entry.second; });
  if (most != bytes.end()) facts.type = most->first;
  const Result<Backend> backend = make_backend(options);
  if (!backend.ok()) return wrong(backend.error());
  MemoryRequest request;
  request.max_seqs = 1;
  request.available_bytes = available_memory();
  const Result<MemoryPlan> plan = plan_memory(*file, *config, *backend, request);
  if (!plan.ok() && plan.error().code != Code::mem_plan) return wrong(plan.error());
  facts.fits = plan.ok() ? "yes" : "no";
  return facts;
}

}  // namespace

int list_command(const Options& options) {
  const Result<std::string> folder = model_folder();
  if (!folder.ok()) return report(folder.error());
  const Result<std::vector<StoredModel>> stored = list_models(*folder);
  if (!stored.ok()) return report(stored.error());
  const Result<std::vector<CachedFile>> cached = cached_models();
  if (!cached.ok()) return report(cached.error());
  const auto is_stored = [&](std::string_view name) {
    return std::ranges::find(*stored, name, [](const StoredModel& m) { return std::string_view(m.name); }) !=
           stored->end();
  };
  std::vector<StoredModel> here = *stored;
  for (const CachedFile& file : *cached) here.push_back({file.name, file.path, file.bytes});
  Json::Array models;
  std::string table = list_line("NAME", "SIZE", "TYPE", "CONTEXT", "FITS");
  for (const StoredModel& model : here) {
    const ListedFacts facts = facts_of(options, model.path);
    table += list_line(model.name, human_bytes(model.bytes), facts.type,
                       facts.ctx > 0 ? with_commas(facts.ctx) : "", facts.fits);
    models.push_back(Json::Object{{"name", model.name},
                                  {"path", model.path},
                                  {"bytes", model.bytes},
                                  {"type", facts.type},
                                  {"ctx", facts.ctx},
                                  {"fits", facts.fits},
                                  {"present", true}});
  }
  for (const NamedModel& model : named_models()) {
    if (!model.offered || is_stored(model.name)) continue;
    table += list_line(std::string(model.name), human_bytes(model.bytes), "", "",
                       cat("not here: `inferd pull ", model.name, "`"));
    models.push_back(Json::Object{{"name", model.name},
                                  {"path", model_file_path(model, *folder)},
                                  {"bytes", model.bytes},
                                  {"present", false}});
  }
  if (options.json) {
    print_json(Json::Object{{"folder", *folder}, {"models", std::move(models)}});
  } else {
    print(table);
  }
  return kExitOk;
}

int show_command(const Options& options) {
  ProgressPrinter progress = stderr_progress();
  ModelLoader loader(options, progress);
  const Result<ModelLocation> location = loader.find_present(options.arguments.front());
  if (!location.ok()) return report(location.error());
  if (options.verify) return verify(options, loader, *location);
  const Result<GgufFile> file = GgufFile::open(location->path);
  if (!file.ok()) return report(file.error());
  if (options.json) {
    print_json(gguf_dump_json(*file));
  } else {
    print(gguf_dump_text(*file));
  }
  return kExitOk;
}

int tokenize_command(const Options& options) {
  ProgressPrinter progress = stderr_progress();
  ModelLoader loader(options, progress);
  const Result<std::string> text = text_argument(options.arguments.size() > 1 ? options.arguments[1] : "-");
  if (!text.ok()) return report(text.error());
  const Result<ModelLocation> location = loader.find_present(options.arguments.front());
  if (!location.ok()) return report(location.error());
  const Result<OpenModel> model = loader.open(*location);
  if (!model.ok()) return report(model.error());
  const Tokenizer& tokenizer = *model->tokenizer;
  const std::vector<int32_t> ids =
      tokenizer.encode(*text, {.add_special = options.add_special, .parse_special = options.parse_special});
  if (options.json) {
    Json::Array tokens;
    for (const int32_t id : ids) tokens.emplace_back(id);
    print_json(Json::Object{{"tokens", std::move(tokens)}, {"count", static_cast<int64_t>(ids.size())}});
    return kExitOk;
  }
  for (const int32_t id : ids) print(cat(id, "\t", printable(tokenizer.token_bytes(id), 1000), "\n"));
  return kExitOk;
}

}  // namespace inferd
