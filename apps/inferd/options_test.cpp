#include "options.h"

#include <gtest/gtest.h>

namespace inferd {
namespace {

Result<Options> parse(std::vector<std::string> arguments) {
  return parse_options(arguments);
}

Error refuse(std::vector<std::string> arguments) {
  const Result<Options> options = parse(std::move(arguments));
  EXPECT_FALSE(options.ok());
  return options.ok() ? Error{} : options.error();
}

TEST(Options, values_come_behind_a_space_or_an_equals_sign) {
  const Options options = parse({"serve", "model.gguf", "--port", "0", "--ctx=4096", "--kv-memory", "1.5GiB",
                                 "--alias", "a", "--alias=b", "--no-prefix-cache", "--drain-timeout", "5s"})
                              .value();
  EXPECT_EQ(options.command, Command::serve);
  EXPECT_EQ(options.arguments, std::vector<std::string>{"model.gguf"});
  EXPECT_EQ(options.port, 0);
  EXPECT_EQ(options.ctx, 4096);
  EXPECT_EQ(options.kv_memory, int64_t{1536} << 20);
  EXPECT_EQ(options.aliases, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(options.no_prefix_cache);
  EXPECT_EQ(options.drain_timeout_s, 5);
}

TEST(Options, without_arguments_there_is_help) {
  EXPECT_EQ(parse({}).value().command, Command::help);
  EXPECT_EQ(parse({"--help"}).value().command, Command::help);
  EXPECT_EQ(parse({"serve", "--port", "1", "-h"}).value().help_for, Command::serve);
}

TEST(Options, typing_errors_name_the_nearest) {
  const Error command = refuse({"srve"});
  EXPECT_EQ(command.code, Code::arg_command);
  EXPECT_TRUE(command.fix.starts_with("did you mean `inferd serve`?")) << command.fix;
  const Error option = refuse({"serve", "--prot", "1"});
  EXPECT_EQ(option.code, Code::arg_option);
  EXPECT_TRUE(option.fix.starts_with("did you mean --port?")) << option.fix;
  EXPECT_EQ(refuse({"serve", "--temperature", "1"}).fix, "--temperature belongs to: run");
}

TEST(Options, a_bad_value_says_what_was_given_and_what_is_allowed) {
  EXPECT_EQ(refuse({"serve", "--port", "70000"}).detail,
            "--port: got \"70000\", allowed are whole numbers from 0 to 65,535");
  EXPECT_EQ(refuse({"serve", "--kv-dtype", "int4"}).detail,
            "--kv-dtype: got \"int4\", allowed are f32, f16, bf16, q8_0");
  EXPECT_EQ(refuse({"serve", "--kv-memory", "lots"}).detail,
            "--kv-memory: got \"lots\", allowed are sizes such as 512MiB, 1.5GiB or 2GB");
  EXPECT_EQ(refuse({"run", "m", "--temperature", "nan"}).detail,
            "--temperature: got \"nan\", allowed are numbers from 0 to 100");
  EXPECT_EQ(refuse({"serve", "--no-prefix-cache=1"}).detail, "--no-prefix-cache takes no value, got \"1\"");
  EXPECT_EQ(refuse({"serve", "--port"}).detail, "--port needs PORT");
  EXPECT_EQ(refuse({"serve", "a", "b"}).code, Code::arg_value);
  EXPECT_EQ(refuse({"run"}).code, Code::arg_missing);
  EXPECT_EQ(refuse({"serve", "--kv-memory", "1GiB", "--kv-blocks", "8"}).code, Code::arg_value);
  EXPECT_EQ(refuse({"bench", "serve", "m"}).detail, "unknown benchmark \"serve\", there is: engine");
}

TEST(Options, what_contradicts_itself_is_refused) {
  EXPECT_EQ(refuse({"run", "m", "--json"}).detail, "--json needs a PROMPT");
  EXPECT_TRUE(parse({"run", "m", "hi", "--json"}).value().json);
  EXPECT_EQ(refuse({"stop", "--all", "8000"}).detail, "--all and \"8000\" say two things");
  EXPECT_TRUE(parse({"stop", "--all"}).value().all);
  EXPECT_EQ(refuse({"serve", "--log-format", "xml"}).detail,
            "--log-format: got \"xml\", allowed are text, json");
}

TEST(Options, everything_behind_two_dashes_is_an_argument) {
  EXPECT_EQ(parse({"tokenize", "m", "--", "--parse-special"}).value().arguments,
            (std::vector<std::string>{"m", "--parse-special"}));
  EXPECT_EQ(parse({"tokenize", "m", "-"}).value().arguments, (std::vector<std::string>{"m", "-"}));
}

TEST(Options, lists_are_for_benchmarks) {
  const Options options =
      parse({"bench", "engine", "m", "--threads", "1,2", "--pp", "128,512", "--json"}).value();
  EXPECT_EQ(options.arguments, std::vector<std::string>{"m"});
  EXPECT_EQ(options.bench_threads, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(options.bench_pp, (std::vector<int32_t>{128, 512}));
  EXPECT_TRUE(options.bench_tg.empty());
  EXPECT_EQ(parse({"bench", "engine", "m"}).value().bench_tg, std::vector<int32_t>{128});
  EXPECT_EQ(refuse({"serve", "--threads", "1,2"}).code, Code::arg_value);
}

TEST(Options, every_fixed_name_is_in_the_help_with_a_default) {
  const std::string help = help_text(Command::serve);
  for (const std::string name :
       {"--host", "--port", "--ctx", "--kv-memory", "--kv-blocks", "--kv-dtype", "--max-seqs", "--max-queue",
        "--prefill-chunk", "--no-prefix-cache", "--threads", "--isa", "--alias", "--chat-template",
        "--api-key-file", "--drain-timeout", "--log-level"}) {
    const size_t at = help.find("  " + name);
    ASSERT_NE(at, std::string::npos) << name;
    EXPECT_NE(help.substr(at, help.find('\n', at) - at).find('['), std::string::npos) << name;
  }
}

TEST(Options, sizes) {
  EXPECT_EQ(parse_bytes("4096"), 4096);
  EXPECT_EQ(parse_bytes("2GB"), 2000000000);
  EXPECT_EQ(parse_bytes("0.5 MiB"), 524288);
  for (const char* text : {"", "MiB", "-1", "1e30GiB", "1 XB", "nanB"})
    EXPECT_FALSE(parse_bytes(text)) << text;
}

}  // namespace
}  // namespace inferd
