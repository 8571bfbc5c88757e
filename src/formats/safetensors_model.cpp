// SafetensorsModel: one file, or the files of an index.
#include <algorithm>
#include <filesystem>
#include <map>

#include "base/strings.h"
#include "formats/json_header.h"
#include "formats/safetensors.h"

namespace inferd {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOneFile = "model.safetensors";
constexpr std::string_view kIndexFile = "model.safetensors.index.json";
constexpr int kDepth = 8;  // "metadata" may hold anything

Error index_error(const std::string& path, std::string_view place, std::string detail) {
  return {.code = Code::safetensors_index, .detail = std::move(detail), .where = cat(path, ", ", place)};
}

// A name of a file beside the index, and of nothing else.
bool is_plain_file_name(std::string_view name) {
  return name.ends_with(".safetensors") && name.find_first_of("/\\") == std::string_view::npos &&
         is_printable_utf8(name) && name.size() <= 255;
}

// The member "weight_map", which has one entry at least.
Result<const Json*> weight_map_of(const Json& index, const std::string& path) {
  const Json* map = index.find("weight_map");
  if (map == nullptr) return index_error(path, "weight_map", "the field weight_map is missing");
  if (!map->is_object()) {
    return index_error(path, "weight_map", cat("it is of type ", map->kind_name(), ", object expected"));
  }
  if (map->as_object().empty()) return index_error(path, "weight_map", "it names no tensor");
  return map;
}

}  // namespace

Result<SafetensorsModel> SafetensorsModel::open(const std::string& path) {
  std::error_code ignored;  // what cannot be looked at is no folder; opening it says why
  if (fs::is_directory(path, ignored)) {
    const std::string one = fs::path(path) / kOneFile;
    const std::string index = fs::path(path) / kIndexFile;
    if (fs::exists(one, ignored)) return open_one(one);
    if (fs::exists(index, ignored)) return open_index(index);
    return Error{.code = Code::io_not_found,
                 .detail = cat("neither ", kOneFile, " nor ", kIndexFile, " is in the folder"),
                 .where = path};
  }
  return path.ends_with(".json") ? open_index(path) : open_one(path);
}

Result<SafetensorsModel> SafetensorsModel::open_one(const std::string& path) {
  SafetensorsModel model;
  INFERD_TRY(SafetensorsFile file, SafetensorsFile::open(path));
  model.files_.push_back(std::move(file));
  for (const SafetensorsTensor& tensor : model.files_.front().tensors())
    model.entries_.push_back({0, &tensor});
  std::sort(model.entries_.begin(), model.entries_.end(),
            [](const Entry& a, const Entry& b) { return a.tensor->name < b.tensor->name; });
  return model;
}

Result<SafetensorsModel> SafetensorsModel::open_index(const std::string& path) {
  INFERD_TRY(const MappedFile mapping, MappedFile::open(path));
  if (mapping.size() > static_cast<int64_t>(kSafetensorsMaxHeaderBytes)) {
    return Error{.code = Code::safetensors_limit,
                 .detail = cat("the index is ", with_commas(mapping.size()), " bytes long, at most ",
                               with_commas(static_cast<int64_t>(kSafetensorsMaxHeaderBytes)), " allowed"),
                 .where = path};
  }
  const std::string_view text(reinterpret_cast<const char*>(mapping.bytes().data()), mapping.bytes().size());
  INFERD_TRY(const Json index, parse_json_header(text, kDepth, Code::safetensors_index, path));
  INFERD_TRY(const Json* map, weight_map_of(index, path));

  std::map<std::string_view, int32_t> numbers;  // of the files, in the order of their names
  for (const auto& [tensor, file] : map->as_object()) {
    const std::string place = cat("weight_map, tensor ", printable(tensor));
    if (!file.is_string()) {
      return index_error(path, place,
                         cat("it is of type ", file.kind_name(), ", the name of a file expected"));
    }
    if (!is_plain_file_name(file.as_string())) {
      return index_error(path, place,
                         cat("it is in ", printable(file.as_string()),
                             ", the name of a .safetensors file beside the index expected"));
    }
    numbers.emplace(file.as_string(), 0);
    if (std::ssize(numbers) > kSafetensorsMaxFiles) {
      return index_error(path, "weight_map",
                         cat("it names more than ", with_commas(kSafetensorsMaxFiles), " files"));
    }
  }

  SafetensorsModel model;
  const fs::path folder = fs::path(path).parent_path();
  for (auto& [name, number] : numbers) {
    Result<SafetensorsFile> file = SafetensorsFile::open(folder / name);
    if (!file.ok() && file.error().code == Code::io_not_found) {
      return index_error(path, "weight_map", cat("it names ", printable(name), ", which is not there"));
    }
    if (!file.ok()) return std::move(file).error();
    number = static_cast<int32_t>(model.files_.size());
    model.files_.push_back(std::move(file).value());
  }
  for (const auto& [name, in_file] : map->as_object()) {
    const std::string place = cat("weight_map, tensor ", printable(name));
    const int32_t number = numbers.at(in_file.as_string());
    const SafetensorsTensor* tensor = model.files_[static_cast<size_t>(number)].find(name);
    if (tensor == nullptr) {
      return index_error(
          path, place, cat("it should be in ", printable(in_file.as_string()), ", which has no such tensor"));
    }
    model.entries_.push_back({number, tensor});
  }
  std::sort(model.entries_.begin(), model.entries_.end(),
            [](const Entry& a, const Entry& b) { return a.tensor->name < b.tensor->name; });
  // The same tensor in two files: one of them is of another model.
  for (const SafetensorsFile& file : model.files_) {
    for (const SafetensorsTensor& tensor : file.tensors()) {
      const Entry* entry = model.find(tensor.name);
      if (entry == nullptr || entry->tensor == &tensor) continue;
      return index_error(path, cat("weight_map, tensor ", printable(tensor.name)),
                         cat("it is in ", printable(model.files_[static_cast<size_t>(entry->file)].name()),
                             " and in ", printable(file.name())));
    }
  }
  return model;
}

const SafetensorsModel::Entry* SafetensorsModel::find(std::string_view name) const {
  const auto found = std::lower_bound(
      entries_.begin(), entries_.end(), name,
      [](const Entry& entry, std::string_view wanted) { return entry.tensor->name < wanted; });
  return found != entries_.end() && found->tensor->name == name ? &*found : nullptr;
}

}  // namespace inferd
