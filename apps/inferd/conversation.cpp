#include "conversation.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/mmap.h"
#include "base/strings.h"
#include "hub/atomic_file.h"
#include "server/chat_messages.h"

namespace inferd {
namespace {

struct SavedChat {
  std::string model;
  Json messages;
};

std::string role_of(const Json& message) {
  return message.find("role")->as_string();
}

Result<SavedChat> read_saved(const std::string& path) {
  INFERD_TRY(const MappedFile file, MappedFile::open(path));
  const auto refuse = [&](std::string what) {
    return Error{.code = Code::chat_file, .detail = std::move(what), .where = path};
  };
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  const Result<Json> json = parse_json(text);
  if (!json.ok())
    return refuse(cat(json.error().detail, json.error().where.empty() ? "" : " at ", json.error().where));
  if (!json->is_object()) return refuse(cat("it holds a value of type ", json->kind_name()));
  SavedChat saved;
  for (const auto& [name, value] : json->as_object()) {
    if (name == "model" && value.is_string()) {
      saved.model = value.as_string();
    } else if (name == "messages") {
      Result<Json> messages = read_messages(value);
      if (!messages.ok()) return refuse(messages.error().detail);
      saved.messages = std::move(messages).value();
    } else {
      return refuse(
          cat("unexpected member ", printable(name), ", allowed are \"model\", a string, and \"messages\""));
    }
  }
  if (!saved.messages.is_array()) return refuse("it has no \"messages\"");
  for (const Json& message : saved.messages.as_array()) {
    if (!message.find("content")->is_string()) return refuse("a message of it has no text");
  }
  return saved;
}

}  // namespace

void Conversation::say(std::string_view role, const std::string& text) {
  messages_.push_back(Json::Object{{"role", role}, {"content", text}});
}

void Conversation::take_back() {
  messages_.pop_back();
}

void Conversation::clear() {
  messages_.clear();
  first_ = 0;
}

bool Conversation::last_is(std::string_view role) const {
  return !empty() && role_of(messages_.back()) == role;
}

const std::string& Conversation::last_text() const {
  return messages_.back().find("content")->as_string();
}

Json::Array Conversation::view() const {
  Json::Array all;
  if (!system.empty()) all.push_back(Json::Object{{"role", "system"}, {"content", system}});
  all.insert(all.end(), messages_.begin() + static_cast<std::ptrdiff_t>(first_), messages_.end());
  return all;
}

size_t Conversation::next_turn(size_t at) const {
  for (++at; at < messages_.size(); ++at) {
    if (role_of(messages_[at]) == "user") break;
  }
  return at;
}

size_t Conversation::turn_number(size_t at) const {
  size_t number = 1;
  for (size_t i = 1; i <= at; ++i)
    if (role_of(messages_[i]) == "user") ++number;
  return number;
}

Status Conversation::save(const std::string& given, const std::string& model) const {
  // A link keeps pointing where it points.
  std::error_code failure;
  const std::filesystem::path canonical = std::filesystem::canonical(given, failure);
  const std::string path = failure ? given : canonical.string();
  struct stat info{};
  if (::stat(path.c_str(), &info) == 0) {
    if (!S_ISREG(info.st_mode))
      return Error{.code = Code::chat_overwrite, .detail = "it is no regular file", .where = given};
    if (const Result<SavedChat> old = read_saved(path); !old.ok())
      return Error{.code = Code::chat_overwrite, .detail = old.error().detail, .where = given};
  } else if (errno != ENOENT) {
    return write_error(errno, path);
  }
  Json::Array all;
  if (!system.empty()) all.push_back(Json::Object{{"role", "system"}, {"content", system}});
  all.insert(all.end(), messages_.begin(), messages_.end());
  const std::string text = to_json(Json(Json::Object{{"model", model}, {"messages", std::move(all)}})) + "\n";
  INFERD_TRY(AtomicFile file, AtomicFile::create(cat(path, ".", ::getpid(), ".tmp"), path));
  INFERD_TRY_STATUS(file.write(std::as_bytes(std::span(text))));
  return file.commit();
}

Result<std::string> Conversation::load(const std::string& path) {
  INFERD_TRY(SavedChat saved, read_saved(path));
  Json::Array messages = std::move(saved.messages.as_array());
  system.clear();
  if (!messages.empty() && role_of(messages.front()) == "system") {
    system = messages.front().find("content")->as_string();
    messages.erase(messages.begin());
  }
  messages_ = std::move(messages);
  first_ = 0;
  return saved.model;
}

}  // namespace inferd
