// The inferd program: parses the command line and runs one subcommand.
#include <cstdio>
#include <string>
#include <vector>

#include "commands.h"
#include "configuration.h"
#include "environment.h"
#include "help_text.h"
#include "option_table.h"

namespace inferd {
namespace {

int print_help(const Options& options) {
  const int columns = terminal_columns(1);
  const std::string text = options.brief_help ? brief_help(columns)
                           : options.help_for ? help_text(*options.help_for, columns)
                                              : help_text(columns);
  std::fputs(text.c_str(), stdout);
  return kExitOk;
}

// A folder's file may belong to somebody else's project, so what it changes is said.
void say_folder_configuration(const Options& options) {
  if (options.log_level < LogLevel::info || options.command == Command::config) return;
  std::string said;
  for (const OptionRow& option : option_table()) {
    if (!takes(options.command, option)) continue;
    const Setting* setting = deciding_setting(options.configuration, option, options.command);
    if (setting == nullptr || setting->origin.kind != Origin::Kind::folder_file) continue;
    said += cat(said.empty() ? cat("from ", setting->origin.name, ": ") : ", ", option_key(option), " = ",
                printable(join(setting->values, ",")));
  }
  if (!said.empty()) std::fputs((said + "\n").c_str(), stderr);
}

int run(const Options& options) {
  switch (options.command) {
    case Command::serve:
      return serve_command(options);
    case Command::run:
      return run_command(options);
    case Command::ps:
      return ps_command(options);
    case Command::stop:
      return stop_command(options);
    case Command::pull:
      return pull_command(options);
    case Command::rm:
      return rm_command(options);
    case Command::list:
      return list_command(options);
    case Command::show:
      return show_command(options);
    case Command::plan:
      return plan_command(options);
    case Command::tokenize:
      return tokenize_command(options);
    case Command::template_render:
      return template_command(options);
    case Command::ppl:
      return ppl_command(options);
    case Command::score:
      return score_command(options);
    case Command::bench_engine:
      return bench_engine_command(options);
    case Command::doctor:
      return doctor_command(options);
    case Command::version:
      return version_command(options);
    case Command::config:
      return config_command(options);
    case Command::completion:
      return completion_command(options);
    case Command::man:
      return man_command(options);
    case Command::complete:
      return complete_command(options);
    case Command::help:
      return print_help(options);
  }
  return kExitUsage;
}

}  // namespace
}  // namespace inferd

int main(int argc, char** argv) {
  inferd::install_fault_handlers();
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const inferd::Result<inferd::Options> options =
      inferd::parse_options(arguments, inferd::configuration_places());
  if (!options.ok()) return inferd::report(options.error());
  inferd::say_folder_configuration(*options);
  const int code = inferd::run(*options);
  if (std::fflush(stdout) != 0) {
    return inferd::report(
        {.code = inferd::Code::io_write, .detail = "stdout", .fix = "check where the output goes"});
  }
  return code;
}
