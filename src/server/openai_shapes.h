// The parts of OpenAI's answers that chat and completions share. Written by hand onto a string: no JSON
// values are built while tokens stream.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/generation.h"
#include "server/served_model.h"

namespace inferd {

// What every chunk of one answer repeats, and what its end says.
struct AnswerFacts {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::string model;
  std::string request_id;
  SamplingParams sampling;
  int64_t max_tokens = 0;
  int64_t created = 0;
  size_t n = 1;
  bool include_usage = false;
  bool logprobs = false;
  bool return_token_ids = false;
  std::vector<std::vector<int32_t>> prompt_ids;  // by prompt, when returned

  static AnswerFacts of(const ModelView& model, const Generation& generation, std::string request_id);
};

// {"id":"…","object":"…","created":…,"model":"…": the open beginning of a reply or chunk.
std::string answer_prefix(const AnswerFacts& facts, std::string_view id, std::string_view object);

void append_ids(std::string& out, const std::vector<int32_t>& ids);
void append_token_ids(std::string& out, const std::vector<TokenInfo>& tokens);  // [1,2]
// ,"finish_reason":"stop","stop_reason":null
void append_reasons(std::string& out, const AnswerEnd& end);
// {"prompt_tokens":…}
void append_usage(std::string& out, const Totals& totals);
// ,"timings":{…},"seed":…,"sampling":{…}
void append_tail(std::string& out, const AnswerFacts& facts, const Totals& totals);
void append_timings(std::string& out, const Totals& totals);

// A log-probability; one that JSON cannot say is -9999.0, as OpenAI has it.
void append_logprob(std::string& out, float logprob);
// A token's text, or bytes:\xf0\x9f when it is no text by itself. Not escaped.
std::string token_text(const Tokenizer& tokenizer, int32_t id);
// [240,159]
void append_bytes(std::string& out, std::string_view bytes);
// {"content":[…],"refusal":null}
void append_chat_logprobs(std::string& out, const Tokenizer& tokenizer, const std::vector<TokenInfo>& tokens);
// {"tokens":[…],"token_logprobs":[…],"top_logprobs":[…],"text_offset":[…],"bytes":[…]}
void append_completion_logprobs(std::string& out, const Tokenizer& tokenizer,
                                const std::vector<TokenInfo>& tokens);

}  // namespace inferd
