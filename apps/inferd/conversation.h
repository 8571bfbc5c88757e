// What was said in a chat, in OpenAI's shape, and how it is kept in a file. Knows no model.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace inferd {

// A turn is a user's message and what followed it. The oldest turns may be out of the model's view; they are
// kept, and saved, all the same.
class Conversation {
 public:
  std::string system;  // empty: none

  const Json::Array& messages() const { return messages_; }  // without the system message
  bool empty() const { return messages_.empty(); }
  void say(std::string_view role, const std::string& text);
  void take_back();  // the last message
  void clear();      // all but the system message
  bool last_is(std::string_view role) const;
  const std::string& last_text() const;

  // Messages that the model sees, the system message first.
  Json::Array view() const;
  size_t first_in_view() const { return first_; }
  void set_first_in_view(size_t first) { first_ = first; }
  // The first message of the turn after the one that message `at` is in; the number of messages when there is
  // none.
  size_t next_turn(size_t at) const;
  size_t turn_number(size_t at) const;  // counted from 1
  size_t turns() const { return empty() ? 0 : turn_number(messages_.size() - 1); }

  // {"model", "messages"}: what POST /v1/chat/completions takes. Appears whole or not at all. An existing
  // file is replaced only when it is a saved conversation: E-CHAT-003.
  Status save(const std::string& path, const std::string& model) const;
  // E-CHAT-002 with the place in it for a file that is no conversation; this one is not changed then. Gives
  // the model's name in the file, which may be empty.
  Result<std::string> load(const std::string& path);

 private:
  Json::Array messages_;
  size_t first_ = 0;
};

}  // namespace inferd
