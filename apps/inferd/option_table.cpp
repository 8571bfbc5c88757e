#include "option_table.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "option_values.h"

namespace inferd {
namespace {

using enum Command;

constexpr auto kCommands = std::to_array<CommandRow>({
    {serve, "serve", CommandGroup::use, "[MODEL]", 0, 1, "serve a model over HTTP (OpenAI-compatible)",
     "inferd serve\n"
     "inferd serve path/to/model.gguf --port 8080 --ctx 4k"},
    {run, "run", CommandGroup::use, "MODEL [PROMPT | -]", 1, 2, "chat in the terminal, or answer one prompt",
     "inferd run smollm2\n"
     "inferd run smollm2 \"Why is the sky blue?\"\n"
     "cat letter.txt | inferd run smollm2 -"},
    {ps, "ps", CommandGroup::use, "", 0, 0, "list the servers of this user that run on this machine",
     "inferd ps\n"
     "inferd ps --json"},
    {stop, "stop", CommandGroup::use, "[PID | PORT | MODEL]", 0, 1,
     "end servers of this user, once their requests are answered",
     "inferd stop\n"
     "inferd stop 8080\n"
     "inferd stop --all"},
    {pull, "pull", CommandGroup::use, "NAME...", 1, 1000,
     "fetch models, so that the other commands need no network",
     "inferd pull smollm2\n"
     "inferd pull hf:OWNER/REPO\n"
     "inferd pull hf:OWNER/REPO:Q8_0\n"
     "inferd pull hf:OWNER/REPO/FILE.gguf"},
    {rm, "rm", CommandGroup::use, "MODEL...", 1, 1000, "delete models that a pull brought",
     "inferd rm hf:OWNER/REPO:Q8_0\n"
     "inferd rm -y smollm2"},
    {list, "list", CommandGroup::look, "", 0, 0, "list the models that are here or can be fetched",
     "inferd list\n"
     "inferd list --json"},
    {show, "show", CommandGroup::look, "MODEL", 1, 1,
     "print what a model file holds, key by key and tensor by tensor",
     "inferd show smollm2\n"
     "inferd show smollm2 --verify\n"
     "inferd show model.gguf --json"},
    {plan, "plan", CommandGroup::look, "[MODEL]", 0, 1,
     "print the memory plan and whether it fits, without loading",
     "inferd plan smollm2 --ctx 8k --max-seqs 16"},
    {tokenize, "tokenize", CommandGroup::look, "MODEL [TEXT | -]", 1, 2, "print the token ids of a text",
     "inferd tokenize smollm2 \"Hello world\"\n"
     "echo -n hello | inferd tokenize smollm2 - --json"},
    {template_render, "template", CommandGroup::look, "render", 1, 1,
     "print the prompt that a chat template makes of a conversation",
     "inferd template render --template smollm2 --input conversation.json\n"
     "inferd template render --template chat.jinja --input - < conversation.json"},
    {ppl, "ppl", CommandGroup::measure, "MODEL FILE | -", 2, 2,
     "measure how well a model predicts a text (perplexity)",
     "inferd ppl smollm2 book.txt\n"
     "inferd ppl smollm2 book.txt --ctx 2k --kv-dtype f32 --json"},
    {score, "score", CommandGroup::measure, "MODEL PROMPT CONTINUATION...", 3, 1000,
     "print how likely each continuation of a prompt is",
     "inferd score smollm2 \"The sky is\" \" blue\" \" green\""},
    {bench_engine, "bench", CommandGroup::measure, "engine MODEL", 2, 2,
     "measure prefill and decode without HTTP",
     "inferd bench engine smollm2 --threads 1,2 --pp 512 --tg 128\n"
     "inferd bench engine smollm2 --tg 64 --batch 1,8,32 --json"},
    {doctor, "doctor", CommandGroup::measure, "[MODEL]", 0, 1,
     "check this machine, and a model by running it once",
     "inferd doctor\n"
     "inferd doctor smollm2\n"
     "inferd doctor --explain E-NET-001"},
    {config, "config", CommandGroup::setup, "[COMMAND]", 0, 1,
     "print every value, as inferd.toml, the environment and the options of COMMAND make it",
     "inferd config --show-origin\n"
     "inferd config serve --port 9000 --show-origin\n"
     "inferd config > inferd.toml"},
    {completion, "completion", CommandGroup::setup, "bash|zsh|fish", 1, 1,
     "print the completion script of a shell",
     "source <(inferd completion bash)\n"
     "inferd completion zsh > ~/.zfunc/_inferd\n"
     "inferd completion fish > ~/.config/fish/completions/inferd.fish"},
    {man, "man", CommandGroup::setup, "", 0, 0, "print the manual page", "inferd man | man -l -"},
    {version, "version", CommandGroup::setup, "", 0, 0, "print version, compiler and instruction sets",
     "inferd version\n"
     "inferd version --json"},
    {help, "help", CommandGroup::setup, "[COMMAND]", 0, 1, "print help, of a command with its options",
     "inferd help serve"},
});

// ---- from text to a member of Options, and back ----------------------------------------------------------

Error bad(std::string_view what) {
  return Error{.code = Code::arg_value, .detail = std::string(what)};
}

template <typename T>
struct Held {
  using type = T;
};
template <typename T>
struct Held<std::optional<T>> {
  using type = T;
};
template <auto member>
using Value = typename Held<std::remove_cvref_t<decltype(std::declval<Options>().*member)>>::type;

Json as_json(bool value) {
  return Json(value);
}
Json as_json(int32_t value) {
  return Json(value);
}
Json as_json(int64_t value) {
  return Json(value);
}
Json as_json(uint64_t value) {
  return Json(static_cast<int64_t>(value));  // read from int64
}
Json as_json(double value) {
  return Json(value);
}
Json as_json(const std::string& value) {
  return value.empty() ? Json() : Json(value);
}
Json as_json(KvDType value) {
  return Json(kv_dtype_name(value));
}
Json as_json(LogLevel value) {
  return Json(log_level_name(value));
}
Json as_json(LogFormat value) {
  return Json(log_format_name(value));
}
template <typename T>
Json as_json(const std::optional<T>& value) {
  return value ? as_json(*value) : Json();
}
template <typename T>
Json as_json(const std::vector<T>& values) {
  if (values.empty()) return Json();
  Json::Array array;
  for (const T& value : values) array.push_back(as_json(value));
  return Json(std::move(array));
}

template <auto member>
Json get(const Options& options) {
  return as_json(options.*member);
}

Error out_of_range(std::string_view given, int64_t low, int64_t high) {
  return bad(cat("got ", printable(given), ", allowed are whole numbers from ", with_commas(low), " to ",
                 with_commas(high)));
}

template <auto member, int64_t low, int64_t high>
Status set_whole(Options& options, std::string_view value) {
  const auto number = parse_int(value);
  if (!number || *number < low || *number > high) return out_of_range(value, low, high);
  options.*member = static_cast<Value<member>>(*number);
  return {};
}

template <auto member, int64_t low, int64_t high>
Status set_count(Options& options, std::string_view value) {
  const auto number = parse_count(value);
  if (!number || *number < low || *number > high) return out_of_range(value, low, high);
  options.*member = static_cast<Value<member>>(*number);
  return {};
}

template <auto member, int64_t low, int64_t high>
Status set_counts(Options& options, std::string_view value) {
  std::vector<int32_t> numbers;
  for (const std::string_view part : split(value, ',')) {
    const auto number = parse_count(part);
    if (!number || *number < low || *number > high) return out_of_range(part, low, high);
    numbers.push_back(static_cast<int32_t>(*number));
  }
  options.*member = std::move(numbers);
  return {};
}

template <auto member, double low, double high>
Status set_real(Options& options, std::string_view value) {
  const auto number = parse_double(value);
  if (!number || *number < low || *number > high) {
    return bad(cat("got ", printable(value), ", allowed are numbers from ", low, " to ", high));
  }
  options.*member = number;
  return {};
}

template <auto member>
Status set_bytes(Options& options, std::string_view value) {
  const auto bytes = parse_bytes(value);
  if (!bytes) return bad(cat("got ", printable(value), ", allowed are sizes such as 512MiB, 1.5GiB or 2GB"));
  options.*member = bytes;
  return {};
}

template <auto member, int64_t low, int64_t high>
Status set_seconds(Options& options, std::string_view value) {
  const auto seconds = parse_seconds(value);
  if (!seconds || *seconds < low || *seconds > high) {
    return bad(cat("got ", printable(value), ", allowed are whole seconds from ", with_commas(low), " to ",
                   with_commas(high), ", also as 30s, 5m or 1h"));
  }
  options.*member = static_cast<Value<member>>(*seconds);
  return {};
}

template <auto member>
Status set_text(Options& options, std::string_view value) {
  options.*member = std::string(value);
  return {};
}

template <auto member>
Status set_some_text(Options& options, std::string_view value) {
  if (value.empty()) return bad("got nothing, allowed is any text but an empty one");
  return set_text<member>(options, value);
}

template <auto member>
Status add_some_text(Options& options, std::string_view value) {
  if (value.empty()) return bad("got nothing, allowed is any text but an empty one");
  (options.*member).emplace_back(value);
  return {};
}

template <auto member>
Status set_flag(Options& options, std::string_view value) {
  const auto on = parse_switch(value);
  if (!on) return bad(cat("got ", printable(value), ", allowed are true and false"));
  options.*member = *on;
  return {};
}

template <auto member, auto parse>
Status set_choice(Options& options, std::string_view value) {
  options.*member = *parse(value);  // set_option() lets only choices through
  return {};
}

using enum Field::Shape;
template <auto member, int64_t low, int64_t high>
constexpr Field kWhole = {single, set_whole<member, low, high>, get<member>};
template <auto member, int64_t low = 1, int64_t high = INT32_MAX>
constexpr Field kCount = {single, set_count<member, low, high>, get<member>};
template <auto member, int64_t low, int64_t high>
constexpr Field kCounts = {comma_list, set_counts<member, low, high>, get<member>};
template <auto member, double low, double high>
constexpr Field kReal = {single, set_real<member, low, high>, get<member>};
template <auto member>
constexpr Field kBytes = {single, set_bytes<member>, get<member>};
template <auto member, int64_t low, int64_t high>
constexpr Field kSeconds = {single, set_seconds<member, low, high>, get<member>};
template <auto member>
constexpr Field kText = {single, set_text<member>, get<member>};
template <auto member>
constexpr Field kSomeText = {single, set_some_text<member>, get<member>};
template <auto member>
constexpr Field kTexts = {repeated, add_some_text<member>, get<member>};
template <auto member>
constexpr Field kFlag = {flag, set_flag<member>, get<member>};
template <auto member, auto parse>
constexpr Field kChoice = {single, set_choice<member, parse>, get<member>};

bool for_bench(const Options& options) {
  return options.config_for.value_or(options.command) == bench_engine;
}
// A count, and for bench a list of them.
constexpr Field kThreads = {
    comma_list,
    [](Options& o, std::string_view v) -> Status {
      return for_bench(o) ? set_counts<&Options::bench_threads, 1, 1024>(o, v)
                          : set_count<&Options::threads, 1, 1024>(o, v);
    },
    [](const Options& o) { return for_bench(o) ? as_json(o.bench_threads) : as_json(o.threads); }};
constexpr Field kMaxTokens = {single, set_count<&Options::max_tokens, 1, INT32_MAX>, [](const Options& o) {
                                return o.max_tokens == 0 ? Json() : Json(o.max_tokens);
                              }};

// ---- the options -----------------------------------------------------------------------------------------

const std::vector<OptionRow>& rows() {
  using enum OptionGroup;
  using enum ReadFrom;
  static const std::vector<Command> kServe = {serve};
  static const std::vector<Command> kRun = {run};
  static const std::vector<Command> kServeRun = {serve, run};
  static const std::vector<Command> kFetches = {serve, run, bench_engine};
  static const std::vector<Command> kConnects = {serve, run, pull, bench_engine};
  static const std::vector<Command> kRm = {rm};
  static const std::vector<Command> kShow = {show};
  static const std::vector<Command> kStop = {stop};
  static const std::vector<Command> kTokenize = {tokenize};
  static const std::vector<Command> kTemplate = {template_render};
  static const std::vector<Command> kBench = {bench_engine};
  static const std::vector<Command> kLoads = {serve, run, plan};
  static const std::vector<Command> kDoctor = {doctor};
  static const std::vector<Command> kPorts = {serve, doctor};
  static const std::vector<Command> kConfig = {config};
  static const std::vector<Command> kPrints = {
      run, ps,    pull,         rm,     list,   show,   plan, tokenize, template_render,
      ppl, score, bench_engine, doctor, config, version};
  static const std::vector<Command> kComputes = {serve, run, plan, ppl, score, bench_engine};
  static const std::vector<OptionRow> kRows = {
      {"--host", "ADDRESS", "127.0.0.1", "address to listen on; others than loopback need a key", server,
       kServe, kSomeText<&Options::host>, not_working_folder},
      {"--port", "PORT", "8000", "port to listen on; 0 picks a free one", server, kPorts,
       kWhole<&Options::port, 0, 65535>},
      {"--alias", "NAME", "none", "another name that requests may give as \"model\"; may be repeated", server,
       kServe, kTexts<&Options::aliases>},
      {"--chat-template", "FILE", "the model's own", "Jinja template for chats", server, kServeRun,
       kText<&Options::chat_template>},
      {"--api-key-file", "FILE", "none",
       "file with the key that clients must send (run: that the server asks for); mode 600", server,
       kServeRun, kText<&Options::api_key_file>, not_working_folder},
      {"--no-api-key", "", "off", "listen beyond loopback without a key: everyone may use this server",
       server, kServe, kFlag<&Options::no_api_key>, not_working_folder},
      {"--drain-timeout", "SECONDS", "30 s", "how long running requests may go on after SIGTERM or Ctrl-C",
       server, kServe, kSeconds<&Options::drain_timeout_s, 0, 86400>},

      {"--ctx", "TOKENS", "the model's, if it fits", "most tokens of a prompt and its answer", engine,
       kComputes, kCount<&Options::ctx>},
      {"--kv-memory", "BYTES", "from the memory plan", "memory for the KV pool, such as 512MiB or 1.5GiB",
       engine, kLoads, kBytes<&Options::kv_memory>, everywhere, "", "--kv-blocks"},
      {"--kv-blocks", "PAGES", "from the memory plan",
       "size of the KV pool in pages of 16 tokens, instead of --kv-memory", engine, kLoads,
       kCount<&Options::kv_blocks>, everywhere, "", "--kv-memory"},
      {"--kv-dtype", "TYPE", "bf16", "type of K and V in the pool: f32, f16, bf16 or q8_0", engine, kComputes,
       kChoice<&Options::kv_dtype, parse_kv_dtype>, everywhere, "f32 f16 bf16 q8_0"},
      {"--max-seqs", "COUNT", "32", "sequences that run at once", engine, kLoads,
       kCount<&Options::max_seqs, 1, 1024>},
      {"--max-queue", "COUNT", "256", "sequences that may wait beyond the running ones; more get 429", engine,
       kServe, kCount<&Options::max_queue, 0, 1000000>},
      {"--prefill-chunk", "TOKENS", "256", "most prompt tokens of one step", engine, kComputes,
       kCount<&Options::prefill_chunk, 1, 4096>},
      {"--no-prefix-cache", "", "off", "compute every prompt anew instead of reusing pages of equal prefixes",
       engine, kServeRun, kFlag<&Options::no_prefix_cache>},
      {"--threads", "COUNT", "the CPUs this process may use", "compute threads; a list for bench", engine,
       kComputes, kThreads},
      {"--isa", "LEVEL", "the best of this chip", "instruction set: portable, avx2, avx512 or avx512_bf16",
       engine, kComputes, kText<&Options::isa>, everywhere, "portable avx2 avx512 avx512_bf16"},

      {"--max-tokens", "TOKENS", "up to the context", "most tokens of an answer", answer, kRun, kMaxTokens},
      {"--temperature", "T", "the model's, else 1", "0 always takes the likeliest token", answer, kRun,
       kReal<&Options::temperature, 0.0, 100.0>},
      {"--top-p", "P", "the model's, else 1", "keep the likeliest tokens with this much probability", answer,
       kRun, kReal<&Options::top_p, 1e-9, 1.0>},
      {"--top-k", "K", "the model's, else 0 (off)", "keep the K likeliest tokens", answer, kRun,
       kWhole<&Options::top_k, 0, INT32_MAX>},
      {"--min-p", "P", "0 (off)", "keep tokens at least P times as likely as the likeliest", answer, kRun,
       kReal<&Options::min_p, 0.0, 1.0>},
      {"--seed", "NUMBER", "drawn and printed with --log-level debug", "the same seed gives the same answer",
       answer, kRun, kWhole<&Options::seed, 0, INT64_MAX>},
      {"--system", "TEXT", "none", "system message of the chat", answer, kRun, kText<&Options::system>},
      {"--no-stats", "", "off", "no line about speed and context after an answer", answer, kRun,
       kFlag<&Options::no_stats>},
      {"--no-server", "", "off", "load the model in this process even when a server has it", answer, kRun,
       kFlag<&Options::no_server>},

      {"--parse-special", "", "off", "read control tokens in the text as such", text, kTokenize,
       kFlag<&Options::parse_special>},
      {"--add-special", "", "off", "add the begin and end tokens that the model wants", text, kTokenize,
       kFlag<&Options::add_special>},

      {"--template", "FILE", "required", "a Jinja file, or a MODEL whose own template is taken", text,
       kTemplate, kText<&Options::template_source>, command_line},
      {"--input", "FILE", "required",
       "JSON with messages and, where there are some, tools, documents, kwargs; - reads stdin", text,
       kTemplate, kText<&Options::input>, command_line},

      {"--pp", "LIST", "none", "prompt lengths in tokens, such as 128,512", bench, kBench,
       kCounts<&Options::bench_pp, 1, 1 << 20>},
      {"--tg", "LIST", "128 when --pp is not given", "numbers of tokens to generate", bench, kBench,
       kCounts<&Options::bench_tg, 1, 1 << 20>},
      {"--depth", "LIST", "0", "tokens already in the KV pool when the measurement begins", bench, kBench,
       kCounts<&Options::bench_depth, 0, 1 << 20>},
      {"--batch", "LIST", "1", "sequences at once", bench, kBench, kCounts<&Options::bench_batch, 1, 1024>},
      {"--repeat", "COUNT", "5", "measurements of each test, after one to warm up", bench, kBench,
       kCount<&Options::bench_repeat, 1, 1000>},

      {"--verify", "", "off", "check the file's hash and structure instead", common, kShow,
       kFlag<&Options::verify>, command_line},
      {"-y", "", "off", "do not ask", common, kRm, kFlag<&Options::yes>, command_line},
      {"--explain", "CODE", "none", "say what an error code means, and do nothing else", common, kDoctor,
       kText<&Options::explain>, command_line},
      {"--pull", "", "off", "fetch MODEL first when it is not here, as `inferd pull` does", common, kFetches,
       kFlag<&Options::pull>, command_line},
      {"--offline", "", "off", "open no connection and look no name up; also HF_HUB_OFFLINE=1", common,
       kConnects, kFlag<&Options::offline>},
      {"--all", "", "off", "end every server of this user", common, kStop, kFlag<&Options::all>,
       command_line},
      {"--show-origin", "", "off", "print beside each value where it came from", common, kConfig,
       kFlag<&Options::show_origin>, command_line},
      {"--json", "", "off", "print JSON on stdout", common, kPrints, kFlag<&Options::json>, command_line},
      {"--log-level", "LEVEL", "info", "error, warn, info or debug; on stderr", common, kServeRun,
       kChoice<&Options::log_level, parse_log_level>, everywhere, "error warn info debug"},
      {"--log-format", "FORMAT", "text", "json, one object a line, or text; on stderr", common, kServe,
       kChoice<&Options::log_format, parse_log_format>, everywhere, "json text"},
  };
  return kRows;
}

}  // namespace

std::span<const CommandRow> command_table() {
  return kCommands;
}

std::span<const OptionRow> option_table() {
  return rows();
}

const CommandRow& command_row(Command command) {
  const auto row = std::ranges::find(kCommands, command, &CommandRow::command);
  INFERD_CHECK(row != kCommands.end(), "a command without a row");
  return *row;
}

const CommandRow* find_command(std::string_view name) {
  const auto row = std::ranges::find(kCommands, name, &CommandRow::name);
  return row == kCommands.end() ? nullptr : &*row;
}

std::span<const CommandGroup> command_groups() {
  using enum CommandGroup;
  static constexpr std::array<CommandGroup, 4> kAll = {use, look, measure, setup};
  return kAll;
}

std::string_view command_group_title(CommandGroup group) {
  static constexpr std::array<std::string_view, 4> kTitles = {"Use a model", "Look at models",
                                                              "Measure and check", "Set up"};
  return kTitles[static_cast<size_t>(group)];
}

std::span<const OptionGroup> option_groups() {
  using enum OptionGroup;
  static constexpr std::array<OptionGroup, 6> kAll = {server, engine, answer, text, bench, common};
  return kAll;
}

std::string_view option_group_title(OptionGroup group) {
  static constexpr std::array<std::string_view, 6> kTitles = {"Server", "Engine",      "Answer",
                                                              "Text",   "Measurement", "Common"};
  return kTitles[static_cast<size_t>(group)];
}

bool takes(Command command, const OptionRow& option) {
  return std::ranges::find(option.commands, command) != option.commands.end();
}

std::string option_key(const OptionRow& option) {
  std::string key(option.name.substr(option.name.find_first_not_of('-')));
  std::ranges::replace(key, '-', '_');
  return key;
}

std::string option_variable(const OptionRow& option) {
  std::string name = cat("INFERD_", option_key(option));
  for (char& c : name) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return name;
}

std::string usage_of(const CommandRow& command) {
  return cat("inferd ", command.name, command.arguments.empty() ? "" : " ", command.arguments);
}

Status set_option(const OptionRow& option, Options& options, std::string_view value) {
  if (!option.choices.empty()) {
    std::vector<std::string> names;
    for (const std::string_view name : split(option.choices, ' ')) names.emplace_back(name);
    if (std::ranges::find(names, value) == names.end()) {
      Error error = bad(cat("got ", printable(value), ", allowed are ", join(names, ", ")));
      if (const auto near = nearest_name(value, names)) error.fix = cat("did you mean ", *near, "?");
      return error;
    }
  }
  return option.field.set(options, value);
}

}  // namespace inferd
