#include "completion.h"

#include <algorithm>

#include "option_table.h"

namespace inferd {
namespace {

bool takes_any(std::span<const Command> commands, const OptionRow& option) {
  return std::ranges::any_of(commands, [&](Command command) { return takes(command, option); });
}

const OptionRow* find_option(std::span<const Command> commands, std::string_view name) {
  for (const OptionRow& option : option_table()) {
    if (option.name == name && takes_any(commands, option)) return &option;
  }
  return nullptr;
}

class Completer {
 public:
  Completer(std::string_view word, const ModelNames& models) : word_(word), models_(models) {}

  void add(std::string_view text, std::string_view note = "") {
    if (text.starts_with(word_)) found_.candidates.push_back({std::string(text), std::string(note)});
  }

  void add_commands() {
    for (const CommandRow& row : command_table()) add(row.name, row.summary);
  }

  void add_options(std::span<const Command> commands, const std::vector<std::string>& given) {
    for (const OptionRow& option : option_table()) {
      const bool again = option.field.shape == Field::Shape::repeated;
      if (takes_any(commands, option) && (again || std::ranges::find(given, option.name) == given.end())) {
        add(option.name, option.help);
      }
    }
    add("--help", "list the options");
  }

  // `prefix` is "--name=" when the value stands in the same word.
  void add_values(const OptionRow& option, std::string_view prefix) {
    if (!option.choices.empty()) {
      for (const std::string_view choice : split(option.choices, ' ')) add(cat(prefix, choice));
    } else if (option.value == "FILE" && prefix.empty()) {
      found_.files = true;
    } else if (option.value.empty()) {
      for (const std::string_view choice : {"true", "false"}) add(cat(prefix, choice));
    }
  }

  // What the usage says of the argument at `index`.
  void add_argument(const CommandRow& command, size_t index) {
    std::string usage(command.arguments);
    std::erase_if(usage, [](char c) { return c == '[' || c == ']'; });
    const std::vector<std::string_view> places = split(usage, ' ');
    if (index >= places.size() && !usage.ends_with("...")) return;
    const std::string_view place = places[std::min(index, places.size() - 1)];
    if (place == "MODEL" || place == "MODEL...") {
      for (const std::string& name : models_.here) add(name, "here");
      found_.files = place == "MODEL";  // rm takes no paths
    } else if (place == "NAME...") {    // of models to fetch
      for (const std::string& name : models_.fetchable) add(name);
    } else if (place == "FILE") {
      found_.files = true;
    } else if (place == "COMMAND") {
      add_commands();
    } else if (std::ranges::all_of(place, [](char c) { return c == '|' || (c >= 'a' && c <= 'z'); })) {
      for (const std::string_view choice : split(place, '|')) add(choice);
    }
  }

  Completion take() { return std::move(found_); }

 private:
  const std::string_view word_;
  const ModelNames& models_;
  Completion found_;
};

}  // namespace

Completion complete(std::span<const std::string> words, const ModelNames& models) {
  if (words.empty()) return {};
  const std::string_view word = words.back();
  Completer completer(word, models);
  if (words.size() == 1) {
    completer.add_commands();
    if (word.starts_with('-')) {
      completer.add("--help", "list the commands");
      completer.add("--version", "print version, compiler and instruction sets");
    }
    return completer.take();
  }
  const CommandRow* command = find_command(words.front());
  if (command == nullptr) return {};
  std::vector<Command> commands = {command->command};  // whose options may stand here
  std::vector<std::string> given;
  size_t arguments = 0;
  bool only_arguments = false;
  const OptionRow* waiting = nullptr;  // an option whose value comes next
  for (const std::string& before : words.subspan(1, words.size() - 2)) {
    if (waiting != nullptr) {
      waiting = nullptr;
    } else if (!only_arguments && before == "--") {
      only_arguments = true;
    } else if (!only_arguments && before.size() > 1 && before.starts_with('-')) {
      given.push_back(before.substr(0, before.find('=')));
      const OptionRow* option = find_option(commands, before);
      if (option != nullptr && !option->value.empty()) waiting = option;
    } else {
      // `inferd config COMMAND` goes on with the options of that command.
      if (command->command == Command::config && arguments == 0) {
        if (const CommandRow* other = find_command(before)) commands.push_back(other->command);
      }
      ++arguments;
    }
  }
  if (waiting != nullptr) {
    completer.add_values(*waiting, "");
  } else if (!only_arguments && word.starts_with('-')) {
    const size_t equals = word.find('=');
    const OptionRow* option = find_option(commands, word.substr(0, equals));
    if (equals == std::string_view::npos) {
      completer.add_options(commands, given);
    } else if (option != nullptr) {
      completer.add_values(*option, word.substr(0, equals + 1));
    }
  } else {
    completer.add_argument(*command, arguments);
  }
  return completer.take();
}

std::string completion_lines(const Completion& completion) {
  std::string lines;
  for (const Candidate& candidate : completion.candidates) {
    // They would become more than one word of a line, or move the cursor.
    const bool plain = std::ranges::none_of(
        candidate.text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
    if (!plain || candidate.text.empty()) continue;
    lines += cat(candidate.text, candidate.note.empty() ? "" : "\t", candidate.note, "\n");
  }
  return lines + (completion.files ? ":files\n" : "");
}

std::string_view completion_script(std::string_view shell) {
  static constexpr std::string_view kBash =
      R"SCRIPT(# bash completion of inferd, made by `inferd completion bash`.
_inferd() {
  # Bash splits at = and :, which stand inside of our words: put together what the line has without a space.
  local rest=${COMP_LINE:0:COMP_POINT} words=() word gap i
  for ((i = 0; i <= COMP_CWORD; ++i)); do
    gap=${rest%%[![:space:]]*}
    rest=${rest#"$gap"}
    word=${COMP_WORDS[i]}
    if ((i == COMP_CWORD)); then word=$rest; fi
    rest=${rest#"$word"}
    if ((i == 0)) || [[ -n $gap ]]; then words+=("$word"); else words[-1]+=$word; fi
  done
  local whole=${words[-1]} kept=
  # Readline replaces only what stands behind the last = or :.
  if [[ $whole == *[=:]* && $COMP_WORDBREAKS == *[=:]* ]]; then kept=${whole%"${whole##*[=:]}"}; fi
  local program=${words[0]/#\~\//$HOME/} line files=
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ $line == :files ]]; then
      files=1
      while IFS= read -r line; do COMPREPLY+=("${line#"$kept"}"); done < <(compgen -f -- "$whole")
    else
      line=${line%%$'\t'*}
      COMPREPLY+=("${line#"$kept"}")
    fi
  done < <("$program" complete "${words[@]:1}" 2>/dev/null)
  if [[ -n $files ]]; then
    compopt -o filenames 2>/dev/null  # readline then quotes what needs it
  else
    for i in "${!COMPREPLY[@]}"; do printf -v "COMPREPLY[i]" %q "${COMPREPLY[i]}"; done
  fi
}
complete -F _inferd inferd
)SCRIPT";
  static constexpr std::string_view kZsh = R"SCRIPT(#compdef inferd
# zsh completion of inferd, made by `inferd completion zsh`.
_inferd() {
  local line files
  local -a found
  for line in "${(@f)$("${${(Q)words[1]}/#\~\//$HOME/}" complete "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}"; do
    case $line in
      '') ;;
      :files) files=1 ;;
      *$'\t'*) found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
      *) found+=("${line//:/\\:}") ;;
    esac
  done
  if (( $#found )); then _describe inferd found; fi
  if [[ -n $files ]]; then _files; fi
}
if [[ $funcstack[1] == _inferd ]]; then
  _inferd "$@"
else
  compdef _inferd inferd
fi
)SCRIPT";
  static constexpr std::string_view kFish =
      R"SCRIPT(# fish completion of inferd, made by `inferd completion fish`.
function __inferd_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    set -l program (string replace -r '^~/' "$HOME/" -- $words[1])
    for line in ($program complete $words[2..-1] "$word" 2>/dev/null)
        if test "$line" = :files
            __fish_complete_path "$word"
        else
            printf '%s\n' $line
        end
    end
end
complete -c inferd -f -a '(__inferd_complete)'
)SCRIPT";
  return shell == "bash" ? kBash : shell == "zsh" ? kZsh : kFish;
}

}  // namespace inferd
