// The reader of inferd.toml: what it accepts means what Python's tomllib reads in it, and what it refuses it
// refuses with the place.
#include "config_file.h"

#include <gtest/gtest.h>

#include <random>

#include "base/json.h"
#include "support/process.h"

namespace inferd {
namespace {

const std::vector<std::string>& accepted_texts() {
  static const std::vector<std::string> kAll = {
      "",
      "\n\r\n  # only a comment",
      "port = 8080",
      "port=8080 # why\r\nhost = '::1'\r\n",
      "a = +1\nb = -0\nc = 1_000\nd = 3.25\ne = 1e3\nf = -2.5E-7\ng = 6_0.1_0e+2\n",
      "t = true\nf = false\n",
      "l = ['a', \"b\", 1, 2.5, true,]\nn = []\nm = [ # first\n  1,\n\n  2 # last\n]\n",
      "s = \"tab\\t quote\\\" back\\\\ line\\n \\u00e9 \\U0001F600\"\nr = 'C:\\no\\escape'\n",
      "[serve]\nport = 1\n[ run ] # table\nport = 2\nx-y_9 = 3\n[empty]\n",
      "[a]\n[b]\na = '\xc3\xa9 \xe2\x82\xac'\n",
  };
  return kAll;
}

std::string oracle_line(const std::string& text, const std::vector<ConfigEntry>& entries) {
  Json::Array array;
  for (const ConfigEntry& entry : entries) {
    Json::Array values;
    for (const std::string& value : entry.values) values.emplace_back(value);
    array.push_back(Json::Object{{"section", entry.section},
                                 {"key", entry.key},
                                 {"values", std::move(values)},
                                 {"array", entry.is_array},
                                 {"boolean", entry.is_boolean}});
  }
  return to_json(Json::Object{{"text", text}, {"entries", std::move(array)}}) + "\n";
}

TEST(ConfigFile, what_is_accepted_means_what_tomllib_reads) {
  std::string lines;
  int accepted = 0;
  for (const std::string& text : accepted_texts()) {
    const Result<std::vector<ConfigEntry>> entries = parse_config(text, "f");
    ASSERT_TRUE(entries.ok()) << text << entries.error().terminal_text();
    lines += oracle_line(text, *entries);
    ++accepted;
  }
  // Texts with a few characters changed, of which about half are still TOML.
  std::mt19937 random(20261130);
  const std::string alphabet = "ab=.[]{}'\"\\#\n\r, 1x_-+:eTtf0\t\x7f\xc3\xa9" + std::string(1, '\0');
  for (int i = 0; i < 20000; ++i) {
    std::string text = accepted_texts()[random() % accepted_texts().size()];
    const size_t changes = 1 + random() % 3;
    for (size_t change = 0; change < changes; ++change) {
      const size_t at = text.empty() ? 0 : random() % text.size();
      const char c = alphabet[random() % alphabet.size()];
      switch (random() % 3) {
        case 0:
          text.insert(text.begin() + static_cast<std::ptrdiff_t>(at), c);
          break;
        case 1:
          if (!text.empty()) text.erase(at, 1);
          break;
        default:
          if (!text.empty()) text[at] = c;
      }
    }
    const Result<std::vector<ConfigEntry>> entries = parse_config(text, "f");
    if (!entries.ok()) {
      EXPECT_EQ(entries.error().code, Code::config_syntax);
      EXPECT_TRUE(entries.error().where.starts_with("f:")) << entries.error().where;
      continue;
    }
    lines += oracle_line(text, *entries);
    ++accepted;
  }
  EXPECT_GT(accepted, 2000);
  const test::Finished oracle = test::run_process(
      "/usr/bin/python3", {"-I", INFERD_SOURCE_DIR "/tools/toml_reference.py"}, {.stdin_text = lines});
  EXPECT_EQ(oracle.err, "");
  EXPECT_EQ(oracle.out, cat(accepted, " compared\n"));
}

TEST(ConfigFile, a_unit_without_quotes_is_answered_with_how_to_write_it) {
  EXPECT_EQ(parse_config("ctx = 1.5GiB", "f").error().fix,
            "put a value with a unit in quotes: \"4k\", \"1.5GiB\", \"30s\"");
}

TEST(ConfigFile, what_is_not_read_is_named_with_its_place) {
  const std::vector<std::pair<std::string, std::string>> kRefused = {
      {"port 1", "expected =, got \"1\" at f:1:6"},
      {"port = ", "expected a string, a number, true, false or an array, the file ends at f:1:8"},
      {"port =\n", "expected a string, a number, true, false or an array, the line ends at f:1:7"},
      {"port = 1 2", "expected the end of the line, got \"2\" at f:1:10"},
      {"\n\n  = 1", "expected a key, a [table] or a comment, got \"=\" at f:3:3"},
      {"a = 1\na = 2", "a is set for the second time at f:2:1"},
      {"[a]\n[b]\n[a]", "[a] stands here for the second time at f:3:2"},
      {"a = 1\n[a]", "a is a key already at f:2:2"},
      {"[serve\n", "expected ], the line ends at f:1:7"},
      {"[\n", "expected a name, the line ends at f:1:2"},
      {"[]", "expected a name, got \"]\" at f:1:2"},
      {"[[a]]", "an array of tables is not read here at f:1:1"},
      {"[a.b]", "a name with dots is not read here at f:1:2"},
      {"a.b = 1", "a name with dots is not read here at f:1:1"},
      {"'a' = 1", "a key in quotes is not read here at f:1:1"},
      {"a = {b = 1}", "a table in braces is not read here at f:1:5"},
      {"a = [[1]]", "an array in an array is not read here at f:1:6"},
      {"a = [1 2]", "expected , or ], got \"2\" at f:1:8"},
      {"a = [1,", "expected a string, a number, true, false or an array, the file ends at f:1:8"},
      {"a = \"\"\"x\"\"\"", "a string of several lines is not read here at f:1:5"},
      {"a = 1979-05-27", "a date or time is not read here at f:1:5"},
      {"a = 07:32:00", "a date or time is not read here at f:1:5"},
      {"a = 0x10", "a number that is not decimal is not read here at f:1:5"},
      {"a = -inf", "a number without end is not read here at f:1:5"},
      {"a = 010", "a number does not begin with 0 at f:1:5"},
      {"a = 1__0", "expected a digit after _, got \"_\" at f:1:7"},
      {"a = 1.", "expected a digit, the file ends at f:1:7"},
      {"a = 4k", "expected the end of the number, got \"k\" at f:1:6"},
      {"a = truely", "expected the end of the line, got \"l\" at f:1:9"},
      {"a = 'b\n'", "expected the closing ', the line ends at f:1:7"},
      {"a = \"b", "expected the closing \", the file ends at f:1:7"},
      {"a = \"\\x41\"", "expected one of \\b \\t \\n \\f \\r \\\" \\\\ \\uXXXX \\UXXXXXXXX at f:1:6"},
      {"a = \"\\u00g0\"", "expected a hexadecimal digit, got \"g\" at f:1:10"},
      {"a = \"\\ud800\"", "this is no character at f:1:6"},
      {"a = \"\\u0000\"", "a NUL character is not read here at f:1:6"},
      {"\xc3\xa9 = 1", "expected a key, a [table] or a comment, got \"\\xc3\\xa9\" at f:1:1"},
      {"a = '\xc3\xa9' x", "expected the end of the line, got \"x\" at f:1:9"},  // columns are characters
      {"a = '\xff'", "it is not UTF-8 at f:1:6"},
      {"# \x01", "expected no control character in a comment, got \"\\x01\" at f:1:3"},
      {"a = 1\r", "expected the end of the line, got \"\\x0d\" at f:1:6"},
      {"\xef\xbb\xbf"
       "a = 1",
       "expected a key, a [table] or a comment, got \"\\xef\\xbb\\xbf\" at f:1:1"},
  };
  for (const auto& [text, error] : kRefused) {
    const Result<std::vector<ConfigEntry>> entries = parse_config(text, "f");
    ASSERT_FALSE(entries.ok()) << text;
    EXPECT_EQ(cat(entries.error().detail, " at ", entries.error().where), error) << text;
  }
}

}  // namespace
}  // namespace inferd
