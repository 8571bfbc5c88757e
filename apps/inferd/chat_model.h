// What answers in a chat: a model in this process, or one behind a running server. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "client/server_notes.h"
#include "load.h"
#include "options.h"

namespace inferd {

struct ChatAnswer {
  std::string text;
  enum class End { stop, length, interrupted };
  End end = End::stop;
  int64_t prompt_tokens = 0;  // 0: not known
  int64_t cached_tokens = 0;  // of those, taken from the prefix cache
  int64_t output_tokens = 0;
  double first_token_s = 0;      // from the question to the first token
  double tokens_per_second = 0;  // of those after the first; 0: not known
  std::optional<uint64_t> seed;  // none: not known
  std::optional<Error> error;    // what ended the answer behind this text, before its end

  std::string_view end_text() const {
    return end == End::stop ? "stop" : end == End::length ? "length" : "interrupted";
  }
};

// Text of an answer as it comes, whole characters; false: nobody takes it any more, stop.
using TextSink = std::function<bool(std::string_view text)>;

class ChatModel {
 public:
  virtual ~ChatModel() = default;

  virtual const std::string& name() const = 0;
  virtual std::string where() const = 0;       // for people: "in this process, …", "the server at …"
  virtual std::string server_url() const = 0;  // empty: in this process
  virtual int64_t context() const = 0;         // most tokens of a prompt and its answer
  // Of parameters that nobody set, where they are known.
  virtual std::optional<SamplingParams> defaults() const = 0;

  // Tokens of the prompt that these messages make, the beginning of the answer's turn included.
  virtual Result<int64_t> count(const Json::Array& messages) = 0;

  // Answers the messages with the parameters of `options`. An interrupt (environment.h) ends the answer,
  // which is then what came so far.
  virtual Result<ChatAnswer> answer(const Json::Array& messages, const Options& options,
                                    const TextSink& sink) = 0;
};

// The model and the engine in this process. `options` must outlive it.
Result<std::unique_ptr<ChatModel>> load_chat_model(const Options& options, const BackendFactory& make);

// The model behind a server. `key` may be empty. E-SRV-003 when it does not answer or is not ready, E-REQ-011
// when it asks for another key.
Result<std::unique_ptr<ChatModel>> connect_chat_model(const ServerNote& server, const std::string& key);

}  // namespace inferd
