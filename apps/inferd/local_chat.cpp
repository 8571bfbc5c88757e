// A chat's model in this process: the engine is stepped on this thread.
#include <algorithm>

#include "chat_model.h"
#include "environment.h"
#include "text/output_text.h"

namespace inferd {
namespace {

class AnswerSink final : public EventSink {
 public:
  AnswerSink(const Tokenizer& tokenizer, const TextSink& sink)
      : decoder_(tokenizer, StopMatcher()), sink_(sink) {}

  void on_events(std::vector<Event> events) override {
    for (Event& event : events) {
      if (event.kind == Event::Kind::token) {
        give(decoder_.push(event.id));
      } else {
        give(decoder_.finish());
        finished_ = std::move(event);
      }
    }
  }

  const std::optional<Event>& finished() const { return finished_; }
  bool refused() const { return refused_; }
  std::string take_text() { return std::move(text_); }

 private:
  void give(const std::string& delta) {
    if (delta.empty()) return;
    text_ += delta;
    if (!refused_) refused_ = !sink_(delta);
  }

  OutputText decoder_;
  const TextSink& sink_;
  std::string text_;
  bool refused_ = false;
  std::optional<Event> finished_;
};

class LocalChat final : public ChatModel {
 public:
  LocalChat(OpenModel model, std::unique_ptr<Engine> engine, int64_t context)
      : model_(std::move(model)), engine_(std::move(engine)), context_(context) {}

  const std::string& name() const override { return model_.name; }
  std::string where() const override { return cat("in this process, ", engine_->runner().device().name()); }
  std::string server_url() const override { return {}; }
  int64_t context() const override { return context_; }
  std::optional<SamplingParams> defaults() const override { return model_.sampling; }

  Result<int64_t> count(const Json::Array& messages) override {
    INFERD_TRY(const std::vector<int32_t> ids, prompt(messages));
    return static_cast<int64_t>(ids.size());
  }

  Result<ChatAnswer> answer(const Json::Array& messages, const Options& options,
                            const TextSink& text_sink) override {
    Request request;
    INFERD_TRY(request.prompt, prompt(messages));
    if (request.prompt.empty()) return Error{.code = Code::req_value, .detail = "the prompt has no tokens"};
    const int64_t room = context_ - static_cast<int64_t>(request.prompt.size());
    request.max_tokens =
        options.max_tokens > 0 ? options.max_tokens : static_cast<int32_t>(std::max<int64_t>(1, room));
    SamplingParams& sampling = request.sampling;
    sampling = model_.sampling;
    if (options.temperature) sampling.temperature = *options.temperature;
    if (options.top_p) sampling.top_p = *options.top_p;
    if (options.top_k) sampling.top_k = *options.top_k;
    if (options.min_p) sampling.min_p = *options.min_p;
    // At most 53 bits when drawn here, so that every reader of JSON gives it back unchanged.
    sampling.seed = options.seed ? *options.seed : random_seed() >> 11;
    sampling.stop_ids.assign(model_.tokenizer->end_ids().begin(), model_.tokenizer->end_ids().end());
    ChatAnswer answer{.seed = sampling.seed};
    const auto sink = std::make_shared<AnswerSink>(*model_.tokenizer, text_sink);
    request.sink = sink;
    INFERD_TRY(const RequestId id, engine_->submit(std::move(request)));
    bool cancelled = false;
    while (!sink->finished()) {
      if (!cancelled && (interrupted() || sink->refused())) {
        engine_->cancel(id);
        cancelled = true;
      }
      engine_->step();
    }
    const Event& end = *sink->finished();
    answer.text = sink->take_text();
    if (end.error && !cancelled) {
      if (answer.text.empty()) return *end.error;
      answer.error = end.error;
    }
    answer.end = answer.error || (cancelled && end.reason == FinishReason::cancelled)
                     ? ChatAnswer::End::interrupted
                 : end.reason == FinishReason::length ? ChatAnswer::End::length
                                                      : ChatAnswer::End::stop;
    const RequestStats& stats = end.stats;
    answer.prompt_tokens = stats.prompt_tokens;
    answer.cached_tokens = stats.cached_tokens;
    answer.output_tokens = stats.output_tokens;
    answer.first_token_s = static_cast<double>(stats.first_token_ns - stats.arrival_ns) * 1e-9;
    const double rest_s = static_cast<double>(stats.finished_ns - stats.first_token_ns) * 1e-9;
    if (stats.output_tokens > 1 && rest_s > 0) answer.tokens_per_second = (stats.output_tokens - 1) / rest_s;
    return answer;
  }

 private:
  // A model without a chat template goes on from the last message alone.
  Result<std::vector<int32_t>> prompt(const Json::Array& messages) const {
    if (!model_.chat_template)
      return model_.tokenizer->encode(messages.back().find("content")->as_string(), {.add_special = true});
    INFERD_TRY(
        const std::vector<TextSpan> spans,
        model_.chat_template->render(Json(messages), nullptr, nullptr, {}, /*add_generation_prompt=*/true));
    return model_.tokenizer->encode_spans(spans);
  }

  const OpenModel model_;
  const std::unique_ptr<Engine> engine_;
  const int64_t context_;
};

}  // namespace

Result<std::unique_ptr<ChatModel>> load_chat_model(const Options& options, const BackendFactory& make) {
  ProgressPrinter progress = stderr_progress();
  ModelLoader loader(options, progress, make);
  INFERD_TRY(const ModelLocation location, loader.find(options.arguments.front()));
  INFERD_TRY(OpenModel model, loader.open(location));
  INFERD_TRY(const MemoryPlan plan, loader.plan(model));
  INFERD_TRY(std::unique_ptr<Engine> engine, loader.load(model, plan, {}));
  model.file.reset();
  const int64_t context = Scheduler::max_sequence_tokens(scheduler_options(plan, true));
  return std::unique_ptr<ChatModel>(
      std::make_unique<LocalChat>(std::move(model), std::move(engine), context));
}

}  // namespace inferd
