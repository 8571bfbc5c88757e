// pull: brings models here, so that every other command needs no network.
#include <cstdio>

#include "base/clock.h"
#include "base/json.h"
#include "commands.h"
#include "environment.h"
#include "pull_name.h"

namespace inferd {
namespace {

void print_now(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

// One JSON value a line, each as it happens.
void print_event(Json::Object event) {
  print_now(to_json(Json(std::move(event))) + "\n");
}

std::string_view hash_name(const PulledFile& file) {
  return file.hash.size() == 64 ? "sha256" : "git_sha1";
}

// Progress at most five times a second, and when a phase is complete.
PullSinks json_sinks(const std::string& name) {
  const auto on_progress = [name, printed_ns = int64_t{0}](const ProgressEvent& event) mutable {
    const int64_t now = monotonic_clock().now_ns();
    if (now - printed_ns < 200000000 && (event.total == 0 || event.done < event.total)) return;
    printed_ns = now;
    print_event({{"event", "progress"},
                 {"name", name},
                 {"phase", event.phase},
                 {"done", event.done},
                 {"total", event.total},
                 {"rate", event.rate},
                 {"eta_s", event.eta_s < 0 ? Json() : Json(event.eta_s)}});
  };
  const auto on_note = [name](const std::string& text) {
    print_event({{"event", "note"}, {"name", name}, {"text", text}});
  };
  return {.progress = on_progress, .note = on_note};
}

void print_done(const std::string& name, const PulledName& pulled) {
  Json::Array files;
  for (const PulledFile& file : pulled.files) {
    files.push_back(
        Json::Object{{"path", file.path}, {"bytes", file.bytes}, {std::string(hash_name(file)), file.hash}});
  }
  print_event({{"event", "done"},
               {"name", name},
               {"path", pulled.path},
               {"commit", pulled.commit.empty() ? Json() : Json(pulled.commit)},
               {"files", std::move(files)},
               {"fetched_bytes", pulled.fetched_bytes}});
}

// "93.8 MiB fetched, sha256 b1…"
std::string summary(const PulledName& pulled) {
  std::string text = pulled.fetched_bytes > 0 ? cat(human_bytes(pulled.fetched_bytes), " fetched")
                                              : std::string("all here already");
  if (pulled.files.size() > 1) text += cat(", ", pulled.files.size(), " files");
  if (pulled.files.size() == 1) text += cat(", ", hash_name(pulled.files[0]), " ", pulled.files[0].hash);
  return text;
}

}  // namespace

int pull_command(const Options& options) {
  watch_signals();
  ProgressPrinter progress = stderr_progress();
  const PullSinks people{.progress = [&](const ProgressEvent& event) { progress.update(event); },
                         .note = [&](const std::string& text) { progress.note(text); }};
  for (const std::string& name : options.arguments) {
    const Result<PulledName> pulled =
        pull_name(name, options.offline, options.json ? json_sinks(name) : people);
    if (!pulled.ok()) {
      progress.abandon();
      return report(pulled.error());
    }
    if (options.json) {
      print_done(name, *pulled);
    } else {
      progress.end(summary(*pulled));
      print_now(pulled->path + "\n");
    }
  }
  return kExitOk;
}

}  // namespace inferd
