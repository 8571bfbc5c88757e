// The inferd program whose device dies in a step that the environment names: INFERD_FAULT_STEP.
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
  const int step = std::atoi(std::getenv("INFERD_FAULT_STEP"));
  return inferd::serve_command(*options, [step](const inferd::Options& o) -> inferd::Result<inferd::Backend> {
    INFERD_TRY(inferd::Backend backend, inferd::make_backend(o));
    return inferd::test::make_faulty(std::move(backend), step);
  });
}
