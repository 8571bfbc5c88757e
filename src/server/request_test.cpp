// Bodies to engine requests, without sockets or an engine: what is refused, with which words, and what comes
// through.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/strings.h"
#include "server/field_tables.h"
#include "server/native_generate.h"
#include "server/openai_chat.h"
#include "server/openai_completions.h"
#include "server/tokenize.h"
#include "support/tiny_server.h"

namespace inferd {
namespace {

const ModelView& model() {
  static const ModelView view = test::tiny_model_view();
  return view;
}

// The error of a body on a route, or nothing when it is accepted.
std::optional<Error> refusal(std::string_view route, std::string_view body) {
  const auto error_of = [](const auto& result) {
    return result.ok() ? std::optional<Error>() : result.error();
  };
  if (route == chat_fields().route) return error_of(chat_generation(model(), body));
  if (route == completion_fields().route) return error_of(completion_generation(model(), body));
  if (route == generate_fields().route) return error_of(native_generation(model(), body));
  if (route == tokenize_fields().route) return error_of(tokenize_reply(model(), body));
  return error_of(detokenize_reply(model(), body));
}

Error must_refuse(std::string_view route, std::string_view body) {
  std::optional<Error> error = refusal(route, body);
  EXPECT_TRUE(error.has_value()) << route << " " << body;
  return error.value_or(Error{});
}

std::string repeated(std::string_view text, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += text;
  return out;
}

struct JsonCase {
  std::string name;
  std::string body;
  std::string code;  // "E-REQ-001"; empty: accepted
};

std::vector<JsonCase> hostile_json() {
  const auto prompt = [](std::string_view value) { return cat("{\"prompt\":", value, "}"); };
  const auto text = [&](std::string_view inside) { return prompt(cat("\"", inside, "\"")); };
  const auto user = [](std::string_view value) { return cat("{\"prompt\":\"a\",\"metadata\":", value, "}"); };
  std::vector<JsonCase> cases = {
      {"nothing", "", "E-REQ-001"},
      {"a space", " ", "E-REQ-001"},
      {"line feeds", "\n\n\n", "E-REQ-001"},
      {"null", "null", "E-REQ-001"},
      {"true", "true", "E-REQ-001"},
      {"a number", "17", "E-REQ-001"},
      {"a string", "\"prompt\"", "E-REQ-001"},
      {"an array", "[]", "E-REQ-001"},
      {"an array of an object", "[{\"prompt\":\"a\"}]", "E-REQ-001"},
      {"an empty object", "{}", "E-REQ-005"},
      {"an open brace", "{", "E-REQ-001"},
      {"a closing brace", "}", "E-REQ-001"},
      {"brackets crossed", "{\"prompt\":[\"a\"}]", "E-REQ-001"},
      {"a key alone", "{\"prompt\"}", "E-REQ-001"},
      {"a key and a colon", "{\"prompt\":}", "E-REQ-001"},
      {"a bare key", "{prompt:\"a\"}", "E-REQ-001"},
      {"single quotes", "{'prompt':'a'}", "E-REQ-001"},
      {"a trailing comma", "{\"prompt\":\"a\",}", "E-REQ-001"},
      {"a leading comma", "{,\"prompt\":\"a\"}", "E-REQ-001"},
      {"two commas", "{\"prompt\":\"a\",,\"n\":1}", "E-REQ-001"},
      {"a missing comma", "{\"prompt\":\"a\" \"n\":1}", "E-REQ-001"},
      {"a semicolon", "{\"prompt\":\"a\";\"n\":1}", "E-REQ-001"},
      {"an equals sign", "{\"prompt\"=\"a\"}", "E-REQ-001"},
      {"a line comment", "{\"prompt\":\"a\"} // x", "E-REQ-001"},
      {"a block comment", "{/* x */\"prompt\":\"a\"}", "E-REQ-001"},
      {"a second value", "{\"prompt\":\"a\"}{\"prompt\":\"b\"}", "E-REQ-001"},
      {"a stray bracket behind", "{\"prompt\":\"a\"}]", "E-REQ-001"},
      {"a NUL behind", std::string("{\"prompt\":\"a\"}\0", 15), "E-REQ-001"},
      {"white space around", " \t\r\n{\"prompt\" : \"a\"}\n ", ""},
      {"a form feed", "\f{\"prompt\":\"a\"}", "E-REQ-001"},
      {"a no-break space", "\xC2\xA0{\"prompt\":\"a\"}", "E-REQ-001"},
      {"a byte order mark", "\xEF\xBB\xBF{\"prompt\":\"a\"}", "E-REQ-001"},
      {"UTF-16", std::string("\xFF\xFE{\0\"\0", 6), "E-REQ-001"},
      {"form data", "prompt=a&n=1", "E-REQ-001"},
      {"XML", "<prompt>a</prompt>", "E-REQ-001"},
      // Numbers.
      {"NaN", "{\"prompt\":\"a\",\"temperature\":NaN}", "E-REQ-001"},
      {"nan", "{\"prompt\":\"a\",\"temperature\":nan}", "E-REQ-001"},
      {"Infinity", "{\"prompt\":\"a\",\"temperature\":Infinity}", "E-REQ-001"},
      {"-Infinity", "{\"prompt\":\"a\",\"temperature\":-Infinity}", "E-REQ-001"},
      {"1e999", "{\"prompt\":\"a\",\"temperature\":1e999}", "E-REQ-001"},
      {"-1e999", "{\"prompt\":\"a\",\"temperature\":-1e999}", "E-REQ-001"},
      {"1e-999 is zero", "{\"prompt\":\"a\",\"temperature\":1e-999}", ""},
      {"a plus sign", "{\"prompt\":\"a\",\"n\":+1}", "E-REQ-001"},
      {"a leading zero", "{\"prompt\":\"a\",\"n\":01}", "E-REQ-001"},
      {"a point without digits", "{\"prompt\":\"a\",\"temperature\":1.}", "E-REQ-001"},
      {"digits after a point only", "{\"prompt\":\"a\",\"temperature\":.5}", "E-REQ-001"},
      {"an exponent without digits", "{\"prompt\":\"a\",\"temperature\":1e}", "E-REQ-001"},
      {"hexadecimal", "{\"prompt\":\"a\",\"n\":0x1}", "E-REQ-001"},
      {"two minus signs", "{\"prompt\":\"a\",\"n\":--1}", "E-REQ-001"},
      {"a minus sign alone", "{\"prompt\":\"a\",\"n\":-}", "E-REQ-001"},
      {"a number with a comma", "{\"prompt\":\"a\",\"temperature\":0,5}", "E-REQ-001"},
      {"True", "{\"prompt\":\"a\",\"stream\":True}", "E-REQ-001"},
      {"undefined", "{\"prompt\":\"a\",\"stream\":undefined}", "E-REQ-001"},
      {"a million digits", cat("{\"prompt\":\"a\",\"temperature\":", std::string(1000000, '9'), "}"),
       "E-REQ-001"},
      {"a million decimals", cat("{\"prompt\":\"a\",\"temperature\":0.", std::string(1000000, '3'), "}"), ""},
      {"an endless exponent", cat("{\"prompt\":\"a\",\"temperature\":1e-", std::string(100000, '9'), "}"),
       ""},
      {"an integer past 2^63", "{\"prompt\":\"a\",\"seed\":9223372036854775808}", "E-REQ-003"},
      {"an integer past 2^64", "{\"prompt\":\"a\",\"seed\":99999999999999999999}", "E-REQ-003"},
      {"the largest seed", "{\"prompt\":\"a\",\"seed\":9223372036854775807}", ""},
      // Keys.
      {"a key twice", "{\"prompt\":\"a\",\"prompt\":\"b\"}", "E-REQ-001"},
      {"a key twice, once escaped", "{\"prompt\":\"a\",\"pr\\u006fmpt\":\"b\"}", "E-REQ-001"},
      {"a nested key twice", user("{\"a\":1,\"a\":2}"), "E-REQ-001"},
      {"an empty key", "{\"prompt\":\"a\",\"\":1}", "E-REQ-002"},
      {"a key of 1 MB", cat("{\"prompt\":\"a\",\"", std::string(1 << 20, 'k'), "\":1}"), "E-REQ-002"},
      {"a key with a NUL", "{\"prompt\":\"a\",\"n\\u0000\":1}", "E-REQ-002"},
      {"__proto__", "{\"prompt\":\"a\",\"__proto__\":{}}", "E-REQ-002"},
      {"another case", "{\"Prompt\":\"a\"}", "E-REQ-002"},
      {"an escaped key", "{\"pr\\u006fmpt\":\"a\"}", ""},
      // Strings.
      {"an open string", "{\"prompt\":\"a", "E-REQ-001"},
      {"a raw line feed", text("a\nb"), "E-REQ-001"},
      {"a raw tab", text("a\tb"), "E-REQ-001"},
      {"a raw NUL", text(std::string_view("a\0b", 3)), "E-REQ-001"},
      {"an escaped NUL", text("a\\u0000b"), ""},
      {"an unknown escape", text("\\x41"), "E-REQ-001"},
      {"an octal escape", text("\\101"), "E-REQ-001"},
      {"a cut escape", text("\\u00"), "E-REQ-001"},
      {"a bad escape", text("\\uZZZZ"), "E-REQ-001"},
      {"a backslash at the end", "{\"prompt\":\"a\\", "E-REQ-001"},
      {"a high surrogate", text("\\ud83d"), "E-REQ-001"},
      {"a low surrogate", text("\\ude00"), "E-REQ-001"},
      {"surrogates crossed", text("\\ude00\\ud83d"), "E-REQ-001"},
      {"two high surrogates", text("\\ud83d\\ud83d"), "E-REQ-001"},
      {"a high surrogate and a letter", text("\\ud83da"), "E-REQ-001"},
      {"a pair of surrogates", text("\\ud83d\\ude00"), ""},
      {"a noncharacter", text("\\uffff"), ""},
      {"an overlong slash", text("\xC0\xAF"), "E-REQ-001"},
      {"an overlong NUL", text("\xC0\x80"), "E-REQ-001"},
      {"a surrogate in UTF-8", text("\xED\xA0\x80"), "E-REQ-001"},
      {"past U+10FFFF", text("\xF4\x90\x80\x80"), "E-REQ-001"},
      {"five bytes", text("\xF8\x88\x80\x80\x80"), "E-REQ-001"},
      {"0xFF", text("\xFF"), "E-REQ-001"},
      {"a continuation byte", text("\x80"), "E-REQ-001"},
      {"a cut character", text("\xE2\x82"), "E-REQ-001"},
      {"Latin-1", text("caf\xE9"), "E-REQ-001"},
      {"invalid UTF-8 in a key", "{\"prompt\":\"a\",\"\xFF\":1}", "E-REQ-001"},
      {"an emoji", text("😀"), ""},
      {"a string of 8 MB", text(std::string(8 << 20, 'a')), "E-REQ-006"},
      {"a million carets", text(std::string(1000000, '^')), "E-REQ-006"},
      {"a million escapes", text(repeated("\\u0061", 1000000)), "E-REQ-006"},
      // Nesting and number of values.
      {"64 levels", user(std::string(63, '[') + std::string(63, ']')), ""},
      {"65 levels", user(std::string(64, '[') + std::string(64, ']')), "E-REQ-001"},
      {"100,000 open brackets", std::string(100000, '['), "E-REQ-001"},
      {"100,000 open brackets in a field", cat("{\"prompt\":", std::string(100000, '[')), "E-REQ-001"},
      {"100,000 open objects", repeated("{\"a\":", 100000), "E-REQ-001"},
      {"arrays and objects in turn", repeated("[{\"a\":", 50000), "E-REQ-001"},
      {"a million closing brackets", cat("{\"prompt\":\"a\"}", std::string(1000000, ']')), "E-REQ-001"},
      {"three million values", user(cat("[", repeated("0,", 3000000), "0]")), "E-REQ-001"},
      {"a million empty lists", prompt(cat("[", repeated("[],", 999999), "[]]")), "E-REQ-004"},
      {"a million ids", prompt(cat("[", repeated("5,", 999999), "5]")), "E-REQ-006"},
      {"100,000 unknown fields",
       [] {
         std::string body = "{\"prompt\":\"a\"";
         for (int i = 0; i < 100000; ++i) body += cat(",\"f", i, "\":0");
         return body + "}";
       }(),
       "E-REQ-002"},
      {"100,000 biases",
       [] {
         std::string body = "{\"prompt\":\"a\",\"logit_bias\":{\"0\":0";
         for (int i = 1; i < 100000; ++i) body += cat(",\"", i, "\":0");
         return body + "}}";
       }(),
       "E-REQ-004"},
      {"500,000 stop strings", cat("{\"prompt\":\"a\",\"stop\":[", repeated("\"x\",", 499999), "\"x\"]}"),
       "E-REQ-004"},
      {"500,000 stop ids", cat("{\"prompt\":\"a\",\"stop_token_ids\":[", repeated("1,", 499999), "1]}"),
       "E-REQ-004"},
      {"a stop string of 1 MB", cat("{\"prompt\":\"a\",\"stop\":\"", std::string(1 << 20, 's'), "\"}"),
       "E-REQ-004"},
      {"a billion choices", "{\"prompt\":\"a\",\"n\":1000000000}", "E-REQ-004"},
  };
  return cases;
}

TEST(HostileJson, every_case_has_its_code_and_a_short_text) {
  const std::vector<JsonCase> cases = hostile_json();
  EXPECT_GE(cases.size(), 100u);
  for (const JsonCase& each : cases) {
    const std::optional<Error> error = refusal(completion_fields().route, each.body);
    EXPECT_EQ(error ? std::string(error_row(error->code).id) : "", each.code)
        << each.name << ": " << (error ? error->message() : "");
    if (error) {
      EXPECT_LT(error->message().size(), 600u) << each.name;
    }
  }
}

constexpr std::string_view kValues[] = {"null",
                                        "true",
                                        "false",
                                        "[]",
                                        "{}",
                                        "\"\"",
                                        "\"x\"",
                                        "\"NaN\"",
                                        "\"-1\"",
                                        "-1",
                                        "0",
                                        "1",
                                        "2",
                                        "9",
                                        "21",
                                        "2147483647",
                                        "2147483648",
                                        "4294967296",
                                        "9007199254740993",
                                        "9223372036854775807",
                                        "9223372036854775808",
                                        "-9223372036854775808",
                                        "0.5",
                                        "-0.0",
                                        "1.0",
                                        "1e308",
                                        "-1e308",
                                        "1e-320",
                                        "100.0001",
                                        "[null]",
                                        "[[]]",
                                        "[1,2,3]",
                                        "[-1]",
                                        "[288]",
                                        "[\"a\"]",
                                        "[\"a\",1]",
                                        "[[1],[2]]",
                                        "[[1],\"a\"]",
                                        "{\"a\":1}",
                                        "{\"1\":1}",
                                        "{\"1\":101}",
                                        "{\"1\":\"a\"}",
                                        "{\"-1\":1}",
                                        "{\"include_usage\":1}",
                                        "{\"type\":\"json_object\"}",
                                        "[{\"role\":\"user\"}]",
                                        "[{\"type\":\"function\"}]",
                                        "\"\\u0000\"",
                                        "\"a b c d e f g h\""};

std::string base_body(std::string_view route) {
  if (route == chat_fields().route) return R"("messages":[{"role":"user","content":"hi"}])";
  if (route == tokenize_fields().route) return R"("content":"hi")";
  if (route == detokenize_fields().route) return R"("tokens":[5])";
  return R"("prompt":"hi")";
}

TEST(Fields, every_wrong_type_and_extreme_is_refused_by_name_or_taken) {
  int refused = 0, taken = 0;
  for (const RouteFields* route : all_route_fields()) {
    for (const FieldTable table : route->tables) {
      for (const Field& field : table) {
        for (const std::string_view value : kValues) {
          std::string body = "{";
          // Without the base's own field, so that the value under test is the only one of its name.
          if (!base_body(route->route).starts_with(cat("\"", field.name, "\"")))
            body += base_body(route->route) + ",";
          body += cat("\"", field.name, "\":", value, "}");
          const std::optional<Error> error = refusal(route->route, body);
          if (!error) {
            ++taken;
            continue;
          }
          ++refused;
          const ErrorRow& row = error_row(error->code);
          EXPECT_TRUE(row.http_status == 400 || (row.http_status == 404 && field.name == "model"))
              << body << ": " << error->message();
          const bool replaced_base = value == "null" || error->code == Code::req_missing;
          EXPECT_TRUE(error->param.starts_with(field.name) ||
                      error->detail.find(field.name) != std::string::npos || replaced_base ||
                      error->code == Code::token_id)
              << route->route << " " << body << ": " << error->message() << " (" << error->param << ")";
          EXPECT_FALSE(error->detail.empty()) << body;
        }
      }
    }
  }
  // The tables have about 90 fields; each meets every value.
  EXPECT_GT(refused + taken, 3000);
  EXPECT_GT(refused, 2000);
  EXPECT_GT(taken, 500);
}

TEST(Fields, unknown_ones_are_named_with_the_nearest) {
  const Error error =
      must_refuse(chat_fields().route, R"({"messages":[{"role":"user","content":"a"}],"temprature":1})");
  EXPECT_EQ(error.code, Code::req_field);
  EXPECT_EQ(error.param, "temprature");
  EXPECT_EQ(error.detail,
            R"("temprature" is not a field of POST /v1/chat/completions; did you mean "temperature"?)");
  EXPECT_EQ(must_refuse(generate_fields().route, R"({"prompt":"a","stream":true})").code, Code::req_field);
  EXPECT_EQ(must_refuse(completion_fields().route, R"({"prompt":"a","chat_template":"{{ x }}"})").code,
            Code::req_field);
}

TEST(Fields, texts_name_got_and_allowed) {
  const auto text = [](std::string_view field) {
    return must_refuse(completion_fields().route, cat(R"({"prompt":"a",)", field, "}")).message();
  };
  EXPECT_EQ(text(R"("temperature":-3)"),
            "field out of range: temperature is -3, allowed is a number from 0 to 100");
  EXPECT_EQ(text(R"("top_p":0)"), "field out of range: top_p is 0, allowed is a number above 0 up to 1");
  EXPECT_EQ(text(R"("temperature":"hot")"),
            "field has the wrong type: temperature is a string (\"hot\"), allowed is a number from 0 to 100");
  EXPECT_EQ(text(R"("n":9)"), "field out of range: n is 9, allowed is an integer from 1 to 8");
  EXPECT_EQ(text(R"("seed":1.5)"),
            "field has the wrong type: seed is a number (1.5), allowed is an integer from 0 to 2^63 - 1");
  EXPECT_EQ(text(R"("echo":true)"),
            "field out of range: echo is true, allowed is false: echo is not supported");
  EXPECT_EQ(text(R"("store":true)"),
            "field out of range: store is true, allowed is false: nothing is stored here");
  EXPECT_EQ(text(R"("logit_bias":{"288":1})"),
            "field out of range: logit_bias is for id 288, allowed is ids 0 to 287");
  EXPECT_EQ(text(R"("max_tokens":300)"),
            "the prompt does not fit the context: 1 prompt tokens and max_tokens 300, the context has 256");
}

TEST(Fields, those_without_a_meaning_are_taken) {
  EXPECT_FALSE(
      refusal(chat_fields().route,
              R"({"messages":[{"role":"user","content":"a"}],"user":"u","metadata":{"a":[1]},"store":false,)"
              R"("stop":null,"tools":null,"temperature":null,"response_format":{"type":"text"}})"));
}

TEST(Fields, nested_faults_have_a_path_and_a_pointer) {
  const Error error = must_refuse(
      chat_fields().route, R"({"messages":[{"role":"user","content":"a"},{"role":"user","content":5}]})");
  EXPECT_EQ(error.param, "messages[1].content");
  EXPECT_NE(error.detail.find("(at /messages/1/content)"), std::string::npos) << error.detail;
}

struct Refused {
  std::string body;
  std::string param;
};

TEST(Fields, contradictions_between_fields_are_refused) {
  const std::vector<Refused> completion = {
      {R"("min_tokens":17)", "min_tokens"},  // the default is 16
      {R"("min_tokens":5,"max_tokens":4)", "min_tokens"},
      {R"("min_tokens":2147483647,"max_tokens":null)", "min_tokens"},
      {R"("stream_options":{"include_usage":true})", "stream_options"},
      {R"("stream":false,"stream_options":{})", "stream_options"},
      {R"("n":8,"best_of":2)", "best_of"},
      {R"("n":8,"prompt":["a","b","c","d","e","f","g","h","i","j"])", "n"},  // 80 answers, 72 at once
      {R"("logit_bias":{"1":1,"01":2})", "logit_bias"},
      {R"("stop":["a",""])", "stop"},
      {R"("prompt":"")", "prompt"},
      {R"("prompt":[])", "prompt"},
      {R"("prompt":["a",""])", "prompt[1]"},
      {R"("prompt":[[1],[]])", "prompt[1]"},
      {R"("prompt":["a",5])", "prompt[1]"},
      {R"("prompt":[1,"a"])", "prompt[1]"},
      {R"("prompt":[1,1.5])", "prompt[1]"},
      {R"("prompt":[-1])", "prompt[0]"},
      {R"("prompt":[288])", "prompt"},
      {R"("prompt":[[1],[2,288]])", "prompt[1]"},
      {R"("suffix":"b")", "suffix"},
  };
  for (const Refused& each : completion) {
    const bool has_prompt = each.body.find("\"prompt\"") != std::string::npos;
    EXPECT_EQ(must_refuse(completion_fields().route,
                          cat("{", has_prompt ? "" : "\"prompt\":\"a\",", each.body, "}"))
                  .param,
              each.param)
        << each.body;
  }
  const std::vector<Refused> chat = {
      {R"("top_logprobs":3)", "top_logprobs"},
      {R"("logprobs":false,"top_logprobs":3)", "top_logprobs"},
      {R"("max_tokens":3,"max_completion_tokens":4)", "max_tokens"},
      {R"("max_completion_tokens":4000)", "max_completion_tokens"},
      {R"("tool_choice":"required")", "tool_choice"},
      {R"("tool_choice":{"type":"function","function":{"name":"f"}})", "tool_choice"},
      {R"("response_format":{"type":"json_object"})", "response_format"},
      {R"("response_format":{"type":"json_schema","json_schema":{}})", "response_format"},
      {R"("parallel_tool_calls":false)", "parallel_tool_calls"},
      {R"("chat_template_kwargs":{"messages":[]})", "chat_template_kwargs"},
      {R"("tools":[{"type":"retrieval"}])", "tools[0].type"},
      {R"("tools":[{"type":"function","function":{"name":""}}])", "tools[0].function.name"},
      {R"("tools":[5])", "tools[0]"},
  };
  for (const Refused& each : chat) {
    EXPECT_EQ(must_refuse(chat_fields().route,
                          cat(R"({"messages":[{"role":"user","content":"a"}],)", each.body, "}"))
                  .param,
              each.param)
        << each.body;
  }
  const std::vector<Refused> messages = {
      {R"([])", "messages"},
      {R"("hi")", "messages"},
      {R"([5])", "messages[0]"},
      {R"([{}])", "messages[0].role"},
      {R"([{"role":"user"}])", "messages[0].content"},
      {R"([{"role":"user","content":null}])", "messages[0].content"},
      {R"([{"role":"robot","content":"a"}])", "messages[0].role"},
      {R"([{"role":5,"content":"a"}])", "messages[0].role"},
      {R"([{"role":"user","content":{}}])", "messages[0].content"},
      {R"([{"role":"user","content":["a"]}])", "messages[0].content[0]"},
      {R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}])",
       "messages[0].content[0].type"},
      {R"([{"role":"user","content":[{"type":"text"}]}])", "messages[0].content[0].text"},
      {R"([{"role":"user","content":"a","contnet":"b"}])", "contnet"},
      {R"([{"role":"user","content":"a","tool_calls":[]}])", "messages[0].tool_calls"},
      {R"([{"role":"assistant","content":null,"tool_calls":[]}])", "messages[0].content"},
      {R"([{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{"}}]}])",
       "messages[0].tool_calls[0].function.arguments"},
      {R"([{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"[1]"}}]}])",
       "messages[0].tool_calls[0].function.arguments"},
      {R"([{"role":"assistant","tool_calls":[{"id":"1"}]}])", "messages[0].tool_calls[0].function"},
      {R"([{"role":"user","content":"a","name":5}])", "messages[0].name"},
  };
  for (const Refused& each : messages) {
    EXPECT_EQ(must_refuse(chat_fields().route, cat("{\"messages\":", each.body, "}")).param, each.param)
        << each.body;
  }
}

TEST(Defaults, a_field_that_is_left_out_is_the_models) {
  test::TinyServerOptions options;
  options.defaults.temperature = 0.25;
  options.defaults.top_p = 0.5;
  const ModelView view = test::tiny_model_view(options);
  const Generation left_out = completion_generation(view, R"({"prompt":"a","top_p":null})").value();
  EXPECT_EQ(left_out.sampling.temperature, 0.25);
  EXPECT_EQ(left_out.sampling.top_p, 0.5);
  const Generation given = completion_generation(view, R"({"prompt":"a","temperature":1})").value();
  EXPECT_EQ(given.sampling.temperature, 1.0);
}

TEST(Defaults, the_answer_may_fill_the_context_and_never_more) {
  const Generation chat = chat_generation(model(), R"({"messages":[{"role":"user","content":"a"}]})").value();
  EXPECT_EQ(chat.max_tokens, 256 - chat.prompt_tokens[0]);
  // 250 tokens and 16 do not fit; nobody asked for 16, so it is 6.
  const std::string ids = cat("[", repeated("5,", 249), "5]");
  EXPECT_EQ(completion_generation(model(), cat("{\"prompt\":", ids, "}")).value().max_tokens, 6);
  const Error asked = must_refuse(completion_fields().route, cat("{\"prompt\":", ids, ",\"max_tokens\":16}"));
  EXPECT_EQ(asked.code, Code::req_context);
  EXPECT_EQ(asked.param, "max_tokens");
}

TEST(Defaults, the_models_end_tokens_stop_unless_they_are_to_be_ignored) {
  const auto stops = [](std::string_view extra) {
    return completion_generation(model(), cat(R"({"prompt":"a")", extra, "}")).value().sampling.stop_ids;
  };
  const std::vector<int32_t> ends(model().tokenizer->end_ids().begin(), model().tokenizer->end_ids().end());
  ASSERT_FALSE(ends.empty());
  EXPECT_EQ(stops(""), ends);
  EXPECT_TRUE(stops(R"(,"ignore_eos":true)").empty());
  EXPECT_EQ(stops(R"(,"ignore_eos":true,"stop_token_ids":[9,5,9])"), (std::vector<int32_t>{5, 9}));
}

TEST(Pool, what_can_never_fit_is_refused_with_both_numbers) {
  const ModelView view = test::tiny_model_view({.ctx = 256, .kv_pages = 4});
  const Result<Generation> refused = completion_generation(view, R"({"prompt":"abcdefgh","max_tokens":100})");
  EXPECT_EQ(refused.error().code, Code::kv_never_fits);
  EXPECT_NE(refused.error().detail.find("64"), std::string::npos) << refused.error().detail;
}

}  // namespace
}  // namespace inferd
