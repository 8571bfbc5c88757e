#include "text/chat_template.h"

#include <algorithm>
#include <array>

#include "text/jinja_eval.h"
#include "text/jinja_parser.h"

namespace inferd {
namespace {

std::tm local_time() {
  const std::time_t seconds = std::time(nullptr);
  std::tm now{};
  localtime_r(&seconds, &now);
  return now;
}

}  // namespace

struct ChatTemplate::Parsed {
  std::unique_ptr<const jinja::Program> program;
  std::optional<Json> bos_token;
  std::optional<Json> eos_token;
  std::function<std::tm()> now;
};

Result<ChatTemplate> ChatTemplate::parse(std::string_view source, ChatTemplateOptions options) {
  auto parsed = std::make_shared<Parsed>();
  INFERD_TRY(parsed->program, jinja::parse_program(source));
  if (options.bos_token) parsed->bos_token = Json(*std::move(options.bos_token));
  if (options.eos_token) parsed->eos_token = Json(*std::move(options.eos_token));
  parsed->now = options.now ? std::move(options.now) : local_time;
  return ChatTemplate(std::move(parsed));
}

Result<std::vector<TextSpan>> ChatTemplate::render(const Json& messages, const Json* tools,
                                                   const Json* documents, const Json::Object& kwargs,
                                                   bool add_generation_prompt) const {
  const Json generation(add_generation_prompt);
  std::vector<jinja::Variable> variables;
  if (parsed_->bos_token)
    variables.push_back({.name = "bos_token", .value = &*parsed_->bos_token, .markup = true});
  if (parsed_->eos_token)
    variables.push_back({.name = "eos_token", .value = &*parsed_->eos_token, .markup = true});
  for (const auto& [name, value] : kwargs) {
    static constexpr auto kOwn =
        std::to_array<std::string_view>({"messages", "tools", "documents", "add_generation_prompt"});
    if (std::find(kOwn.begin(), kOwn.end(), name) != kOwn.end()) {
      return Error{.code = Code::req_value,
                   .detail = cat("the template argument ", printable(name), " has a field of its own"),
                   .fix = cat("send ", name, " as a field of the request"),
                   .param = "chat_template_kwargs"};
    }
    variables.push_back({.name = name, .value = &value});
  }
  variables.push_back({.name = "messages", .value = &messages});
  variables.push_back({.name = "tools", .value = tools});
  variables.push_back({.name = "documents", .value = documents});
  variables.push_back({.name = "add_generation_prompt", .value = &generation});
  return jinja::render(*parsed_->program, variables, {.now = parsed_->now});
}

}  // namespace inferd
