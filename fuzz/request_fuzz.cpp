// What libFuzzer calls with every input, and the test that replays tests/corpus/request: the first byte picks
// a route, the rest is the body of a request. A broken promise of the conversion ends the process.

#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/utf8.h"
#include "server/native_generate.h"
#include "server/openai_chat.h"
#include "server/openai_completions.h"
#include "server/tokenize.h"

namespace inferd {
namespace {

// A vocabulary of the 256 bytes, three control tokens, and a few merges; it needs no file.
ModelView make_model() {
  std::vector<std::string> texts = {"<|end|>", "<|im_start|>", "<|im_end|>"};
  std::vector<int32_t> types(3, static_cast<int32_t>(TokenType::control));
  char32_t odd = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool plain = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    std::string text;
    append_utf8(text, plain ? static_cast<char32_t>(byte) : odd++);
    texts.push_back(text);
  }
  texts.insert(texts.end(), {"th", "he", "in"});
  types.resize(texts.size(), static_cast<int32_t>(TokenType::normal));
  const std::vector<std::string_view> tokens(texts.begin(), texts.end());
  const std::vector<std::string_view> merges = {"t h", "h e", "i n"};
  TokenizerData data;
  data.model = "gpt2";
  data.pre = "qwen2";
  data.tokens = tokens;
  data.types = types;
  data.merges = merges;
  data.bos = 0;
  data.eos = 2;
  data.add_bos = true;
  ModelView model;
  model.name = "fuzzed";
  model.aliases = {"alias"};
  model.tokenizer = std::make_shared<const Tokenizer>(Tokenizer::create(data).value());
  model.chat_template = std::make_shared<const ChatTemplate>(
      ChatTemplate::parse("{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages "
                          "%}<|im_start|>{{ m.role }}\n{{ m.content }}"
                          "{% for c in m.tool_calls or [] %}{{ c.function.arguments | tojson }}{% endfor "
                          "%}<|im_end|>\n{% endfor %}"
                          "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
          .value());
  model.limits = {.max_seqs = 4, .ctx = 512, .prefill_chunk = 64, .pool = {.pages = 24, .page_tokens = 16}};
  model.most_choices = 20;
  return model;
}

void check_error(const Error& error) {
  const int status = error_row(error.code).http_status;
  INFERD_CHECK(status >= 400 && status < 500, error.terminal_text());
  INFERD_CHECK(!error.message().empty() && error.message().size() < 2000, error.message());
  INFERD_CHECK(parse_json(error_json(error, "id")).ok(), error_json(error, "id"));
}

void check_generation(const ModelView& model, const Result<Generation>& result) {
  if (!result.ok()) return check_error(result.error());
  const Generation& generation = *result;
  INFERD_CHECK(generation.n >= 1 && generation.n <= 8 && generation.answers() >= 1);
  INFERD_CHECK(generation.answers() <= static_cast<size_t>(model.most_choices));
  INFERD_CHECK(generation.sampling.seed.has_value());
  INFERD_CHECK(validate(generation.sampling, model.tokenizer->vocab_size()).ok());
  INFERD_CHECK(generation.requests.empty() == (generation.max_tokens == 0));
  for (const Request& request : generation.requests) {
    INFERD_CHECK(!request.prompt.empty() && request.max_tokens >= 1 && request.choices == generation.n);
    INFERD_CHECK(model.tokenizer->check_ids(request.prompt).ok());
    INFERD_CHECK(
        Scheduler::check_fits(model.limits, static_cast<int64_t>(request.prompt.size()), request.max_tokens)
            .ok());
    INFERD_CHECK(request.stop_checks.empty() ||
                 request.stop_checks.size() == static_cast<size_t>(request.choices));
    INFERD_CHECK(request.sampling.min_tokens <= request.max_tokens);
  }
}

void check_reply(const Result<HttpReply>& result) {
  if (!result.ok()) return check_error(result.error());
  INFERD_CHECK(parse_json(result->body).ok(), result->body);
}

}  // namespace
}  // namespace inferd

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace inferd;
  static const ModelView model = make_model();
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 5) {
    case 0:
      check_generation(model, chat_generation(model, body));
      break;
    case 1:
      check_generation(model, completion_generation(model, body));
      break;
    case 2:
      check_generation(model, native_generation(model, body));
      break;
    case 3:
      check_reply(tokenize_reply(model, body));
      break;
    default:
      check_reply(detokenize_reply(model, body));
      break;
  }
  return 0;
}
