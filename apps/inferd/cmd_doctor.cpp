// doctor: checks this machine, and with a MODEL runs it once; or explains an error code.
#include <sys/statvfs.h>

#include <cstdio>
#include <fstream>

#include "base/cgroup.h"
#include "base/memory_info.h"
#include "base/threads.h"
#include "commands.h"
#include "cpu/isa.h"
#include "environment.h"
#include "ports.h"

namespace inferd {
namespace {

struct Finding {
  enum class Level { ok, warn, fail } level = Level::ok;
  std::string what;
  std::string text;
  std::string fix;  // empty when all is well
};

Finding processor() {
  std::string levels;
  for (const IsaLevel level : available_isa_levels())
    levels += cat(levels.empty() ? "" : ", ", isa_name(level));
  const IsaLevel chosen = default_isa_level();
  const bool fast = chosen != IsaLevel::portable;
  return {fast ? Finding::Level::ok : Finding::Level::warn, "processor",
          cat(usable_cpus(), " usable CPUs; instruction sets ", levels, "; takes ", isa_name(chosen)),
          fast ? ""
               : "AVX2 makes models several times faster; this chip, or its virtual machine, does not offer "
                 "it"};
}

Finding memory() {
  constexpr int64_t kSmall = int64_t{1} << 30;
  const int64_t bytes = available_memory();
  const int64_t machine = machine_available_memory();
  const std::string limit = machine > bytes + (machine >> 6)
                                ? cat(" to this process's cgroup, ", human_bytes(machine), " on the machine")
                                : "";
  return {bytes > kSmall ? Finding::Level::ok : Finding::Level::warn, "memory",
          cat(human_bytes(bytes), " available", limit),
          bytes > kSmall ? "" : "small models need about 1 GiB"};
}

// The engine asks for huge pages with madvise(2).
Finding huge_pages() {
  const std::optional<std::string> text = read_small_file("/sys/kernel/mm/transparent_hugepage/enabled");
  const bool never = text && text->find("[never]") != std::string::npos;
  return {never ? Finding::Level::warn : Finding::Level::ok, "huge pages",
          !text   ? "this kernel has none"
          : never ? "off"
                  : "on where they are asked for",
          never ? "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled (as root)" : ""};
}

Finding folder() {
  const Result<std::string> path = model_folder();
  if (!path.ok())
    return {Finding::Level::fail, "models", path.error().message(), "set HOME or XDG_DATA_HOME"};
  const Result<std::vector<StoredModel>> stored = list_models(*path);
  if (!stored.ok())
    return {Finding::Level::fail, "models", stored.error().message(),
            std::string(error_row(stored.error().code).fix)};
  struct statvfs info{};
  std::string existing = *path;
  while (::statvfs(existing.c_str(), &info) != 0 && existing.size() > 1) {
    existing.resize(std::max<size_t>(1, existing.rfind('/')));
  }
  const auto free_bytes = static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize);
  const bool room = free_bytes > int64_t{1} << 30;
  return {room ? Finding::Level::ok : Finding::Level::warn, "models",
          cat(stored->size(), " in ", *path, ", ", human_bytes(free_bytes), " free"),
          room ? "" : "free space before fetching models"};
}

Finding port(int32_t number) {
  if (number == 0 || free_port_above(number - 1) == number)
    return {Finding::Level::ok, "port", number == 0 ? "0: a free one is picked" : cat(number, " is free"),
            ""};
  const Error taken = with_port_holder({.code = Code::net_port, .detail = cat(number, " is taken")}, number);
  return {Finding::Level::warn, "port", taken.detail, taken.fix};
}

Finding gpu() {
  const std::optional<std::string> driver = read_small_file("/proc/driver/nvidia/version");
  const std::string line = driver ? driver->substr(0, driver->find('\n')) : "";
  return {Finding::Level::ok, "gpu",
          driver ? cat("NVIDIA driver found (", line, "); this build computes on the CPU")
                 : "no NVIDIA driver; models are computed on the CPU",
          ""};
}

class LastEvent : public EventSink {
 public:
  void on_events(std::vector<Event> events) override {
    for (Event& event : events) {
      if (event.kind != Event::Kind::token) finished_ = std::move(event);
    }
  }
  const std::optional<Event>& finished() const { return finished_; }

 private:
  std::optional<Event> finished_;
};

// Loads the model and computes one token of an answer.
Result<std::string> try_model(const Options& options) {
  ProgressPrinter progress = stderr_progress();
  Options one = options;
  one.max_seqs = 1;
  ModelLoader loader(one, progress);
  const int64_t begin = monotonic_clock().now_ns();
  INFERD_TRY(const ModelLocation location, loader.find_present(options.arguments.front()));
  INFERD_TRY(OpenModel model, loader.open(location));
  INFERD_TRY(const MemoryPlan plan, loader.plan(model));
  INFERD_TRY(const std::unique_ptr<Engine> engine, loader.load(model, plan, {}));
  const double load_s = monotonic_clock().seconds_since(begin);

  Request request;
  request.prompt = model.tokenizer->encode("The capital of France is", {.add_special = true});
  request.max_tokens = 1;
  request.sampling.temperature = 0;
  request.sampling.seed = 0;
  const auto prompt_tokens = request.prompt.size();
  const auto sink = std::make_shared<LastEvent>();
  request.sink = sink;
  const int64_t asked = monotonic_clock().now_ns();
  const Result<RequestId> id = engine->submit(std::move(request));
  if (!id.ok()) return id.error();
  while (!sink->finished()) engine->step();
  if (sink->finished()->error) return *sink->finished()->error;
  return cat(model.name, " loads in ", human_seconds(load_s), "; a pass over ", prompt_tokens,
             " tokens takes ", human_seconds(monotonic_clock().seconds_since(asked)), "; peak memory ",
             human_bytes(peak_resident_memory()));
}

Finding model(const Options& options) {
  const Result<std::string> tried = try_model(options);
  if (tried.ok()) return {Finding::Level::ok, "model", *tried, ""};
  const Error& error = tried.error();
  return {Finding::Level::fail, "model", cat(error_row(error.code).id, ": ", error.message()),
          error.fix.empty() ? std::string(error_row(error.code).fix) : error.fix};
}

int explain(const Options& options) {
  std::string wanted = options.explain;
  for (char& c : wanted) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (const ErrorRow& row : error_table()) {
    if (row.id != wanted) continue;
    if (options.json) {
      std::fputs((to_json(Json::Object{{"code", row.id},
                                       {"text", row.text},
                                       {"fix", row.fix},
                                       {"exit_code", row.exit_code},
                                       {"http_status", row.http_status}}) +
                  "\n")
                     .c_str(),
                 stdout);
    } else {
      std::fputs(cat(row.id, "  ", row.text, "\n  fix           ", row.fix, "\n  exit code     ",
                     row.exit_code, "\n  HTTP status   ", row.http_status, "\n")
                     .c_str(),
                 stdout);
    }
    return kExitOk;
  }
  return report(
      {.code = Code::arg_value,
       .detail = cat("got ", printable(options.explain), ", allowed are the codes of docs/errors.md"),
       .where = "--explain",
       .fix = "give a code as errors print it, such as E-NET-001"});
}

}  // namespace

int doctor_command(const Options& options) {
  if (!options.explain.empty()) return explain(options);
  static constexpr std::string_view kNames[] = {"ok", "warn", "FAIL"};
  std::vector<Finding> findings = {processor(), memory(), huge_pages(), folder(), port(options.port), gpu()};
  if (!options.arguments.empty()) findings.push_back(model(options));
  bool failed = false;
  Json::Array json;
  for (const Finding& finding : findings) {
    failed |= finding.level == Finding::Level::fail;
    const std::string_view level = kNames[static_cast<size_t>(finding.level)];
    json.push_back(Json::Object{{"check", finding.what},
                                {"level", to_lower_ascii(level)},
                                {"text", finding.text},
                                {"fix", finding.fix}});
    if (options.json) continue;
    std::fputs(cat(level, std::string(6 - level.size(), ' '), finding.what,
                   std::string(12 - finding.what.size(), ' '), finding.text, "\n")
                   .c_str(),
               stdout);
    if (!finding.fix.empty()) std::fputs(cat("        fix: ", finding.fix, "\n").c_str(), stdout);
  }
  if (options.json) std::fputs((to_json(Json(std::move(json))) + "\n").c_str(), stdout);
  return failed ? kExitBadFile : kExitOk;
}

}  // namespace inferd
