// A chat on a terminal or over pipes: reads messages and commands that begin with a slash, keeps the
// conversation inside the context, prints answers on stdout and everything else on stderr.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chat_model.h"
#include "conversation.h"
#include "terminal/history.h"
#include "terminal/line_source.h"

namespace inferd {

class Chat {
 public:
  // `options` are changed by /set. All must outlive the chat.
  Chat(Options& options, ChatModel& model);

  // Reads until the end of the input, /bye, or a signal to end; gives the exit code. `history`: of what is
  // typed; null when nobody types.
  int loop(LineSource& source, History* history);

  // Answers one message, on stdout as it comes, or with --json as one object at the end.
  int answer_once(const std::string& text);

  // Completions of a command line: whole texts.
  static std::vector<std::string> complete(std::string_view before_cursor);

 private:
  struct Command;
  static const std::vector<Command>& commands();
  enum class Next { go_on, leave };

  InputLine read_message(LineSource& source);
  Result<Next> run_command(std::string_view line);
  Status help();
  Status show();
  Status set(std::string_view arguments);
  Status set_system(std::string_view text);
  Status save(std::string_view path);
  Status load(std::string_view path);
  Status retry();

  // Of the user's message at the end of the conversation. After an error the conversation is as before that
  // message.
  Status ask(const std::string& text);
  Result<ChatAnswer> answer_last();
  // Takes the oldest turns out of view until prompt and answer fit; gives the prompt's tokens. E-REQ-006 when
  // the last message never fits.
  Result<int64_t> fit();
  void print_stats(const ChatAnswer& answer) const;
  void note(const std::string& text) const;  // a dim line on stderr
  std::string excerpt(const std::string& text, size_t taken) const;

  Options& options_;
  ChatModel& model_;
  Conversation conversation_;
  int64_t used_ = 0;  // tokens of the context after the last answer
  const bool colour_;
};

}  // namespace inferd
