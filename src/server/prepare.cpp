#include "server/prepare.h"

#include <algorithm>

#include "base/strings.h"
#include "server/answer_text.h"

namespace inferd {
namespace {

// Seeds that every JSON reader gives back unchanged: at most 2^53.
uint64_t fresh_seed() {
  return random_seed() >> 10;
}

Status check_model(const ModelView& model, const RequestFields& fields) {
  if (!fields.model || model.has_name(*fields.model)) return {};
  std::vector<std::string> names = {model.name};
  names.insert(names.end(), model.aliases.begin(), model.aliases.end());
  return Error{.code = Code::req_model,
               .detail = cat(printable(*fields.model), ", served is ", join(names, ", ")),
               .param = "model"};
}

Result<std::vector<int32_t>> stop_ids(const ModelView& model, const RequestFields& fields) {
  std::vector<int32_t> ids = fields.stop_token_ids;
  if (!fields.ignore_eos)
    ids.insert(ids.end(), model.tokenizer->end_ids().begin(), model.tokenizer->end_ids().end());
  std::ranges::sort(ids);
  const auto doubles = std::ranges::unique(ids);
  ids.erase(doubles.begin(), doubles.end());
  return ids;
}

// Tokens left for the answer by a prompt, which need not fit itself.
int64_t room_after(const ModelView& model, size_t prompt_tokens) {
  return std::max<int64_t>(1, model.most_tokens() - static_cast<int64_t>(prompt_tokens));
}

}  // namespace

Result<RequestFields> read_body(const ModelView& model, const RouteFields& route, std::string_view body) {
  Result<Json> json = parse_json(body);
  if (!json.ok()) {
    Error error = std::move(json).error();
    if (!error.where.empty()) error.detail += cat(" (at ", error.where, ")");
    return error;
  }
  RequestFields fields;
  fields.sampling = model.defaults;
  INFERD_TRY_STATUS(read_fields(fields, *json, route.tables, route.route));
  INFERD_TRY_STATUS(check_model(model, fields));
  return fields;
}

Result<Generation> make_generation(const ModelView& model, RequestFields fields,
                                   std::vector<std::vector<int32_t>> prompts, int64_t default_max_tokens,
                                   std::string_view prompt_param) {
  if (fields.include_usage && !fields.stream) {
    return value_error("stream_options", "given without stream", "together with \"stream\": true only");
  }
  const int64_t answers = fields.n * static_cast<int64_t>(prompts.size());
  if (answers > model.most_choices) {
    return value_error(fields.n > 1 ? "n" : prompt_param, cat(answers, " answers in all"),
                       cat("at most ", model.most_choices, ", which is what the server takes at once"));
  }
  Generation generation{.n = static_cast<int32_t>(fields.n),
                        .stops = fields.stop,
                        .stream = fields.stream,
                        .include_usage = fields.include_usage.value_or(false),
                        .logprobs = fields.sampling.logprobs >= 0,
                        .return_token_ids = fields.return_token_ids};
  INFERD_TRY(generation.matcher, StopMatcher::create(fields.stop));
  SamplingParams& sampling = generation.sampling;
  sampling = std::move(fields.sampling);
  INFERD_TRY(sampling.stop_ids, stop_ids(model, fields));
  if (!sampling.seed) sampling.seed = fresh_seed();
  INFERD_TRY_STATUS(validate(sampling, model.tokenizer->vocab_size()));

  for (size_t p = 0; p < prompts.size(); ++p) {
    std::vector<int32_t>& ids = prompts[p];
    const std::string param = prompts.size() > 1 ? cat(prompt_param, "[", p, "]") : std::string(prompt_param);
    if (ids.empty()) return value_error(param, "no token", "at least one token");
    const int64_t max_tokens =
        fields.max_tokens.value_or(std::min(default_max_tokens, room_after(model, ids.size())));
    if (p == 0) generation.max_tokens = max_tokens;
    if (Status fits = Scheduler::check_fits(model.limits, static_cast<int64_t>(ids.size()), max_tokens);
        !fits.ok()) {
      Error error = std::move(fits).error();
      if (error.param == "prompt") error.param = param;
      return error;
    }
    if (sampling.min_tokens > max_tokens) {
      return value_error("min_tokens", cat(sampling.min_tokens),
                         cat("0 to max_tokens, which is ", max_tokens));
    }
    generation.prompt_tokens.push_back(static_cast<int64_t>(ids.size()));
    if (generation.return_token_ids) generation.prompt_ids.push_back(ids);
    if (max_tokens == 0) continue;
    Request request;
    request.prompt = std::move(ids);
    request.sampling = sampling;
    request.max_tokens = static_cast<int32_t>(max_tokens);
    request.choices = generation.n;
    request.cache_salt = fields.cache_salt;
    if (!generation.stops.empty()) {
      for (int32_t i = 0; i < generation.n; ++i) {
        request.stop_checks.push_back(
            make_stop_check(*model.tokenizer, generation.matcher, sampling.min_tokens));
      }
    }
    generation.requests.push_back(std::move(request));
  }
  return generation;
}

}  // namespace inferd
