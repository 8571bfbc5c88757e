// Environment and configuration files: which value wins, and what is refused with which words.
#include "configuration.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace inferd {
namespace {

// A working folder and a user's configuration, removed with the object.
struct Places {
  Places() {
    std::string name = std::filesystem::temp_directory_path() / "inferd-XXXXXX";
    path = ::mkdtemp(name.data());
    places.folder_file = path + "/inferd.toml";
    places.user_file = path + "/user/inferd/inferd.toml";
    std::filesystem::create_directories(path + "/user/inferd");
  }
  ~Places() { std::filesystem::remove_all(path); }
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;

  Places& folder(const std::string& text) {
    std::ofstream(places.folder_file) << text;
    return *this;
  }
  Places& user(const std::string& text) {
    std::ofstream(places.user_file) << text;
    return *this;
  }
  Places& variables(std::vector<std::string> all) {
    places.environment = std::move(all);
    return *this;
  }
  Options parse(const std::vector<std::string>& arguments) const {
    Result<Options> options = parse_options(arguments, places);
    EXPECT_TRUE(options.ok()) << (options.ok() ? "" : options.error().terminal_text());
    return options.ok() ? std::move(options).value() : Options{};
  }
  // The terminal text of the error, without the scratch folder's name.
  std::string refuse(const std::vector<std::string>& arguments = {"serve"}) const {
    const Result<Options> options = parse_options(arguments, places);
    if (options.ok()) return "no error";
    std::string text = options.error().terminal_text();
    for (size_t at = text.find(path + "/"); at != std::string::npos; at = text.find(path + "/")) {
      text.erase(at, path.size() + 1);
    }
    return text;
  }

  std::string path;
  ConfigurationPlaces places;
};

TEST(Configuration,
     a_flag_wins_over_the_environment_that_over_the_folder_that_over_the_user_that_over_defaults) {
  Places p;
  EXPECT_EQ(p.parse({"serve"}).port, 8000);
  p.user("port = 1\n");
  EXPECT_EQ(p.parse({"serve"}).port, 1);
  p.folder("port = 2\n");
  EXPECT_EQ(p.parse({"serve"}).port, 2);
  p.variables({"INFERD_PORT=3"});
  EXPECT_EQ(p.parse({"serve"}).port, 3);
  EXPECT_EQ(p.parse({"serve", "--port", "4"}).port, 4);
}

TEST(Configuration, a_higher_place_replaces_a_list_and_does_not_add_to_it) {
  Places p;
  p.user("alias = ['a', 'b']\n");
  EXPECT_EQ(p.parse({"serve"}).aliases, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(p.variables({"INFERD_ALIAS=c,d"}).parse({"serve"}).aliases, (std::vector<std::string>{"c", "d"}));
  EXPECT_EQ(p.parse({"serve", "--alias", "e"}).aliases, std::vector<std::string>{"e"});
}

TEST(Configuration, a_table_is_for_its_command_and_wins_inside_its_file_only) {
  Places p;
  p.user("ctx = 1024\n[run]\nctx = '4k'\n");
  EXPECT_EQ(p.parse({"serve"}).ctx, 1024);
  EXPECT_EQ(p.parse({"run", "m"}).ctx, 4096);
  p.folder("ctx = 2048\n");
  EXPECT_EQ(p.parse({"run", "m"}).ctx, 2048);
}

TEST(Configuration, of_two_ways_to_say_one_thing_the_higher_place_counts) {
  Places p;
  p.folder("kv_memory = '1GiB'\n");
  const Options options = p.parse({"serve", "--kv-blocks", "8"});
  EXPECT_EQ(options.kv_blocks, 8);
  EXPECT_FALSE(options.kv_memory.has_value());
  p.folder("kv_memory = '1GiB'\nkv_blocks = 8\n");
  EXPECT_EQ(p.refuse(),
            "error[E-ARG-003]: bad option value: --kv-memory and --kv-blocks say the same in two ways\n"
            "  at inferd.toml:1 and inferd.toml:2\n"
            "  fix: give one of them\n");
}

TEST(Configuration, a_flag_of_a_file_is_turned_off_on_the_command_line) {
  Places p;
  p.folder("no_prefix_cache = true\n");
  EXPECT_TRUE(p.parse({"serve"}).no_prefix_cache);
  EXPECT_FALSE(p.parse({"serve", "--no-prefix-cache=false"}).no_prefix_cache);
  EXPECT_FALSE(p.variables({"INFERD_NO_PREFIX_CACHE=0"}).parse({"serve"}).no_prefix_cache);
}

TEST(Configuration, lists_are_arrays_and_a_value_of_bench_alone_leaves_the_others_be) {
  Places p;
  p.folder("[bench]\nthreads = [1, 2]\npp = '128,512'\ndepth = [0, '1k']\n");
  const Options bench = p.parse({"bench", "engine", "m"});
  EXPECT_EQ(bench.bench_threads, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(bench.bench_pp, (std::vector<int32_t>{128, 512}));
  EXPECT_EQ(bench.bench_depth, (std::vector<int32_t>{0, 1024}));
  EXPECT_FALSE(p.parse({"serve"}).threads.has_value());
}

TEST(Configuration, a_relative_file_lies_beside_the_file_that_names_it) {
  Places p;
  p.user("api_key_file = 'key'\nchat_template = '/abs.jinja'\n");
  const Options options = p.parse({"serve"});
  EXPECT_EQ(options.api_key_file, p.path + "/user/inferd/key");
  EXPECT_EQ(options.chat_template, "/abs.jinja");
}

TEST(Configuration, an_unknown_key_is_refused_with_its_line_and_the_nearest_name) {
  Places p;
  EXPECT_EQ(p.folder("# ports\n\n  prot = 1\n").refuse(),
            "error[E-CFG-002]: unknown configuration key: \"prot\"\n"
            "  at inferd.toml:3:3\n"
            "  fix: did you mean port? `inferd config` lists the keys\n");
  EXPECT_EQ(p.folder("kv-dtype = 'f16'\n").refuse(),
            "error[E-CFG-002]: unknown configuration key: \"kv-dtype\"\n"
            "  at inferd.toml:1:1\n"
            "  fix: did you mean kv_dtype? `inferd config` lists the keys\n");
  EXPECT_EQ(p.folder("[sevre]\nport = 1\n").refuse(),
            "error[E-CFG-002]: unknown configuration key: table [sevre]\n"
            "  at inferd.toml:1:2\n"
            "  fix: did you mean [serve]? a table is named after a command: serve, run, pull, plan, "
            "tokenize, ppl, score, bench, "
            "doctor\n");
  EXPECT_NE(p.folder("[sevre]\n").refuse().find("did you mean [serve]?"), std::string::npos);
  EXPECT_EQ(p.folder("[run]\nport = 1\n").refuse(),
            "error[E-CFG-002]: unknown configuration key: port in [run]\n"
            "  at inferd.toml:2:1\n"
            "  fix: port belongs to: serve, doctor\n");
  EXPECT_EQ(p.folder("json = true\n").refuse(),
            "error[E-CFG-002]: unknown configuration key: \"json\"\n"
            "  at inferd.toml:1:1\n"
            "  fix: --json is for the command line alone\n");
}

TEST(Configuration, a_bad_value_is_refused_also_when_the_command_has_no_use_for_it) {
  Places p;
  EXPECT_EQ(
      p.folder("[run]\ntemperature = 200\n").refuse(),
      "error[E-CFG-003]: bad configuration value: temperature: got \"200\", allowed are numbers from 0 to "
      "100\n"
      "  at inferd.toml:2:1\n"
      "  fix: temperature: 0 always takes the likeliest token\n");
  EXPECT_EQ(p.folder("kv_dtype = 'bf61'\n").refuse(),
            "error[E-CFG-003]: bad configuration value: kv_dtype: got \"bf61\", allowed are f32, f16, bf16, "
            "q8_0\n"
            "  at inferd.toml:1:1\n"
            "  fix: did you mean bf16?\n");
  for (const auto& [line, got] : std::vector<std::pair<std::string, std::string>>{
           {"port = 1.0", "port: got \"1.0\", allowed are whole"},
           {"port = true", "port: got \"true\", allowed is a value"},
           {"port = [1]", "port: got an array, allowed is one value"},
           {"alias = []", "alias: got an empty array, allowed is at least one value"},
           {"no_prefix_cache = 'yes'", "no_prefix_cache: got \"yes\", allowed are true and false"},
           {"temperature = 1e999", "temperature: got \"1e999\", allowed are numbers"},
           {"seed = 99999999999999999999", "seed: got \"99999999999999999999\", allowed are whole"}}) {
    const std::string text = p.folder(line).refuse();
    EXPECT_NE(text.find(": " + got), std::string::npos) << line << "\n" << text;
    EXPECT_NE(text.find("  at inferd.toml:1:"), std::string::npos) << line << "\n" << text;
  }
}

TEST(Configuration, a_value_that_is_good_for_another_command_only_is_refused_where_it_is_used) {
  Places p;
  p.folder("threads = [1, 2]\n");
  EXPECT_EQ(p.parse({"bench", "engine", "m"}).bench_threads, (std::vector<int32_t>{1, 2}));
  EXPECT_NE(p.refuse().find("threads: got \"1,2\", allowed are whole numbers from 1 to 1,024"),
            std::string::npos);
}

TEST(Configuration, a_file_that_is_no_toml_is_refused_with_the_place) {
  Places p;
  for (const auto& [text, place] :
       std::vector<std::pair<std::string, std::string>>{{"port = 1\nport = 2\n", "inferd.toml:2:1\n"},
                                                        {"port = \n", "inferd.toml:1:8\n"},
                                                        {"port = 1979-05-27\n", "inferd.toml:1:8\n"},
                                                        {std::string("a\0b = 1\n", 8), "inferd.toml:1:2\n"},
                                                        {std::string(60000, '['), "inferd.toml:1:1\n"}}) {
    const std::string error = p.folder(text).refuse();
    EXPECT_TRUE(error.starts_with("error[E-CFG-001]: the configuration file cannot be read: ")) << error;
    EXPECT_NE(error.find("  at " + place), std::string::npos) << error;
  }
  EXPECT_NE(p.folder(std::string((64 << 10) + 1, '#')).refuse().find("at most 64 KiB is read"),
            std::string::npos);
}

TEST(Configuration, the_working_folder_may_not_open_the_server) {
  Places p;
  for (const std::string line : {"host = '0.0.0.0'", "no_api_key = true", "api_key_file = 'key'"}) {
    for (const std::string table : {"", "[serve]\n"}) {
      const std::string error = p.folder(table + line).refuse();
      EXPECT_TRUE(error.starts_with("error[E-CFG-004]: not read from the working folder: ")) << error;
    }
  }
  std::filesystem::remove(p.places.folder_file);
  EXPECT_EQ(p.user("host = '0.0.0.0'\nno_api_key = true\n").parse({"serve"}).host, "0.0.0.0");
  EXPECT_EQ(p.variables({"INFERD_HOST=::1"}).parse({"serve"}).host, "::1");
  // Started inside of the user's own folder, its file is still the user's.
  p.places.folder_file = p.path + "/user/inferd/../inferd/inferd.toml";
  EXPECT_TRUE(p.parse({"serve"}).no_api_key);
}

TEST(Configuration, variables_are_checked_as_files_are) {
  Places p;
  EXPECT_EQ(p.variables({"HOME=/x", "INFERD_PROT=1"}).refuse(),
            "error[E-CFG-002]: unknown configuration key: \"INFERD_PROT\"\n"
            "  at environment variable INFERD_PROT\n"
            "  fix: did you mean INFERD_PORT? else unset it\n");
  EXPECT_EQ(p.variables({"INFERD_PORT=tcp://10.0.0.1:80"}).refuse(),
            "error[E-CFG-003]: bad configuration value: INFERD_PORT: got \"tcp://10.0.0.1:80\", allowed are "
            "whole numbers from 0 to 65,535\n"
            "  at environment variable INFERD_PORT\n"
            "  fix: INFERD_PORT: port to listen on; 0 picks a free one\n");
  EXPECT_EQ(p.variables({"INFERD_PORT="}).parse({"serve"}).port, 8000);  // emptied is unset
  EXPECT_NE(p.variables({"INFERD_JSON=1"}).refuse(), "no error");
}

TEST(Configuration, what_a_command_has_no_use_for_cannot_stop_it) {
  Places p;
  p.folder("this is no toml");
  EXPECT_EQ(p.parse({"version", "--json"}).command, Command::version);
  EXPECT_EQ(p.parse({"serve", "--help"}).help_for, Command::serve);
  EXPECT_EQ(p.parse({"complete", "serve", "--p"}).command, Command::complete);
}

TEST(Configuration, files_that_are_not_there_are_none_and_one_that_cannot_be_read_is_an_error) {
  Places p;
  EXPECT_EQ(p.parse({"serve"}).configuration.files.size(), 0U);
  std::filesystem::create_directory(p.places.folder_file);
  EXPECT_EQ(p.refuse().substr(0, 50), "error[E-IO-003]: cannot read file: it is a folder\n");
  std::filesystem::remove(p.places.folder_file);
  ASSERT_EQ(::mkfifo(p.places.folder_file.c_str(), 0600), 0);
  EXPECT_EQ(p.refuse().substr(0, 60), "error[E-IO-003]: cannot read file: it is not a regular file\n");
  EXPECT_EQ(user_config_path("/c", "/h"), "/c/inferd/inferd.toml");
  EXPECT_EQ(user_config_path("relative", "/h"), "/h/.config/inferd/inferd.toml");
  EXPECT_EQ(user_config_path("", ""), "");
}

TEST(Configuration, what_decided_is_known_with_its_line) {
  Places p;
  p.user("\nport = 1\n");
  const Options options = p.parse({"serve", "--ctx", "512"});
  ASSERT_EQ(options.configuration.settings.size(), 2U);
  EXPECT_EQ(options.configuration.settings[0].origin.text(), p.places.user_file + ":2");
  EXPECT_EQ(options.configuration.settings[1].origin.text(), "--ctx");
}

}  // namespace
}  // namespace inferd
