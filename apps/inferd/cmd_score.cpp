// ppl and score: how likely a model finds a text.
#include <algorithm>
#include <cmath>

#include "commands.h"
#include "environment.h"
#include "lab/score.h"

namespace inferd {
namespace {

constexpr int32_t kLongestDefaultCtx = 2048;
constexpr int32_t kStepTokens = 256;

struct Scorer {
  OpenModel model;
  std::unique_ptr<SequenceLogits> logits;

  const Tokenizer& tokenizer() const { return *model.tokenizer; }
  size_t ctx() const { return static_cast<size_t>(logits->options().ctx); }
};

Result<Scorer> load(const Options& options, ProgressPrinter& progress) {
  ModelLoader loader(options, progress);
  INFERD_TRY(const ModelLocation location, loader.find_present(options.arguments.front()));
  Scorer scorer;
  INFERD_TRY(scorer.model, loader.open(location));
  const int32_t longest = scorer.model.config.train_ctx;
  const int32_t ctx = options.ctx.value_or(std::min(kLongestDefaultCtx, longest));
  if (ctx < 16 || ctx > longest) {
    return Error{.code = Code::arg_value,
                 .detail = cat("--ctx: got ", with_commas(ctx), ", allowed is 16 to ", with_commas(longest),
                               " (what the model was made for)"),
                 .where = cat("--ctx ", ctx)};
  }
  progress.begin("load");
  ProgressMeter meter(monotonic_clock(), "load", scorer.model.name, 0);
  INFERD_TRY(Backend backend, make_backend(options));
  INFERD_TRY(scorer.logits,
             SequenceLogits::load(std::move(backend), *scorer.model.file, scorer.model.config,
                                  {.ctx = ctx,
                                   .step_tokens = std::min(ctx, options.prefill_chunk.value_or(kStepTokens)),
                                   .kv_dtype = options.kv_dtype},
                                  [&](int64_t done, int64_t total) {
                                    ProgressEvent event = meter.update(done);
                                    event.total = total;
                                    progress.update(event);
                                  }));
  progress.end();
  return scorer;
}

// The token that stands before every window, so that its first own token is predicted too.
std::vector<int32_t> beginning(const Scorer& scorer) {
  return scorer.tokenizer().encode("", {.add_special = true});
}

struct Scored {
  Perplexity perplexity;
  int64_t bytes = 0;  // of the predicted tokens
  double bits_per_byte() const { return perplexity.sum / std::log(2.0) / static_cast<double>(bytes); }
};

Result<Scored> score_text(Scorer& scorer, const std::string& text, ProgressPrinter& progress) {
  const std::vector<int32_t> ids = scorer.tokenizer().encode(text);
  const std::vector<int32_t> begin = beginning(scorer);
  const size_t given = std::max<size_t>(1, begin.size());
  Scored scored;
  progress.begin("score");
  ProgressMeter meter(monotonic_clock(), "score", "", static_cast<int64_t>(text.size()));
  int64_t passed = 0;  // bytes
  for (size_t at = 0; at < ids.size();) {
    const size_t count = std::min(scorer.ctx() - begin.size(), ids.size() - at);
    std::vector<int32_t> window = begin;
    window.insert(window.end(), ids.begin() + static_cast<std::ptrdiff_t>(at),
                  ids.begin() + static_cast<std::ptrdiff_t>(at + count));
    at += count;
    if (window.size() <= given) break;  // one token, and nothing before it
    scored.perplexity.add(
        log_probabilities(*scorer.logits, window, given, [](size_t) { return !interrupted(); }));
    if (interrupted()) return Error{.code = Code::interrupted};
    for (size_t i = 0; i < window.size(); ++i) {
      const auto bytes = static_cast<int64_t>(scorer.tokenizer().token_bytes(window[i]).size());
      if (i >= begin.size()) passed += bytes;
      if (i >= given) scored.bytes += bytes;
    }
    progress.update(meter.update(passed));
  }
  progress.end();
  if (scored.perplexity.tokens == 0)
    return Error{.code = Code::arg_value,
                 .detail = cat("the text has ", ids.size(), " tokens, and two are needed"),
                 .fix = "give more text"};
  return scored;
}

}  // namespace

int ppl_command(const Options& options) {
  watch_signals();
  const std::string& file = options.arguments[1];
  const Result<std::string> text = file == "-" ? text_argument(file) : read_text_file(file);
  if (!text.ok()) return report(text.error());
  if (const Status valid = check_utf8(*text, file); !valid.ok()) return report(valid.error());
  ProgressPrinter progress = stderr_progress();
  Result<Scorer> scorer = load(options, progress);
  if (!scorer.ok()) return report(scorer.error());
  const Result<Scored> scored = score_text(*scorer, *text, progress);
  if (!scored.ok()) return report(scored.error());
  const Perplexity& p = scored->perplexity;
  if (options.json) {
    print_json(Json::Object{{"model", scorer->model.name},
                            {"perplexity", p.value()},
                            {"standard_error", p.value_error()},
                            {"nats_per_token", p.mean()},
                            {"bits_per_byte", scored->bits_per_byte()},
                            {"tokens", p.tokens},
                            {"windows", p.windows},
                            {"context", static_cast<int64_t>(scorer->ctx())},
                            {"kv_dtype", kv_dtype_name(options.kv_dtype)}});
  } else {
    print(cat("perplexity ", fixed(p.value(), 4), " +- ", fixed(p.value_error(), 4), "  (",
              fixed(scored->bits_per_byte(), 4), " bits a byte; ", with_commas(p.tokens), " tokens in ",
              with_commas(p.windows), p.windows == 1 ? " window" : " windows", " of ",
              with_commas(static_cast<int64_t>(scorer->ctx())), ")\n"));
  }
  return kExitOk;
}

int score_command(const Options& options) {
  watch_signals();
  for (size_t i = 1; i < options.arguments.size(); ++i) {
    if (const Status valid = check_utf8(options.arguments[i], "the text on the command line"); !valid.ok())
      return report(valid.error());
  }
  ProgressPrinter progress = stderr_progress();
  Result<Scorer> scorer = load(options, progress);
  if (!scorer.ok()) return report(scorer.error());
  const Tokenizer& tokenizer = scorer->tokenizer();
  const std::string& prompt = options.arguments[1];
  const std::vector<int32_t> before = tokenizer.encode(prompt, {.add_special = true});
  Json::Array rows;
  for (size_t i = 2; i < options.arguments.size(); ++i) {
    const std::string& continuation = options.arguments[i];
    // Prompt and continuation are read as one text; what is scored begins with the first token that differs
    // from the prompt's own.
    const std::vector<int32_t> ids = tokenizer.encode(prompt + continuation, {.add_special = true});
    const auto [end, ignored] = std::ranges::mismatch(before, ids);
    const auto given = static_cast<size_t>(end - before.begin());
    if (given == 0 || ids.size() <= given || ids.size() > scorer->ctx()) {
      return report(
          {.code = Code::arg_value,
           .detail = cat("continuation ", i - 1, ": ", ids.size(), " tokens, of which the prompt has ", given,
                         "; allowed are at least 1 and 1 more, and ",
                         with_commas(static_cast<int64_t>(scorer->ctx())), " in all"),
           .where = printable(continuation, 60),
           .fix = "give a prompt and a continuation of it, or a larger --ctx"});
    }
    const std::vector<double> scores =
        log_probabilities(*scorer->logits, ids, given, [](size_t) { return !interrupted(); });
    if (interrupted()) return report({.code = Code::interrupted});
    double sum = 0;
    Json::Array tokens;
    for (size_t t = 0; t < scores.size(); ++t) {
      sum += scores[t];
      tokens.push_back(Json::Object{{"id", ids[given + t]}, {"log_probability", scores[t]}});
    }
    rows.push_back(Json::Object{
        {"continuation", continuation}, {"log_probability", sum}, {"tokens", std::move(tokens)}});
    if (!options.json)
      print(cat(fixed(sum, 4), "\t", scores.size(), scores.size() == 1 ? " token\t" : " tokens\t",
                printable(continuation, 200), "\n"));
  }
  if (options.json)
    print_json(Json::Object{{"model", scorer->model.name}, {"prompt", prompt}, {"scores", std::move(rows)}});
  return kExitOk;
}

}  // namespace inferd
