#include "reference_text.h"

#include <array>
#include <utility>

#include "option_table.h"
#include "version.h"

namespace inferd {
namespace {

// Variables that are no options.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kOtherVariables = {{
    {"HOME", "the user's folder"},
    {"XDG_CONFIG_HOME", "where the user's configuration lies, instead of ~/.config"},
    {"XDG_DATA_HOME", "where models lie, instead of ~/.local/share"},
    {"TERM", "dumb: no bar and no movement of the cursor"},
}};

constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kExitCodes = {{
    {"0", "done; of serve: drained after SIGTERM"},
    {"2", "the command line, the environment or a configuration file"},
    {"65", "a file: missing, damaged or of an unsupported kind"},
    {"69", "network: the port is taken, a download failed"},
    {"70", "the engine failed, or an internal error"},
    {"71", "memory: the plan does not fit"},
    {"73", "disk: no space, or output that cannot be written"},
    {"77", "permission"},
    {"130", "interrupted"},
}};

std::string commands_of(const OptionRow& option, std::string_view before, std::string_view after) {
  std::string names;
  for (const Command command : option.commands) {
    names += cat(names.empty() ? "" : ", ", before, command_row(command).name, after);
  }
  return names;
}

std::string_view place_note(const OptionRow& option) {
  switch (option.from) {
    case ReadFrom::everywhere:
      return "";
    case ReadFrom::not_working_folder:
      return "not read from ./inferd.toml";
    case ReadFrom::command_line:
      return "command line only";
  }
  return "";
}

// Roff reads \ anywhere, and . at the beginning of a line; it sets the others as typographic characters.
std::string roff(std::string_view text) {
  static constexpr std::string_view kSpecial = "\\-~'`^\"";
  static constexpr std::array<std::string_view, 7> kNames = {"\\e",   "\\-",   "\\(ti", "\\(aq",
                                                             "\\(ga", "\\(ha", "\\(dq"};
  std::string out;
  for (const char c : text) {
    if (c == '.' && out.empty()) out += "\\&";
    const size_t special = kSpecial.find(c);
    if (special == std::string_view::npos) {
      out.push_back(c);
    } else {
      out += kNames[special];
    }
  }
  return out;
}

std::string man_entry(std::string_view bold, std::string_view italic, std::string_view text) {
  return cat(".TP\n\\fB", roff(bold), "\\fR", italic.empty() ? "" : cat(" \\fI", roff(italic), "\\fR"), "\n",
             roff(text), "\n");
}

std::string man_examples(std::string_view examples) {
  std::string text = ".PP\n.nf\n";
  for (const std::string_view example : split(examples, '\n')) text += cat("    ", roff(example), "\n");
  return text + ".fi\n";
}

std::string markdown(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

}  // namespace

std::string man_page() {
  std::string text = cat(".\\\" Made by `inferd man` from the option table.\n.TH INFERD 1 \"\" \"inferd ",
                         roff(kVersion), "\" \"User Commands\"\n");
  text += ".SH NAME\ninferd \\- serve, measure and explore language models on the CPU\n";
  text += ".SH SYNOPSIS\n.B inferd\n\\fICOMMAND\\fR [\\fIARGUMENTS\\fR] [\\fIOPTIONS\\fR]\n";
  text +=
      ".SH DESCRIPTION\nMODEL is a path, a folder, hf:OWNER/REPO[:QUANT|/FILE], or a name that \\fBinferd "
      "list\\fR prints; the default is smollm2.\nData goes to standard output, everything else to standard "
      "error.\n";
  text += ".SH COMMANDS\n";
  for (const CommandRow& row : command_table()) {
    text += cat(".SS ", roff(usage_of(row)), "\n", roff(row.summary), ".\n", man_examples(row.examples));
  }
  text += cat(".SH OPTIONS\n",
              roff("A value follows after a space or =. A flag is on when it is given alone; "
                   "--FLAG=false turns off what a file turned on. In numbers of things k is "
                   "1,024 and M is 1,048,576; sizes are 512MiB, 1.5GiB or 2GB; times are 30, "
                   "30s, 5m or 1h."),
              "\n");
  for (const OptionGroup group : option_groups()) {
    text += cat(".SS ", option_group_title(group), "\n");
    for (const OptionRow& option : option_table()) {
      if (option.group != group) continue;
      const std::string_view note = place_note(option);
      text += man_entry(option.name, option.value,
                        cat(option.help, ". Default: ", option.default_text, ". For ",
                            commands_of(option, "", ""), ".", note.empty() ? "" : cat(" (", note, ")")));
    }
  }
  text +=
      ".SH ENVIRONMENT\nAn empty variable counts as unset; one that begins with INFERD_ and is not listed "
      "is an error.\n";
  for (const OptionRow& option : option_table()) {
    if (option.from == ReadFrom::command_line) continue;
    text += man_entry(option_variable(option), "", cat("as ", option.name));
  }
  for (const auto& [name, what] : kOtherVariables) text += man_entry(name, "", what);
  text +=
      cat(".SH CONFIGURATION\n",
          roff("The command line wins over the environment, that over ./inferd.toml, that over the user's "
               "inferd.toml, and that over the defaults. Both files are TOML: keys before the first table "
               "hold for every command that takes them, keys in a table named after a command for that "
               "one. `inferd config --show-origin` prints every value and where it came from."),
          "\nThe keys:\n");
  for (const OptionRow& option : option_table()) {
    if (option.from == ReadFrom::command_line) continue;
    const std::string note(place_note(option));
    text += man_entry(option_key(option), "", cat("as ", option.name, note.empty() ? "" : "; ", note));
  }
  text += ".SH FILES\n";
  text += man_entry("./inferd.toml", "", "configuration of the working folder");
  text += man_entry("~/.config/inferd/inferd.toml", "", "configuration of the user");
  text += man_entry("~/.local/share/inferd/models", "", "models");
  text += ".SH EXIT STATUS\n";
  for (const auto& [code, why] : kExitCodes) text += man_entry(code, "", why);
  return text;
}

std::string options_page() {
  std::string text =
      "# Options\n\n"
      "Every command and option, with its name in the environment and in `inferd.toml`. This page is made "
      "from "
      "the table in `apps/inferd/option_table.cpp`, and a test holds the two equal. How values are chosen is "
      "in "
      "[operations.md](operations.md#options).\n\n"
      "## Commands\n\n| command | what it does |\n| --- | --- |\n";
  for (const CommandRow& row : command_table()) {
    text += cat("| `", markdown(usage_of(row)), "` | ", markdown(row.summary), " |\n");
  }
  for (const OptionGroup group : option_groups()) {
    text += cat("\n## ", option_group_title(group),
                "\n\n| option | default | what it does | commands | environment | key |\n"
                "| --- | --- | --- | --- | --- | --- |\n");
    for (const OptionRow& option : option_table()) {
      if (option.group != group) continue;
      const bool flag_only = option.from == ReadFrom::command_line;
      const std::string note(option.from == ReadFrom::not_working_folder ? place_note(option) : "");
      text += cat("| `", option.name, option.value.empty() ? "" : " ", option.value, "` | ",
                  markdown(option.default_text), " | ", markdown(option.help), " | ",
                  commands_of(option, "`", "`"), " | ",
                  flag_only ? "command line only" : cat("`", option_variable(option), "`"), " | ",
                  flag_only ? "" : cat("`", option_key(option), "`"), note.empty() ? "" : ", ", note, " |\n");
    }
  }
  return text;
}

}  // namespace inferd
