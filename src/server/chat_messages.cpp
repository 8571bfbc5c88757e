#include "server/chat_messages.h"

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "server/field_tables.h"

namespace inferd {
namespace {

constexpr std::string_view kRoles = "system, developer, user, assistant or tool";
constexpr std::string_view kContentAllowed = "a string or a list of text parts";

const std::array<std::string, 6> kMessageMembers = {"role",       "content",      "name",
                                                    "tool_calls", "tool_call_id", "reasoning_content"};
const std::array<std::string, 3> kCallMembers = {"id", "type", "function"};
const std::array<std::string, 2> kCalledMembers = {"name", "arguments"};
const std::array<std::string, 2> kPartMembers = {"type", "text"};

// The value must be an object with these members only.
Status check_members(std::string_view path, const Json& value, std::span<const std::string> known) {
  if (!value.is_object()) return type_error(path, value, "an object");
  for (const auto& [name, member] : value.as_object()) {
    if (!member.is_null() && std::ranges::find(known, name) == known.end())
      return unknown_member_error(path, name, known);
  }
  return {};
}

Result<const std::string*> required_string(std::string_view path, const Json& object,
                                           std::string_view member) {
  const Json* value = object.find(member);
  const std::string full = cat(path, ".", member);
  if (value == nullptr || value->is_null()) return missing_error(full, "a string");
  if (!value->is_string()) return type_error(full, *value, "a string");
  return &value->as_string();
}

Result<Json> read_content(std::string_view path, Json content) {
  if (content.is_string()) return content;
  if (!content.is_array()) return type_error(path, content, kContentAllowed);
  std::string text;
  const Json::Array& parts = content.as_array();
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string part = cat(path, "[", i, "]");
    if (!parts[i].is_object()) return type_error(part, parts[i], "an object");
    INFERD_TRY(const std::string* type, required_string(part, parts[i], "type"));
    if (*type != "text") {
      return value_error(cat(part, ".type"), printable(*type, 40),
                         "\"text\": this model reads no other kind of part");
    }
    INFERD_TRY_STATUS(check_members(part, parts[i], kPartMembers));
    INFERD_TRY(const std::string* piece, required_string(part, parts[i], "text"));
    if (i > 0) text.push_back('\n');
    text += *piece;
  }
  return Json(std::move(text));
}

Result<Json> read_tool_calls(std::string_view path, const Json& calls) {
  if (!calls.is_array()) return type_error(path, calls, "a list of tool calls");
  if (calls.as_array().size() > kMaxTools)
    return value_error(path, describe(calls), cat("at most ", kMaxTools, " calls"));
  Json::Array out;
  for (size_t i = 0; i < calls.as_array().size(); ++i) {
    const Json& call = calls.as_array()[i];
    const std::string at = cat(path, "[", i, "]");
    INFERD_TRY_STATUS(check_members(at, call, kCallMembers));
    const Json* function = call.find("function");
    if (function == nullptr) return missing_error(cat(at, ".function"), "an object");
    INFERD_TRY_STATUS(check_members(cat(at, ".function"), *function, kCalledMembers));
    INFERD_TRY(const std::string* name, required_string(cat(at, ".function"), *function, "name"));
    Json arguments(Json::Object{});
    if (const Json* given = function->find("arguments"); given != nullptr && !given->is_null()) {
      arguments = *given;
      if (given->is_string()) {
        Result<Json> parsed = parse_json(given->as_string());
        if (!parsed.ok()) {
          return value_error(cat(at, ".function.arguments"), cat("no JSON (", parsed.error().detail, ")"),
                             "a JSON object in a string");
        }
        arguments = std::move(parsed).value();
      }
      if (!arguments.is_object())
        return type_error(cat(at, ".function.arguments"), arguments, "a JSON object in a string");
    }
    Json::Object read;
    for (const auto& [member, value] : call.as_object()) {
      if (member != "function" && !value.is_null()) read.emplace_back(member, value);
    }
    read.emplace_back("function",
                      Json(Json::Object{{"name", Json(*name)}, {"arguments", std::move(arguments)}}));
    out.emplace_back(std::move(read));
  }
  return Json(std::move(out));
}

Result<Json> read_message(std::string_view path, Json& message) {
  INFERD_TRY_STATUS(check_members(path, message, kMessageMembers));
  INFERD_TRY(const std::string* role, required_string(path, message, "role"));
  static constexpr auto kKnown =
      std::to_array<std::string_view>({"system", "developer", "user", "assistant", "tool"});
  if (std::ranges::find(kKnown, *role) == kKnown.end())
    return value_error(cat(path, ".role"), printable(*role, 40), kRoles);
  const bool assistant = *role == "assistant";

  Json::Object read;
  bool has_content = false;
  bool has_calls = false;
  for (auto& [name, value] : message.as_object()) {
    const std::string at = cat(path, ".", name);
    if (name == "content" && !value.is_null()) {
      INFERD_TRY(Json content, read_content(at, std::move(value)));
      read.emplace_back(name, std::move(content));
      has_content = true;
    } else if (value.is_null()) {
      continue;
    } else if (name == "tool_calls") {
      if (!assistant) return value_error(at, "in a message of another role", "in assistant messages only");
      INFERD_TRY(Json calls, read_tool_calls(at, value));
      has_calls = !calls.as_array().empty();
      read.emplace_back(name, std::move(calls));
    } else if (!value.is_string()) {
      return type_error(at, value, "a string");
    } else {
      read.emplace_back(name, std::move(value));
    }
  }
  if (!has_content) {
    if (!has_calls) return missing_error(cat(path, ".content"), kContentAllowed);
    read.emplace_back("content", Json());
  }
  return Json(std::move(read));
}

}  // namespace

Result<Json> read_messages(Json messages) {
  if (!messages.is_array()) return type_error("messages", messages, "a list of messages");
  Json::Array& list = messages.as_array();
  if (list.empty() || list.size() > kMaxMessages) {
    return value_error("messages", describe(messages), cat("1 to ", kMaxMessages, " messages"));
  }
  for (size_t i = 0; i < list.size(); ++i) {
    INFERD_TRY(list[i], read_message(cat("messages[", i, "]"), list[i]));
  }
  return messages;
}

Status check_tools(const Json& tools) {
  if (!tools.is_array()) return type_error("tools", tools, "a list of functions");
  const Json::Array& list = tools.as_array();
  if (list.size() > kMaxTools) return value_error("tools", describe(tools), cat("at most ", kMaxTools));
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string at = cat("tools[", i, "]");
    if (!list[i].is_object()) return type_error(at, list[i], "an object");
    INFERD_TRY(const std::string* type, required_string(at, list[i], "type"));
    if (*type != "function") return value_error(cat(at, ".type"), printable(*type, 40), "\"function\"");
    const Json* function = list[i].find("function");
    if (function == nullptr) return missing_error(cat(at, ".function"), "an object");
    if (!function->is_object()) return type_error(cat(at, ".function"), *function, "an object");
    INFERD_TRY(const std::string* name, required_string(cat(at, ".function"), *function, "name"));
    if (name->empty()) return value_error(cat(at, ".function.name"), "empty", "a name");
  }
  return {};
}

namespace {

// What stands behind the final message while the template renders it, as in transformers: where it comes out,
// the prompt ends. It ends in a space, so that a template that trims messages shows itself.
constexpr std::string_view kEndTag = "CONTINUE_FINAL_MESSAGE_TAG ";

Status check_continued(const RequestFields& fields, const Json& messages) {
  if (fields.add_generation_prompt.value_or(false))
    return value_error("add_generation_prompt", "true with continue_final_message", "one of the two");
  const Json& last = messages.as_array().back();
  if (last.find("role")->as_string() != "assistant")
    return value_error("continue_final_message", "true behind a message of another role",
                       "true when the last message is the assistant's");
  if (!last.find("content")->is_string())
    return value_error("continue_final_message", "true behind a message without content",
                       "true when the last message has content");
  return {};
}

// Cuts the prompt where the tag begins; with the white space before it where the template trims.
Status cut_at_tag(std::vector<TextSpan>& spans) {
  std::string all;
  for (const TextSpan& span : spans) all += span.text;
  size_t end = all.rfind(trim(kEndTag));
  if (end == std::string::npos)
    return value_error("continue_final_message", "true",
                       "false: this model's chat template leaves the final message out");
  if (all.compare(end, kEndTag.size(), kEndTag) != 0) {
    const size_t last = all.find_last_not_of(" \t\r\n\v\f", end == 0 ? end : end - 1);
    end = end == 0 || last == std::string::npos ? 0 : last + 1;
  }
  size_t begin = 0;
  for (size_t i = 0; i < spans.size(); ++i) {
    if (begin + spans[i].text.size() >= end) {
      spans[i].text.resize(end - begin);
      spans.resize(spans[i].text.empty() ? i : i + 1);
      return {};
    }
    begin += spans[i].text.size();
  }
  return {};
}

}  // namespace

Result<std::vector<int32_t>> encode_chat(const ModelView& model, RequestFields& fields) {
  if (model.chat_template == nullptr) return Error{.code = Code::template_missing};
  if (!fields.messages) return missing_error("messages", "a list of messages");
  INFERD_TRY(Json messages, read_messages(std::move(*fields.messages)));
  const Json* tools = nullptr;
  if (fields.tools) {
    INFERD_TRY_STATUS(check_tools(*fields.tools));
    if (!fields.tools_off && !fields.tools->as_array().empty()) tools = &*fields.tools;
  }
  const Json* documents =
      fields.documents && !fields.documents->as_array().empty() ? &*fields.documents : nullptr;
  if (fields.continue_final_message) {
    INFERD_TRY_STATUS(check_continued(fields, messages));
    for (auto& [name, value] : messages.as_array().back().as_object()) {
      if (name == "content") value = value.as_string() + std::string(kEndTag);
    }
  }
  const bool open_turn = fields.add_generation_prompt.value_or(!fields.continue_final_message);
  const auto render = [&](const Json* with_tools, const Json* with_documents) {
    return model.chat_template->render(messages, with_tools, with_documents, fields.template_arguments,
                                       open_turn);
  };
  Result<std::vector<TextSpan>> spans = render(tools, documents);
  if (!spans.ok()) {
    Error error = std::move(spans).error();
    if (error.param.empty()) error.param = "messages";
    return error;
  }
  // A template that does not read the tools gives the same prompt without them; the model would never hear of
  // them. So with documents.
  const auto is_read = [&](const Json* with_tools, const Json* with_documents) {
    const Result<std::vector<TextSpan>> without = render(with_tools, with_documents);
    return !without.ok() || *without != *spans;
  };
  if (tools != nullptr && !is_read(nullptr, documents))
    return value_error("tools", describe(*tools), "none: this model's chat template does not read tools");
  if (documents != nullptr && !is_read(tools, nullptr))
    return value_error("documents", describe(*documents),
                       "none: this model's chat template does not read documents");
  if (fields.continue_final_message) INFERD_TRY_STATUS(cut_at_tag(*spans));
  return model.tokenizer->encode_spans(*spans);
}

}  // namespace inferd
