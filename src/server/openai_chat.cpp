#include "server/openai_chat.h"

#include "base/strings.h"
#include "server/chat_messages.h"
#include "server/openai_shapes.h"
#include "server/prepare.h"
#include "server/sse.h"

namespace inferd {
namespace {

class ChatFormat final : public AnswerFormat {
 public:
  explicit ChatFormat(AnswerFacts facts) : facts_(std::move(facts)) {
    const std::string id = cat("chatcmpl-", random_hex());
    chunk_ = answer_prefix(facts_, id, "chat.completion.chunk");
    reply_ = answer_prefix(facts_, id, "chat.completion");
  }

  void delta(std::string& out, const AnswerDelta& delta) const override {
    begin_chunk(out, delta.answer);
    out += ",\"delta\":{";
    if (delta.first) out += "\"role\":\"assistant\",";
    out += "\"content\":";
    append_json_string(out, delta.text);
    out += "},\"logprobs\":";
    append_logprobs(out, delta.tokens);
    out += ",\"finish_reason\":null";
    append_ids_member(out, delta.tokens);
    out += "}]";
    if (delta.first && delta.answer == 0) append_prompt_ids(out);
    end_chunk(out);
  }

  void end(std::string& out, const AnswerEnd& end, const Totals* totals) const override {
    begin_chunk(out, end.answer);
    out += end.first ? ",\"delta\":{\"role\":\"assistant\",\"content\":\"\"}" : ",\"delta\":{}";
    out += ",\"logprobs\":null";
    append_reasons(out, end);
    out += "}]";
    if (end.first && end.answer == 0) append_prompt_ids(out);
    if (totals != nullptr) append_tail(out, facts_, *totals);
    end_chunk(out);
  }

  void done(std::string& out, const Totals& totals) const override {
    if (facts_.include_usage) {
      begin_frame(out);
      out += chunk_;
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
    std::string out = reply_ + ",\"choices\":[";
    for (const Answer& answer : answers) {
      if (answer.end.answer > 0) out.push_back(',');
      out += cat("{\"index\":", answer.end.answer, ",\"message\":{\"role\":\"assistant\",\"content\":");
      append_json_string(out, answer.text);
      out += ",\"refusal\":null},\"logprobs\":";
      append_logprobs(out, answer.tokens);
      append_reasons(out, answer.end);
      append_ids_member(out, answer.tokens);
      out.push_back('}');
    }
    out += "],\"usage\":";
    append_usage(out, totals);
    append_prompt_ids(out);
    append_tail(out, facts_, totals);
    out.push_back('}');
    return {.body = std::move(out)};
  }

 private:
  void begin_chunk(std::string& out, size_t answer) const {
    begin_frame(out);
    out += chunk_;
    out += cat(",\"choices\":[{\"index\":", answer);
  }
  void end_chunk(std::string& out) const {
    if (facts_.include_usage) out += ",\"usage\":null";
    out.push_back('}');
    end_frame(out);
  }
  void append_logprobs(std::string& out, const std::vector<TokenInfo>& tokens) const {
    if (facts_.logprobs) {
      append_chat_logprobs(out, *facts_.tokenizer, tokens);
    } else {
      out += "null";
    }
  }
  void append_ids_member(std::string& out, const std::vector<TokenInfo>& tokens) const {
    if (!facts_.return_token_ids) return;
    out += ",\"token_ids\":";
    append_token_ids(out, tokens);
  }
  void append_prompt_ids(std::string& out) const {
    if (!facts_.return_token_ids) return;
    out += ",\"prompt_token_ids\":";
    append_ids(out, facts_.prompt_ids[0]);
  }

  const AnswerFacts facts_;
  std::string chunk_;
  std::string reply_;
};

}  // namespace

Result<Generation> chat_generation(const ModelView& model, std::string_view body) {
  INFERD_TRY(RequestFields fields, read_body(model, chat_fields(), body));
  if (fields.top_logprobs && !fields.chat_logprobs) {
    return value_error("top_logprobs", "given without logprobs", "together with \"logprobs\": true only");
  }
  if (fields.max_tokens && fields.max_completion_tokens &&
      *fields.max_tokens != *fields.max_completion_tokens) {
    return value_error("max_tokens", cat(*fields.max_tokens),
                       "the same as max_completion_tokens, or one of the two only");
  }
  const bool by_newer_name = fields.max_completion_tokens && !fields.max_tokens;
  if (by_newer_name) fields.max_tokens = fields.max_completion_tokens;
  if (fields.chat_logprobs) fields.sampling.logprobs = static_cast<int32_t>(fields.top_logprobs.value_or(0));
  INFERD_TRY(std::vector<int32_t> prompt, encode_chat(model, fields));
  std::vector<std::vector<int32_t>> prompts;
  prompts.push_back(std::move(prompt));
  Result<Generation> generation =
      make_generation(model, std::move(fields), std::move(prompts), model.most_tokens(), "messages");
  if (!generation.ok() && by_newer_name && generation.error().param == "max_tokens") {
    Error error = std::move(generation).error();
    error.param = "max_completion_tokens";
    return error;
  }
  return generation;
}

std::unique_ptr<AnswerFormat> chat_format(const ModelView& model, const Generation& generation,
                                          std::string request_id) {
  return std::make_unique<ChatFormat>(AnswerFacts::of(model, generation, std::move(request_id)));
}

}  // namespace inferd
