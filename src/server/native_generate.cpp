#include "server/native_generate.h"

#include "base/strings.h"
#include "base/utf8.h"
#include "server/openai_shapes.h"
#include "server/prepare.h"
#include "server/sse.h"

namespace inferd {
namespace {

constexpr int64_t kDefaultMaxTokens = 256;
constexpr std::string_view kPromptAllowed = "a string of 1 to 1000000 characters";

class NativeFormat final : public AnswerFormat {
 public:
  explicit NativeFormat(AnswerFacts facts) : facts_(std::move(facts)) {}

  void delta(std::string& out, const AnswerDelta& delta) const override {
    begin_frame(out);
    out += "{\"type\":\"token\",\"text\":";
    append_json_string(out, delta.text);
    out.push_back('}');
    end_frame(out);
  }

  void end(std::string& out, const AnswerEnd& end, const Totals* totals) const override {
    begin_frame(out);
    out += "{\"type\":\"done\"";
    append_reasons(out, end);
    out += cat(",\"tokens\":", totals->output_tokens, ",\"prompt_tokens\":", totals->prompt_tokens,
               ",\"cached_tokens\":", totals->cached_tokens, ",\"model\":");
    append_json_string(out, facts_.model);
    append_tail(out, facts_, *totals);
    out.push_back('}');
    end_frame(out);
  }

  void done(std::string&, const Totals&) const override {}

  void error(std::string& out, const Error& error) const override {
    begin_frame(out);
    out += "{\"type\":\"error\",\"message\":";
    append_json_string(out, http_error_message(error));
    out += cat(",\"code\":\"", error_row(error.code).id, "\",\"request_id\":");
    append_json_string(out, facts_.request_id);
    out.push_back('}');
    end_frame(out);
  }

  HttpReply reply(const std::vector<Answer>&, const Totals&) const override {
    INFERD_CHECK(false, "this route always streams");
    return {};
  }

 private:
  const AnswerFacts facts_;
};

}  // namespace

Result<Generation> native_generation(const ModelView& model, std::string_view body) {
  INFERD_TRY(RequestFields fields, read_body(model, generate_fields(), body));
  if (!fields.prompt) return missing_error("prompt", kPromptAllowed);
  if (!fields.prompt->is_string()) return type_error("prompt", *fields.prompt, kPromptAllowed);
  const std::string prompt = fields.prompt->as_string();
  const auto characters = static_cast<int64_t>(count_code_points(prompt));
  if (characters < 1 || characters > kMaxGeneratePrompt) {
    return value_error("prompt", cat("a string of ", characters, " characters"), kPromptAllowed);
  }
  fields.stream = true;
  std::vector<std::vector<int32_t>> prompts;
  prompts.push_back(model.tokenizer->encode(prompt, {.add_special = true, .parse_special = true}));
  return make_generation(model, std::move(fields), std::move(prompts), kDefaultMaxTokens, "prompt");
}

std::unique_ptr<AnswerFormat> native_format(const ModelView& model, const Generation& generation,
                                            std::string request_id) {
  return std::make_unique<NativeFormat>(AnswerFacts::of(model, generation, std::move(request_id)));
}

}  // namespace inferd
