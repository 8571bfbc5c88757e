// serve: loads a model and answers over HTTP until a signal or a failure of the engine.
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "api_key.h"
#include "base/threads.h"
#include "client/server_notes.h"
#include "commands.h"
#include "environment.h"
#include "ports.h"
#include "pull_name.h"
#include "server/server.h"
#include "version.h"

namespace inferd {
namespace {

constexpr int kErr = 2;

// After a failure the server stays this long, so that probes see it red and every stream can send its last
// event.
constexpr std::chrono::milliseconds kFailedGrace{500};

void say(const std::string& text) {
  std::fputs(text.c_str(), stderr);
}

void print_ready(const Options& options, const OpenModel& model, const MemoryPlan& plan,
                 const std::string& device, int threads, const Server& server, const std::string& given,
                 double seconds, Logger& log) {
  const bool for_people = log.format() == LogFormat::text;
  if (for_people) say(plan.text());
  std::fputs(cat("ready ", server.base_url(), "  ", model.name, "  ctx ", plan.runner.ctx, "  seqs ",
                 plan.runner.max_seqs, "  threads ", threads, "  ", device, "  ", fixed(seconds, 2), " s\n")
                 .c_str(),
             stdout);
  std::fflush(stdout);
  if (!for_people) {
    return log.record(LogLevel::info, "start", "ready",
                      {{"phase", "ready"},
                       {"seconds", seconds},
                       {"url", server.base_url()},
                       {"model", model.name},
                       {"context", plan.runner.ctx},
                       {"memory_bytes", plan.total()}});
  }
  say(cat("\n  base URL for OpenAI clients   ", server.base_url(), "/v1\n"));
  const std::string key = options.api_key_file.empty()
                              ? ""
                              : cat(" -H \"Authorization: Bearer $(cat ", options.api_key_file, ")\"");
  say(cat("  try it    curl -N ", server.base_url(), "/v1/chat/completions", key,
          " -H 'Content-Type: application/json' \\\n              -d '{\"stream\": true, \"messages\": "
          "[{\"role\": \"user\", \"content\": \"Say hello\"}]}'\n"));
  // As it was called, so that the line works where inferd is not in PATH.
  say(cat("  chat      ", program_invocation_name, " run ", given, "\n"));
  say("  stop      Ctrl-C (again: at once)\n\n");
}

// So that `ps`, `stop` and `run` find this server. It serves without a note, too.
std::optional<PostedNote> post_note(const Options& options, const OpenModel& model, const MemoryPlan& plan,
                                    const Server& server, Logger& log) {
  std::error_code failure;
  const std::string key_file =
      options.api_key_file.empty() ? "" : std::filesystem::absolute(options.api_key_file, failure).string();
  Result<PostedNote> note = PostedNote::post(
      server_note_folders(), {.url = server.base_url(),
                              .port = server.port(),
                              .model = model.name,
                              .aliases = options.aliases,
                              .model_path = model.path,
                              .context = Scheduler::max_sequence_tokens(scheduler_options(plan, true)),
                              .chats = model.chat_template.has_value(),
                              .drain_timeout_s = options.drain_timeout_s,
                              .api_key_file = key_file});
  if (note.ok()) return std::move(note).value();
  log.warn("server", "`inferd ps` will not show this server: ", note.error().message(), " ",
           note.error().where);
  return std::nullopt;
}

int report_failure(const Engine& engine) {
  const Error error{.code = Code::engine_failed, .detail = engine.failure()};
  const int code = report(error);
  say(cat("exit ", code, ": ", error.message(), "\n"));
  return code;
}

}  // namespace

int serve_command(const Options& options, const BackendFactory& make) {
  watch_signals();
  const int64_t start = monotonic_clock().now_ns();
  Logger log(options.log_level, kErr, options.log_format);
  ServerOptions server_options;
  server_options.host = options.host;
  server_options.port = options.port;
  server_options.allow_open = options.no_api_key;
  server_options.drain_grace_ms = int64_t{options.drain_timeout_s} * 1000;
  server_options.version = std::string(kVersion);
  server_options.git_sha = std::string(kCommit);
  server_options.log = &log;
  if (!options.api_key_file.empty()) {
    Result<std::string> key = read_api_key(options.api_key_file);
    if (!key.ok()) return report(key.error());
    server_options.api_key = std::move(key).value();
  }

  Result<ListenSocket> socket = ListenSocket::bind(server_options);
  if (!socket.ok()) return report(with_port_holder(socket.error(), options.port));

  ProgressPrinter progress = stderr_progress();
  if (log.format() == LogFormat::json) {
    progress.log_to([&log](std::string_view phase, double seconds, std::string_view note) {
      log.record(LogLevel::info, "start", phase, {{"phase", phase}, {"seconds", seconds}, {"note", note}});
    });
  }
  ModelLoader loader(options, progress, make);
  const std::string given = model_or_default(options.arguments.empty() ? "" : options.arguments.front());
  const Result<ModelLocation> location = loader.find(given);
  if (!location.ok()) return report(location.error());
  Result<OpenModel> model = loader.open(*location);
  if (!model.ok()) return report(model.error());
  const Result<MemoryPlan> plan = loader.plan(*model);
  if (!plan.ok()) return report(plan.error());
  EngineOptions engine_options;
  engine_options.max_queue = options.max_queue;
  engine_options.log = &log;
  engine_options.on_failure = [](const std::string&) { wake(); };
  const int threads = options.threads.value_or(usable_cpus());
  const SavedAffinity affinity;
  Result<std::unique_ptr<Engine>> loaded = loader.load(*model, *plan, std::move(engine_options));
  if (!loaded.ok()) return report(loaded.error());
  model->file.reset();
  if (interrupted()) return report({.code = Code::interrupted});
  affinity.restore();
  Engine& engine = **loaded;
  engine.start();

  ServedModel served;
  served.name = model->name;
  served.aliases = options.aliases;
  served.tokenizer = model->tokenizer;
  if (model->chat_template)
    served.chat_template = std::make_shared<const ChatTemplate>(*model->chat_template);
  served.engine = &engine;
  served.defaults = model->sampling;
  served.created = unix_seconds();
  const std::string device = engine.runner().device().name();
  served.facts = {
      {"architecture", model->config.architecture},
      {"model", model->config.name},
      {"context", with_commas(plan->runner.ctx)},
      {"sequences at once", cat(plan->runner.max_seqs)},
      {"KV pool", cat(with_commas(plan->pool_tokens()), " tokens, ", kv_dtype_name(plan->runner.kv_dtype))},
      {"device", cat(device, ", ", threads, " threads")}};
  Result<std::unique_ptr<Server>> started =
      Server::start(std::move(served), std::move(server_options), std::move(socket).value());
  if (!started.ok()) return report(started.error());
  Server& server = **started;
  const std::optional<PostedNote> posted = post_note(options, *model, *plan, server, log);
  print_ready(options, *model, *plan, device, threads, server, given, monotonic_clock().seconds_since(start),
              log);

  wait_for_wakeup();
  if (engine.state() == Engine::State::failed) {
    std::this_thread::sleep_for(kFailedGrace);
    server.stop();
    server.wait();
    return report_failure(engine);
  }
  const std::string draining =
      cat(server.requests_in_flight(), " requests in flight, at most ", options.drain_timeout_s, " s");
  if (log.format() == LogFormat::json) {
    log.info("server", "draining: ", draining);
  } else {
    say(cat("draining: ", draining, "\n"));
  }
  server.drain();
  server.wait();
  if (engine.state() == Engine::State::failed) return report_failure(engine);
  engine.stop();
  return interrupt_signal() == SIGINT ? kExitInterrupted : kExitOk;
}

}  // namespace inferd
