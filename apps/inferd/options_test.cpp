#include "options.h"

#include <gtest/gtest.h>

#include "help_text.h"
#include "option_table.h"
#include "option_values.h"

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

TEST(Options, of_an_option_that_was_given_twice_the_last_one_counts) {
  const Options options = parse({"serve", "--port", "1", "--port", "2"}).value();
  EXPECT_EQ(options.port, 2);
}

TEST(Options, a_flag_can_be_turned_off_again) {
  EXPECT_FALSE(parse({"serve", "--no-prefix-cache=false"}).value().no_prefix_cache);
  EXPECT_TRUE(parse({"serve", "--no-prefix-cache=true"}).value().no_prefix_cache);
}

TEST(Options, without_arguments_there_is_help) {
  EXPECT_EQ(parse({}).value().command, Command::help);
  EXPECT_TRUE(parse({}).value().brief_help);
  EXPECT_EQ(parse({"--help"}).value().command, Command::help);
  EXPECT_FALSE(parse({"--help"}).value().brief_help);
  EXPECT_EQ(parse({"serve", "--port", "1", "-h"}).value().help_for, Command::serve);
  EXPECT_EQ(parse({"help", "bench"}).value().help_for, Command::bench_engine);
}

TEST(Options, typing_errors_name_the_nearest) {
  const Error command = refuse({"srve"});
  EXPECT_EQ(refuse({"ls"}).fix, "did you mean `inferd list`? `inferd --help` lists the commands");
  EXPECT_EQ(refuse({"verify", "smollm2"}).fix,
            "did you mean `inferd show MODEL --verify`? `inferd --help` lists the commands");
  EXPECT_EQ(command.code, Code::arg_command);
  EXPECT_TRUE(command.fix.starts_with("did you mean `inferd serve`?")) << command.fix;
  const Error option = refuse({"serve", "--prot", "1"});
  EXPECT_EQ(option.code, Code::arg_option);
  EXPECT_TRUE(option.fix.starts_with("did you mean --port?")) << option.fix;
  EXPECT_EQ(refuse({"serve", "--temperature", "1"}).fix, "--temperature belongs to: run");
  EXPECT_EQ(refuse({"serve", "--kv-dtype", "q8"}).fix,
            "--kv-dtype: type of K and V in the pool: f32, f16, bf16 or q8_0");
  EXPECT_EQ(refuse({"serve", "--kv-dtype", "bf61"}).fix, "did you mean bf16?");
  EXPECT_EQ(refuse({"serve", "--isa", "avx51"}).fix, "did you mean avx512?");
  EXPECT_TRUE(refuse({"help", "sreve"}).fix.starts_with("did you mean `inferd serve`?"));
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
  EXPECT_EQ(
      refuse({"serve", "--drain-timeout", "1.5s"}).detail,
      "--drain-timeout: got \"1.5s\", allowed are whole seconds from 0 to 86,400, also as 30s, 5m or 1h");
  EXPECT_EQ(refuse({"serve", "--no-prefix-cache=maybe"}).detail,
            "--no-prefix-cache: got \"maybe\", allowed are true and false");
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
            "--log-format: got \"xml\", allowed are json, text");
}

TEST(Options, everything_behind_two_dashes_is_an_argument) {
  EXPECT_EQ(parse({"tokenize", "m", "--", "--parse-special"}).value().arguments,
            (std::vector<std::string>{"m", "--parse-special"}));
  EXPECT_EQ(parse({"tokenize", "m", "-"}).value().arguments, (std::vector<std::string>{"m", "-"}));
}

TEST(Options, lists_are_for_benchmarks) {
  const Options options =
      parse({"bench", "engine", "m", "--threads", "1,2", "--pp", "128,1k", "--json"}).value();
  EXPECT_EQ(options.arguments, std::vector<std::string>{"m"});
  EXPECT_EQ(options.bench_threads, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(options.bench_pp, (std::vector<int32_t>{128, 1024}));
  EXPECT_TRUE(options.bench_tg.empty());
  EXPECT_EQ(parse({"bench", "engine", "m"}).value().bench_tg, std::vector<int32_t>{128});
  EXPECT_EQ(refuse({"serve", "--threads", "1,2"}).code, Code::arg_value);
}

TEST(Options, config_takes_the_options_of_the_command_it_is_asked_for) {
  const Options options = parse({"config", "serve", "--port", "9000", "--show-origin"}).value();
  EXPECT_EQ(options.config_for, Command::serve);
  EXPECT_EQ(options.port, 9000);
  EXPECT_TRUE(options.show_origin);
  EXPECT_EQ(parse({"config", "bench", "--threads", "1,2"}).value().bench_threads,
            (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(refuse({"config", "--port", "9000"}).code, Code::arg_option);
  EXPECT_EQ(refuse({"config", "sevre"}).code, Code::arg_command);
}

TEST(Options, the_default_that_people_read_is_the_one_that_holds) {
  for (const OptionRow& option : option_table()) {
    Options options;
    options.command = option.commands.front();
    const Json value = option.field.get(options);
    const std::string read(option.default_text);
    if (value.is_null()) continue;
    const std::string held = value.is_bool()     ? (value.as_bool() ? "on" : "off")
                             : value.is_array()  ? to_json(value.as_array().front())
                             : value.is_string() ? value.as_string()
                                                 : to_json(value);
    EXPECT_EQ(read.substr(0, read.find(' ')), held) << option.name;
  }
}

TEST(Options, what_excludes_each_other_says_so_on_both_sides) {
  for (const OptionRow& option : option_table()) {
    if (option.excludes.empty()) continue;
    bool mutual = false;
    for (const OptionRow& other : option_table()) {
      mutual = mutual || (other.name == option.excludes && other.excludes == option.name);
    }
    EXPECT_TRUE(mutual) << option.name;
  }
}

TEST(Options, every_choice_can_be_set) {
  for (const OptionRow& option : option_table()) {
    if (option.choices.empty()) continue;
    for (const std::string_view choice : split(option.choices, ' ')) {
      Options options;
      ASSERT_TRUE(set_option(option, options, choice).ok()) << option.name << " " << choice;
      EXPECT_EQ(option.field.get(options), Json(choice)) << option.name;
    }
  }
}

TEST(Options, counts) {
  EXPECT_EQ(parse_count("4096"), 4096);
  EXPECT_EQ(parse_count("4k"), 4096);
  EXPECT_EQ(parse_count("128K"), 131072);
  EXPECT_EQ(parse_count("1.5k"), 1536);
  EXPECT_EQ(parse_count("2M"), 2097152);
  for (const char* text : {"", "k", "-1k", "0.3k", "4kk", "4 kiB", "1e99M", "nank"})
    EXPECT_FALSE(parse_count(text)) << text;
}

TEST(Options, sizes) {
  EXPECT_EQ(parse_bytes("4096"), 4096);
  EXPECT_EQ(parse_bytes("2GB"), 2000000000);
  EXPECT_EQ(parse_bytes("0.5 MiB"), 524288);
  for (const char* text : {"", "MiB", "-1", "1e30GiB", "1 XB", "nanB", "2G"})
    EXPECT_FALSE(parse_bytes(text)) << text;
}

TEST(Options, times) {
  EXPECT_EQ(parse_seconds("30"), 30);
  EXPECT_EQ(parse_seconds("30s"), 30);
  EXPECT_EQ(parse_seconds("5m"), 300);
  EXPECT_EQ(parse_seconds("1.5h"), 5400);
  for (const char* text : {"", "s", "-1s", "0.5s", "5 weeks", "infs"})
    EXPECT_FALSE(parse_seconds(text)) << text;
}

TEST(Help, fits_any_terminal_from_40_columns_up) {
  // Examples are printed as they are typed; everything else is wrapped.
  for (const int columns : {1, 40, 57, 69, 70, 80, 100, 1000}) {
    const size_t width = columns < 40 ? 40 : columns > 100 ? 100 : static_cast<size_t>(columns);
    std::vector<std::string> texts = {brief_help(columns), help_text(columns)};
    for (const CommandRow& row : command_table()) texts.push_back(help_text(row.command, columns));
    for (const std::string& text : texts) {
      for (const std::string_view line : split(text, '\n')) {
        const bool example = line.starts_with("  inferd ") || line.find(" | ") != std::string_view::npos ||
                             line.starts_with("  source ");
        EXPECT_TRUE(line.size() <= width || example) << columns << ": " << line;
        EXPECT_FALSE(line.ends_with(' ')) << line;
      }
    }
  }
}

TEST(Help, words_are_wrapped_between_them) {
  EXPECT_EQ(wrapped("one two three", 2, 9), "  one two\n  three\n");
  EXPECT_EQ(wrapped("incomprehensible word", 1, 9), " incomprehensible\n word\n");
}

}  // namespace
}  // namespace inferd
