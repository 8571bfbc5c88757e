// Fields of JSON requests, by tables: name, type, range, default and meaning of each. The tables make the
// reader, its error texts and the field lists of docs/api.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "engine/request.h"

namespace inferd {

// What the fields of any route may say; each route's tables say which of them it has.
struct RequestFields {
  std::optional<std::string> model;

  // How tokens are drawn.
  SamplingParams sampling;  // starts as the model's defaults
  std::optional<int64_t> max_tokens;
  std::optional<int64_t> max_completion_tokens;
  int64_t n = 1;
  bool ignore_eos = false;
  std::vector<std::string> stop;
  std::vector<int32_t> stop_token_ids;
  std::string cache_salt;

  // What comes back.
  bool stream = false;
  std::optional<bool> include_usage;  // set: stream_options was given
  bool chat_logprobs = false;
  std::optional<int64_t> top_logprobs;
  bool return_token_ids = false;

  // The prompt.
  std::optional<Json> prompt;
  std::optional<Json> messages;
  std::optional<Json> tools;
  bool tools_off = false;  // tool_choice is "none"
  std::optional<Json> documents;
  Json::Object template_arguments;
  std::optional<bool> add_generation_prompt;  // absent: true, but false with continue_final_message
  bool continue_final_message = false;
  std::optional<bool> add_special_tokens;

  // /tokenize and /detokenize
  std::optional<std::string> content;
  std::optional<bool> add_special;
  std::optional<bool> parse_special;
  std::optional<Json> tokens;
};

struct Field {
  enum class Type { boolean, integer, number, string, other };
  std::string_view name;
  Type type;
  // Ends of the range: of an integer, or of a string's bytes; of a number.
  int64_t low = 0, high = 0;
  double low_number = 0, high_number = 0;
  bool low_open = false;          // the low end of a number is not allowed itself
  std::string_view allowed;       // of type `other`: "a string or a list of at most 16 strings"
  std::string_view default_text;  // for docs; "required" where the route needs it
  std::string_view meaning;       // for docs
  // Takes a value of the type and in the range; of type `other` it checks both itself. May move from the
  // value.
  Status (*set)(RequestFields& fields, Json& value) = nullptr;
};

using FieldTable = std::span<const Field>;

// "an integer from 1 to 8": for errors and docs.
std::string allowed_text(const Field& field);

// Reads every member of `body` by the tables. A null is as if the member were absent. E-REQ-003 and -004 name
// field, got and allowed; E-REQ-002 an unknown member and the nearest name. `route` is for that text: "POST
// /generate".
Status read_fields(RequestFields& fields, Json& body, std::span<const FieldTable> tables,
                   std::string_view route);

// Errors of nested values. `path` is "messages[3].content"; its JSON pointer goes into the text too.
Error type_error(std::string_view path, const Json& got, std::string_view allowed);
Error value_error(std::string_view path, std::string_view got, std::string_view allowed);
Error missing_error(std::string_view path, std::string_view allowed);
Error unknown_member_error(std::string_view path, std::string_view name, std::span<const std::string> known);

// A value for an error text: numbers as they are, text shortened, containers by size.
std::string describe(const Json& value);

// A list of token ids, each 0 … 2^31 − 1; the vocabulary is checked later. At most `most`.
Result<std::vector<int32_t>> read_ids(std::string_view path, const Json& value, size_t most);

// As a Markdown table.
std::string field_table_markdown(std::span<const FieldTable> tables);

}  // namespace inferd
