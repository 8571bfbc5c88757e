// Every place that shows options shows the same ones. Nothing is taken from the table in the code: the test
// reads what the program prints as help, manual page, completions and configuration, and the page in docs,
// and it sets each variable and each key to see that they count.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>

#include "base/json.h"
#include "base/strings.h"
#include "hub/test_wheel.h"
#include "reference_text.h"
#include "support/golden.h"
#include "support/process.h"

namespace inferd {
namespace {

using testing_hub::ScratchFolder;
using Names = std::set<std::string>;

constexpr const char* kProgram = INFERD_BINARY_DIR "/inferd";

std::string output(const std::vector<std::string>& arguments, const test::ProcessOptions& options = {}) {
  const test::Finished finished = test::run_process(kProgram, arguments, options);
  EXPECT_EQ(finished.code, 0) << join(arguments, " ") << "\n" << finished.err;
  EXPECT_EQ(finished.err, "") << join(arguments, " ");
  return finished.out;
}

// One option as a place shows it. `placeholder` empty: a flag.
struct Shown {
  std::string placeholder;
  Names commands;
  bool command_line_only = false;

  bool operator==(const Shown&) const = default;
};
using Options = std::map<std::string, Shown>;

std::string text_of(const Options& options) {
  std::string text;
  for (const auto& [name, shown] : options) {
    text += cat(name, " ", shown.placeholder, " for");
    for (const std::string& command : shown.commands) text += cat(" ", command);
    text += cat(shown.command_line_only ? ", command line only" : "", "\n");
  }
  return text;
}

std::vector<std::string> matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> all;
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at)
    all.push_back((*at)[1]);
  return all;
}

std::string section(const std::string& page, const std::string& begin, const std::string& end) {
  const size_t from = page.find(begin);
  EXPECT_NE(from, std::string::npos) << begin;
  return page.substr(from, page.find(end, from + begin.size()) - from) + "\n";
}

// ---- the places ------------------------------------------------------------------------------------------

Names commands_in_help() {
  const std::string help = output({"--help"});
  Names names;
  for (const std::string& name : matches(help, "\n  ([a-z]+) [^\n]*")) {
    if (name != "inferd") names.insert(name);  // the examples above
  }
  return names;
}

Options options_in_help(const Names& commands) {
  Options options;
  for (const std::string& command : commands) {
    std::string help = output({command, "--help"});
    help = std::regex_replace(help, std::regex("\n {6,}"), "  ");  // wrapped lines
    for (const std::string_view line : split(help, '\n')) {
      static const std::regex kRow("  (--?[a-z][a-z-]*)( [A-Z]+)?  .*");
      std::smatch match;
      const std::string row(line);
      if (!std::regex_match(row, match, kRow)) continue;
      Shown& shown = options[match[1]];
      shown.placeholder = std::string(trim(match[2].str()));
      shown.commands.insert(command);
      shown.command_line_only =
          std::regex_search(row, std::regex(R"(\(command\s+line\s+only\))"));  // wrapped
    }
  }
  return options;
}

std::string plain_roff(const std::string& text) {
  return std::regex_replace(text, std::regex(R"(\\-)"), "-");
}

Options options_in_manual(const std::string& manual) {
  Options options;
  const std::string part = section(manual, "\n.SH OPTIONS\n", "\n.SH ");
  static const std::regex kEntry(R"(\.TP\n\\fB(--?[a-z][a-z-]*)\\fR(?: \\fI([A-Z]+)\\fR)?\n([^\n]*)\n)");
  for (std::sregex_iterator at(part.begin(), part.end(), kEntry), end; at != end; ++at) {
    Shown& shown = options[(*at)[1]];
    shown.placeholder = (*at)[2];
    const std::string text = (*at)[3];
    std::smatch commands;
    EXPECT_TRUE(std::regex_search(text, commands, std::regex(R"(\. For ([a-z, ]+)\.)"))) << text;
    const std::string names = commands[1];
    for (const std::string_view name : split(names, ',')) shown.commands.emplace(trim(name));
    shown.command_line_only = text.find("(command line only)") != std::string::npos;
  }
  return options;
}

Options options_in_completion(const Names& commands) {
  Options options;
  for (const std::string& command : commands) {
    for (const std::string& name :
         matches(output({"complete", command, "-"}), "(--?[a-z][a-z-]*)\t[^\n]*\n")) {
      if (name != "--help") options[name].commands.insert(command);
    }
  }
  return options;
}

struct PageRow {
  std::string option;
  Shown shown;
  std::string variable;
  std::string key;
  bool not_working_folder = false;
};

std::vector<PageRow> rows_of_page() {
  std::vector<PageRow> rows;
  const std::string page = test::read_file(INFERD_SOURCE_DIR "/docs/options.md");
  for (const std::string_view line : split(page, '\n')) {
    if (!line.starts_with("| `-")) continue;
    const std::vector<std::string_view> cells = split(line, '|');
    EXPECT_EQ(cells.size(), 8U) << line;
    if (cells.size() != 8) continue;
    PageRow row;
    const std::vector<std::string> option = matches(std::string(cells[1]), "([A-Z]+|--?[a-z][a-z-]*)");
    row.option = option[0];
    row.shown.placeholder = option.size() > 1 ? option[1] : "";
    for (const std::string& name : matches(std::string(cells[4]), "`([a-z]+)`"))
      row.shown.commands.insert(name);
    row.shown.command_line_only = trim(cells[5]) == "command line only";
    for (const std::string& name : matches(std::string(cells[5]), "`([A-Z_]+)`")) row.variable = name;
    for (const std::string& name : matches(std::string(cells[6]), "`([a-z_]+)`")) row.key = name;
    row.not_working_folder = cells[6].find("not read from ./inferd.toml") != std::string_view::npos;
    rows.push_back(row);
  }
  return rows;
}

// ---- values that can be told from the defaults ---------------------------------------------------------

struct Sample {
  std::string given;
  std::string json;  // what it comes to
};

Sample sample_for(const PageRow& row) {
  static const std::map<std::string, Sample> kSamples = {
      {"", {"true", "true"}},
      {"ADDRESS", {"::1", "\"::1\""}},
      {"BYTES", {"1.5GiB", "1610612736"}},
      {"COUNT", {"3", "3"}},
      {"FILE", {"/f", "\"/f\""}},
      {"K", {"41", "41"}},
      {"LIST", {"7,8", "[7,8]"}},
      {"NAME", {"other", "[\"other\"]"}},
      {"NUMBER", {"12", "12"}},
      {"P", {"0.25", "0.25"}},
      {"PAGES", {"64", "64"}},
      {"PORT", {"8123", "8123"}},
      {"SECONDS", {"5m", "300"}},
      {"T", {"0.5", "0.5"}},
      {"TEXT", {"say hello", "\"say hello\""}},
      {"TOKENS", {"2k", "2048"}},
  };
  const auto sample = kSamples.find(row.shown.placeholder);
  if (sample != kSamples.end()) return sample->second;
  // A fixed list: completion knows it. The first one is no default.
  const std::string list = output({"complete", *row.shown.commands.begin(), row.option, ""});
  const std::string first = list.substr(0, list.find('\n'));
  EXPECT_NE(first, "") << "no sample for " << row.shown.placeholder;
  return {first, cat("\"", first, "\"")};
}

struct Value {
  std::string json;
  std::string kind;
  std::string place;  // variable or path
  bool operator==(const Value&) const = default;
};

std::map<std::string, Value> values_of(const test::ProcessOptions& options) {
  std::map<std::string, Value> values;
  const Result<Json> config = parse_json(output({"config", "--json"}, options));
  if (!config.ok()) return values;  // output() said why
  for (const Json& one : config->find("options")->as_array()) {
    const Json* origin = one.find("origin");
    Value& value = values[one.find("key")->as_string()];
    value.json = to_json(*one.find("value"));
    value.kind = origin->find("kind")->as_string();
    for (const char* place : {"variable", "path"}) {
      if (const Json* text = origin->find(place)) value.place = text->as_string();
    }
  }
  return values;
}

std::string toml_for(const PageRow& row) {
  const std::string given = sample_for(row).given;
  return cat(row.key, " = ", row.shown.placeholder.empty() ? given : cat("'", given, "'"), "\n");
}

// ---- tests -----------------------------------------------------------------------------------------------

TEST(OptionSurfaces, commands_are_the_same_in_help_manual_completion_and_docs) {
  const Names help = commands_in_help();
  EXPECT_GE(help.size(), 13U);
  const std::string manual = plain_roff(output({"man"}));
  const auto names = [](const std::vector<std::string>& all) { return Names(all.begin(), all.end()); };
  EXPECT_EQ(names(matches(section(manual, "\n.SH COMMANDS\n", "\n.SH "), "\n\\.SS inferd ([a-z]+)")), help);
  EXPECT_EQ(names(matches(output({"complete", ""}), "([a-z]+)\t[^\n]*\n")), help);
  const std::string page = test::read_file(INFERD_SOURCE_DIR "/docs/options.md");
  EXPECT_EQ(names(matches(page, "\n\\| `inferd ([a-z]+)")), help);
  const std::string brief = std::regex_replace(output({}), std::regex("\n"), " ");
  EXPECT_EQ(names(matches(section(brief, "Commands: ", ". "), "([a-z]+)[,.]?")).size(), help.size() + 1);
}

TEST(OptionSurfaces, options_are_the_same_in_help_manual_completion_and_docs) {
  const Names commands = commands_in_help();
  const Options help = options_in_help(commands);
  EXPECT_GE(help.size(), 34U);
  EXPECT_EQ(text_of(options_in_manual(plain_roff(output({"man"})))), text_of(help));
  Options page;
  for (const PageRow& row : rows_of_page()) page[row.option] = row.shown;
  EXPECT_EQ(text_of(page), text_of(help));
  Options completion = options_in_completion(commands);
  for (auto& [name, shown] : completion) {  // it shows neither placeholder nor place
    if (!help.contains(name)) continue;
    shown.placeholder = help.at(name).placeholder;
    shown.command_line_only = help.at(name).command_line_only;
  }
  EXPECT_EQ(text_of(completion), text_of(help));
}

TEST(OptionSurfaces, variables_and_keys_are_those_of_the_options_in_manual_docs_and_program) {
  Names variables;
  Names keys;
  for (const auto& [name, shown] : options_in_help(commands_in_help())) {
    if (shown.command_line_only) continue;
    std::string key = name.substr(2);
    std::ranges::replace(key, '-', '_');
    keys.insert(key);
    std::string variable = "INFERD_";
    for (const char c : key) variable.push_back(static_cast<char>(std::toupper(c)));
    variables.insert(variable);
  }
  const std::string manual = plain_roff(output({"man"}));
  const auto names = [](const std::vector<std::string>& all) { return Names(all.begin(), all.end()); };
  EXPECT_EQ(names(matches(section(manual, "\n.SH ENVIRONMENT\n", "\n.SH "), R"(\.TP\n\\fB(INFERD_[A-Z_]+))")),
            variables);
  EXPECT_EQ(names(matches(section(manual, "\n.SH CONFIGURATION\n", "\n.SH "), R"(\.TP\n\\fB([a-z_]+))")),
            keys);
  Names page_variables;
  Names page_keys;
  for (const PageRow& row : rows_of_page()) {
    if (row.shown.command_line_only) continue;
    page_variables.insert(row.variable);
    page_keys.insert(row.key);
  }
  EXPECT_EQ(page_variables, variables);
  EXPECT_EQ(page_keys, keys);
  Names config_keys;
  for (const auto& [key, value] : values_of({})) {
    EXPECT_EQ(value.kind, "default") << key;
    config_keys.insert(key);
  }
  EXPECT_EQ(config_keys, keys);
}

TEST(OptionSurfaces, every_variable_and_every_key_counts_in_the_order_that_is_promised) {
  const ScratchFolder scratch;
  std::filesystem::create_directories(scratch.path + "/user/inferd");
  const std::string user_file = scratch.path + "/user/inferd/inferd.toml";
  const std::string folder_file = scratch.path + "/inferd.toml";
  std::string all_keys;
  std::string folder_keys;
  std::vector<std::string> variables;
  std::map<std::string, Value> from_user;
  std::map<std::string, Value> from_folder;
  std::map<std::string, Value> from_variables;
  for (const PageRow& row : rows_of_page()) {
    if (row.shown.command_line_only) continue;
    const std::string json = sample_for(row).json;
    all_keys += toml_for(row);
    if (!row.not_working_folder) folder_keys += toml_for(row);
    variables.push_back(cat(row.variable, "=", sample_for(row).given));
    from_user[row.key] = {json, "file", user_file};
    from_folder[row.key] = row.not_working_folder ? from_user[row.key] : Value{json, "file", "inferd.toml"};
    from_variables[row.key] = {json, "environment", row.variable};
  }
  const std::map<std::string, Value> defaults = values_of({.folder = scratch.path});
  for (const auto& [key, value] : defaults) EXPECT_NE(value.json, from_user[key].json) << key;
  test::ProcessOptions options{.environment = {cat("XDG_CONFIG_HOME=", scratch.path, "/user")},
                               .folder = scratch.path};
  std::ofstream(user_file) << all_keys;
  EXPECT_EQ(values_of(options), from_user);
  std::ofstream(folder_file) << folder_keys;
  EXPECT_EQ(values_of(options), from_folder);
  options.environment.insert(options.environment.end(), variables.begin(), variables.end());
  EXPECT_EQ(values_of(options), from_variables);
}

TEST(OptionSurfaces, what_the_docs_keep_from_the_working_folder_is_refused_there) {
  const ScratchFolder scratch;
  int refused = 0;
  for (const PageRow& row : rows_of_page()) {
    if (!row.not_working_folder) continue;
    ++refused;
    std::ofstream(scratch.path + "/inferd.toml") << toml_for(row);
    const test::Finished finished = test::run_process(kProgram, {"config"}, {.folder = scratch.path});
    EXPECT_EQ(finished.code, 2) << row.key;
    EXPECT_NE(finished.err.find("error[E-CFG-004]"), std::string::npos) << finished.err;
  }
  EXPECT_EQ(refused, 3);  // host, no_api_key, api_key_file
}

TEST(OptionSurfaces, fixed_values_are_the_same_in_completion_and_in_the_error) {
  int lists = 0;
  for (const PageRow& row : rows_of_page()) {
    const std::string command = *row.shown.commands.begin();
    const std::vector<std::string> offered =
        matches(output({"complete", command, row.option, ""}), "([^\n]+)\n");
    if (offered.empty() || row.shown.placeholder.empty() || offered.front() == ":files") continue;
    ++lists;
    const test::Finished finished = test::run_process(kProgram, {"config", command, row.option, "@"});
    EXPECT_EQ(finished.code, 2);
    EXPECT_NE(finished.err.find(cat("got \"@\", allowed are ", join(offered, ", "), "\n")), std::string::npos)
        << finished.err;
  }
  EXPECT_GE(lists, 3);  // --kv-dtype, --isa, --log-level
}

TEST(OptionSurfaces, a_shell_without_a_script_is_refused_with_the_nearest) {
  const test::Finished finished = test::run_process(kProgram, {"completion", "fihs"});
  EXPECT_EQ(finished.code, 2);
  EXPECT_EQ(finished.err,
            "error[E-ARG-003]: bad option value: no completion for \"fihs\", there are bash, zsh, fish\n"
            "  fix: did you mean fish?\n");
}

TEST(OptionSurfaces, what_config_prints_is_a_configuration) {
  const ScratchFolder scratch;
  const std::vector<std::string> variables = {"INFERD_PORT=8123", "INFERD_CTX=4k", "INFERD_ALIAS=a,b",
                                              "INFERD_SYSTEM=say \"hi\"", "INFERD_TEMPERATURE=0.5"};
  const std::string printed = output({"config", "--show-origin"}, {.environment = variables});
  EXPECT_NE(printed.find("\nctx = 4096"), std::string::npos) << printed;
  EXPECT_NE(printed.find("# INFERD_CTX\n"), std::string::npos) << printed;
  // But for what the working folder may not say.
  std::ofstream(scratch.path + "/inferd.toml")
      << std::regex_replace(printed, std::regex("\n(host|no_api_key) = [^\n]*"), "");
  std::map<std::string, Value> read = values_of({.folder = scratch.path});
  EXPECT_EQ(read["port"].json, "8123");
  EXPECT_EQ(read["ctx"].json, "4096");
  EXPECT_EQ(read["alias"].json, "[\"a\",\"b\"]");
  EXPECT_EQ(read["system"].json, "\"say \\\"hi\\\"\"");
  EXPECT_EQ(read["temperature"].json, "0.5");
}

TEST(OptionSurfaces, config_shows_each_value_with_file_and_line) {
  const ScratchFolder scratch;
  std::ofstream(scratch.path + "/inferd.toml") << "ctx = '4k'\n\n[run]\nctx = 512\n";
  const test::ProcessOptions options{.environment = {"INFERD_PORT=1"}, .folder = scratch.path};
  const std::string all = output({"config", "--show-origin"}, options);
  EXPECT_TRUE(std::regex_search(all, std::regex("\nport = 1 +# INFERD_PORT\n"))) << all;
  EXPECT_TRUE(std::regex_search(all, std::regex("\nctx = 4096 +# inferd.toml:1\n"))) << all;
  EXPECT_TRUE(std::regex_search(all, std::regex("\n\\[run\\]\nctx = 512 +# inferd.toml:4\n"))) << all;
  EXPECT_TRUE(std::regex_search(all, std::regex("\nmax_queue = 256 +# default\n"))) << all;
  const std::string run = output({"config", "run", "--max-tokens", "1k", "--show-origin"}, options);
  EXPECT_TRUE(std::regex_search(run, std::regex("\nctx = 512 +# inferd.toml:4\n"))) << run;
  EXPECT_TRUE(std::regex_search(run, std::regex("\nmax_tokens = 1024 +# --max-tokens\n"))) << run;
  EXPECT_EQ(run.find("port"), std::string::npos);
}

TEST(OptionSurfaces, what_the_working_folder_changes_is_said) {
  const ScratchFolder scratch;
  std::ofstream(scratch.path + "/inferd.toml") << "port = 0\nctx = 512\n";
  const test::Finished doctor = test::run_process(kProgram, {"doctor", "--json"}, {.folder = scratch.path});
  EXPECT_EQ(doctor.err, "from inferd.toml: port = \"0\"\n");
}

TEST(OptionSurfaces, nothing_but_text_goes_into_a_pipe) {
  const ScratchFolder scratch;
  const test::ProcessOptions options{
      .environment = {"TERM=xterm-256color", cat("XDG_DATA_HOME=", scratch.path)}, .folder = scratch.path};
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"--help"},
                                             {"serve", "--help"},
                                             {"config", "--show-origin"},
                                             {"list"},
                                             {"doctor"},
                                             {"version"},
                                             {"man"},
                                             {"show", "nothing"},
                                             {"serve", "--prot"}}) {
    const test::Finished finished = test::run_process(kProgram, arguments, options);
    const std::string all = finished.out + finished.err;
    EXPECT_FALSE(all.empty());
    EXPECT_TRUE(std::ranges::none_of(all, [](char c) {
      return (c >= 0 && c < ' ' && c != '\n') || c == 0x7f;
    })) << join(arguments, " ");
  }
}

TEST(OptionSurfaces, what_scripts_read_comes_as_json_too) {
  const ScratchFolder scratch;
  for (const std::string command : {"list", "doctor", "version", "config"}) {
    const test::Finished finished = test::run_process(kProgram, {command, "--json"},
                                                      {.environment = {cat("XDG_DATA_HOME=", scratch.path)}});
    EXPECT_TRUE(parse_json(finished.out).ok()) << command << "\n" << finished.out;
    EXPECT_EQ(finished.err, "") << command;
  }
}

TEST(OptionSurfaces, the_manual_has_no_mistake_that_groff_sees) {
  const ScratchFolder scratch;
  std::ofstream(scratch.path + "/inferd.1") << output({"man"});
  const test::Finished groff = test::run_process(
      "/usr/bin/groff", {"-man", "-Tutf8", "-ww", "-b", "-rLL=78n", scratch.path + "/inferd.1"});
  EXPECT_EQ(groff.code, 0);
  EXPECT_EQ(groff.err, "");
  EXPECT_NE(groff.out.find("~/.config"), std::string::npos);
}

TEST(OptionsPage, is_the_table) {
  const std::string path = INFERD_SOURCE_DIR "/docs/options.md";
  if (std::getenv("INFERD_WRITE_DOCS") != nullptr) std::ofstream(path) << options_page();
  EXPECT_EQ(test::read_file(path), options_page());
}

// ---- the scripts in their shells -------------------------------------------------------------------------

// What a model folder with one model offers for a line, sorted, as the shell would insert it.
class CompletionScripts : public testing::Test {
 protected:
  CompletionScripts() {
    std::filesystem::create_directories(scratch_.path + "/data/inferd/models");
    std::ofstream(scratch_.path + "/data/inferd/models/my model.gguf") << "x";
    std::filesystem::create_directories(scratch_.path + "/here");
    std::ofstream(scratch_.path + "/here/file.gguf") << "x";
    std::filesystem::create_directories(scratch_.path + "/bin");
    std::filesystem::create_symlink(kProgram, scratch_.path + "/bin/inferd");
    for (const char* shell : {"bash", "zsh", "fish"}) {
      std::ofstream(scratch_.path + "/" + shell) << output({"completion", shell});
    }
  }

  Names run(const std::string& shell, const std::vector<std::string>& arguments) {
    const test::Finished finished =
        test::run_process(shell, arguments,
                          {.environment = {cat("XDG_DATA_HOME=", scratch_.path, "/data"),
                                           cat("PATH=", scratch_.path, "/bin:/usr/bin:/bin"),
                                           cat("HOME=", scratch_.path), "TERM=dumb"},
                           .folder = scratch_.path + "/here"});
    EXPECT_EQ(finished.err, "");
    Names names;
    for (const std::string_view line : split(finished.out, '\n')) {
      if (!line.empty()) names.emplace(line);
    }
    return names;
  }

  // As readline splits the line at its word breaks.
  Names bash(const std::string& words, int current, const std::string& line) {
    return run("/bin/bash", {"--norc", "-c",
                             cat("source ", scratch_.path, "/bash; COMP_WORDS=(", words, "); COMP_CWORD=",
                                 current, "; COMP_LINE='", line, "'; COMP_POINT=${#COMP_LINE}; _inferd; ",
                                 "printf '%s\\n' \"${COMPREPLY[@]}\"")});
  }

  // _describe and _files are zsh's; here they print what they are given.
  Names zsh(const std::string& words, const std::string& prefix) {
    return run(
        "/usr/bin/zsh",
        {"-f", "-c",
         cat("compdef() { [[ $* == '_inferd inferd' ]] || print BAD }; "
             "_describe() { local one; for one in ${(P)2}; do print -r -- ${one%%:*}; done }; "
             "_files() { print -r -- *(N) }; source ",
             scratch_.path, "/zsh; words=(", words, "); CURRENT=$#words; PREFIX='", prefix, "'; _inferd")});
  }

  Names fish(const std::string& line) {
    const Names all =
        run("/usr/bin/fish",
            {"--no-config", "-c", cat("source ", scratch_.path, "/fish; complete -C '", line, "'")});
    Names names;
    for (const std::string& one : all) names.insert(one.substr(0, one.find('\t')));
    return names;
  }

  ScratchFolder scratch_;
};

TEST_F(CompletionScripts, bash_completes_commands_options_values_and_models) {
  EXPECT_EQ(bash("inferd s", 1, "inferd s"), (Names{"score", "serve", "show", "stop"}));
  EXPECT_EQ(bash("inferd serve --po", 2, "inferd serve --po"), (Names{"--port"}));
  EXPECT_EQ(bash("inferd serve --kv-dtype bf", 3, "inferd serve --kv-dtype bf"), (Names{"bf16"}));
  // Only what stands behind the = is replaced.
  EXPECT_EQ(bash("inferd serve --kv-dtype = bf", 4, "inferd serve --kv-dtype=bf"), (Names{"bf16"}));
  EXPECT_EQ(bash("inferd serve --kv-dtype =", 3, "inferd serve --kv-dtype="),
            (Names{"f32", "f16", "bf16", "q8_0"}));
  EXPECT_EQ(bash("inferd show ''", 2, "inferd show "), (Names{"my model", "file.gguf"}));
  EXPECT_EQ(bash("inferd completion ''", 2, "inferd completion "), (Names{"bash", "zsh", "fish"}));
}

TEST_F(CompletionScripts, zsh_completes_commands_options_values_and_models) {
  EXPECT_EQ(zsh("inferd s", "s"), (Names{"score", "serve", "show", "stop"}));
  EXPECT_EQ(zsh("inferd serve --po", "--po"), (Names{"--port"}));
  EXPECT_EQ(zsh("inferd serve --kv-dtype bf", "bf"), (Names{"bf16"}));
  EXPECT_EQ(zsh("inferd serve --kv-dtype=bf", "--kv-dtype=bf"), (Names{"--kv-dtype=bf16"}));
  EXPECT_EQ(zsh("inferd show ''", ""), (Names{"my model", "file.gguf"}));
}

TEST_F(CompletionScripts, fish_completes_commands_options_values_and_models) {
  EXPECT_EQ(fish("inferd s"), (Names{"score", "serve", "show", "stop"}));
  EXPECT_EQ(fish("inferd serve --po"), (Names{"--port"}));
  EXPECT_EQ(fish("inferd serve --kv-dtype bf"), (Names{"bf16"}));
  EXPECT_EQ(fish("inferd serve --kv-dtype=bf"), (Names{"--kv-dtype=bf16"}));
  EXPECT_EQ(fish("inferd show "), (Names{"my model", "file.gguf"}));
}

}  // namespace
}  // namespace inferd
