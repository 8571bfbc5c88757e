// run: chat in the terminal, or one answer, with a running server of this user that has the model, else with
// the model in this process.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>

#include "api_key.h"
#include "chat.h"
#include "commands.h"
#include "environment.h"
#include "option_table.h"
#include "terminal/line_editor.h"

namespace inferd {
namespace {

constexpr int kIn = 0;
constexpr int kErr = 2;

// Whether this command line says how the model is to run, which a server that runs already cannot follow.
// What the environment and files say of it, holds for servers just as well.
bool wants_own_engine(const Options& options) {
  return std::ranges::any_of(option_table(), [&](const OptionRow& option) {
    if (!takes(Command::run, option)) return false;
    if (option.group != OptionGroup::engine && option.name != "--chat-template") return false;
    const Setting* setting = deciding_setting(options.configuration, option, Command::run);
    return setting != nullptr && setting->origin.kind == Origin::Kind::command_line;
  });
}

// A server that has the model, or nothing. E-REQ-011, E-NET-004 when it is there but its key is not.
Result<std::unique_ptr<ChatModel>> find_server(const Options& options) {
  if (options.no_server || wants_own_engine(options)) return std::unique_ptr<ChatModel>();
  const std::vector<std::string> folders = server_note_folders();
  const std::vector<ServerNote> servers = running_servers(folders);
  if (servers.empty()) return std::unique_ptr<ChatModel>();
  ProgressPrinter silent(monotonic_clock(), kErr, ProgressStyle::lines, [] { return 80; });
  const Result<ModelLocation> location = ModelLoader(options, silent).find_present(options.arguments.front());
  if (!location.ok())
    return std::unique_ptr<ChatModel>();  // load_chat_model() says what is wrong, or fetches
  std::error_code failure;
  const std::string path = std::filesystem::canonical(location->path, failure).string();
  for (const ServerNote& server : servers) {
    if (failure || server.model_path != path || !server.chats) continue;
    std::string key;
    const std::string& key_file = options.api_key_file.empty() ? server.api_key_file : options.api_key_file;
    if (!key_file.empty()) {
      Result<std::string> read = read_api_key(key_file);
      if (!read.ok()) {
        Error error = std::move(read).error();
        error.fix =
            cat("give --api-key-file FILE with the key of the server at ", server.url, ", or --no-server");
        return error;
      }
      key = std::move(read).value();
    }
    Result<std::unique_ptr<ChatModel>> model = connect_chat_model(server, key);
    if (model.ok()) {
      if (options.log_level >= LogLevel::info)
        std::fputs(cat("using the server at ", server.url, " (pid ", server.pid, ")\n").c_str(), stderr);
      return model;
    }
    if (model.error().code != Code::server_answer) return model;
    std::fputs(cat("not using the server at ", server.url, " (pid ", server.pid,
                   "): ", model.error().message(), "\n")
                   .c_str(),
               stderr);
  }
  return std::unique_ptr<ChatModel>();
}

Wakeup wakeup() {
  return {.fd = wakeup_descriptor(), .take = []() -> std::optional<InputLine::End> {
            clear_wakeup();
            if (!interrupted()) return std::nullopt;
            const bool stopped = interrupt_signal() != SIGINT;
            if (!stopped) forget_interrupt();
            return stopped ? InputLine::End::stopped : InputLine::End::interrupted;
          }};
}

int chat_typed(Chat& chat) {
  std::fputs("/help lists commands, Ctrl-D leaves.\n", stderr);
  History history(history_path());
  if (const Status loaded = history.load(); !loaded.ok())
    std::fputs(cat("the history is not kept: ", loaded.error().message(), "\n").c_str(), stderr);
  if (is_dumb_terminal() || ::isatty(kErr) == 0) {
    PlainReader reader(kIn, kErr, wakeup());
    return chat.loop(reader, &history);
  }
  watch_resizes();
  TerminalMode mode(kIn);
  restore_at_once(kIn, mode.original());
  LineEditor editor({.in = kIn, .out = kErr, .wakeup = wakeup(), .complete = Chat::complete}, mode, history);
  return chat.loop(editor, &history);
}

}  // namespace

int run_command(const Options& given, const BackendFactory& make) {
  watch_signals();
  Options options = given;
  if (const Status system = check_utf8(options.system, "--system"); !system.ok())
    return report(system.error());
  std::optional<std::string> prompt;
  if (options.arguments.size() > 1) {
    Result<std::string> text = text_argument(options.arguments[1]);
    if (!text.ok()) return report(text.error());
    prompt = std::move(text).value();
  }
  Result<std::unique_ptr<ChatModel>> model = find_server(options);
  if (!model.ok()) return report(model.error());
  if (*model == nullptr) {
    if (!options.max_seqs) options.max_seqs = 1;  // one conversation at a time
    model = load_chat_model(options, make);
    if (!model.ok()) return report(model.error());
  }
  if (interrupted()) return report({.code = Code::interrupted});
  Chat chat(options, **model);
  if (prompt) return chat.answer_once(*prompt);
  if (::isatty(kIn) != 0) return chat_typed(chat);
  PlainReader reader(kIn, -1, wakeup());
  return chat.loop(reader, nullptr);
}

}  // namespace inferd
