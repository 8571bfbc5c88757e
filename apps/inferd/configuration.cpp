#include "configuration.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "base/mmap.h"
#include "config_file.h"
#include "option_table.h"

namespace inferd {
namespace {

constexpr std::string_view kPrefix = "INFERD_";
constexpr int64_t kLargestFile = int64_t{64} << 10;

// Where another place for a value is: the working folder's file may not hold all of them.
constexpr std::string_view kOtherPlaces =
    "give it on the command line, in the environment, or in $XDG_CONFIG_HOME/inferd/inferd.toml (by default "
    "under ~/.config)";

const OptionRow* option_of_key(std::string_view key) {
  for (const OptionRow& option : option_table()) {
    if (option.from != ReadFrom::command_line && option_key(option) == key) return &option;
  }
  return nullptr;
}

std::vector<std::string> names_of(std::string (*name)(const OptionRow&)) {
  std::vector<std::string> names;
  for (const OptionRow& option : option_table()) {
    if (option.from != ReadFrom::command_line) names.push_back(name(option));
  }
  return names;
}

Error unknown_key(const ConfigEntry& entry, const std::string& where) {
  Error error{.code = Code::config_key, .detail = printable(entry.key), .where = where};
  for (const OptionRow& option : option_table()) {
    if (option_key(option) != entry.key || option.from != ReadFrom::command_line) continue;
    error.fix = cat(option.name, " is for the command line alone");
    return error;
  }
  if (const auto near = nearest_name(entry.key, names_of(option_key))) {
    error.fix = cat("did you mean ", *near, "? `inferd config` lists the keys");
  }
  return error;
}

Result<std::optional<Command>> section_command(const ConfigEntry& entry, const std::string& where) {
  if (entry.section.empty()) return std::optional<Command>();
  std::vector<std::string> names;
  for (const CommandRow& row : command_table()) {
    const bool has_keys = std::ranges::any_of(option_table(), [&](const OptionRow& option) {
      return option.from != ReadFrom::command_line && takes(row.command, option);
    });
    if (!has_keys) continue;
    if (row.name == entry.section) return std::optional<Command>(row.command);
    names.emplace_back(row.name);
  }
  const auto near = nearest_name(entry.section, names);
  return Error{.code = Code::config_key,
               .detail = cat("table [", entry.section, "]"),
               .where = where,
               .fix = cat(near ? cat("did you mean [", *near, "]? ") : "",
                          "a table is named after a command: ", join(names, ", "))};
}

// A relative FILE in a file is meant beside that file.
std::string beside(const std::string& file, const std::string& value) {
  const size_t slash = file.rfind('/');
  if (value.empty() || value.front() == '/' || slash == std::string::npos) return value;
  return file.substr(0, slash + 1) + value;
}

Status check_value(const Setting& setting) {
  const std::vector<Command> commands =
      setting.section ? std::vector<Command>{*setting.section} : setting.option->commands;
  std::optional<Error> first;
  for (const Command command : commands) {
    Options probe;
    probe.command = command;
    Status applied = apply_setting(setting, probe);
    if (applied.ok()) return {};
    if (!first) first = std::move(applied).error();
  }
  return bad_setting(setting, std::move(first).value());
}

Result<Setting> setting_of(ConfigEntry entry, const std::string& path, Origin::Kind kind) {
  const std::string where = cat(path, ":", entry.line, ":", entry.column);
  INFERD_TRY(const std::optional<Command> section, section_command(entry, where));
  const OptionRow* option = option_of_key(entry.key);
  if (option == nullptr) return unknown_key(entry, where);
  if (section && !takes(*section, *option)) {
    std::vector<std::string> names;
    for (const Command command : option->commands) names.emplace_back(command_row(command).name);
    return Error{.code = Code::config_key,
                 .detail = cat(entry.key, " in [", entry.section, "]"),
                 .where = where,
                 .fix = cat(entry.key, " belongs to: ", join(names, ", "))};
  }
  if (kind == Origin::Kind::folder_file && option->from == ReadFrom::not_working_folder) {
    return Error{.code = Code::config_place,
                 .detail = cat(entry.key, ", which decides who may use the server"),
                 .where = where,
                 .fix = std::string(kOtherPlaces)};
  }
  Setting setting{.option = option,
                  .section = section,
                  .values = std::move(entry.values),
                  .origin = {.kind = kind, .name = path, .line = entry.line, .column = entry.column}};
  const Field::Shape shape = option->field.shape;
  const bool is_list = shape == Field::Shape::comma_list || shape == Field::Shape::repeated;
  Error error{.code = Code::arg_value};
  if (entry.is_array && !is_list) {
    error.detail = "got an array, allowed is one value";
    return bad_setting(setting, std::move(error));
  }
  if (entry.is_array && setting.values.empty()) {
    error.detail = "got an empty array, allowed is at least one value";
    return bad_setting(setting, std::move(error));
  }
  if ((shape == Field::Shape::flag) != entry.is_boolean) {
    error.detail = cat("got ", printable(setting.values.front()),
                       entry.is_boolean ? ", allowed is a value" : ", allowed are true and false");
    return bad_setting(setting, std::move(error));
  }
  if (shape == Field::Shape::comma_list) setting.values = {join(setting.values, ",")};
  if (option->value == "FILE") setting.values = {beside(path, setting.values.front())};
  INFERD_TRY_STATUS(check_value(setting));
  return setting;
}

Status read_file(const std::string& path, Origin::Kind kind, Configuration& configuration) {
  // A file that is not there is none, and so is one that lies where this user may not look, as the home of a
  // service under ProtectHome.
  struct stat info{};
  if (path.empty() || ::stat(path.c_str(), &info) != 0) return {};
  if (!S_ISREG(info.st_mode)) {  // opening a pipe would wait for somebody to write
    return Error{.code = Code::io_read,
                 .detail = S_ISDIR(info.st_mode) ? "it is a folder" : "it is not a regular file",
                 .where = path};
  }
  INFERD_TRY(const MappedFile file, MappedFile::open(path));
  if (file.size() > kLargestFile) {
    return Error{.code = Code::config_syntax,
                 .detail = cat("it has ", human_bytes(file.size()), ", at most 64 KiB is read"),
                 .where = path};
  }
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  INFERD_TRY(std::vector<ConfigEntry> entries, parse_config(text, path));
  for (ConfigEntry& entry : entries) {
    if (entry.key.empty()) {  // the table itself
      INFERD_TRY_STATUS(section_command(entry, cat(path, ":", entry.line, ":", entry.column)));
      continue;
    }
    INFERD_TRY(Setting setting, setting_of(std::move(entry), path, kind));
    configuration.settings.push_back(std::move(setting));
  }
  configuration.files.push_back(path);
  return {};
}

Status read_variable(std::string_view entry, Configuration& configuration) {
  if (!entry.starts_with(kPrefix)) return {};
  const size_t equals = entry.find('=');
  if (equals == std::string_view::npos) return {};  // environ may hold such lines; they are no variables
  const std::string name(entry.substr(0, equals));
  const std::string value(entry.substr(equals + 1));
  if (value.empty()) return {};  // as good as unset, for those who can only empty a variable
  for (const OptionRow& option : option_table()) {
    if (option.from == ReadFrom::command_line || option_variable(option) != name) continue;
    Setting setting{
        .option = &option, .values = {value}, .origin = {.kind = Origin::Kind::environment, .name = name}};
    if (option.field.shape == Field::Shape::repeated) {
      setting.values.clear();
      for (const std::string_view part : split(value, ',')) setting.values.emplace_back(part);
    }
    INFERD_TRY_STATUS(check_value(setting));
    configuration.settings.push_back(std::move(setting));
    return {};
  }
  Error error{.code = Code::config_key,
              .detail = printable(name),
              .where = cat("environment variable ", name),
              .fix = cat("unset ", name, "; `inferd config --help` says which variables there are")};
  if (const auto near = nearest_name(name, names_of(option_variable))) {
    error.fix = cat("did you mean ", *near, "? else unset it");
  }
  return error;
}

}  // namespace

std::string Origin::text() const {
  switch (kind) {
    case Kind::preset:
      return "default";
    case Kind::user_file:
    case Kind::folder_file:
      return cat(name, ":", line);
    case Kind::environment:
    case Kind::command_line:
      return name;
  }
  return name;
}

Result<Configuration> read_configuration(const ConfigurationPlaces& places) {
  Configuration configuration;
  INFERD_TRY_STATUS(read_file(places.user_file, Origin::Kind::user_file, configuration));
  std::error_code error;  // of a file that is not there, which equals no other
  if (!std::filesystem::equivalent(places.folder_file, places.user_file, error)) {
    INFERD_TRY_STATUS(read_file(places.folder_file, Origin::Kind::folder_file, configuration));
  }
  for (const std::string& entry : places.environment) INFERD_TRY_STATUS(read_variable(entry, configuration));
  return configuration;
}

std::string user_config_path(std::string_view xdg_config_home, std::string_view home) {
  if (xdg_config_home.starts_with('/')) return cat(xdg_config_home, "/inferd/inferd.toml");
  if (home.starts_with('/')) return cat(home, "/.config/inferd/inferd.toml");
  return {};
}

Error bad_setting(const Setting& setting, Error error) {
  const OptionRow& option = *setting.option;
  const bool on_command_line = setting.origin.kind == Origin::Kind::command_line;
  const bool in_file = setting.origin.line > 0;
  if (!on_command_line) error.code = Code::config_value;
  const std::string name = on_command_line ? std::string(option.name)
                           : in_file       ? option_key(option)
                                           : setting.origin.name;
  error.detail = cat(name, ": ", error.detail);
  if (on_command_line) {
    error.where = cat(name, " ", setting.values.back());
  } else {
    error.where = in_file ? cat(setting.origin.name, ":", setting.origin.line, ":", setting.origin.column)
                          : cat("environment variable ", setting.origin.name);
  }
  if (error.fix.empty()) error.fix = cat(name, ": ", option.help);
  return error;
}

Status apply_setting(const Setting& setting, Options& options) {
  for (const std::string& value : setting.values) {
    INFERD_TRY_STATUS(set_option(*setting.option, options, value));
  }
  return {};
}

}  // namespace inferd
