// A model's chat template: messages to a prompt, as transformers renders it with jinja2's immutable sandbox.
// Templates come inside model files and are not trusted: a render is bounded in time and memory and reaches
// nothing outside of it.
#pragma once

#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "text/span.h"

namespace inferd {

struct ChatTemplateOptions {
  std::optional<std::string>
      bos_token;  // text of the model's special tokens; absent: undefined in the template
  std::optional<std::string> eos_token;
  // For templates that print today's date with strftime_now. Not set: the local time of the machine.
  std::function<std::tm()> now;
};

class ChatTemplate {
 public:
  // `source`: UTF-8, at most 256 KiB. E-TMPL-001 with line and construct for what does not parse or is not
  // supported.
  static Result<ChatTemplate> parse(std::string_view source, ChatTemplateOptions options = {});

  // The prompt in pieces, in order, neighbours of different origin; an empty prompt has none. Text from
  // `messages`, `tools`, `documents` and `kwargs` is never markup, whatever the template does with it.
  //
  // `tools` and `documents` may be null, which the template sees as None, as it sees a JSON null. `kwargs`
  // are further variables, such as enable_thinking; they may replace bos_token and eos_token, but not the
  // other four arguments (E-REQ-004). E-TMPL-002 when the template refuses the conversation, with the
  // template's own text as the detail; E-TMPL-003 when it fails; E-TMPL-004 when it needs too much. Any
  // thread, and many at once.
  Result<std::vector<TextSpan>> render(const Json& messages, const Json* tools, const Json* documents,
                                       const Json::Object& kwargs, bool add_generation_prompt) const;

 private:
  struct Parsed;
  explicit ChatTemplate(std::shared_ptr<const Parsed> parsed) : parsed_(std::move(parsed)) {}

  std::shared_ptr<const Parsed> parsed_;
};

}  // namespace inferd
