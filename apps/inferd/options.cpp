#include "options.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

namespace inferd {
namespace {

struct CommandRow {
  Command command;
  std::string_view name;
  std::string_view arguments;  // usage
  int least_arguments;
  int most_arguments;
  std::string_view summary;
  std::string_view examples;  // one a line
};

constexpr std::array<CommandRow, 10> kCommands = {{
    {Command::serve, "serve", "[MODEL]", 0, 1, "serve a model over HTTP (OpenAI-compatible)",
     "inferd serve\ninferd serve path/to/model.gguf --port 8080 --ctx 4096"},
    {Command::run, "run", "MODEL [PROMPT | -]", 1, 2, "chat in the terminal, or answer one prompt",
     "inferd run smollm2\ninferd run smollm2 \"Why is the sky blue?\"\ncat letter.txt | inferd run smollm2 "
     "-"},
    {Command::pull, "pull", "NAME...", 1, 1000, "fetch models, so that the other commands need no network",
     "inferd pull smollm2\ninferd pull hf:OWNER/REPO\ninferd pull hf:OWNER/REPO:Q8_0\ninferd pull "
     "hf:OWNER/REPO/FILE.gguf"},
    {Command::list, "list", "", 0, 0, "list the models that are here or can be fetched",
     "inferd list\ninferd list --json"},
    {Command::show, "show", "MODEL", 1, 1, "print what a model file holds, key by key and tensor by tensor",
     "inferd show smollm2\ninferd show model.gguf --json"},
    {Command::plan, "plan", "[MODEL]", 0, 1, "print the memory plan and whether it fits, without loading",
     "inferd plan smollm2 --ctx 8192 --max-seqs 16"},
    {Command::tokenize, "tokenize", "MODEL [TEXT | -]", 1, 2, "print the token ids of a text",
     "inferd tokenize smollm2 \"Hello world\"\necho -n hello | inferd tokenize smollm2 - --json"},
    {Command::bench_engine, "bench", "engine MODEL", 2, 2, "measure prefill and decode without HTTP",
     "inferd bench engine smollm2 --threads 1,2 --pp 512 --tg 128\ninferd bench engine smollm2 --tg 64 "
     "--batch 1,8,32 --json"},
    {Command::doctor, "doctor", "", 0, 0, "check this machine: processor, memory, model folder, port",
     "inferd doctor"},
    {Command::version, "version", "", 0, 0, "print version, compiler and instruction sets", "inferd version"},
}};

const CommandRow& row_of(Command command) {
  return *std::ranges::find(kCommands, command, &CommandRow::command);
}

using Setter = Status (*)(Options&, std::string_view value);

Error bad(std::string_view what) {
  return Error{.code = Code::arg_value, .detail = std::string(what)};
}

Status set_int(auto& target, std::string_view value, int64_t low, int64_t high) {
  const auto number = parse_int(value);
  if (!number || *number < low || *number > high) {
    return bad(cat("got ", printable(value), ", allowed are whole numbers from ", with_commas(low), " to ",
                   with_commas(high)));
  }
  target = static_cast<std::remove_reference_t<decltype(target)>>(*number);
  return {};
}

Status set_optional_int(std::optional<int32_t>& target, std::string_view value, int64_t low, int64_t high) {
  int32_t number = 0;
  INFERD_TRY_STATUS(set_int(number, value, low, high));
  target = number;
  return {};
}

Status set_real(std::optional<double>& target, std::string_view value, double low, double high) {
  const auto number = parse_double(value);
  if (!number || *number < low || *number > high) {
    return bad(cat("got ", printable(value), ", allowed are numbers from ", low, " to ", high));
  }
  target = number;
  return {};
}

Status set_seconds(int32_t& target, std::string_view value) {
  if (value.ends_with('s')) value.remove_suffix(1);
  return set_int(target, value, 0, 86400);
}

Status set_list(std::vector<int32_t>& target, std::string_view value, int64_t low, int64_t high) {
  target.clear();
  for (const std::string_view part : split(value, ',')) {
    int32_t number = 0;
    INFERD_TRY_STATUS(set_int(number, part, low, high));
    target.push_back(number);
  }
  return {};
}

enum class Group { server, engine, sampling, bench, common };
constexpr std::array<std::pair<Group, std::string_view>, 5> kGroupTitles = {{{Group::server, "Server"},
                                                                             {Group::engine, "Engine"},
                                                                             {Group::sampling, "Answer"},
                                                                             {Group::bench, "Measurement"},
                                                                             {Group::common, "Common"}}};

struct OptionRow {
  std::string_view name;          // with the dashes
  std::string_view value;         // placeholder; empty: a flag
  std::string_view default_text;  // for people; with its unit
  std::string_view help;
  Group group;
  std::vector<Command> commands;
  Setter set;
};

using enum Command;

const std::vector<OptionRow>& option_table() {
  static const std::vector<Command> kLoads = {serve, run, plan};
  static const std::vector<Command> kComputes = {serve, run, plan, bench_engine};
  static const std::vector<OptionRow> kTable = {
      {"--host",
       "ADDRESS",
       "127.0.0.1",
       "address to listen on; others than loopback need a key",
       Group::server,
       {serve},
       [](Options& o, std::string_view v) -> Status {
         if (v.empty()) return bad("got an empty address");
         o.host = v;
         return {};
       }},
      {"--port",
       "PORT",
       "8000",
       "port to listen on; 0 picks a free one",
       Group::server,
       {serve, doctor},
       [](Options& o, std::string_view v) { return set_int(o.port, v, 0, 65535); }},
      {"--alias",
       "NAME",
       "none",
       "another name that requests may give as \"model\"; may be repeated",
       Group::server,
       {serve},
       [](Options& o, std::string_view v) -> Status {
         if (v.empty()) return bad("got an empty name");
         o.aliases.emplace_back(v);
         return {};
       }},
      {"--chat-template",
       "FILE",
       "the model's own",
       "Jinja template for chats",
       Group::server,
       {serve, run},
       [](Options& o, std::string_view v) -> Status {
         o.chat_template = v;
         return {};
       }},
      {"--api-key-file",
       "FILE",
       "none",
       "file with the key that clients must send; mode 600",
       Group::server,
       {serve},
       [](Options& o, std::string_view v) -> Status {
         o.api_key_file = v;
         return {};
       }},
      {"--no-api-key",
       "",
       "off",
       "listen beyond loopback without a key: everyone may use this server",
       Group::server,
       {serve},
       [](Options& o, std::string_view) -> Status {
         o.no_api_key = true;
         return {};
       }},
      {"--drain-timeout",
       "SECONDS",
       "30 s",
       "how long running requests may go on after SIGTERM or Ctrl-C",
       Group::server,
       {serve},
       [](Options& o, std::string_view v) { return set_seconds(o.drain_timeout_s, v); }},

      {"--ctx", "TOKENS", "the model's, if it fits", "most tokens of a prompt and its answer", Group::engine,
       kComputes, [](Options& o, std::string_view v) { return set_optional_int(o.ctx, v, 1, INT32_MAX); }},
      {"--kv-memory", "BYTES", "from the memory plan", "memory for the KV pool, such as 512MiB or 1.5GiB",
       Group::engine, kLoads,
       [](Options& o, std::string_view v) -> Status {
         const auto bytes = parse_bytes(v);
         if (!bytes)
           return bad(cat("got ", printable(v), ", allowed are sizes such as 512MiB, 1.5GiB or 2GB"));
         o.kv_memory = bytes;
         return {};
       }},
      {"--kv-blocks", "PAGES", "from the memory plan",
       "size of the KV pool in pages of 16 tokens, instead of --kv-memory", Group::engine, kLoads,
       [](Options& o, std::string_view v) { return set_optional_int(o.kv_blocks, v, 1, INT32_MAX); }},
      {"--kv-dtype", "TYPE", "bf16", "type of K and V in the pool: f32, f16, bf16 or q8_0", Group::engine,
       kComputes,
       [](Options& o, std::string_view v) -> Status {
         const auto type = parse_kv_dtype(v);
         if (!type) return bad(cat("got ", printable(v), ", allowed are f32, f16, bf16, q8_0"));
         o.kv_dtype = *type;
         return {};
       }},
      {"--max-seqs", "COUNT", "32", "sequences that run at once", Group::engine, kLoads,
       [](Options& o, std::string_view v) { return set_optional_int(o.max_seqs, v, 1, 1024); }},
      {"--max-queue",
       "COUNT",
       "256",
       "sequences that may wait beyond the running ones; more get 429",
       Group::engine,
       {serve},
       [](Options& o, std::string_view v) { return set_int(o.max_queue, v, 0, 1000000); }},
      {"--prefill-chunk", "TOKENS", "256", "most prompt tokens of one step", Group::engine, kComputes,
       [](Options& o, std::string_view v) { return set_optional_int(o.prefill_chunk, v, 1, 4096); }},
      {"--no-prefix-cache",
       "",
       "off",
       "compute every prompt anew instead of reusing pages of equal prefixes",
       Group::engine,
       {serve, run},
       [](Options& o, std::string_view) -> Status {
         o.no_prefix_cache = true;
         return {};
       }},
      {"--threads", "COUNT", "the CPUs this process may use", "compute threads; a list for bench",
       Group::engine, kComputes,
       [](Options& o, std::string_view v) -> Status {
         if (o.command == bench_engine) return set_list(o.bench_threads, v, 1, 1024);
         return set_optional_int(o.threads, v, 1, 1024);
       }},
      {"--isa", "LEVEL", "the best of this chip", "instruction set: portable, avx2 or avx512", Group::engine,
       kComputes,
       [](Options& o, std::string_view v) -> Status {
         o.isa = v;
         return {};
       }},

      {"--max-tokens",
       "TOKENS",
       "up to the context",
       "most tokens of an answer",
       Group::sampling,
       {run},
       [](Options& o, std::string_view v) { return set_int(o.max_tokens, v, 1, INT32_MAX); }},
      {"--temperature",
       "T",
       "the model's, else 1",
       "0 always takes the likeliest token",
       Group::sampling,
       {run},
       [](Options& o, std::string_view v) { return set_real(o.temperature, v, 0, 100); }},
      {"--top-p",
       "P",
       "the model's, else 1",
       "keep the likeliest tokens with this much probability",
       Group::sampling,
       {run},
       [](Options& o, std::string_view v) { return set_real(o.top_p, v, 1e-9, 1); }},
      {"--top-k",
       "K",
       "the model's, else 0 (off)",
       "keep the K likeliest tokens",
       Group::sampling,
       {run},
       [](Options& o, std::string_view v) -> Status {
         int64_t k = 0;
         INFERD_TRY_STATUS(set_int(k, v, 0, INT32_MAX));
         o.top_k = k;
         return {};
       }},
      {"--min-p",
       "P",
       "0 (off)",
       "keep tokens at least P times as likely as the likeliest",
       Group::sampling,
       {run},
       [](Options& o, std::string_view v) { return set_real(o.min_p, v, 0, 1); }},
      {"--seed",
       "NUMBER",
       "drawn and printed with --log-level debug",
       "the same seed gives the same answer",
       Group::sampling,
       {run},
       [](Options& o, std::string_view v) -> Status {
         int64_t seed = 0;
         INFERD_TRY_STATUS(set_int(seed, v, 0, INT64_MAX));
         o.seed = static_cast<uint64_t>(seed);
         return {};
       }},
      {"--system",
       "TEXT",
       "none",
       "system message of the chat",
       Group::sampling,
       {run},
       [](Options& o, std::string_view v) -> Status {
         o.system = v;
         return {};
       }},
      {"--parse-special",
       "",
       "off",
       "read control tokens in the text as such",
       Group::sampling,
       {tokenize},
       [](Options& o, std::string_view) -> Status {
         o.parse_special = true;
         return {};
       }},
      {"--add-special",
       "",
       "off",
       "add the begin and end tokens that the model wants",
       Group::sampling,
       {tokenize},
       [](Options& o, std::string_view) -> Status {
         o.add_special = true;
         return {};
       }},

      {"--pp",
       "LIST",
       "none",
       "prompt lengths in tokens, such as 128,512",
       Group::bench,
       {bench_engine},
       [](Options& o, std::string_view v) { return set_list(o.bench_pp, v, 1, 1 << 20); }},
      {"--tg",
       "LIST",
       "128 when --pp is not given",
       "numbers of tokens to generate",
       Group::bench,
       {bench_engine},
       [](Options& o, std::string_view v) { return set_list(o.bench_tg, v, 1, 1 << 20); }},
      {"--depth",
       "LIST",
       "0",
       "tokens already in the KV pool when the measurement begins",
       Group::bench,
       {bench_engine},
       [](Options& o, std::string_view v) { return set_list(o.bench_depth, v, 0, 1 << 20); }},
      {"--batch",
       "LIST",
       "1",
       "sequences at once",
       Group::bench,
       {bench_engine},
       [](Options& o, std::string_view v) { return set_list(o.bench_batch, v, 1, 1024); }},
      {"--repeat",
       "COUNT",
       "5",
       "measurements of each test, after one to warm up",
       Group::bench,
       {bench_engine},
       [](Options& o, std::string_view v) { return set_int(o.bench_repeat, v, 1, 1000); }},

      {"--pull",
       "",
       "off",
       "fetch MODEL first when it is not here, as `inferd pull` does",
       Group::common,
       {serve, run, bench_engine},
       [](Options& o, std::string_view) -> Status {
         o.pull = true;
         return {};
       }},
      {"--offline",
       "",
       "off",
       "open no connection and look no name up; also INFERD_OFFLINE=1 and HF_HUB_OFFLINE=1",
       Group::common,
       {serve, run, pull, bench_engine},
       [](Options& o, std::string_view) -> Status {
         o.offline = true;
         return {};
       }},
      {"--json",
       "",
       "off",
       "print JSON on stdout",
       Group::common,
       {pull, list, show, plan, tokenize, bench_engine, doctor, version},
       [](Options& o, std::string_view) -> Status {
         o.json = true;
         return {};
       }},
      {"--log-level",
       "LEVEL",
       "info",
       "error, warn, info or debug; on stderr",
       Group::common,
       {serve, run},
       [](Options& o, std::string_view v) -> Status {
         const auto level = parse_log_level(v);
         if (!level) return bad(cat("got ", printable(v), ", allowed are error, warn, info, debug"));
         o.log_level = *level;
         return {};
       }},
  };
  return kTable;
}

bool takes(Command command, const OptionRow& option) {
  return std::ranges::find(option.commands, command) != option.commands.end();
}

Error unknown_command(std::string_view given) {
  std::vector<std::string> names;
  for (const CommandRow& row : kCommands) names.emplace_back(row.name);
  Error error{.code = Code::arg_command, .detail = printable(given)};
  if (const auto near = nearest_name(given, names))
    error.fix = cat("did you mean `inferd ", *near, "`? `inferd --help` lists the commands");
  return error;
}

Error unknown_option(Command command, std::string_view given) {
  std::vector<std::string> names;
  std::vector<std::string> elsewhere;
  for (const OptionRow& option : option_table()) {
    if (takes(command, option)) {
      names.emplace_back(option.name);
    } else if (option.name == given) {
      for (const Command other : option.commands) elsewhere.emplace_back(row_of(other).name);
    }
  }
  const std::string_view name = row_of(command).name;
  Error error{.code = Code::arg_option, .detail = cat(printable(given), " of `inferd ", name, "`")};
  if (!elsewhere.empty()) {
    error.fix = cat(given, " belongs to: ", join(elsewhere, ", "));
  } else if (const auto near = nearest_name(given, names)) {
    error.fix = cat("did you mean ", *near, "? `inferd ", name, " --help` lists the options");
  } else {
    error.fix = cat("`inferd ", name, " --help` lists the options");
  }
  return error;
}

Status set_option(Options& options, std::span<const std::string> arguments, size_t& at) {
  std::string_view name = arguments[at];
  std::optional<std::string_view> value;
  if (const size_t equals = name.find('='); equals != std::string_view::npos) {
    value = name.substr(equals + 1);
    name = name.substr(0, equals);
  }
  for (const OptionRow& option : option_table()) {
    if (option.name != name || !takes(options.command, option)) continue;
    if (option.value.empty()) {
      if (value)
        return Error{.code = Code::arg_value,
                     .detail = cat(name, " takes no value, got ", printable(*value)),
                     .where = std::string(name)};
      return option.set(options, "");
    }
    if (!value) {
      if (at + 1 == arguments.size()) {
        return Error{.code = Code::arg_missing,
                     .detail = cat(name, " needs ", option.value),
                     .where = std::string(name)};
      }
      value = arguments[++at];
    }
    Status set = option.set(options, *value);
    if (set.ok()) return {};
    Error error = std::move(set).error();
    error.detail = cat(name, ": ", error.detail);
    error.where = cat(name, " ", *value);
    error.fix = cat(name, ": ", option.help);
    return error;
  }
  return unknown_option(options.command, name);
}

Status check_arguments(Options& options) {
  const CommandRow& row = row_of(options.command);
  const auto count = static_cast<int>(options.arguments.size());
  const std::string usage = cat("usage: inferd ", row.name, row.arguments.empty() ? "" : " ", row.arguments);
  if (count < row.least_arguments) {
    return Error{.code = Code::arg_missing,
                 .detail = cat("`inferd ", row.name, "` needs ", row.arguments),
                 .fix = usage};
  }
  if (count > row.most_arguments) {
    return Error{.code = Code::arg_value,
                 .detail = cat("`inferd ", row.name, "` takes ",
                               row.most_arguments == 0 ? "no arguments" : row.arguments, ", got ",
                               printable(options.arguments[static_cast<size_t>(row.most_arguments)]), " too"),
                 .fix = usage};
  }
  if (options.command == bench_engine) {
    if (options.arguments.front() != "engine") {
      return Error{
          .code = Code::arg_value,
          .detail = cat("unknown benchmark ", printable(options.arguments.front()), ", there is: engine"),
          .fix = usage};
    }
    options.arguments.erase(options.arguments.begin());
    if (options.bench_pp.empty() && options.bench_tg.empty()) options.bench_tg = {128};
  }
  if (options.kv_memory && options.kv_blocks) {
    return Error{.code = Code::arg_value,
                 .detail = "--kv-memory and --kv-blocks both size the KV pool",
                 .fix = "give one of them"};
  }
  return {};
}

}  // namespace

Result<Options> parse_options(std::span<const std::string> arguments) {
  Options options;
  if (arguments.empty()) return options;
  const std::string_view first = arguments.front();
  const auto is_help = [](std::string_view a) { return a == "--help" || a == "-h"; };
  if (is_help(first) || first == "help") return options;
  const auto row = std::ranges::find(kCommands, first == "--version" ? "version" : first, &CommandRow::name);
  if (row == kCommands.end()) return unknown_command(first);
  options.command = row->command;
  bool only_arguments = false;
  for (size_t at = 1; at < arguments.size(); ++at) {
    const std::string_view argument = arguments[at];
    if (!only_arguments && is_help(argument)) {
      options.help_for = options.command;
      options.command = Command::help;
      return options;
    }
    if (!only_arguments && argument == "--") {
      only_arguments = true;
    } else if (!only_arguments && argument.size() > 1 && argument.starts_with('-')) {
      INFERD_TRY_STATUS(set_option(options, arguments, at));
    } else {
      options.arguments.emplace_back(argument);
    }
  }
  INFERD_TRY_STATUS(check_arguments(options));
  return options;
}

std::string help_text() {
  std::string text = "inferd serves, measures and explores language models on the CPU.\n\n";
  text += "  inferd serve                      serve the default model on http://127.0.0.1:8000\n";
  text += "  inferd run smollm2                chat with it in the terminal\n";
  text += "  inferd run smollm2 \"Say hello\"    one answer\n\nCommands:\n";
  for (const CommandRow& row : kCommands) {
    const std::string usage = cat(row.name, row.arguments.empty() ? "" : " ", row.arguments);
    text += cat("  ", usage, std::string(usage.size() < 30 ? 30 - usage.size() : 1, ' '), row.summary, "\n");
  }
  text +=
      "\nMODEL is a path, a folder, hf:OWNER/REPO[:QUANT|/FILE], or a name that `inferd list` prints;\nthe "
      "default is smollm2.\n";
  text += "`inferd COMMAND --help` lists the options of a command.\n";
  return text;
}

std::string help_text(Command command) {
  const CommandRow& row = row_of(command);
  std::string text = cat("inferd ", row.name, ": ", row.summary, "\n\n");
  for (const std::string_view example : split(row.examples, '\n')) text += cat("  ", example, "\n");
  text += cat("\nusage: inferd ", row.name, row.arguments.empty() ? "" : " ", row.arguments, " [options]\n");
  for (const auto& [group, title] : kGroupTitles) {
    bool titled = false;
    for (const OptionRow& option : option_table()) {
      if (option.group != group || !takes(command, option)) continue;
      if (!titled) text += cat("\n", title, ":\n");
      titled = true;
      const std::string left = cat(option.name, option.value.empty() ? "" : " ", option.value);
      text += cat("  ", left, std::string(left.size() < 24 ? 24 - left.size() : 1, ' '), option.help, " [",
                  option.default_text, "]\n");
    }
  }
  return text;
}

std::optional<int64_t> parse_bytes(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, double>, 10> kUnits = {{{"KiB", 0x1p10},
                                                                                  {"MiB", 0x1p20},
                                                                                  {"GiB", 0x1p30},
                                                                                  {"TiB", 0x1p40},
                                                                                  {"kB", 1e3},
                                                                                  {"MB", 1e6},
                                                                                  {"GB", 1e9},
                                                                                  {"TB", 1e12},
                                                                                  {"B", 1},
                                                                                  {"", 1}}};
  for (const auto& [unit, factor] : kUnits) {
    if (!text.ends_with(unit)) continue;
    const auto number = parse_double(trim(text.substr(0, text.size() - unit.size())));
    if (!number || *number < 0 || *number * factor > 0x1p62) return std::nullopt;
    return static_cast<int64_t>(std::llround(*number * factor));
  }
  return std::nullopt;
}

}  // namespace inferd
