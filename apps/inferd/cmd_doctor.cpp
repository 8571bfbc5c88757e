// doctor: checks this machine, and with a MODEL runs it once; or explains an error code.
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/cgroup.h"
#include "base/memory_info.h"
#include "base/threads.h"
#include "commands.h"
#include "cpu/isa.h"
#include "environment.h"
#include "hub/hub_cache.h"
#include "ports.h"

namespace inferd {
namespace {

struct Finding {
  enum class Level { ok, warn, fail } level = Level::ok;
  std::string what;
  std::string text;
  std::string fix;  // empty when all is well
};

// All CPUs of the machine that are on, for one that a mask or a quota takes from.
std::string of_all_cpus(int usable) {
  const long all = ::sysconf(_SC_NPROCESSORS_ONLN);
  return all > usable ? cat(" of ", all, " (affinity mask or cgroup quota)") : "";
}

Finding processor() {
  std::string levels;
  for (const IsaLevel level : available_isa_levels())
    levels += cat(levels.empty() ? "" : ", ", isa_name(level));
  const IsaLevel chosen = default_isa_level();
  const bool fast = chosen != IsaLevel::portable;
  return {fast ? Finding::Level::ok : Finding::Level::warn, "processor",
          cat(usable_cpus(), " usable CPUs", of_all_cpus(usable_cpus()), "; instruction sets ", levels,
              "; takes ", isa_name(chosen)),
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

// The part of a path that is there.
std::string existing_part(const std::string& path) {
  std::error_code failure;
  std::filesystem::path part = std::filesystem::absolute(path, failure);
  while (!std::filesystem::exists(part, failure) && part.has_relative_path()) part = part.parent_path();
  return part.string();
}

// A folder that models are fetched into: there is room, and this user may write.
Finding room_in(std::string_view check, const std::string& path, const std::string& contents) {
  const std::string existing = existing_part(path);
  struct statvfs info{};
  if (::statvfs(existing.c_str(), &info) != 0)
    return {Finding::Level::fail, std::string(check), cat(existing, ": ", std::strerror(errno)),
            "check the folder"};
  const auto free_bytes = static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize);
  std::string text = cat(contents, " in ", path, ", ", human_bytes(free_bytes), " free");
  if (::access(existing.c_str(), W_OK | X_OK) != 0)
    return {Finding::Level::warn, std::string(check), cat(text, "; ", existing, " cannot be written to"),
            cat("to fetch models, `sudo chown -R $USER ", existing, "` or another folder")};
  if (free_bytes < int64_t{1} << 30)
    return {Finding::Level::warn, std::string(check), std::move(text), "free space before fetching models"};
  return {Finding::Level::ok, std::string(check), std::move(text), ""};
}

Finding failing(std::string_view check, const Error& error) {
  return {Finding::Level::fail, std::string(check),
          error.where.empty() ? error.message() : cat(error.message(), " (", error.where, ")"),
          error.fix.empty() ? std::string(error_row(error.code).fix) : error.fix};
}

Finding folder() {
  const Result<std::string> path = model_folder();
  if (!path.ok()) return failing("models", path.error());
  const Result<std::vector<StoredModel>> stored = list_models(*path);
  if (!stored.ok()) return failing("models", stored.error());
  return room_in("models", *path, cat(stored->size(), stored->size() == 1 ? " model" : " models"));
}

// Of the Hugging Face hub.
Finding cache() {
  const Result<HubSettings> hub = hub_settings();
  if (!hub.ok()) return failing("cache", hub.error());
  const Result<std::vector<CachedFile>> cached = list_cached_models(hub->cache);
  if (!cached.ok()) return failing("cache", cached.error());
  Finding finding =
      room_in("cache", hub->cache, cat(cached->size(), cached->size() == 1 ? " model" : " models"));
  finding.text += hub->token.empty() ? "; no token" : "; a token is set";
  if (hub->offline) finding.text += "; HF_HUB_OFFLINE is set";
  const CacheRemains remains = find_remains(hub->cache);
  if (remains.partial_files > 0)
    finding.text += cat("; ", human_bytes(remains.partial_bytes), " of unfinished downloads");
  if (!remains.broken.empty()) {
    finding.level = std::max(finding.level, Finding::Level::warn);
    finding.text += cat("; parts are gone of ", join(remains.broken, ", "));
    if (finding.fix.empty()) finding.fix = cat("`inferd pull ", remains.broken.front(), "` completes it");
  }
  return finding;
}

Finding port(int32_t number) {
  if (number == 0 || free_port_above(number - 1) == number)
    return {Finding::Level::ok, "port", number == 0 ? "0: a free one is picked" : cat(number, " is free"),
            ""};
  const Error taken = with_port_holder({.code = Code::net_port, .detail = cat(number, " is taken")}, number);
  return {Finding::Level::warn, "port", taken.detail, taken.fix};
}

// What the NVIDIA driver tells of itself and its devices under /proc.
Finding gpu() {
  const std::optional<std::string> driver = read_small_file("/proc/driver/nvidia/version");
  std::vector<std::string> models;
  std::error_code failure;
  for (std::filesystem::directory_iterator at("/proc/driver/nvidia/gpus", failure), end;
       !failure && at != end; at.increment(failure)) {
    const std::optional<std::string> facts = read_small_file(at->path().string() + "/information");
    constexpr std::string_view kModel = "Model:";
    for (const std::string_view line : split(facts.value_or(""), '\n')) {
      if (line.starts_with(kModel)) models.emplace_back(trim(line.substr(kModel.size())));
    }
  }
  if (!driver) return {Finding::Level::ok, "gpu", "no NVIDIA driver; models are computed on the CPU", ""};
  const std::string version = driver->substr(0, driver->find('\n'));
  if (models.empty())
    return {Finding::Level::warn, "gpu", cat("driver without a device (", version, ")"),
            "look into `dmesg`, or give this container a device"};
  return {Finding::Level::ok, "gpu",
          cat(join(models, ", "), " (", version, "); this build computes on the CPU"), ""};
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
  Finding finding = failing("model", tried.error());
  finding.text = cat(error_row(tried.error().code).id, ": ", finding.text);
  return finding;
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
  std::vector<Finding> findings = {processor(), memory(),           huge_pages(), folder(),
                                   cache(),     port(options.port), gpu()};
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
