#include "server/openai_completions.h"

#include "base/strings.h"
#include "server/openai_shapes.h"
#include "server/prepare.h"
#include "server/sse.h"

namespace inferd {
namespace {

constexpr int64_t kDefaultMaxTokens = 16;  // OpenAI's
constexpr std::string_view kPromptAllowed =
    "a string, a list of token ids, or a list of at most 256 of either";

class CompletionFormat final : public AnswerFormat {
 public:
  explicit CompletionFormat(AnswerFacts facts)
      : facts_(std::move(facts)),
        prefix_(answer_prefix(facts_, cat("cmpl-", random_hex()), "text_completion")) {}

  void delta(std::string& out, const AnswerDelta& delta) const override {
    begin_chunk(out, delta.answer, delta.text);
    append_logprobs(out, delta.tokens);
    out += ",\"finish_reason\":null";
    append_ids_member(out, delta.tokens);
    if (delta.first) append_prompt_ids(out, delta.answer / facts_.n);
    out += "}]";
    if (delta.first && delta.answer == 0 && facts_.prompt_ids.size() == 1) append_prompt_ids(out, 0);
    end_chunk(out);
  }

  void end(std::string& out, const AnswerEnd& end, const Totals* totals) const override {
    begin_chunk(out, end.answer, "");
    out += "null";
    append_reasons(out, end);
    if (end.first) append_prompt_ids(out, end.answer / facts_.n);
    out += "}]";
    if (end.first && end.answer == 0 && facts_.prompt_ids.size() == 1) append_prompt_ids(out, 0);
    if (totals != nullptr) append_tail(out, facts_, *totals);
    end_chunk(out);
  }

  void done(std::string& out, const Totals& totals) const override {
    if (facts_.include_usage) {
      begin_frame(out);
      out += prefix_;
      out += ",\"choices\":[],\"usage\":";
      append_usage(out, totals);
      append_tail(out, facts_, totals);
      out += "}";
      end_frame(out);
    }
    out += kSseDone;
  }

  void error(std::string& out, const Error& error) const override {
    begin_frame(out);
    out += error_json(error, facts_.request_id);
    end_frame(out);
    out += kSseDone;
  }

  HttpReply reply(const std::vector<Answer>& answers, const Totals& totals) const override {
    std::string out = prefix_ + ",\"choices\":[";
    for (const Answer& answer : answers) {
      if (answer.end.answer > 0) out.push_back(',');
      out += cat("{\"index\":", answer.end.answer, ",\"text\":");
      append_json_string(out, answer.text);
      out += ",\"logprobs\":";
      append_logprobs(out, answer.tokens);
      append_reasons(out, answer.end);
      append_ids_member(out, answer.tokens);
      append_prompt_ids(out, answer.end.answer / facts_.n);
      out.push_back('}');
    }
    out += "],\"usage\":";
    append_usage(out, totals);
    if (facts_.prompt_ids.size() == 1) append_prompt_ids(out, 0);
    append_tail(out, facts_, totals);
    out.push_back('}');
    return {.body = std::move(out)};
  }

 private:
  void begin_chunk(std::string& out, size_t answer, std::string_view text) const {
    begin_frame(out);
    out += prefix_;
    out += cat(",\"choices\":[{\"index\":", answer, ",\"text\":");
    append_json_string(out, text);
    out += ",\"logprobs\":";
  }
  void end_chunk(std::string& out) const {
    if (facts_.include_usage) out += ",\"usage\":null";
    out.push_back('}');
    end_frame(out);
  }
  void append_logprobs(std::string& out, const std::vector<TokenInfo>& tokens) const {
    if (facts_.logprobs && !tokens.empty()) {
      append_completion_logprobs(out, *facts_.tokenizer, tokens);
    } else {
      out += "null";
    }
  }
  void append_ids_member(std::string& out, const std::vector<TokenInfo>& tokens) const {
    if (!facts_.return_token_ids) return;
    out += ",\"token_ids\":";
    append_token_ids(out, tokens);
  }
  void append_prompt_ids(std::string& out, size_t prompt) const {
    if (!facts_.return_token_ids) return;
    out += ",\"prompt_token_ids\":";
    append_ids(out, facts_.prompt_ids[prompt]);
  }

  const AnswerFacts facts_;
  const std::string prefix_;
};

// One prompt: a string or a list of ids.
Result<std::vector<int32_t>> read_prompt(const ModelView& model, std::string_view path, const Json& prompt,
                                         bool add_special) {
  if (prompt.is_string()) {
    return model.tokenizer->encode(prompt.as_string(), {.add_special = add_special, .parse_special = true});
  }
  INFERD_TRY(std::vector<int32_t> ids, read_ids(path, prompt, SIZE_MAX));
  if (Status known = model.tokenizer->check_ids(ids); !known.ok()) {
    Error error = std::move(known).error();
    error.param = std::string(path);
    return error;
  }
  return ids;
}

}  // namespace

Result<Generation> completion_generation(const ModelView& model, std::string_view body) {
  INFERD_TRY(RequestFields fields, read_body(model, completion_fields(), body));
  if (!fields.prompt) return missing_error("prompt", kPromptAllowed);
  if (fields.top_logprobs) fields.sampling.logprobs = static_cast<int32_t>(*fields.top_logprobs);
  const Json prompt = std::move(*fields.prompt);
  if (!prompt.is_string() && !prompt.is_array()) return type_error("prompt", prompt, kPromptAllowed);
  const bool add_special = fields.add_special_tokens.value_or(true);
  std::vector<std::vector<int32_t>> prompts;
  if (prompt.is_array() && !prompt.as_array().empty() && !prompt.as_array()[0].is_number()) {
    const Json::Array& list = prompt.as_array();
    if (list.size() > kMaxPrompts) return value_error("prompt", describe(prompt), kPromptAllowed);
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string path = cat("prompt[", i, "]");
      if (!list[i].is_string() && !list[i].is_array())
        return type_error(path, list[i], "a string or a list of token ids");
      INFERD_TRY(std::vector<int32_t> ids, read_prompt(model, path, list[i], add_special));
      prompts.push_back(std::move(ids));
    }
  } else {
    INFERD_TRY(std::vector<int32_t> ids, read_prompt(model, "prompt", prompt, add_special));
    prompts.push_back(std::move(ids));
  }
  return make_generation(model, std::move(fields), std::move(prompts), kDefaultMaxTokens, "prompt");
}

std::unique_ptr<AnswerFormat> completion_format(const ModelView& model, const Generation& generation,
                                                std::string request_id) {
  return std::make_unique<CompletionFormat>(AnswerFacts::of(model, generation, std::move(request_id)));
}

}  // namespace inferd
