// The command line: one visible table of commands and options makes the parser, the help texts and the
// checks.
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

enum class Command { serve, run, pull, list, show, plan, tokenize, bench_engine, doctor, version, help };

// Everything that can be given; what is unset is chosen later and printed.
struct Options {
  Command command = Command::help;
  std::optional<Command> help_for;     // `inferd COMMAND --help`
  std::vector<std::string> arguments;  // positional: MODEL, prompt

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

  // tokenize
  bool parse_special = false;
  bool add_special = false;

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

  LogLevel log_level = LogLevel::info;
  bool json = false;
};

// E-ARG-001 unknown command, -002 unknown option, -003 bad value, -004 something missing; with the nearest
// name.
Result<Options> parse_options(std::span<const std::string> arguments);

std::string help_text();                 // of the program
std::string help_text(Command command);  // of one command: usage, examples, options with default and unit

// "4096", "512MiB", "1.5GiB", "2GB": bytes. nullopt: not a size.
std::optional<int64_t> parse_bytes(std::string_view text);

}  // namespace inferd
