// template render: the prompt that a chat template makes of a conversation in a file.
#include <algorithm>
#include <filesystem>

#include "base/mmap.h"
#include "commands.h"
#include "environment.h"

namespace inferd {
namespace {

constexpr std::string_view kMembers = "messages, tools, documents, kwargs";

struct Conversation {
  Json messages;
  Json tools;      // null: none
  Json documents;  // null: none
  Json::Object kwargs;
  bool add_generation_prompt = true;
};

Error bad_input(const std::string& where, std::string detail) {
  return {.code = Code::arg_value,
          .detail = std::move(detail),
          .where = where,
          .fix = cat("allowed are ", kMembers, "; messages is a list")};
}

Result<Conversation> read_conversation(const std::string& path) {
  const std::string where = path == "-" ? "stdin" : path;
  INFERD_TRY(const std::string text, path == "-" ? text_argument(path) : read_text_file(path));
  Result<Json> json = parse_json(text);
  if (!json.ok()) {
    Error error = std::move(json).error();
    error.where = where;
    error.fix = "give a JSON object with messages";
    return error;
  }
  if (!json->is_object())
    return bad_input(where, cat("got ", json->kind_name(), ", allowed is a JSON object"));
  Conversation conversation;
  for (auto& [name, value] : json->as_object()) {
    if (name == "messages") {
      conversation.messages = std::move(value);
    } else if (name == "tools") {
      conversation.tools = std::move(value);
    } else if (name == "documents") {
      conversation.documents = std::move(value);
    } else if (name == "kwargs" && value.is_object()) {
      conversation.kwargs = std::move(value.as_object());
    } else {
      return bad_input(where, name == "kwargs"
                                  ? cat("kwargs: got ", value.kind_name(), ", allowed is an object")
                                  : cat("unknown member ", printable(name)));
    }
  }
  if (!conversation.messages.is_array()) return bad_input(where, "messages is missing or no list");
  const auto opens = std::ranges::find(conversation.kwargs, "add_generation_prompt", &Json::Member::first);
  if (opens != conversation.kwargs.end()) {
    if (!opens->second.is_bool()) return bad_input(where, "kwargs.add_generation_prompt is no boolean");
    conversation.add_generation_prompt = opens->second.as_bool();
    conversation.kwargs.erase(opens);
  }
  return conversation;
}

// A file that is no GGUF file is a template; all else is a model.
Result<ChatTemplate> read_template(const Options& options) {
  const std::string& given = options.template_source;
  std::error_code failure;
  if (std::filesystem::is_regular_file(given, failure)) {
    INFERD_TRY(const MappedFile file, MappedFile::open(given));
    // Mapped, since it may be a model of gigabytes.
    const std::string_view source(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
    if (!source.starts_with("GGUF")) return parse_chat_template(source, given, nullptr);
  }
  ProgressPrinter progress = stderr_progress();
  const ModelLoader loader(options, progress);
  INFERD_TRY(const ModelLocation location, loader.find_present(given));
  return own_chat_template(location.path);
}

Result<std::vector<TextSpan>> render(const Options& options) {
  INFERD_TRY(const Conversation conversation, read_conversation(options.input));
  INFERD_TRY(const ChatTemplate chat_template, read_template(options));
  return chat_template.render(conversation.messages,
                              conversation.tools.is_null() ? nullptr : &conversation.tools,
                              conversation.documents.is_null() ? nullptr : &conversation.documents,
                              conversation.kwargs, conversation.add_generation_prompt);
}

}  // namespace

int template_command(const Options& options) {
  const Result<std::vector<TextSpan>> spans = render(options);
  if (!spans.ok()) return report(spans.error());
  std::string text;
  Json::Array pieces;
  for (const TextSpan& span : *spans) {
    text += span.text;
    pieces.push_back(Json::Object{{"text", span.text}, {"markup", span.markup}});
  }
  if (options.json) {
    print_json(Json::Object{{"text", text}, {"spans", std::move(pieces)}});
  } else {
    print(text);
  }
  return kExitOk;
}

}  // namespace inferd
