#include "chat.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <utility>

#include "commands.h"
#include "environment.h"
#include "terminal/display_width.h"
#include "terminal/terminal_mode.h"

namespace inferd {
namespace {

constexpr int kOut = 1;
constexpr int kErr = 2;
constexpr std::string_view kPrompt = ">>> ";
constexpr std::string_view kMorePrompt = "... ";
constexpr std::string_view kQuotes = "\"\"\"";
// Room for an answer that is made by dropping turns, when --max-tokens does not say how much.
constexpr int64_t kAnswerRoom = 256;

void say(const std::string& text) {
  std::fputs((text + "\n").c_str(), stderr);
}

Error stdout_error() {
  return {.code = Code::io_write, .detail = "stdout", .fix = "check where the output goes"};
}

bool opens_quotes(std::string_view text) {
  return trim(text).starts_with(kQuotes);
}

bool closes_quotes(std::string_view text) {
  text = trim(text);
  return text.size() >= 2 * kQuotes.size() && text.ends_with(kQuotes);
}

// What stands between the quotes, without the line feeds that are next to them.
std::string unquoted(std::string_view text) {
  text = trim(text);
  text.remove_prefix(kQuotes.size());
  if (text.ends_with(kQuotes)) text.remove_suffix(kQuotes.size());
  if (text.starts_with('\n')) text.remove_prefix(1);
  if (text.ends_with('\n')) text.remove_suffix(1);
  return std::string(text);
}

}  // namespace

Chat::Chat(Options& options, ChatModel& model)
    : options_(options), model_(model), colour_(wants_colour(kErr)) {
  conversation_.system = options.system;
}

void Chat::note(const std::string& text) const {
  say(colour_ ? cat("\x1b[2m", text, "\x1b[0m") : text);
}

std::string Chat::excerpt(const std::string& text, size_t taken) const {
  const int columns = terminal_size(kErr).columns - static_cast<int>(taken) - 2;
  std::string out;
  int width = 0;
  const std::string safe = without_controls(text);
  for (size_t at = 0; at < safe.size();) {
    const size_t next = next_character(safe, at);
    std::string_view character = std::string_view(safe).substr(at, next - at);
    if (character == "\n" || character == "\t") character = " ";
    width += column_width(character);
    if (width > std::max(columns, 8) - 3 && next < safe.size()) return out + "...";
    out += character;
    at = next;
  }
  return out;
}

// A line, or the lines between """ and """.
InputLine Chat::read_message(LineSource& source) {
  InputLine line = source.read(kPrompt);
  if (line.end != InputLine::End::line || !opens_quotes(line.text)) return line;
  while (!closes_quotes(line.text)) {
    InputLine more = source.read(kMorePrompt);
    if (more.end == InputLine::End::end) break;  // the end of the input closes them too
    if (more.end != InputLine::End::line) return more;
    line.text += cat("\n", more.text);
  }
  return line;
}

int Chat::loop(LineSource& source, History* history) {
  const bool typed = history != nullptr;
  int first_error = kExitOk;
  const auto failed = [&](const Error& error) {
    const int code = report(error);
    if (first_error == kExitOk) first_error = code;
  };
  while (true) {
    const InputLine line = read_message(source);
    if (line.end == InputLine::End::stopped) return kExitInterrupted;
    if (line.end == InputLine::End::end) return typed ? kExitOk : first_error;
    if (line.end == InputLine::End::interrupted) {
      if (!typed) return kExitInterrupted;
      if (line.text.empty()) note("(Ctrl-D or /bye leaves)");
      continue;
    }
    if (trim(line.text).empty()) continue;
    if (const Status valid = check_utf8(line.text, "the message"); !valid.ok()) {
      failed(valid.error());
      continue;
    }
    if (typed) {
      if (const Status added = history->add(line.text); !added.ok())
        note(cat("the history is not kept: ", added.error().message()));
    }
    if (line.text.starts_with('/')) {
      const Result<Next> next = run_command(line.text);
      if (!next.ok()) {
        failed(next.error());
      } else if (*next == Next::leave) {
        return typed ? kExitOk : first_error;
      }
    } else {
      const Status asked = ask(opens_quotes(line.text) ? unquoted(line.text) : line.text);
      if (!asked.ok()) failed(asked.error());
      const Code code = asked.ok() ? Code::internal : asked.error().code;
      if (code == Code::engine_failed || code == Code::io_write) return error_row(code).exit_code;
    }
    if (interrupt_signal() == SIGTERM || (interrupted() && !typed)) return kExitInterrupted;
    forget_interrupt();
    clear_wakeup();
  }
}

Status Chat::ask(const std::string& text) {
  conversation_.say("user", text);
  const size_t first = conversation_.first_in_view();
  const Result<ChatAnswer> answer = answer_last();
  const bool interrupted_early = answer.ok()
                                     ? answer->end == ChatAnswer::End::interrupted && answer->text.empty()
                                     : answer.error().code == Code::interrupted;
  if (!answer.ok() || interrupted_early) {
    conversation_.take_back();
    conversation_.set_first_in_view(std::min(first, conversation_.messages().size()));
  }
  if (!answer.ok() && !interrupted_early) return answer.error();
  if (interrupted_early) {
    note("stopped before the first word; the message is not kept");
    return {};
  }
  conversation_.say("assistant", answer->text);
  if (!answer->error) return {};
  note("the answer is kept as far as it came; /retry asks again");
  return *answer->error;
}

Result<ChatAnswer> Chat::answer_last() {
  INFERD_TRY(const int64_t prompt_tokens, fit());
  const bool safe = ::isatty(kOut) != 0;
  bool broken = false;
  bool ends_line = true;
  Result<ChatAnswer> answer = model_.answer(conversation_.view(), options_, [&](std::string_view text) {
    const std::string shown = safe ? without_controls(text) : std::string(text);
    broken = std::fwrite(shown.data(), 1, shown.size(), stdout) != shown.size() || std::fflush(stdout) != 0;
    if (!shown.empty()) ends_line = shown.ends_with('\n');
    return !broken;
  });
  if (broken) return stdout_error();
  if (!answer.ok()) {
    if (!ends_line) std::fputs("\n", stdout);
    std::fflush(stdout);
    return answer;
  }
  // One line feed after the answer: in a pipe always, on a terminal when the cursor is not in a fresh line.
  if (!safe || !ends_line) std::fputs("\n", stdout);
  if (std::fflush(stdout) != 0) return stdout_error();
  if (answer->prompt_tokens == 0) answer->prompt_tokens = prompt_tokens;
  used_ = answer->prompt_tokens + answer->output_tokens;
  print_stats(*answer);
  if (answer->end == ChatAnswer::End::length && options_.max_tokens == 0)
    note("the context is full: the answer was cut; a larger --ctx has room for more");
  return answer;
}

Result<int64_t> Chat::fit() {
  const int64_t most = model_.context();
  const int64_t least = options_.max_tokens > 0 ? options_.max_tokens : 1;
  const int64_t room =
      options_.max_tokens > 0 ? options_.max_tokens : std::max<int64_t>(1, std::min(kAnswerRoom, most / 4));
  const size_t before = conversation_.first_in_view();
  const size_t last = conversation_.messages().size() - 1;
  int64_t tokens = 0;
  for (size_t first = before;; first = conversation_.next_turn(first)) {
    conversation_.set_first_in_view(first);
    const Result<int64_t> counted = model_.count(conversation_.view());
    if (!counted.ok()) {
      conversation_.set_first_in_view(before);
      return counted.error();
    }
    tokens = *counted;
    if (tokens + room <= most || conversation_.next_turn(first) > last) break;
  }
  if (tokens + least > most) {
    conversation_.set_first_in_view(before);
    return Error{.code = Code::req_context,
                 .detail = cat("by itself this message",
                               conversation_.system.empty() ? "" : " with the system message", " needs ",
                               with_commas(tokens), " tokens and ", with_commas(least),
                               " for the answer, the context has ", with_commas(most)),
                 .fix = "shorten it, or start with a larger --ctx; the conversation is as it was"};
  }
  for (size_t first = before; first < conversation_.first_in_view(); first = conversation_.next_turn(first)) {
    const std::string head =
        cat("the context is full: turn ", conversation_.turn_number(first), " is dropped: ");
    const std::string& text = conversation_.messages()[first].find("content")->as_string();
    note(cat(head, excerpt(text, head.size())));
  }
  return tokens;
}

void Chat::print_stats(const ChatAnswer& answer) const {
  if (options_.no_stats || options_.log_level < LogLevel::info) return;
  std::string line = answer.end == ChatAnswer::End::interrupted ? "stopped  " : "";
  line += cat("TTFT ", human_seconds(answer.first_token_s));
  if (answer.tokens_per_second > 0) line += cat("  ", fixed(answer.tokens_per_second, 1), " tok/s");
  line += cat("  ctx ", with_commas(used_), "/", with_commas(model_.context()));
  if (options_.log_level >= LogLevel::debug && answer.seed) line += cat("  seed ", *answer.seed);
  note(line);
}

int Chat::answer_once(const std::string& text) {
  conversation_.say("user", text);
  if (!options_.json) {
    const Result<ChatAnswer> answer = answer_last();
    if (!answer.ok()) return report(answer.error());
    if (answer->error) return report(*answer->error);
    return interrupted() ? kExitInterrupted : kExitOk;
  }
  const Result<int64_t> prompt_tokens = fit();
  if (!prompt_tokens.ok()) return report(prompt_tokens.error());
  const Result<ChatAnswer> answer =
      model_.answer(conversation_.view(), options_, [](std::string_view) { return true; });
  if (!answer.ok()) return report(answer.error());
  if (answer->error) return report(*answer->error);
  const int64_t prompt = answer->prompt_tokens == 0 ? *prompt_tokens : answer->prompt_tokens;
  const Json server = model_.server_url().empty() ? Json() : Json(model_.server_url());
  const Json seed = answer->seed ? Json(static_cast<int64_t>(*answer->seed)) : Json();
  const Json::Object object = {{"model", model_.name()},
                               {"server", server},
                               {"text", answer->text},
                               {"finish_reason", answer->end_text()},
                               {"seed", seed},
                               {"usage", Json::Object{{"prompt_tokens", prompt},
                                                      {"cached_tokens", answer->cached_tokens},
                                                      {"completion_tokens", answer->output_tokens},
                                                      {"total_tokens", prompt + answer->output_tokens}}},
                               {"timings", Json::Object{{"first_token_ms", answer->first_token_s * 1000},
                                                        {"tokens_per_second", answer->tokens_per_second}}},
                               {"context", model_.context()}};
  std::fputs((to_json(Json(object)) + "\n").c_str(), stdout);
  return interrupted() ? kExitInterrupted : kExitOk;
}

}  // namespace inferd
