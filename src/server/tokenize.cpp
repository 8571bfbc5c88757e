#include "server/tokenize.h"

#include "base/strings.h"
#include "server/chat_messages.h"
#include "server/openai_shapes.h"
#include "server/prepare.h"

namespace inferd {
namespace {

// A field that belongs to another kind of input than the one that was given.
Error misplaced(std::string_view field, std::string_view input) {
  return value_error(field, cat("given without ", input), cat("together with ", input, " only"));
}

Result<std::vector<int32_t>> tokens_of(const ModelView& model, RequestFields& fields) {
  const int inputs = static_cast<int>(fields.prompt.has_value()) +
                     static_cast<int>(fields.content.has_value()) +
                     static_cast<int>(fields.messages.has_value());
  if (inputs == 0) return missing_error("prompt", "a string (or content, or messages)");
  if (inputs > 1)
    return value_error("prompt", "one of several inputs", "one of prompt, content and messages");
  if (!fields.content && fields.add_special) return misplaced("add_special", "content");
  if (!fields.content && fields.parse_special) return misplaced("parse_special", "content");
  if (fields.content && fields.add_special_tokens)
    return misplaced("add_special_tokens", "prompt or messages");
  if (!fields.messages && fields.tools) return misplaced("tools", "messages");
  if (!fields.messages && fields.documents) return misplaced("documents", "messages");
  if (!fields.messages && fields.continue_final_message)
    return misplaced("continue_final_message", "messages");
  if (!fields.messages && !fields.template_arguments.empty())
    return misplaced("chat_template_kwargs", "messages");
  if (!fields.messages && fields.add_generation_prompt) return misplaced("add_generation_prompt", "messages");

  if (fields.messages) {
    if (fields.add_special_tokens.value_or(false)) {
      return value_error("add_special_tokens", "true with messages",
                         "false: the chat template writes the special tokens");
    }
    return encode_chat(model, fields);
  }
  if (fields.prompt) {
    if (!fields.prompt->is_string()) return type_error("prompt", *fields.prompt, "a string");
    return model.tokenizer->encode(
        fields.prompt->as_string(),
        {.add_special = fields.add_special_tokens.value_or(true), .parse_special = true});
  }
  return model.tokenizer->encode(*fields.content, {.add_special = fields.add_special.value_or(false),
                                                   .parse_special = fields.parse_special.value_or(true)});
}

}  // namespace

Result<HttpReply> tokenize_reply(const ModelView& model, std::string_view body) {
  INFERD_TRY(RequestFields fields, read_body(model, tokenize_fields(), body));
  INFERD_TRY(const std::vector<int32_t> ids, tokens_of(model, fields));
  std::string out = "{\"tokens\":";
  append_ids(out, ids);
  out += cat(",\"count\":", ids.size(), ",\"max_model_len\":", model.limits.ctx, "}");
  return HttpReply{.body = std::move(out)};
}

Result<HttpReply> detokenize_reply(const ModelView& model, std::string_view body) {
  INFERD_TRY(RequestFields fields, read_body(model, detokenize_fields(), body));
  if (!fields.tokens) return missing_error("tokens", "a list of token ids");
  INFERD_TRY(const std::vector<int32_t> ids, read_ids("tokens", *fields.tokens, SIZE_MAX));
  if (Status known = model.tokenizer->check_ids(ids); !known.ok()) {
    Error error = std::move(known).error();
    error.param = "tokens";
    return error;
  }
  std::string text;
  append_json_string(text, model.tokenizer->decode(ids));
  return HttpReply{.body = cat("{\"prompt\":", text, ",\"content\":", text, "}")};
}

}  // namespace inferd
