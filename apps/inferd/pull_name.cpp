#include "pull_name.h"

#include <filesystem>
#include <utility>

#include "environment.h"
#include "hub/wheel_fetch.h"

namespace inferd {
namespace {

Result<ModelLocation> locate_in_hub_cache(const std::string& name) {
  INFERD_TRY(const RepoName repo, parse_repo_name(name));
  INFERD_TRY(const HubSettings settings, hub_settings());
  INFERD_TRY(const CachedModel found, find_cached_model(settings.cache, repo));
  if (found.safetensors) return safetensors_error(found.path);
  return ModelLocation{
      .name = std::filesystem::path(found.path).stem().string(), .path = found.path, .present = true};
}

Result<PulledName> pull_from_hub(const std::string& name, bool offline, const PullSinks& sinks) {
  INFERD_TRY(const RepoName repo, parse_repo_name(name));
  PullOptions options{.progress = sinks.progress, .note = sinks.note, .cancel = &interrupted()};
  INFERD_TRY(options.hub, hub_settings());
  options.hub.offline = options.hub.offline || offline;
  INFERD_TRY(PulledModel model, pull_model(repo, options));
  return PulledName{.path = std::move(model.path),
                    .commit = std::move(model.commit),
                    .files = std::move(model.files),
                    .fetched_bytes = model.fetched_bytes};
}

Result<PulledName> pull_known(const NamedModel& model, bool offline, const PullSinks& sinks) {
  if (offline || offline_by_environment())
    return Error{.code = Code::hub_offline, .detail = std::string(model.name)};
  FetchOptions options{
      .environment = child_environment(), .progress = sinks.progress, .cancel = &interrupted()};
  INFERD_TRY(options.folder, model_folder());
  INFERD_TRY(std::string path, fetch_model(model, options));
  PulledName pulled{.fetched_bytes = model.bytes};
  pulled.files.push_back({path, model.bytes, std::string(model.sha256)});
  pulled.path = std::move(path);
  return pulled;
}

}  // namespace

Result<std::vector<CachedFile>> cached_models() {
  const Result<HubSettings> settings = hub_settings();
  if (!settings.ok()) {
    if (settings.error().code == Code::io_not_found) return std::vector<CachedFile>();
    return settings.error();
  }
  return list_cached_models(settings->cache);
}

std::string model_or_default(const std::string& name) {
  return name.empty() ? std::string(kDefaultModel) : name;
}

Result<ModelLocation> locate_name(const std::string& name) {
  if (is_hub_name(name)) return locate_in_hub_cache(name);
  Result<std::string> folder = model_folder();
  const bool is_path = name.find('/') != std::string::npos;
  if (!folder.ok() && !is_path) return std::move(folder).error();
  return resolve_model(name, folder.ok() ? *folder : "");
}

Result<PulledName> pull_name(const std::string& name, bool offline, const PullSinks& sinks) {
  if (is_hub_name(name)) return pull_from_hub(name, offline, sinks);
  INFERD_TRY(const ModelLocation location, locate_name(name));
  if (location.present) return PulledName{.path = location.path};
  return pull_known(*location.known, offline, sinks);
}

}  // namespace inferd
