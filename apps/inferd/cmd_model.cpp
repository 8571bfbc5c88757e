// list, show, tokenize: commands that look at models without running them.
#include <algorithm>
#include <cstdio>

#include "commands.h"
#include "environment.h"
#include "formats/gguf_dump.h"
#include "pull_name.h"

namespace inferd {
namespace {

constexpr int kErr = 2;

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
}
void print_json(const Json& json) {
  print(to_json(json) + "\n");
}

std::string pad(std::string text, size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

ProgressPrinter quiet_progress() {
  return ProgressPrinter(monotonic_clock(), kErr, progress_style(kErr),
                         [] { return terminal_columns(kErr); });
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
  if (options.json) {
    Json::Array models;
    for (const StoredModel& model : *stored) {
      models.push_back(Json::Object{
          {"name", model.name}, {"path", model.path}, {"bytes", model.bytes}, {"present", true}});
    }
    for (const CachedFile& file : *cached) {
      models.push_back(
          Json::Object{{"name", file.name}, {"path", file.path}, {"bytes", file.bytes}, {"present", true}});
    }
    for (const NamedModel& model : named_models()) {
      if (!model.offered || is_stored(model.name)) continue;
      models.push_back(Json::Object{{"name", model.name},
                                    {"path", model_file_path(model, *folder)},
                                    {"bytes", model.bytes},
                                    {"present", false}});
    }
    print_json(Json::Object{{"folder", *folder}, {"models", std::move(models)}});
    return kExitOk;
  }
  for (const StoredModel& model : *stored) {
    print(cat(pad(model.name, 24), "  ", pad(human_bytes(model.bytes), 10), "  ", model.path, "\n"));
  }
  for (const CachedFile& file : *cached) {
    print(cat(pad(file.name, 24), "  ", pad(human_bytes(file.bytes), 10), "  ", file.path, "\n"));
  }
  for (const NamedModel& model : named_models()) {
    if (!model.offered || is_stored(model.name)) continue;
    print(cat(pad(std::string(model.name), 24), "  ", pad(human_bytes(model.bytes), 10),
              "  not here; `inferd pull ", model.name, "` fetches it\n"));
  }
  return kExitOk;
}

int show_command(const Options& options) {
  ProgressPrinter progress = quiet_progress();
  ModelLoader loader(options, progress);
  const Result<ModelLocation> location = loader.find_present(options.arguments.front());
  if (!location.ok()) return report(location.error());
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
  ProgressPrinter progress = quiet_progress();
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
