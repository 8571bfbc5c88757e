// config, completion, man, complete: what the option table says, for people, shells and packages.
#include <algorithm>
#include <cstdio>

#include "commands.h"
#include "completion.h"
#include "configuration.h"
#include "environment.h"
#include "hub/model_names.h"
#include "option_table.h"
#include "pull_name.h"
#include "reference_text.h"

namespace inferd {
namespace {

struct Shown {
  const OptionRow* option;
  std::optional<Command> section;
  Json value;  // null: chosen later
  Origin origin;
};

// What the option comes to for the first command that can have it so: a list of threads is for bench alone.
Json value_for(const OptionRow& option, const Setting* setting) {
  for (const Command taker : option.commands) {
    if (setting != nullptr && setting->section && *setting->section != taker) continue;
    Options probe;
    probe.command = taker;
    if (setting == nullptr || apply_setting(*setting, probe).ok()) return option.field.get(probe);
  }
  return Json();
}

// What one command would use.
std::vector<Shown> shown_for(const Options& options, Command command) {
  std::vector<Shown> all;
  for (const OptionRow& option : option_table()) {
    if (option.from == ReadFrom::command_line || !takes(command, option)) continue;
    const Setting* setting = deciding_setting(options.configuration, option, command);
    const Json value = option.field.get(options);
    // Null in spite of a setting: an option that excludes it decided.
    const bool decided = setting != nullptr && !value.is_null();
    all.push_back({.option = &option, .value = value, .origin = decided ? setting->origin : Origin{}});
  }
  return all;
}

// What holds for all commands, then what the tables of files say.
std::vector<Shown> shown_for_all(const Configuration& configuration) {
  std::vector<Shown> all;
  const auto add = [&](const OptionRow& option, const Setting* setting) {
    all.push_back({.option = &option,
                   .section = setting == nullptr ? std::nullopt : setting->section,
                   .value = value_for(option, setting),
                   .origin = setting == nullptr ? Origin{} : setting->origin});
  };
  for (const OptionRow& option : option_table()) {
    if (option.from != ReadFrom::command_line) {
      add(option, deciding_setting(configuration, option, std::nullopt));
    }
  }
  for (const CommandRow& row : command_table()) {
    for (const OptionRow& option : option_table()) {
      const Setting* setting =
          takes(row.command, option) ? deciding_setting(configuration, option, row.command) : nullptr;
      if (setting != nullptr && setting->section) add(option, setting);
    }
  }
  return all;
}

Json to_json_value(const Shown& one) {
  const OptionRow& option = *one.option;
  Json::Object origin = {{"kind", ""}};
  switch (one.origin.kind) {
    case Origin::Kind::preset:
      origin[0].second = "default";
      break;
    case Origin::Kind::user_file:
    case Origin::Kind::folder_file:
      origin[0].second = "file";
      origin.emplace_back("path", one.origin.name);
      origin.emplace_back("line", one.origin.line);
      break;
    case Origin::Kind::environment:
      origin[0].second = "environment";
      origin.emplace_back("variable", one.origin.name);
      break;
    case Origin::Kind::command_line:
      origin[0].second = "command line";
      break;
  }
  return Json::Object{{"key", option_key(option)},
                      {"table", one.section ? Json(command_row(*one.section).name) : Json()},
                      {"value", one.value},
                      {"option", option.name},
                      {"environment", option_variable(option)},
                      {"default", option.default_text},
                      {"origin", std::move(origin)}};
}

// The value as a line of an inferd.toml; one that is chosen later is a comment. JSON's strings, numbers,
// booleans and arrays are TOML's too.
std::string toml_line(const Shown& one) {
  if (one.value.is_null()) return cat("# ", option_key(*one.option), ": ", one.option->default_text);
  return cat(option_key(*one.option), " = ", to_json(one.value));
}

}  // namespace

int config_command(const Options& options) {
  const std::vector<Shown> all =
      options.config_for ? shown_for(options, *options.config_for) : shown_for_all(options.configuration);
  if (options.json) {
    Json::Array files;
    for (const std::string& file : options.configuration.files) files.emplace_back(file);
    Json::Array values;
    for (const Shown& one : all) values.push_back(to_json_value(one));
    print(to_json(Json::Object{{"files", std::move(files)}, {"options", std::move(values)}}) + "\n");
    return kExitOk;
  }
  size_t width = 0;
  for (const Shown& one : all) width = std::max(width, std::min<size_t>(48, toml_line(one).size()));
  std::optional<OptionGroup> group;
  std::optional<Command> section;
  for (const Shown& one : all) {
    if (one.section != section) {
      print(cat("\n[", command_row(*one.section).name, "]\n"));
      section = one.section;
    } else if (!section && one.option->group != group) {
      print(cat(group ? "\n" : "", "# ", option_group_title(one.option->group), "\n"));
      group = one.option->group;
    }
    std::string line = toml_line(one);
    if (options.show_origin) {
      line += cat(std::string(line.size() < width ? width - line.size() : 0, ' '), "  # ", one.origin.text());
    }
    print(line + "\n");
  }
  return kExitOk;
}

int completion_command(const Options& options) {
  static const std::vector<std::string> kShells = {"bash", "zsh", "fish"};
  const std::string& shell = options.arguments.front();
  if (std::ranges::find(kShells, shell) == kShells.end()) {
    const auto near = nearest_name(shell, kShells);
    return report({.code = Code::arg_value,
                   .detail = cat("no completion for ", printable(shell), ", there are ", join(kShells, ", ")),
                   .fix = near ? cat("did you mean ", *near, "?") : "give one of them"});
  }
  print(std::string(completion_script(shell)));
  return kExitOk;
}

int man_command(const Options& /*options*/) {
  print(man_page());
  return kExitOk;
}

int complete_command(const Options& options) {
  ModelNames models;
  // At a press of TAB there is no place for an error: a folder that cannot be read offers no names.
  if (const Result<std::string> folder = model_folder(); folder.ok()) {
    if (const Result<std::vector<StoredModel>> stored = list_models(*folder); stored.ok()) {
      for (const StoredModel& model : *stored) models.here.push_back(model.name);
    }
  }
  if (const Result<std::vector<CachedFile>> cached = cached_models(); cached.ok()) {
    for (const CachedFile& file : *cached) models.here.push_back(file.name);
  }
  for (const NamedModel& model : named_models()) {
    const std::string name(model.name);
    if (model.offered && std::ranges::find(models.here, name) == models.here.end()) {
      models.fetchable.push_back(name);
    }
  }
  print(completion_lines(complete(options.arguments, models)));
  return kExitOk;
}

}  // namespace inferd
