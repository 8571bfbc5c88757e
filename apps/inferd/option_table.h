// The one table of commands and options. The parser, help, the man page, docs/options.md, the completions,
// the environment names and the keys of inferd.toml are all read from it, so that a new command or option is
// one row here; tests/option_surfaces_test.cpp holds what comes out equal.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "options.h"

namespace inferd {

enum class CommandGroup { use, look, measure, setup };

struct CommandRow {
  Command command;
  std::string_view name;
  CommandGroup group;
  // Usage. Completion reads it too: MODEL, NAME..., COMMAND and FILE complete as such, a|b|c to one of these,
  // a word in lower case to itself, and anything else to nothing.
  std::string_view arguments;
  int least_arguments;
  int most_arguments;
  std::string_view summary;
  std::string_view examples;  // one a line
};

enum class OptionGroup { server, engine, answer, text, bench, common };

// How a value is held in Options: read from text, and given back as JSON (null: nothing was chosen yet).
struct Field {
  enum class Shape { flag, single, comma_list, repeated };
  Shape shape;
  Status (*set)(Options& options, std::string_view value);  // E-ARG-003: "got …, allowed are …"
  Json (*get)(const Options& options);
};

// Where an option may be given. A file in the working folder may come with somebody else's project, so it may
// not open the server to others; what changes the kind of output or answers a question belongs to one call.
enum class ReadFrom { everywhere, not_working_folder, command_line };

struct OptionRow {
  std::string_view name;          // with the dashes
  std::string_view value;         // placeholder; empty: a flag
  std::string_view default_text;  // for people; with its unit
  std::string_view help;
  OptionGroup group;
  std::vector<Command> commands;
  Field field;
  ReadFrom from = ReadFrom::everywhere;
  std::string_view choices = {};   // all values there are, separated by spaces; empty: not a fixed list
  std::string_view excludes = {};  // the option that says the same in another way
};

std::span<const CommandRow> command_table();
std::span<const OptionRow> option_table();

const CommandRow& command_row(Command command);
const CommandRow* find_command(std::string_view name);  // null: none of that name
std::string_view command_group_title(CommandGroup group);
std::string_view option_group_title(OptionGroup group);
std::span<const OptionGroup> option_groups();
std::span<const CommandGroup> command_groups();

bool takes(Command command, const OptionRow& option);
std::string option_key(const OptionRow& option);       // "--kv-dtype" -> "kv_dtype"
std::string option_variable(const OptionRow& option);  // "--kv-dtype" -> "INFERD_KV_DTYPE"
std::string usage_of(const CommandRow& command);       // "inferd run MODEL [PROMPT | -]"

// Sets the option from text. E-ARG-003 says what was given and what is allowed; with a fix when a choice is
// near.
Status set_option(const OptionRow& option, Options& options, std::string_view value);

}  // namespace inferd
