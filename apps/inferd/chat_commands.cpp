// The commands of a chat: one table for running, help and completion.
#include <algorithm>
#include <array>
#include <cstdio>

#include "chat.h"
#include "environment.h"
#include "terminal/terminal_mode.h"

namespace inferd {
namespace {

constexpr int kErr = 2;

void say(const std::string& text) {
  std::fputs((text + "\n").c_str(), stderr);
}

// Parameters that /set changes: the options of `inferd run` of these names, with their checks.
struct Parameter {
  std::string_view name;
  void (*take)(Options& to, const Options& from);
  std::string (*shown)(const Options& options, const std::optional<SamplingParams>& defaults);
};

template <typename T, typename D>
std::string value_or(const std::optional<T>& set, const std::optional<SamplingParams>& defaults, D member) {
  if (set) return cat(*set);
  return defaults ? cat((*defaults).*member, " (the model's)") : "the model's";
}

constexpr auto kParameters = std::to_array<Parameter>({
    {"temperature", [](Options& to, const Options& from) { to.temperature = from.temperature; },
     [](const Options& o, const std::optional<SamplingParams>& d) {
       return value_or(o.temperature, d, &SamplingParams::temperature);
     }},
    {"top-p", [](Options& to, const Options& from) { to.top_p = from.top_p; },
     [](const Options& o, const std::optional<SamplingParams>& d) {
       return value_or(o.top_p, d, &SamplingParams::top_p);
     }},
    {"top-k", [](Options& to, const Options& from) { to.top_k = from.top_k; },
     [](const Options& o, const std::optional<SamplingParams>& d) {
       return value_or(o.top_k, d, &SamplingParams::top_k);
     }},
    {"min-p", [](Options& to, const Options& from) { to.min_p = from.min_p; },
     [](const Options& o, const std::optional<SamplingParams>& d) {
       return value_or(o.min_p, d, &SamplingParams::min_p);
     }},
    {"seed", [](Options& to, const Options& from) { to.seed = from.seed; },
     [](const Options& o, const std::optional<SamplingParams>&) {
       return o.seed ? cat(*o.seed) : std::string("drawn anew for each answer");
     }},
    {"max-tokens", [](Options& to, const Options& from) { to.max_tokens = from.max_tokens; },
     [](const Options& o, const std::optional<SamplingParams>&) {
       return o.max_tokens > 0 ? cat(o.max_tokens) : std::string("up to the context");
     }},
});

std::vector<std::string> parameter_names() {
  std::vector<std::string> names;
  for (const Parameter& parameter : kParameters) names.emplace_back(parameter.name);
  return names;
}

// The first word, and the rest without white space around it.
std::pair<std::string_view, std::string_view> cut_word(std::string_view text) {
  text = trim(text);
  const size_t end = std::min(text.find_first_of(" \t\n"), text.size());
  return {text.substr(0, end), trim(text.substr(end))};
}

std::string row(std::string_view name, const std::string& value) {
  return cat("  ", name, std::string(name.size() < 12 ? 12 - name.size() : 1, ' '), value);
}

// A line of the help, broken between words; below the name where there is no room beside it.
std::string help_row(std::string_view usage, std::string_view summary, int columns) {
  constexpr size_t kBeside = 22;
  const bool narrow = columns < 64;
  const size_t indent = narrow ? 6 : kBeside;
  std::string text = cat("  ", usage);
  text += narrow ? cat("\n", std::string(indent, ' '))
                 : std::string(kBeside - std::min(kBeside, text.size()), ' ');
  size_t width = indent;
  for (const std::string_view word : split(summary, ' ')) {
    if (width > indent && width + 1 + word.size() > static_cast<size_t>(columns)) {
      text += cat("\n", std::string(indent, ' '));
      width = indent;
    }
    if (width > indent) text.push_back(' ');
    text += word;
    width += word.size() + (width > indent ? 1 : 0);
  }
  return text;
}

}  // namespace

struct Chat::Command {
  std::string_view name;
  std::string_view arguments;
  std::string_view summary;
  bool takes_arguments;
  Status (*run)(Chat& chat, std::string_view arguments);  // null: leaves
};

const std::vector<Chat::Command>& Chat::commands() {
  static const std::vector<Command> kCommands = {
      {"/help", "", "this list", false, [](Chat& c, std::string_view) { return c.help(); }},
      {"/clear", "", "forget the conversation; the system message stays", false,
       [](Chat& c, std::string_view) -> Status {
         c.conversation_.clear();
         c.used_ = 0;
         say("the conversation is empty");
         return {};
       }},
      {"/system", "[TEXT]", "show or set the system message; \"\" removes it", true,
       [](Chat& c, std::string_view text) { return c.set_system(text); }},
      {"/set", "[NAME VALUE]", "show or set temperature, top-p, top-k, min-p, seed, max-tokens", true,
       [](Chat& c, std::string_view text) { return c.set(text); }},
      {"/show", "", "model, context used, parameters, system message", false,
       [](Chat& c, std::string_view) { return c.show(); }},
      {"/save", "FILE", "write the conversation as JSON", true,
       [](Chat& c, std::string_view path) { return c.save(path); }},
      {"/load", "FILE", "go on with a saved conversation", true,
       [](Chat& c, std::string_view path) { return c.load(path); }},
      {"/retry", "", "drop the last answer and ask again", false,
       [](Chat& c, std::string_view) { return c.retry(); }},
      {"/bye", "", "leave (or Ctrl-D)", false, nullptr},
  };
  return kCommands;
}

std::vector<std::string> Chat::complete(std::string_view before) {
  std::vector<std::string> found;
  const auto offer = [&](const std::string& text) {
    if (text.starts_with(before)) found.push_back(text);
  };
  if (!before.starts_with('/')) return found;
  for (const Command& command : commands()) offer(std::string(command.name));
  if (static constexpr std::string_view kSet = "/set "; before.starts_with(kSet)) {
    for (const Parameter& parameter : kParameters) offer(cat(kSet, parameter.name));
  }
  return found;
}

Result<Chat::Next> Chat::run_command(std::string_view line) {
  const auto [name, arguments] = cut_word(line);
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    names.emplace_back(command.name);
    if (command.name != name) continue;
    if (!command.takes_arguments && !arguments.empty()) {
      return Error{.code = Code::arg_value,
                   .detail = cat(name, " takes no arguments, got ", printable(arguments)),
                   .fix = std::string(name)};
    }
    if (command.run == nullptr) return Next::leave;
    INFERD_TRY_STATUS(command.run(*this, arguments));
    return Next::go_on;
  }
  Error error{.code = Code::chat_command, .detail = printable(name)};
  if (const auto near = nearest_name(name, names))
    error.fix = cat("did you mean ", *near, "? ", error_row(Code::chat_command).fix);
  return error;
}

Status Chat::help() {
  const int columns = terminal_size(kErr).columns;
  for (const Command& command : commands()) {
    const std::string usage = cat(command.name, command.arguments.empty() ? "" : " ", command.arguments);
    say(help_row(usage, command.summary, columns));
  }
  say(help_row("\"\"\"", "begins and ends a message of several lines (or Alt-Enter, or paste)", columns));
  say(help_row("Ctrl-C", "stops the answer and keeps what was said", columns));
  return {};
}

Status Chat::set(std::string_view text) {
  const auto [given, value] = cut_word(text);
  if (given.empty()) {
    for (const Parameter& parameter : kParameters)
      say(row(parameter.name, parameter.shown(options_, model_.defaults())));
    return {};
  }
  std::string name(given);
  std::ranges::replace(name, '_', '-');
  const auto found = std::ranges::find(kParameters, name, &Parameter::name);
  if (found == kParameters.end()) {
    Error error{.code = Code::arg_option, .detail = cat(printable(given), " of /set")};
    const auto near = nearest_name(name, parameter_names());
    error.fix =
        cat(near ? cat("did you mean ", *near, "? ") : "", "there are: ", join(parameter_names(), ", "));
    return error;
  }
  if (value.empty()) {
    return Error{.code = Code::arg_missing,
                 .detail = cat("/set ", name, " needs a value"),
                 .fix = cat("it is ", found->shown(options_, model_.defaults()))};
  }
  // The same row of the option table that the command line uses.
  const std::vector<std::string> arguments = {"run", "model", cat("--", name, "=", value)};
  INFERD_TRY(const Options parsed, parse_options(arguments));
  found->take(options_, parsed);
  say(row(found->name, found->shown(options_, model_.defaults())));
  return {};
}

Status Chat::show() {
  say(row("model", model_.name()));
  say(row("runs", model_.where()));
  say(row("context", cat(with_commas(used_), " of ", with_commas(model_.context()), " tokens")));
  const size_t turns = conversation_.turns();
  const size_t first = conversation_.first_in_view();
  const size_t dropped = first == 0                                ? 0
                         : first < conversation_.messages().size() ? conversation_.turn_number(first) - 1
                                                                   : turns;
  say(row("turns", cat(turns, dropped > 0 ? cat(", the first ", dropped, " dropped") : "")));
  say(row("system", conversation_.system.empty() ? "none" : conversation_.system));
  return set("");
}

Status Chat::set_system(std::string_view text) {
  if (!text.empty()) conversation_.system = text == "\"\"" ? std::string() : std::string(text);
  say(row("system", conversation_.system.empty() ? "none" : conversation_.system));
  return {};
}

Status Chat::save(std::string_view given) {
  if (given.empty())
    return Error{.code = Code::arg_missing, .detail = "/save needs FILE", .fix = "/save chat.json"};
  if (conversation_.empty())
    return Error{
        .code = Code::arg_value, .detail = "nothing has been said yet", .fix = "say something first"};
  const std::string path = expand_home(std::string(given));
  INFERD_TRY_STATUS(conversation_.save(path, model_.name()));
  const size_t count = conversation_.messages().size() + (conversation_.system.empty() ? 0 : 1);
  say(cat(count, count == 1 ? " message" : " messages", " saved to ", path));
  return {};
}

Status Chat::load(std::string_view given) {
  if (given.empty())
    return Error{.code = Code::arg_missing, .detail = "/load needs FILE", .fix = "/load chat.json"};
  const std::string path = expand_home(std::string(given));
  INFERD_TRY(const std::string model, conversation_.load(path));
  const Result<int64_t> counted = model_.count(conversation_.view());
  used_ = counted.ok() ? *counted : 0;  // a template that refuses it says so when something is asked
  const size_t count = conversation_.messages().size() + (conversation_.system.empty() ? 0 : 1);
  say(cat(count, count == 1 ? " message" : " messages", " loaded from ", path));
  if (!model.empty() && model != model_.name())
    say(cat("they were said with ", printable(model), "; ", model_.name(), " goes on"));
  return {};
}

Status Chat::retry() {
  if (!conversation_.last_is("assistant") && !conversation_.last_is("user"))
    return Error{
        .code = Code::arg_value, .detail = "nothing has been asked yet", .fix = "ask something first"};
  // The old answer comes back when there is no new one.
  const bool answered = conversation_.last_is("assistant");
  const std::string old = answered ? conversation_.last_text() : "";
  if (answered) conversation_.take_back();
  if (!conversation_.last_is("user")) {
    conversation_.say("assistant", old);
    return Error{.code = Code::arg_value,
                 .detail = "the last answer follows no question",
                 .fix = "ask something first"};
  }
  const Result<ChatAnswer> answer = answer_last();
  if (!answer.ok()) {
    if (answered) conversation_.say("assistant", old);
    return answer.error();
  }
  const bool stopped_early = answer->end == ChatAnswer::End::interrupted && answer->text.empty();
  if (answered && (stopped_early || answer->error)) {
    conversation_.say("assistant", old);
  } else if (!stopped_early) {
    conversation_.say("assistant", answer->text);
  }
  return answer->error ? Status(*answer->error) : Status();
}

}  // namespace inferd
