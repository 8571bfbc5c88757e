#include "server/openai_shapes.h"

#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "base/utf8.h"

namespace inferd {
namespace {

double per_second(int64_t count, double milliseconds) {
  return count > 0 && milliseconds > 0 ? static_cast<double>(count) * 1000 / milliseconds : 0;
}

template <typename Items, typename Append>
void append_list(std::string& out, const Items& items, Append append) {
  char separator = '[';
  for (const auto& item : items) {
    out.push_back(separator);
    append(item);
    separator = ',';
  }
  out += separator == '[' ? "[]" : "]";
}

void append_chat_token(std::string& out, const Tokenizer& tokenizer, int32_t id, float logprob) {
  out += "{\"token\":";
  append_json_string(out, token_text(tokenizer, id));
  out += ",\"logprob\":";
  append_logprob(out, logprob);
  out += ",\"bytes\":";
  append_bytes(out, tokenizer.token_bytes(id));
}

// The likeliest tokens and the one that was drawn. Two tokens with one text cannot both be keys: the later is
// named by id.
void append_top_object(std::string& out, const Tokenizer& tokenizer, const TokenInfo& token) {
  std::vector<std::string> keys;
  char separator = '{';
  const auto append = [&](int32_t id, float logprob) {
    std::string key = token_text(tokenizer, id);
    if (std::ranges::find(keys, key) != keys.end()) key = cat("token_id:", id);
    out.push_back(separator);
    append_json_string(out, key);
    out.push_back(':');
    append_logprob(out, logprob);
    separator = ',';
    keys.push_back(std::move(key));
  };
  for (const TopLogprob& top : token.top) append(top.id, top.logprob);
  if (std::ranges::find(token.top, token.id, &TopLogprob::id) == token.top.end())
    append(token.id, token.logprob);
  out.push_back('}');
}

}  // namespace

AnswerFacts AnswerFacts::of(const ModelView& model, const Generation& generation, std::string request_id) {
  return {.tokenizer = model.tokenizer,
          .model = model.name,
          .request_id = std::move(request_id),
          .sampling = generation.sampling,
          .max_tokens = generation.max_tokens,
          .created = unix_seconds(),
          .n = static_cast<size_t>(generation.n),
          .include_usage = generation.include_usage,
          .logprobs = generation.logprobs,
          .return_token_ids = generation.return_token_ids,
          .prompt_ids = generation.prompt_ids};
}

std::string answer_prefix(const AnswerFacts& facts, std::string_view id, std::string_view object) {
  std::string out =
      cat("{\"id\":\"", id, "\",\"object\":\"", object, "\",\"created\":", facts.created, ",\"model\":");
  append_json_string(out, facts.model);
  return out;
}

void append_ids(std::string& out, const std::vector<int32_t>& ids) {
  append_list(out, ids, [&](int32_t id) { append_any(out, id); });
}

void append_token_ids(std::string& out, const std::vector<TokenInfo>& tokens) {
  append_list(out, tokens, [&](const TokenInfo& token) { append_any(out, token.id); });
}

void append_reasons(std::string& out, const AnswerEnd& end) {
  out += cat(",\"finish_reason\":\"", end.reason_text(), "\",\"stop_reason\":");
  if (end.stop_text) {
    append_json_string(out, *end.stop_text);
  } else if (end.stop_id) {
    append_any(out, *end.stop_id);
  } else {
    out += "null";
  }
}

void append_usage(std::string& out, const Totals& totals) {
  out += cat("{\"prompt_tokens\":", totals.prompt_tokens, ",\"completion_tokens\":", totals.output_tokens,
             ",\"total_tokens\":", totals.prompt_tokens + totals.output_tokens,
             ",\"prompt_tokens_details\":{\"cached_tokens\":", totals.cached_tokens, "}}");
}

void append_timings(std::string& out, const Totals& totals) {
  const int64_t computed = totals.prompt_tokens - totals.cached_tokens;
  out += cat("{\"queue_ms\":", fixed(totals.queue_ms, 3), ",\"cache_n\":", totals.cached_tokens,
             ",\"prompt_n\":", computed, ",\"prompt_ms\":", fixed(totals.prompt_ms, 3),
             ",\"prompt_per_second\":", fixed(per_second(computed, totals.prompt_ms), 3),
             ",\"predicted_n\":", totals.output_tokens, ",\"predicted_ms\":", fixed(totals.output_ms, 3),
             // The first token of each answer came out of its prompt's step, before this time began.
             ",\"predicted_per_second\":",
             fixed(per_second(totals.output_tokens - totals.answers, totals.output_ms), 3),
             ",\"preemptions\":", totals.preemptions, "}");
}

void append_tail(std::string& out, const AnswerFacts& facts, const Totals& totals) {
  const SamplingParams& s = facts.sampling;
  out += ",\"timings\":";
  append_timings(out, totals);
  out += cat(",\"seed\":", s.seed.value_or(0), ",\"sampling\":{\"temperature\":");
  const auto number = [&](std::string_view name, double value) {
    out += name;
    append_json_number(out, value);
  };
  append_json_number(out, s.temperature);
  number(",\"top_p\":", s.top_p);
  out += cat(",\"top_k\":", s.top_k);
  number(",\"min_p\":", s.min_p);
  number(",\"repetition_penalty\":", s.repetition_penalty);
  number(",\"presence_penalty\":", s.presence_penalty);
  number(",\"frequency_penalty\":", s.frequency_penalty);
  out += cat(",\"min_tokens\":", s.min_tokens, ",\"max_tokens\":", facts.max_tokens, "}");
}

void append_logprob(std::string& out, float logprob) {
  append_json_number(out, std::isfinite(logprob) ? static_cast<double>(logprob) : -9999.0);
}

std::string token_text(const Tokenizer& tokenizer, int32_t id) {
  const std::string_view bytes = tokenizer.token_bytes(id);
  if (is_valid_utf8(bytes)) return std::string(bytes);
  static constexpr std::string_view kHex = "0123456789abcdef";
  std::string text = "bytes:";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += "\\x";
    text.push_back(kHex[byte >> 4]);
    text.push_back(kHex[byte & 15]);
  }
  return text;
}

void append_bytes(std::string& out, std::string_view bytes) {
  append_list(out, bytes, [&](char c) { append_any(out, static_cast<int>(static_cast<unsigned char>(c))); });
}

void append_chat_logprobs(std::string& out, const Tokenizer& tokenizer,
                          const std::vector<TokenInfo>& tokens) {
  out += "{\"content\":";
  append_list(out, tokens, [&](const TokenInfo& token) {
    append_chat_token(out, tokenizer, token.id, token.logprob);
    out += ",\"top_logprobs\":";
    append_list(out, token.top, [&](const TopLogprob& top) {
      append_chat_token(out, tokenizer, top.id, top.logprob);
      out.push_back('}');
    });
    out.push_back('}');
  });
  out += ",\"refusal\":null}";
}

void append_completion_logprobs(std::string& out, const Tokenizer& tokenizer,
                                const std::vector<TokenInfo>& tokens) {
  out += "{\"tokens\":";
  append_list(out, tokens,
              [&](const TokenInfo& token) { append_json_string(out, token_text(tokenizer, token.id)); });
  out += ",\"token_logprobs\":";
  append_list(out, tokens, [&](const TokenInfo& token) { append_logprob(out, token.logprob); });
  out += ",\"top_logprobs\":";
  append_list(out, tokens, [&](const TokenInfo& token) { append_top_object(out, tokenizer, token); });
  out += ",\"text_offset\":";
  append_list(out, tokens, [&](const TokenInfo& token) { append_any(out, token.offset); });
  out += ",\"bytes\":";
  append_list(out, tokens,
              [&](const TokenInfo& token) { append_bytes(out, tokenizer.token_bytes(token.id)); });
  out.push_back('}');
}

}  // namespace inferd
