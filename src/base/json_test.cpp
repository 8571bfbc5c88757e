#include "base/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace inferd {
namespace {

std::string refusal(std::string_view text) {
  const Result<Json> parsed = parse_json(text);
  return parsed.ok() ? "accepted" : cat(parsed.error().where, ": ", parsed.error().detail);
}

TEST(Json, keeps_order_kinds_and_exact_numbers) {
  const Json value =
      parse_json(R"({"b":1,"a":[1.5,-2,true,null,"x\u00e9\ud83d\ude00"],"c":9223372036854775807})").value();
  EXPECT_EQ(to_json(value), "{\"b\":1,\"a\":[1.5,-2,true,null,\"xé😀\"],\"c\":9223372036854775807}");
  EXPECT_EQ(value.find("b")->as_integer(), 1);
  EXPECT_EQ(value.find("missing"), nullptr);
  EXPECT_EQ(parse_json("9223372036854775808").value().kind(), Json::Kind::real);
}

TEST(Json, refuses_what_the_grammar_does_not_have) {
  for (const char* text :
       {"",          " ",        "{",        "[1,]",          "{\"a\":1,}",  "01",           "1.",
        "+1",        "NaN",      "Infinity", "-Infinity",     "nul",         "'a'",          "[1] 2",
        "{\"a\" 1}", "\"\x01\"", "\"\\x\"",  "\"\xff\"",      "\"\\ud800\"", "\"\\udc00x\"", "1e999",
        "{a:1}",     "//x\n1",   "[1 2]",    "\"unterminated"}) {
    EXPECT_FALSE(parse_json(text).ok()) << text;
  }
}

TEST(Json, refuses_duplicate_keys_depth_and_too_many_values_by_name) {
  EXPECT_EQ(refusal(R"({"a":1,"b":2,"a":3})"), ": duplicate key \"a\"");
  EXPECT_EQ(refusal(std::string(100000, '[')), ": nested deeper than 64");
  EXPECT_TRUE(parse_json(std::string(64, '[') + std::string(64, ']')).ok());
  EXPECT_FALSE(parse_json(std::string(65, '[') + std::string(65, ']')).ok());
  EXPECT_EQ(parse_json("[1,2,3]", {.values = 3}).error().detail, "more than 3 values");
  EXPECT_EQ(refusal("\xEF\xBB\xBF{}"), "byte 0: it starts with a byte order mark");
  EXPECT_EQ(refusal(std::string_view("{}\0{", 4)), "byte 2: it holds a NUL byte");
}

TEST(Json, an_error_names_the_byte) {
  EXPECT_TRUE(refusal("{\"a\": tru}").starts_with("byte 10: ")) << refusal("{\"a\": tru}");
}

TEST(Json, every_double_comes_back_as_it_was) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 100000; ++i) {
    const auto value = std::bit_cast<double>(random());
    if (!std::isfinite(value)) continue;
    std::string text;
    append_json_number(text, value);
    const double back = parse_json(text).value().as_number();
    ASSERT_EQ(std::bit_cast<uint64_t>(back), std::bit_cast<uint64_t>(value)) << text;
  }
  std::string text;
  append_json_number(text, 1.0);
  append_json_number(text, std::nan(""));
  EXPECT_EQ(text, "1.0null");
}

TEST(Json, strings_are_escaped_and_always_valid_utf8) {
  std::string text;
  append_json_string(text, std::string_view("a\"\\\n\r\t\x00\x1f\x7f é\xff\xf0\x9f", 15));
  EXPECT_EQ(text, "\"a\\\"\\\\\\n\\r\\t\\u0000\\u001f\x7f é��\"");
}

}  // namespace
}  // namespace inferd
