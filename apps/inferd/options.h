// What one run of the program was told, by the command line, the environment and configuration files. The
// commands and options themselves are the table in option_table.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "ops/kv_view.h"

namespace inferd {

enum class Command {
  serve,
  run,
  ps,
  stop,
  pull,
  rm,
  list,
  show,
  plan,
  tokenize,
  template_render,
  ppl,
  score,
  bench_engine,
  doctor,
  config,
  completion,
  man,
  version,
  help,
  complete,  // asked by the completion scripts
};

struct OptionRow;

// Where a value came from, in the order of what wins: a later one replaces an earlier one.
struct Origin {
  enum class Kind { preset, user_file, folder_file, environment, command_line };
  Kind kind = Kind::preset;
  std::string name;  // path, variable or flag
  int line = 0;      // in files; from 1
  int column = 0;

  std::string text() const;  // "inferd.toml:3", "INFERD_PORT", "--port", "default"
};

// One option as one place gave it.
struct Setting {
  const OptionRow* option = nullptr;
  std::optional<Command> section;   // only for this command: [serve] in a file
  std::vector<std::string> values;  // as on the command line; several when the option may be repeated
  Origin origin;
};

struct Configuration {
  std::vector<Setting> settings;
  std::vector<std::string> files;  // that were read
};

// Where to look, besides the command line; an empty path is none.
struct ConfigurationPlaces {
  std::vector<std::string> environment;  // "NAME=value"
  std::string folder_file;               // of the working folder
  std::string user_file;
};

// Everything that can be given; what is unset is chosen later and printed.
struct Options {
  Command command = Command::help;
  std::optional<Command> help_for;     // `inferd COMMAND --help`
  bool brief_help = false;             // `inferd` alone
  std::vector<std::string> arguments;  // positional: MODEL, prompt
  Configuration configuration;         // all that was given, the command line too

  // server
  std::string host = "127.0.0.1";
  int32_t port = 8000;
  std::vector<std::string> aliases;
  std::string chat_template;  // path; empty: the model's own
  std::string api_key_file;
  bool no_api_key = false;
  int32_t drain_timeout_s = 30;

  // engine
  std::optional<int32_t> ctx;
  std::optional<int64_t> kv_memory;
  std::optional<int32_t> kv_blocks;
  KvDType kv_dtype = KvDType::bf16;
  std::optional<int32_t> max_seqs;
  int32_t max_queue = 256;
  std::optional<int32_t> prefill_chunk;
  bool no_prefix_cache = false;
  std::optional<int32_t> threads;
  std::string isa;  // empty: the best the chip has

  // run
  int32_t max_tokens = 0;  // 0: up to the context
  std::optional<double> temperature;
  std::optional<double> top_p;
  std::optional<int64_t> top_k;
  std::optional<double> min_p;
  std::optional<uint64_t> seed;
  std::string system;
  bool no_stats = false;
  bool no_server = false;

  // stop
  bool all = false;

  // tokenize
  bool parse_special = false;
  bool add_special = false;

  // template
  std::string template_source;  // path or model
  std::string input;            // path of a conversation, or "-"

  // doctor
  std::string explain;  // an error code

  // bench
  std::vector<int32_t> bench_threads;  // --threads as a list
  std::vector<int32_t> bench_pp;
  std::vector<int32_t> bench_tg;
  std::vector<int32_t> bench_depth = {0};
  std::vector<int32_t> bench_batch = {1};
  int32_t bench_repeat = 5;

  // models
  bool pull = false;     // fetch MODEL first when it is not here
  bool offline = false;  // never connect
  bool yes = false;      // rm: do not ask
  bool verify = false;   // show: hash and structure instead of contents

  // config
  std::optional<Command> config_for;  // `inferd config COMMAND`
  bool show_origin = false;

  LogLevel log_level = LogLevel::info;
  LogFormat log_format = LogFormat::text;
  bool json = false;
};

// Reads the command line, then, for a command that takes any option from there, environment and files.
// E-ARG-001 unknown command, -002 unknown option, -003 bad value, -004 something missing, E-CFG-* the same of
// `places`; with the nearest name.
Result<Options> parse_options(std::span<const std::string> arguments, const ConfigurationPlaces& places = {});

// The setting that decides `option` for `command`, or null: the default holds. Without a command: what stands
// outside of sections.
const Setting* deciding_setting(const Configuration& configuration, const OptionRow& option,
                                std::optional<Command> command);

}  // namespace inferd
