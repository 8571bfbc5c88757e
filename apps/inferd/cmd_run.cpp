// run: chat in the terminal, or one answer. The engine is stepped on this thread; there is no server in
// between.
#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "commands.h"
#include "environment.h"
#include "text/output_text.h"

namespace inferd {
namespace {

constexpr int kIn = 0;
constexpr int kOut = 1;
constexpr int kErr = 2;

// On a terminal a model's control characters could move the cursor or worse; they are left out there, never
// in a pipe.
std::string for_terminal(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 ? byte != 0x7f : c == '\n' || c == '\t') safe.push_back(c);
  }
  return safe;
}

class AnswerSink : public EventSink {
 public:
  AnswerSink(const Tokenizer& tokenizer, bool to_terminal)
      : text_(tokenizer, StopMatcher()), to_terminal_(to_terminal) {}

  void on_events(std::vector<Event> events) override {
    for (Event& event : events) {
      if (event.kind == Event::Kind::token) {
        show(text_.push(event.id));
      } else {
        show(text_.finish());
        finished_ = std::move(event);
      }
    }
  }

  const std::optional<Event>& finished() const { return finished_; }
  const std::string& answer() const { return answer_; }

 private:
  void show(const std::string& delta) {
    answer_ += delta;
    const std::string shown = to_terminal_ ? for_terminal(delta) : delta;
    std::fwrite(shown.data(), 1, shown.size(), stdout);
    std::fflush(stdout);
  }

  OutputText text_;
  const bool to_terminal_;
  std::string answer_;
  std::optional<Event> finished_;
};

class Chat {
 public:
  Chat(const Options& options, const OpenModel& model, Engine& engine, const MemoryPlan& plan)
      : options_(options),
        model_(model),
        engine_(engine),
        most_tokens_(Scheduler::max_sequence_tokens(scheduler_options(plan, true))) {
    if (!options.system.empty()) say("system", options.system);
  }

  // Answers `text` with all that was said before in view, prints the answer, and remembers both.
  Status ask(const std::string& text) {
    say("user", text);
    Status status = answer();
    if (!status.ok()) messages_.pop_back();
    return status;
  }

 private:
  void say(std::string_view role, const std::string& content) {
    messages_.push_back(Json::Object{{"role", role}, {"content", content}});
  }

  Result<std::vector<int32_t>> prompt() const {
    if (!model_.chat_template) {
      return model_.tokenizer->encode(messages_.back().find("content")->as_string(), {.add_special = true});
    }
    INFERD_TRY(
        const std::vector<TextSpan> spans,
        model_.chat_template->render(Json(messages_), nullptr, nullptr, {}, /*add_generation_prompt=*/true));
    return model_.tokenizer->encode_spans(spans);
  }

  Status answer() {
    Request request;
    INFERD_TRY(request.prompt, prompt());
    if (request.prompt.empty()) return Error{.code = Code::req_value, .detail = "the prompt has no tokens"};
    const auto prompt_tokens = static_cast<int32_t>(request.prompt.size());
    request.max_tokens =
        options_.max_tokens > 0 ? options_.max_tokens : std::max(1, most_tokens_ - prompt_tokens);
    request.sampling = model_.sampling;
    if (options_.temperature) request.sampling.temperature = *options_.temperature;
    if (options_.top_p) request.sampling.top_p = *options_.top_p;
    if (options_.top_k) request.sampling.top_k = *options_.top_k;
    if (options_.min_p) request.sampling.min_p = *options_.min_p;
    request.sampling.seed = options_.seed ? *options_.seed : random_seed();
    request.sampling.stop_ids.assign(model_.tokenizer->end_ids().begin(), model_.tokenizer->end_ids().end());
    const auto sink = std::make_shared<AnswerSink>(*model_.tokenizer, ::isatty(kOut) != 0);
    request.sink = sink;
    const uint64_t seed = *request.sampling.seed;
    INFERD_TRY(const RequestId id, engine_.submit(std::move(request)));
    bool cancelled = false;
    while (!sink->finished()) {
      if (interrupted() && !cancelled) {
        engine_.cancel(id);
        cancelled = true;
      }
      engine_.step();
    }
    const Event& end = *sink->finished();
    if (end.error) return *end.error;
    std::fputs("\n", stdout);
    std::fflush(stdout);
    say("assistant", sink->answer());
    print_speed(end.stats, seed);
    if (end.reason == FinishReason::length && options_.max_tokens == 0) {
      std::fputs("  the context is full: the answer was cut; start again with a larger --ctx\n", stderr);
    }
    return {};
  }

  void print_speed(const RequestStats& stats, uint64_t seed) const {
    if (options_.log_level < LogLevel::info) return;
    const double first_s = static_cast<double>(stats.first_token_ns - stats.arrival_ns) * 1e-9;
    const double rest_s = static_cast<double>(stats.finished_ns - stats.first_token_ns) * 1e-9;
    std::string line = cat("  ", stats.output_tokens, " tokens");
    if (stats.output_tokens > 1 && rest_s > 0)
      line += cat(", ", fixed((stats.output_tokens - 1) / rest_s, 1), " tok/s");
    line += cat("; prompt ", stats.prompt_tokens,
                stats.cached_tokens > 0 ? cat(" (", stats.cached_tokens, " cached)") : "",
                ", first token after ", human_seconds(first_s));
    if (options_.log_level >= LogLevel::debug) line += cat("; seed ", seed);
    std::fputs((line + "\n").c_str(), stderr);
  }

  const Options& options_;
  const OpenModel& model_;
  Engine& engine_;
  const int32_t most_tokens_;
  Json::Array messages_;
};

int chat_loop(Chat& chat) {
  const bool terminal = ::isatty(kIn) != 0;
  if (terminal) std::fputs("Ctrl-C stops an answer, Ctrl-D ends the chat.\n", stderr);
  std::string line;
  while (true) {
    if (terminal) std::fputs(">>> ", stderr);
    if (!std::getline(std::cin, line)) {
      if (terminal) std::fputs("\n", stderr);
      return interrupted() ? kExitInterrupted : kExitOk;
    }
    if (trim(line).empty()) continue;
    const Status status = chat.ask(line);
    forget_interrupt();
    if (status.ok()) continue;
    const int code = report(status.error());
    if (status.error().code == Code::engine_failed) return code;
  }
}

}  // namespace

int run_command(const Options& given) {
  watch_signals();
  Options options = given;
  if (!options.max_seqs) options.max_seqs = 1;  // one conversation at a time
  ProgressPrinter progress(monotonic_clock(), kErr, progress_style(kErr),
                           [] { return terminal_columns(kErr); });
  ModelLoader loader(options, progress);
  std::optional<std::string> prompt;
  if (options.arguments.size() > 1) {
    Result<std::string> text = text_argument(options.arguments[1]);
    if (!text.ok()) return report(text.error());
    prompt = std::move(text).value();
  }
  const Result<ModelLocation> location = loader.find(options.arguments.front());
  if (!location.ok()) return report(location.error());
  Result<OpenModel> model = loader.open(*location);
  if (!model.ok()) return report(model.error());
  const Result<MemoryPlan> plan = loader.plan(*model);
  if (!plan.ok()) return report(plan.error());
  Result<std::unique_ptr<Engine>> engine = loader.load(*model, *plan, {});
  if (!engine.ok()) return report(engine.error());
  model->file.reset();

  Chat chat(options, *model, **engine, *plan);
  if (!prompt) return chat_loop(chat);
  const Status status = chat.ask(*prompt);
  if (!status.ok()) return report(status.error());
  return interrupted() ? kExitInterrupted : kExitOk;
}

}  // namespace inferd
