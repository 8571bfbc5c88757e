// fetch_models [NAME...]: puts the named test models (without names: all of them) into the model folder.
// `./dev models` runs it. It reads the environment, so it stands beside apps/, not below src/.
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/errors.h"
#include "base/progress.h"
#include "base/strings.h"
#include "hub/model_names.h"
#include "hub/wheel_fetch.h"

namespace inferd {
namespace {

std::atomic<bool> stop_asked{false};  // the one thing a signal handler can reach
static_assert(std::atomic<bool>::is_always_lock_free);

std::string_view environment_value(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

int fail(const Error& error) {
  std::fputs(error.terminal_text().c_str(), stderr);
  return error_row(error.code).exit_code;
}

Result<std::vector<const NamedModel*>> chosen_models(int argc, char** argv) {
  std::vector<const NamedModel*> chosen;
  if (argc < 2) {
    for (const NamedModel& model : named_models()) chosen.push_back(&model);
    return chosen;
  }
  for (int i = 1; i < argc; ++i) {
    const NamedModel* model = find_named_model(argv[i]);
    if (model == nullptr)
      return Error{.code = Code::model_name,
                   .detail = printable(argv[i]),
                   .fix = "without names it fetches all that it knows"};
    chosen.push_back(model);
  }
  return chosen;
}

Result<std::string> fetch_all(const std::vector<const NamedModel*>& models, ProgressPrinter& printer) {
  FetchOptions options;
  INFERD_TRY(options.folder,
             default_model_folder(environment_value("XDG_DATA_HOME"), environment_value("HOME")));
  for (char** variable = environ; *variable != nullptr; ++variable)
    options.environment.emplace_back(*variable);
  options.progress = [&printer](const ProgressEvent& event) { printer.update(event); };
  options.cancel = &stop_asked;
  for (const NamedModel* model : models) {
    auto path = fetch_model(*model, options);
    if (!path.ok()) {
      printer.abandon();
      return std::move(path).error();
    }
    printer.end();
    std::printf("%s\n", path->c_str());
  }
  return options.folder;
}

int run(int argc, char** argv) {
  for (const int number : {SIGINT, SIGTERM}) std::signal(number, [](int) { stop_asked = true; });
  const bool bar = ::isatty(STDERR_FILENO) == 1 && environment_value("TERM") != "dumb";
  ProgressPrinter printer(monotonic_clock(), STDERR_FILENO, bar ? ProgressStyle::bar : ProgressStyle::lines,
                          [] { return terminal_columns(STDERR_FILENO); });
  const auto models = chosen_models(argc, argv);
  if (!models.ok()) return fail(models.error());
  const auto folder = fetch_all(*models, printer);
  return folder.ok() ? kExitOk : fail(folder.error());
}

}  // namespace
}  // namespace inferd

int main(int argc, char** argv) {
  return inferd::run(argc, argv);
}
