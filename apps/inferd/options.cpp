#include "options.h"

#include <algorithm>

#include "configuration.h"
#include "option_table.h"

namespace inferd {
namespace {

// The command whose options count: `inferd config serve` takes those of serve too.
Command target(const Options& options) {
  return options.config_for.value_or(options.command);
}

bool takes_here(const Options& options, const OptionRow& option) {
  return takes(options.command, option) || takes(target(options), option);
}

// What other tools of this kind call these commands.
constexpr std::pair<std::string_view, std::string_view> kCalledElsewhere[] = {
    {"chat", "run"},    {"delete", "rm"},   {"download", "pull"}, {"fetch", "pull"},
    {"get", "pull"},    {"info", "show"},   {"inspect", "show"},  {"kill", "stop"},
    {"ls", "list"},     {"models", "list"}, {"remove", "rm"},     {"server", "serve"},
    {"start", "serve"}, {"status", "ps"},   {"unload", "stop"},   {"verify", "show MODEL --verify"},
};

Error unknown_command(std::string_view given) {
  std::vector<std::string> names;
  for (const CommandRow& row : command_table()) names.emplace_back(row.name);
  std::optional<std::string> meant = nearest_name(given, names);
  for (const auto& [elsewhere, here] : kCalledElsewhere) {
    if (given == elsewhere) meant = here;
  }
  Error error{.code = Code::arg_command, .detail = printable(given)};
  if (meant) error.fix = cat("did you mean `inferd ", *meant, "`? `inferd --help` lists the commands");
  return error;
}

Error unknown_option(const Options& options, std::string_view given) {
  std::vector<std::string> names;
  std::vector<std::string> elsewhere;
  for (const OptionRow& option : option_table()) {
    if (takes_here(options, option)) {
      names.emplace_back(option.name);
    } else if (option.name == given) {
      for (const Command other : option.commands) elsewhere.emplace_back(command_row(other).name);
    }
  }
  const std::string_view name = command_row(options.command).name;
  Error error{.code = Code::arg_option, .detail = cat(printable(given), " of `inferd ", name, "`")};
  if (!elsewhere.empty()) {
    error.fix = cat(given, " belongs to: ", join(elsewhere, ", "));
  } else if (const auto near = nearest_name(given, names)) {
    error.fix = cat("did you mean ", *near, "? `inferd ", name, " --help` lists the options");
  } else {
    error.fix = cat("`inferd ", name, " --help` lists the options");
  }
  return error;
}

// The option at `at` and its value, which may be the next argument; `at` is left on the last one read.
Result<Setting> read_option(const Options& options, std::span<const std::string> arguments, size_t& at) {
  std::string_view name = arguments[at];
  std::optional<std::string_view> value;
  if (const size_t equals = name.find('='); equals != std::string_view::npos) {
    value = name.substr(equals + 1);
    name = name.substr(0, equals);
  }
  const auto table = option_table();
  const auto option = std::ranges::find_if(
      table, [&](const OptionRow& row) { return row.name == name && takes_here(options, row); });
  if (option == table.end()) return unknown_option(options, name);
  if (!value && option->value.empty()) value = "true";
  if (!value) {
    if (at + 1 == arguments.size()) {
      return Error{.code = Code::arg_missing,
                   .detail = cat(name, " needs ", option->value),
                   .where = std::string(name)};
    }
    value = arguments[++at];
  }
  return Setting{.option = &*option,
                 .values = {std::string(*value)},
                 .origin = {.kind = Origin::Kind::command_line, .name = std::string(name)}};
}

// Of an option that was given twice the last one counts, unless it may be repeated.
void add_flag(Configuration& given, Setting setting) {
  const auto before = std::ranges::find(given.settings, setting.option, &Setting::option);
  if (before == given.settings.end()) {
    given.settings.push_back(std::move(setting));
  } else if (setting.option->field.shape == Field::Shape::repeated) {
    before->values.push_back(setting.values.front());
  } else {
    *before = std::move(setting);
  }
}

Status take_argument(Options& options, const std::string& argument) {
  const bool names_command = options.command == Command::config || options.command == Command::help;
  if (names_command && options.arguments.empty()) {
    const CommandRow* row = find_command(argument);
    if (row == nullptr) return unknown_command(argument);
    (options.command == Command::config ? options.config_for : options.help_for) = row->command;
  }
  options.arguments.push_back(argument);
  return {};
}

// What makes sense alone, but not beside the rest of the command line.
Status check_together(const Options& options) {
  if (options.command == Command::run && options.json && options.arguments.size() < 2) {
    return Error{.code = Code::arg_missing,
                 .detail = "--json needs a PROMPT",
                 .fix = cat("usage: ", usage_of(command_row(options.command)))};
  }
  if (options.command == Command::stop && options.all && !options.arguments.empty()) {
    return Error{.code = Code::arg_value,
                 .detail = cat("--all and ", printable(options.arguments.front()), " say two things"),
                 .fix = "give one of them"};
  }
  return {};
}

Status check_arguments(Options& options) {
  const CommandRow& row = command_row(options.command);
  const auto count = static_cast<int>(options.arguments.size());
  const std::string usage = cat("usage: ", usage_of(row));
  if (count < row.least_arguments) {
    return Error{.code = Code::arg_missing,
                 .detail = cat("`inferd ", row.name, "` needs ", row.arguments),
                 .fix = usage};
  }
  if (count > row.most_arguments) {
    return Error{.code = Code::arg_value,
                 .detail = cat("`inferd ", row.name, "` takes ",
                               row.most_arguments == 0 ? "no arguments" : row.arguments, ", got ",
                               printable(options.arguments[static_cast<size_t>(row.most_arguments)]), " too"),
                 .fix = usage};
  }
  if (options.command == Command::bench_engine) {
    if (options.arguments.front() != "engine") {
      return Error{
          .code = Code::arg_value,
          .detail = cat("unknown benchmark ", printable(options.arguments.front()), ", there is: engine"),
          .fix = usage};
    }
    options.arguments.erase(options.arguments.begin());
  }
  if (options.command == Command::template_render) {
    if (options.arguments.front() != "render") {
      return Error{
          .code = Code::arg_value,
          .detail = cat("unknown action ", printable(options.arguments.front()), ", there is: render"),
          .fix = usage};
    }
    options.arguments.clear();
  }
  return {};
}

// A later kind of place wins; inside a file, the command's own table.
int rank(const Setting& setting) {
  return 2 * static_cast<int>(setting.origin.kind) + (setting.section ? 1 : 0);
}

// Sets what was decided for the command. Of two options that exclude each other the higher place counts.
Status apply(Options& options) {
  for (const OptionRow& option : option_table()) {
    const Command command = takes(options.command, option) ? options.command : target(options);
    if (!takes(command, option)) continue;
    const Setting* setting = deciding_setting(options.configuration, option, command);
    if (setting == nullptr) continue;
    const auto table = option_table();
    const auto other = std::ranges::find(table, option.excludes, &OptionRow::name);
    if (other != table.end()) {
      const Setting* against = deciding_setting(options.configuration, *other, command);
      if (against != nullptr && rank(*against) > rank(*setting)) continue;
      if (against != nullptr && rank(*against) == rank(*setting)) {
        return Error{.code = Code::arg_value,
                     .detail = cat(option.name, " and ", other->name, " say the same in two ways"),
                     .where = setting->origin.kind == Origin::Kind::command_line
                                  ? ""
                                  : cat(setting->origin.text(), " and ", against->origin.text()),
                     .fix = "give one of them"};
      }
    }
    Status applied = apply_setting(*setting, options);
    if (!applied.ok()) return bad_setting(*setting, std::move(applied).error());
  }
  if (options.command == Command::bench_engine && options.bench_pp.empty() && options.bench_tg.empty()) {
    options.bench_tg = {128};
  }
  for (const auto& [name, value] :
       {std::pair("--template", &options.template_source), std::pair("--input", &options.input)}) {
    if (options.command == Command::template_render && value->empty())
      return Error{.code = Code::arg_missing,
                   .detail = cat("`inferd template render` needs ", name),
                   .fix = "`inferd template --help` has examples"};
  }
  return {};
}

bool is_help(std::string_view argument) {
  return argument == "--help" || argument == "-h";
}

// `inferd config` shows every option; the others read only what they have a use for, so that `inferd version`
// works beside a broken file.
bool reads_configuration(const Options& options) {
  return options.command == Command::config ||
         std::ranges::any_of(option_table(), [&](const OptionRow& option) {
           return takes(options.command, option) && option.from != ReadFrom::command_line;
         });
}

}  // namespace

const Setting* deciding_setting(const Configuration& configuration, const OptionRow& option,
                                std::optional<Command> command) {
  const Setting* best = nullptr;
  for (const Setting& setting : configuration.settings) {
    if (setting.option != &option) continue;
    if (setting.section && setting.section != command) continue;
    if (best == nullptr || rank(setting) > rank(*best)) best = &setting;
  }
  return best;
}

Result<Options> parse_options(std::span<const std::string> arguments, const ConfigurationPlaces& places) {
  Options options;
  if (arguments.empty()) {
    options.brief_help = true;
    return options;
  }
  const std::string_view first = arguments.front();
  if (is_help(first)) return options;
  if (first == "complete") {  // everything behind it is what a shell has read so far
    options.command = Command::complete;
    options.arguments.assign(arguments.begin() + 1, arguments.end());
    return options;
  }
  const CommandRow* row = find_command(first == "--version" ? "version" : first);
  if (row == nullptr) return unknown_command(first);
  options.command = row->command;
  bool only_arguments = false;
  Configuration given;
  for (size_t at = 1; at < arguments.size(); ++at) {
    const std::string& argument = arguments[at];
    if (!only_arguments && is_help(argument)) {
      options.help_for = options.command;
      options.command = Command::help;
      return options;
    }
    if (!only_arguments && argument == "--") {
      only_arguments = true;
    } else if (!only_arguments && argument.size() > 1 && argument.starts_with('-')) {
      INFERD_TRY(Setting setting, read_option(options, arguments, at));
      Options probe;
      probe.command = options.command;
      probe.config_for = options.config_for;
      Status applied = apply_setting(setting, probe);
      if (!applied.ok()) return bad_setting(setting, std::move(applied).error());
      add_flag(given, std::move(setting));
    } else {
      INFERD_TRY_STATUS(take_argument(options, argument));
    }
  }
  INFERD_TRY_STATUS(check_arguments(options));
  if (reads_configuration(options)) {
    INFERD_TRY(options.configuration, read_configuration(places));
  }
  for (Setting& setting : given.settings) options.configuration.settings.push_back(std::move(setting));
  INFERD_TRY_STATUS(apply(options));
  INFERD_TRY_STATUS(check_together(options));
  return options;
}

}  // namespace inferd
