#include "base/json_pull.h"

#include <gtest/gtest.h>

#include <random>

#include "base/json.h"

namespace inferd {
namespace {

TEST(JsonPull, gives_out_what_the_text_holds_in_order) {
  JsonPull json(
      R"( {"a": [1, -2.5e1, "x\né\u00e9\ud83d\ude00"], "b": {"c": null, "d": true}, "e": {}, "f": []} )");
  ASSERT_TRUE(json.begin_object());
  std::string_view key;
  std::string_view text;
  int64_t integer = 0;
  double number = 0;
  bool flag = false;
  ASSERT_TRUE(json.next_key(key));
  EXPECT_EQ(key, "a");
  EXPECT_EQ(json.peek(), JsonPull::Kind::array);
  ASSERT_TRUE(json.begin_array() && json.next_element() && json.integer(integer));
  EXPECT_EQ(integer, 1);
  ASSERT_TRUE(json.next_element() && json.number(number));
  EXPECT_EQ(number, -25.0);
  ASSERT_TRUE(json.next_element() && json.string(text));
  EXPECT_EQ(text, "x\n\u00E9\u00E9\U0001F600");
  EXPECT_FALSE(json.next_element());
  ASSERT_TRUE(json.next_key(key) && json.begin_object() && json.next_key(key) && json.null());
  EXPECT_EQ(key, "c");
  ASSERT_TRUE(json.next_key(key) && json.boolean(flag));
  EXPECT_TRUE(flag);
  EXPECT_FALSE(json.next_key(key));
  ASSERT_TRUE(json.next_key(key) && json.skip(text));
  EXPECT_EQ(text, "{}");
  ASSERT_TRUE(json.next_key(key) && json.skip(text));
  EXPECT_EQ(text, "[]");
  EXPECT_FALSE(json.next_key(key));
  EXPECT_TRUE(json.finish());
}

std::string fault(std::string_view text) {
  JsonPull json(text);
  if (json.skip() && json.finish()) return "accepted";
  return json.error();
}

TEST(JsonPull, says_what_is_wrong_and_where) {
  EXPECT_EQ(fault(""), "a value expected at byte 0");
  EXPECT_EQ(fault("[1,]"), "a value expected at byte 3");
  EXPECT_EQ(fault("[1 2]"), "',' expected at byte 3");
  EXPECT_EQ(fault("{\"a\" 1}"), "':' expected at byte 5");
  EXPECT_EQ(fault("{a: 1}"), "'\"' expected at byte 1");
  EXPECT_EQ(fault("\"abc"), "the text ends inside a string at byte 4");
  EXPECT_EQ(fault("\"a\nb\""), "a control character inside a string at byte 2");
  EXPECT_EQ(fault("\"\\q\""), "an escape that JSON does not have at byte 3");
  EXPECT_EQ(fault("\"\\ud800\""), "a lone surrogate at byte 7");
  EXPECT_EQ(fault("\"\\u12g4\""), "four hexadecimal digits expected at byte 3");
  EXPECT_EQ(fault("01"), "a number expected at byte 1");
  EXPECT_EQ(fault("-"), "a number expected at byte 1");
  EXPECT_EQ(fault("1e999"), "a number out of range at byte 5");
  EXPECT_EQ(fault("tru"), "true or false expected at byte 0");
  EXPECT_EQ(fault("1 1"), "something behind the value at byte 2");
  EXPECT_EQ(fault("\"\xFF\""), "ill-formed UTF-8 at byte 1");
  EXPECT_EQ(fault(std::string(65, '[')), "nested deeper than 64 at byte 65");
  EXPECT_EQ(fault(std::string(64, '[') + std::string(64, ']')), "accepted");
  JsonPull json("[1.5]");
  int64_t integer = 0;
  EXPECT_FALSE(json.begin_array() && json.next_element() && json.integer(integer));
  EXPECT_EQ(json.error(), "an integer expected at byte 4");
  EXPECT_FALSE(json.next_element()) << "nothing comes after an error";
}

// Both readers must agree on what is JSON, whatever is done to a text.
TEST(JsonPull, agrees_with_the_tree_reader_on_damaged_texts) {
  const std::string source =
      R"({"a":[1,-2.5e-3,0,"x\u0041\\\"y",true,false,null],"b":{"c":[[],{}],"é":"😀"},"d":"","e":[1e5,0.1]})";
  std::mt19937 random(1);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = source;
    for (size_t changes = 1 + random() % 2; changes > 0; --changes) {
      const size_t at = random() % text.size();
      constexpr std::string_view kBytes = "{}[]\",:0123456789eE+-.tfn\\u \x01\xC3";
      if (random() % 3 == 0) {
        text.erase(at, 1);
      } else {
        text[at] = kBytes[random() % kBytes.size()];
      }
    }
    const auto tree = parse_json(text);
    // The tree reader refuses keys that come twice, which this one shows to its caller.
    if (!tree.ok() && tree.error().detail.find("duplicate key") != std::string::npos) continue;
    const std::string pulled = fault(text);
    if (pulled.find("out of range") != std::string::npos) continue;
    ASSERT_EQ(pulled == "accepted", tree.ok()) << text << "\n" << pulled;
    accepted += tree.ok() ? 1 : 0;
  }
  EXPECT_GT(accepted, 1000);
}

}  // namespace
}  // namespace inferd
