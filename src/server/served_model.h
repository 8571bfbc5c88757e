// The model a server answers with: names, text side, engine, and what pages say about it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace inferd {

struct ServedModel {
  std::string name;                  // 1 … 256 printable ASCII characters; what "model" in answers says
  std::vector<std::string> aliases;  // other names that requests may use
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const ChatTemplate>
      chat_template;         // null: the model has none, /v1/chat/completions says so
  Engine* engine = nullptr;  // started or not; must outlive the server
  SamplingParams defaults;   // the model's own, for requests that leave a field out; no seed, no stop ids
  int64_t created = 0;       // seconds since 1970, for /v1/models
  std::vector<std::pair<std::string, std::string>> facts;  // shown on GET /: {"architecture", "llama"}, …
};

// What turning a request body into engine requests needs to know: no engine, so it is tested and fuzzed
// without one.
struct ModelView {
  std::string name;
  std::vector<std::string> aliases;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const ChatTemplate> chat_template;
  SamplingParams defaults;
  SchedulerOptions limits;   // context and pool: what can ever fit
  int64_t most_choices = 0;  // that the engine takes at once, running and queued

  static ModelView of(const ServedModel& model);
  bool has_name(std::string_view wanted) const;
  // The most tokens that prompt and output can have together.
  int64_t most_tokens() const { return Scheduler::max_sequence_tokens(limits); }
};

}  // namespace inferd
