#include "help_text.h"

#include <algorithm>

#include "option_table.h"

namespace inferd {
namespace {

constexpr std::string_view kBeginning =
    "  inferd serve                      serve the default model on http://127.0.0.1:8000\n"
    "  inferd run smollm2                chat with it in the terminal\n"
    "  inferd run smollm2 \"Say hello\"    one answer\n";
constexpr std::string_view kNarrowBeginning =
    "  inferd serve\n"
    "  inferd run smollm2\n"
    "  inferd run smollm2 \"Say hello\"\n";

size_t usable(int columns) {
  return static_cast<size_t>(std::clamp(columns, 40, 100));
}

// `left` and, beside it or below where there is no room, `right`.
std::string entry(std::string_view left, std::string_view right, size_t left_width, size_t columns) {
  if (columns < 70) return cat("  ", left, "\n", wrapped(right, 6, columns));
  const size_t indent = left_width + 4;
  std::string text = cat("  ", left);
  std::string below = wrapped(right, indent, columns);
  if (left.size() > left_width) return cat(text, "\n", below);
  return text.append(indent - text.size(), ' ') + below.substr(indent);
}

std::string short_usage(const CommandRow& row) {
  return cat(row.name, row.arguments.empty() ? "" : " ", row.arguments);
}

std::string explanation(const OptionRow& option) {
  return cat(option.help, " [", option.default_text, "]",
             option.from == ReadFrom::command_line ? " (command line only)" : "");
}

std::string names_of_commands() {
  std::string names;
  for (const CommandRow& row : command_table()) names += cat(names.empty() ? "" : ", ", row.name);
  return names;
}

}  // namespace

std::string wrapped(std::string_view text, size_t indent, size_t columns) {
  std::string all;
  std::string line;
  for (const std::string_view word : split(text, ' ')) {
    if (!line.empty() && indent + line.size() + 1 + word.size() > columns) {
      all += cat(std::string(indent, ' '), line, "\n");
      line.clear();
    }
    line += cat(line.empty() ? "" : " ", word);
  }
  return all + cat(std::string(indent, ' '), line, "\n");
}

std::string brief_help(int columns) {
  const size_t width = usable(columns);
  return cat(wrapped("inferd serves, measures and explores language models on the CPU.", 0, width), "\n",
             width < 84 ? kNarrowBeginning : kBeginning, "\n",
             wrapped(cat("Commands: ", names_of_commands(), "."), 0, width),
             wrapped("`inferd --help` says what they do, `inferd COMMAND --help` lists the options of one.",
                     0, width));
}

std::string help_text(int columns) {
  const size_t width = usable(columns);
  std::string text =
      cat(wrapped("inferd serves, measures and explores language models on the CPU.", 0, width), "\n",
          width < 84 ? kNarrowBeginning : kBeginning);
  for (const CommandGroup group : command_groups()) {
    text += cat("\n", command_group_title(group), ":\n");
    for (const CommandRow& row : command_table()) {
      if (row.group == group) text += entry(short_usage(row), row.summary, 26, width);
    }
  }
  text += "\n";
  text += wrapped(
      "MODEL is a path, a folder, hf:OWNER/REPO[:QUANT|/FILE], or a name that `inferd list` prints; the "
      "default is smollm2.",
      0, width);
  text += wrapped(
      "An option is taken from the command line, else from INFERD_NAME in the environment, else from "
      "./inferd.toml, else from $XDG_CONFIG_HOME/inferd/inferd.toml (by default "
      "~/.config/inferd/inferd.toml); "
      "`inferd config --show-origin` says what holds.",
      0, width);
  text += wrapped("`inferd COMMAND --help` lists the options of a command, `inferd man` prints the manual.",
                  0, width);
  return text;
}

std::string help_text(Command command, int columns) {
  const size_t width = usable(columns);
  const CommandRow& row = command_row(command);
  std::string text = cat(wrapped(cat("inferd ", row.name, ": ", row.summary), 0, width), "\n");
  for (const std::string_view example : split(row.examples, '\n')) text += cat("  ", example, "\n");
  text += cat("\n", wrapped(cat("usage: ", usage_of(row), " [options]"), 0, width));
  bool configured = false;
  for (const OptionGroup group : option_groups()) {
    bool titled = false;
    for (const OptionRow& option : option_table()) {
      if (option.group != group || !takes(command, option)) continue;
      if (!titled) text += cat("\n", option_group_title(group), ":\n");
      titled = true;
      configured = configured || option.from != ReadFrom::command_line;
      text += entry(cat(option.name, option.value.empty() ? "" : " ", option.value), explanation(option), 22,
                    width);
    }
  }
  if (configured) {
    text += "\n";
    text += wrapped(
        "In the environment --kv-dtype is INFERD_KV_DTYPE, in inferd.toml kv_dtype; so for all. 4k is 4,096; "
        "sizes are 512MiB or 1.5GiB, times 30s or 5m.",
        0, width);
  }
  return text;
}

}  // namespace inferd
