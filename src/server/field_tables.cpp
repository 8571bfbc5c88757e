#include "server/field_tables.h"

#include <algorithm>
#include <array>

#include "base/strings.h"

namespace inferd {
namespace {

using Setter = Status (*)(RequestFields&, Json&);

constexpr Field boolean(std::string_view name, std::string_view default_text, std::string_view meaning,
                        Setter set) {
  return {.name = name,
          .type = Field::Type::boolean,
          .default_text = default_text,
          .meaning = meaning,
          .set = set};
}
constexpr Field integer(std::string_view name, int64_t low, int64_t high, std::string_view default_text,
                        std::string_view meaning, Setter set) {
  return {.name = name,
          .type = Field::Type::integer,
          .low = low,
          .high = high,
          .default_text = default_text,
          .meaning = meaning,
          .set = set};
}
constexpr Field number(std::string_view name, double low, double high, std::string_view default_text,
                       std::string_view meaning, Setter set, bool low_open = false) {
  return {.name = name,
          .type = Field::Type::number,
          .low_number = low,
          .high_number = high,
          .low_open = low_open,
          .default_text = default_text,
          .meaning = meaning,
          .set = set};
}
constexpr Field text(std::string_view name, int64_t low, int64_t high, std::string_view default_text,
                     std::string_view meaning, Setter set) {
  return {.name = name,
          .type = Field::Type::string,
          .low = low,
          .high = high,
          .default_text = default_text,
          .meaning = meaning,
          .set = set};
}
constexpr Field other(std::string_view name, std::string_view allowed, std::string_view default_text,
                      std::string_view meaning, Setter set) {
  return {.name = name,
          .type = Field::Type::other,
          .allowed = allowed,
          .default_text = default_text,
          .meaning = meaning,
          .set = set};
}

constexpr int64_t kBodyBytes = int64_t{16} << 20;

constexpr std::string_view kStopAllowed = "a string or a list of at most 16 strings, each of 1 to 256 bytes";
constexpr std::string_view kBiasAllowed =
    "an object of at most 1024 token ids (as strings) to numbers from -100 to 100";
constexpr std::string_view kIdsAllowed = "a list of at most 64 token ids";
constexpr std::string_view kDocumentsAllowed = "a list of at most 1,024 objects";
constexpr std::string_view kStreamOptionsAllowed = "an object with the boolean include_usage";
constexpr std::string_view kModesAllowed = "\"raw\" or \"processed\"";

Status set_stop(RequestFields& f, Json& value) {
  if (value.is_string()) {
    f.stop = {value.as_string()};
  } else if (value.is_array()) {
    if (value.as_array().size() > kMaxStops) return value_error("stop", describe(value), kStopAllowed);
    for (size_t i = 0; i < value.as_array().size(); ++i) {
      const Json& item = value.as_array()[i];
      if (!item.is_string()) return type_error(cat("stop[", i, "]"), item, "a string");
      f.stop.push_back(item.as_string());
    }
  } else {
    return type_error("stop", value, kStopAllowed);
  }
  for (const std::string& stop : f.stop) {
    if (stop.empty() || stop.size() > kMaxStopBytes) {
      return value_error("stop", cat("a string of ", stop.size(), " bytes"), kStopAllowed);
    }
  }
  return {};
}

Status set_stop_token_ids(RequestFields& f, Json& value) {
  INFERD_TRY(f.stop_token_ids, read_ids("stop_token_ids", value, kMaxStopIds));
  return {};
}

Status set_logit_bias(RequestFields& f, Json& value) {
  if (!value.is_object()) return type_error("logit_bias", value, kBiasAllowed);
  if (value.as_object().size() > size_t{kMaxLogitBias}) {
    return value_error("logit_bias", cat(value.as_object().size(), " entries"), kBiasAllowed);
  }
  for (const auto& [key, bias] : value.as_object()) {
    const std::optional<int64_t> id = parse_int(key);
    if (!id || *id < 0 || *id > INT32_MAX)
      return value_error("logit_bias", cat("for ", printable(key, 40)), kBiasAllowed);
    if (!bias.is_number()) return type_error(cat("logit_bias.", *id), bias, "a number from -100 to 100");
    const double number = bias.as_number();
    if (!(number >= -100 && number <= 100))
      return value_error(cat("logit_bias.", *id), describe(bias), "-100 to 100");
    f.sampling.logit_bias.push_back({static_cast<int32_t>(*id), static_cast<float>(number)});
  }
  return {};
}

Status set_logprobs_mode(RequestFields& f, Json& value) {
  if (!value.is_string()) return type_error("logprobs_mode", value, kModesAllowed);
  if (value.as_string() != "raw" && value.as_string() != "processed") {
    return value_error("logprobs_mode", describe(value), kModesAllowed);
  }
  f.sampling.processed_logprobs = value.as_string() == "processed";
  return {};
}

Status set_stream_options(RequestFields& f, Json& value) {
  if (!value.is_object()) return type_error("stream_options", value, kStreamOptionsAllowed);
  f.include_usage = false;
  for (const auto& [key, member] : value.as_object()) {
    if (member.is_null()) continue;
    if (key != "include_usage") {
      static const std::array<std::string, 1> known = {"include_usage"};
      return unknown_member_error("stream_options", key, known);
    }
    if (!member.is_bool()) return type_error("stream_options.include_usage", member, "true or false");
    f.include_usage = member.as_bool();
  }
  return {};
}

Status set_tool_choice(RequestFields& f, Json& value) {
  if (!value.is_string() || (value.as_string() != "auto" && value.as_string() != "none")) {
    return value_error("tool_choice", describe(value),
                       "\"auto\" or \"none\": a tool call cannot be forced here");
  }
  f.tools_off = value.as_string() == "none";
  return {};
}

Status set_documents(RequestFields& f, Json& value) {
  if (!value.is_array()) return type_error("documents", value, kDocumentsAllowed);
  if (value.as_array().size() > kMaxDocuments)
    return value_error("documents", describe(value), kDocumentsAllowed);
  for (size_t i = 0; i < value.as_array().size(); ++i) {
    if (!value.as_array()[i].is_object())
      return type_error(cat("documents[", i, "]"), value.as_array()[i],
                        "an object, such as {\"text\": \"…\"}");
  }
  f.documents = std::move(value);
  return {};
}

Status set_template_arguments(RequestFields& f, Json& value) {
  if (!value.is_object()) return type_error("chat_template_kwargs", value, "an object");
  f.template_arguments = std::move(value.as_object());
  const auto documents = std::ranges::find(f.template_arguments, "documents", &Json::Member::first);
  if (documents == f.template_arguments.end()) return {};
  Json list = std::move(documents->second);
  f.template_arguments.erase(documents);
  return list.is_null() ? Status() : set_documents(f, list);
}

Status set_continue(RequestFields& f, Json& value) {
  f.continue_final_message = value.as_bool();
  return {};
}

Status accept(RequestFields&, Json&) {
  return {};
}

// A field that other servers have: taken when it asks for what happens anyway, refused by name otherwise.
Status only(std::string_view name, const Json& value, bool matches, std::string_view allowed) {
  if (matches) return {};
  return value_error(name, describe(value), allowed);
}

constexpr auto kCommon = std::to_array<Field>({
    text("model", 1, 1024, "the served model", "Must be the served name or an alias.",
         [](RequestFields& f, Json& v) -> Status {
           f.model = v.as_string();
           return {};
         }),
    text("user", 0, kBodyBytes, "none", "Has no meaning here.", accept),
    other("metadata", "anything", "none", "Has no meaning here.", accept),
    other("store", "false", "false", "Nothing is stored.",
          [](RequestFields&, Json& v) -> Status {
            return only("store", v, v == Json(false), "false: nothing is stored here");
          }),
});

constexpr auto kSampling = std::to_array<Field>({
    number("temperature", 0, 100, "the model's own, else 1", "0 takes the likeliest token.",
           [](RequestFields& f, Json& v) -> Status {
             f.sampling.temperature = v.as_number();
             return {};
           }),
    number(
        "top_p", 0, 1, "the model's own, else 1",
        "The likeliest tokens that reach this probability; the one that crosses it stays.",
        [](RequestFields& f, Json& v) -> Status {
          f.sampling.top_p = v.as_number();
          return {};
        },
        true),
    integer("top_k", 0, INT32_MAX, "the model's own, else 0", "This many likeliest tokens; 0 is off.",
            [](RequestFields& f, Json& v) -> Status {
              f.sampling.top_k = v.as_integer();
              return {};
            }),
    number("min_p", 0, 1, "the model's own, else 0",
           "Tokens at least this likely, relative to the likeliest; 0 is off.",
           [](RequestFields& f, Json& v) -> Status {
             f.sampling.min_p = v.as_number();
             return {};
           }),
    number(
        "repetition_penalty", 0, 10, "the model's own, else 1", "Over prompt and output; 1 is off.",
        [](RequestFields& f, Json& v) -> Status {
          f.sampling.repetition_penalty = v.as_number();
          return {};
        },
        true),
    number("presence_penalty", -2, 2, "0", "Over the output.",
           [](RequestFields& f, Json& v) -> Status {
             f.sampling.presence_penalty = v.as_number();
             return {};
           }),
    number("frequency_penalty", -2, 2, "0", "Over the output.",
           [](RequestFields& f, Json& v) -> Status {
             f.sampling.frequency_penalty = v.as_number();
             return {};
           }),
    other("logit_bias", kBiasAllowed, "none", "Added to the logits of these tokens first.", set_logit_bias),
    integer("seed", 0, INT64_MAX, "random",
            "The same request with the same seed gives the same tokens; the answer says which seed was used.",
            [](RequestFields& f, Json& v) -> Status {
              f.sampling.seed = static_cast<uint64_t>(v.as_integer());
              return {};
            }),
    other("stop", kStopAllowed, "none",
          "The answer ends before the first of these strings; no character of it is sent.", set_stop),
    other("stop_token_ids", kIdsAllowed, "none", "Tokens that end the answer, beside the model's own.",
          set_stop_token_ids),
    integer("min_tokens", 0, INT32_MAX, "0",
            "No stop token is drawn before, and no stop string is looked for. At most max_tokens.",
            [](RequestFields& f, Json& v) -> Status {
              f.sampling.min_tokens = v.as_integer();
              return {};
            }),
    boolean("ignore_eos", "false", "The model's own end tokens do not end the answer.",
            [](RequestFields& f, Json& v) -> Status {
              f.ignore_eos = v.as_bool();
              return {};
            }),
    text("cache_salt", 0, kMaxSaltBytes, "none",
         "Requests with different salts never share cached prompt pages.",
         [](RequestFields& f, Json& v) -> Status {
           f.cache_salt = v.as_string();
           return {};
         }),
});

constexpr auto kOpenAi = std::to_array<Field>({
    integer("n", 1, kMaxChoices, "1", "Answers to each prompt.",
            [](RequestFields& f, Json& v) -> Status {
              f.n = v.as_integer();
              return {};
            }),
    boolean("stream", "false", "Answer as server-sent events.",
            [](RequestFields& f, Json& v) -> Status {
              f.stream = v.as_bool();
              return {};
            }),
    other("stream_options", kStreamOptionsAllowed, "none",
          "include_usage sends one more chunk with the usage. Only with stream.", set_stream_options),
    other("logprobs_mode", kModesAllowed, "\"raw\"",
          "Log-probabilities of the model's distribution, or of the one that was drawn from.",
          set_logprobs_mode),
    boolean("return_token_ids", "false", "The ids of prompt and answer too.",
            [](RequestFields& f, Json& v) -> Status {
              f.return_token_ids = v.as_bool();
              return {};
            }),
});

constexpr auto kChat = std::to_array<Field>({
    other("messages", "a list of 1 to 2048 messages", "required", "The conversation; see below.",
          [](RequestFields& f, Json& v) -> Status {
            f.messages = std::move(v);
            return {};
          }),
    integer("max_tokens", 0, INT32_MAX, "what the context leaves",
            "Most tokens of one answer; 0 answers with the usage only.",
            [](RequestFields& f, Json& v) -> Status {
              f.max_tokens = v.as_integer();
              return {};
            }),
    integer("max_completion_tokens", 0, INT32_MAX, "max_tokens", "Another name for max_tokens.",
            [](RequestFields& f, Json& v) -> Status {
              f.max_completion_tokens = v.as_integer();
              return {};
            }),
    boolean("logprobs", "false", "The log-probability of each token.",
            [](RequestFields& f, Json& v) -> Status {
              f.chat_logprobs = v.as_bool();
              return {};
            }),
    integer("top_logprobs", 0, kMaxTopLogprobs, "0",
            "This many likeliest tokens beside each. Only with logprobs.",
            [](RequestFields& f, Json& v) -> Status {
              f.top_logprobs = v.as_integer();
              return {};
            }),
    other("tools", "a list of at most 128 functions", "none",
          "Given to the chat template; refused when the template does not read them.",
          [](RequestFields& f, Json& v) -> Status {
            f.tools = std::move(v);
            return {};
          }),
    other("tool_choice", "\"auto\" or \"none\"", "\"auto\"", "\"none\" keeps the tools from the template.",
          set_tool_choice),
    boolean("parallel_tool_calls", "true", "Only true: calls are not limited.",
            [](RequestFields&, Json& v) -> Status {
              return only("parallel_tool_calls", v, v.as_bool(), "true");
            }),
    other("response_format", "{\"type\":\"text\"}", "text", "Text only.",
          [](RequestFields&, Json& v) -> Status {
            return only("response_format", v, v == Json(Json::Object{{"type", Json("text")}}),
                        "{\"type\":\"text\"}");
          }),
    other("documents", kDocumentsAllowed, "none",
          "Given to the chat template; refused when the template does not read them.", set_documents),
    boolean("add_generation_prompt", "true", "The template opens the assistant's turn.",
            [](RequestFields& f, Json& v) -> Status {
              f.add_generation_prompt = v.as_bool();
              return {};
            }),
    boolean("continue_final_message", "false",
            "The answer goes on from the last message, which is the assistant's; add_generation_prompt is "
            "false then.",
            set_continue),
    other("chat_template_kwargs", "an object", "none",
          "More variables for the chat template, such as enable_thinking; documents in it are those of the "
          "field.",
          set_template_arguments),
});

constexpr auto kCompletion = std::to_array<Field>({
    other("prompt", "a string, a list of token ids, or a list of at most 256 of either", "required",
          "What to go on from. Control tokens written in a string are read as tokens.",
          [](RequestFields& f, Json& v) -> Status {
            f.prompt = std::move(v);
            return {};
          }),
    boolean("add_special_tokens", "true",
            "The model's begin token before string prompts, where it wants one.",
            [](RequestFields& f, Json& v) -> Status {
              f.add_special_tokens = v.as_bool();
              return {};
            }),
    integer("max_tokens", 0, INT32_MAX, "16", "Most tokens of one answer; 0 answers with the usage only.",
            [](RequestFields& f, Json& v) -> Status {
              f.max_tokens = v.as_integer();
              return {};
            }),
    integer("logprobs", 0, kMaxTopLogprobs, "none",
            "The log-probability of each token, and of this many likeliest ones.",
            [](RequestFields& f, Json& v) -> Status {
              f.top_logprobs = v.as_integer();
              return {};
            }),
    boolean("echo", "false", "Only false: the prompt is not repeated.",
            [](RequestFields&, Json& v) -> Status {
              return only("echo", v, !v.as_bool(), "false: echo is not supported");
            }),
    integer("best_of", 1, 1, "1", "Only 1.", accept),
    text("suffix", 0, 0, "none", "Only the empty string: text is not filled in.", accept),
});

constexpr auto kGenerate = std::to_array<Field>({
    other("prompt", "a string of 1 to 1000000 characters", "required",
          "What to go on from. Control tokens written in it are read as tokens, and the model's begin token "
          "is added where it wants one.",
          [](RequestFields& f, Json& v) -> Status {
            f.prompt = std::move(v);
            return {};
          }),
    integer("max_tokens", 1, INT32_MAX, "256", "Most tokens of the answer.",
            [](RequestFields& f, Json& v) -> Status {
              f.max_tokens = v.as_integer();
              return {};
            }),
});

constexpr auto kTokenize = std::to_array<Field>({
    other("prompt", "a string", "one of prompt, content, messages", "Text as /v1/completions reads it.",
          [](RequestFields& f, Json& v) -> Status {
            f.prompt = std::move(v);
            return {};
          }),
    boolean("add_special_tokens", "true",
            "With prompt: the begin token, where the model wants one. With messages: false.",
            [](RequestFields& f, Json& v) -> Status {
              f.add_special_tokens = v.as_bool();
              return {};
            }),
    text("content", 0, kBodyBytes, "one of prompt, content, messages", "Text as it stands.",
         [](RequestFields& f, Json& v) -> Status {
           f.content = v.as_string();
           return {};
         }),
    boolean("add_special", "false", "With content: the begin token, where the model wants one.",
            [](RequestFields& f, Json& v) -> Status {
              f.add_special = v.as_bool();
              return {};
            }),
    boolean("parse_special", "true", "With content: control tokens written in it are read as tokens.",
            [](RequestFields& f, Json& v) -> Status {
              f.parse_special = v.as_bool();
              return {};
            }),
    kChat[0],
    other("tools", "a list of at most 128 functions", "none", "With messages.",
          [](RequestFields& f, Json& v) -> Status {
            f.tools = std::move(v);
            return {};
          }),
    boolean("add_generation_prompt", "true", "With messages: the template opens the assistant's turn.",
            [](RequestFields& f, Json& v) -> Status {
              f.add_generation_prompt = v.as_bool();
              return {};
            }),
    other("documents", kDocumentsAllowed, "none", "With messages.", set_documents),
    boolean("continue_final_message", "false",
            "With messages: nothing comes behind the last one, the assistant's.", set_continue),
    other("chat_template_kwargs", "an object", "none", "With messages: more variables for the chat template.",
          set_template_arguments),
});

constexpr auto kDetokenize = std::to_array<Field>({
    other("tokens", "a list of token ids", "required", "Ids of this model's vocabulary.",
          [](RequestFields& f, Json& v) -> Status {
            f.tokens = std::move(v);
            return {};
          }),
});

constexpr auto kChatTables = std::to_array<FieldTable>({kChat, kSampling, kOpenAi, kCommon});
constexpr auto kCompletionTables = std::to_array<FieldTable>({kCompletion, kSampling, kOpenAi, kCommon});
constexpr auto kGenerateTables = std::to_array<FieldTable>({kGenerate, kSampling, kCommon});
constexpr auto kTokenizeTables = std::to_array<FieldTable>({kTokenize, kCommon});
constexpr auto kDetokenizeTables = std::to_array<FieldTable>({kDetokenize, kCommon});

constexpr RouteFields kChatRoute{"POST /v1/chat/completions", kChatTables};
constexpr RouteFields kCompletionRoute{"POST /v1/completions", kCompletionTables};
constexpr RouteFields kGenerateRoute{"POST /generate", kGenerateTables};
constexpr RouteFields kTokenizeRoute{"POST /tokenize", kTokenizeTables};
constexpr RouteFields kDetokenizeRoute{"POST /detokenize", kDetokenizeTables};
constexpr auto kAllRoutes = std::to_array<const RouteFields*>(
    {&kChatRoute, &kCompletionRoute, &kGenerateRoute, &kTokenizeRoute, &kDetokenizeRoute});

}  // namespace

const RouteFields& chat_fields() {
  return kChatRoute;
}
const RouteFields& completion_fields() {
  return kCompletionRoute;
}
const RouteFields& generate_fields() {
  return kGenerateRoute;
}
const RouteFields& tokenize_fields() {
  return kTokenizeRoute;
}
const RouteFields& detokenize_fields() {
  return kDetokenizeRoute;
}
std::span<const RouteFields* const> all_route_fields() {
  return kAllRoutes;
}

}  // namespace inferd
