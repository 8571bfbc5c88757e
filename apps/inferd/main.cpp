// The inferd program: parses the command line and runs one subcommand.
#include <cstdio>
#include <string>
#include <vector>

#include "commands.h"
#include "environment.h"

namespace inferd {
namespace {

int run(const Options& options) {
  switch (options.command) {
    case Command::serve:
      return serve_command(options);
    case Command::run:
      return run_command(options);
    case Command::pull:
      return pull_command(options);
    case Command::list:
      return list_command(options);
    case Command::show:
      return show_command(options);
    case Command::plan:
      return plan_command(options);
    case Command::tokenize:
      return tokenize_command(options);
    case Command::bench_engine:
      return bench_engine_command(options);
    case Command::doctor:
      return doctor_command(options);
    case Command::version:
      return version_command(options);
    case Command::help:
      std::fputs((options.help_for ? help_text(*options.help_for) : help_text()).c_str(), stdout);
      return kExitOk;
  }
  return kExitUsage;
}

}  // namespace
}  // namespace inferd

int main(int argc, char** argv) {
  inferd::install_fault_handlers();
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const inferd::Result<inferd::Options> options = inferd::parse_options(arguments);
  if (!options.ok()) return inferd::report(options.error());
  const int code = inferd::run(*options);
  if (std::fflush(stdout) != 0) {
    return inferd::report(
        {.code = inferd::Code::io_write, .detail = "stdout", .fix = "check where the output goes"});
  }
  return code;
}
