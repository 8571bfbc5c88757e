// The inferd program over another device: one that dies in a step that INFERD_FAULT_STEP names, or one whose
// steps take INFERD_STEP_MS at least.
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "commands.h"
#include "environment.h"
#include "support/faulty_ops.h"

int main(int argc, char** argv) {
  inferd::install_fault_handlers();
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const inferd::Result<inferd::Options> options = inferd::parse_options(arguments);
  if (!options.ok()) return inferd::report(options.error());
  const inferd::BackendFactory make = [](const inferd::Options& o) -> inferd::Result<inferd::Backend> {
    INFERD_TRY(inferd::Backend backend, inferd::make_backend(o));
    const char* step = std::getenv("INFERD_FAULT_STEP");
    const char* delay = std::getenv("INFERD_STEP_MS");
    return inferd::test::make_faulty(std::move(backend), step != nullptr ? std::atoi(step) : 0,
                                     std::chrono::milliseconds(delay != nullptr ? std::atoi(delay) : 0));
  };
  return options->command == inferd::Command::run ? inferd::run_command(*options, make)
                                                  : inferd::serve_command(*options, make);
}
