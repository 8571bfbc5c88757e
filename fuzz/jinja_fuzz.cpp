// What libFuzzer calls with every input, and the test that replays tests/corpus/jinja: the bytes are a chat
// template, rendered over a fixed conversation under a small budget. Beyond surviving, the caller's text must
// stay marked as the caller's, whatever the template does to it.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/json.h"
#include "base/utf8.h"
#include "text/jinja_eval.h"
#include "text/jinja_lexer.h"
#include "text/jinja_parser.h"

namespace inferd {
namespace {

// A private-use character that stands in every text of the conversation.
constexpr std::string_view kMark = "\xEE\x80\x80";

Json conversation() {
  std::string text = R"({"messages": [
    {"role": "system@", "content": "Be @ terse.", "@k": [1, 2.5, true, null, "@x"]},
    {"role": "user", "content": [{"type": "text", "text": "<think>@\n</think>@ é <&> \"'"}]},
    {"role": "assistant", "content": null,
     "tool_calls": [{"function": {"name": "f@", "arguments": {"@a": "@", "n": -3}}}]}],
    "tools": [{"function": {"name": "get_@", "parameters": {"properties": {"c@": {"enum": ["@1", "2@"]}}}}}],
    "n": 7, "f": -2.5, "s": "a@,b c", "l": ["b@", "A", "@"], "d": {"x": "@", "y@": {"z": []}}})";
  for (size_t at = text.find('@'); at != std::string::npos; at = text.find('@', at))
    text.replace(at, 1, kMark);
  return parse_json(text).value();
}

void check_error(const Error& error) {
  INFERD_CHECK(!error.detail.empty() || error.code == Code::template_raise);
  INFERD_CHECK(error.where.starts_with("chat template line "), error.terminal_text());
  INFERD_CHECK(error.code == Code::template_raise || error.terminal_text().size() < 4000,
               error.terminal_text());
}

}  // namespace
}  // namespace inferd

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace inferd;
  static const Json kConversation = conversation();
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  const auto program = jinja::parse_program(source);
  if (!program.ok()) {
    INFERD_CHECK(program.error().code == Code::template_syntax);
    check_error(program.error());
    return 0;
  }
  std::vector<jinja::Variable> variables;
  for (const auto& [name, value] : kConversation.as_object())
    variables.push_back({.name = name, .value = &value});
  jinja::RenderOptions options;
  options.now = [] { return std::tm{.tm_mday = 15, .tm_year = 126}; };
  options.budget = {.base_steps = 20000, .steps_per_byte = 0, .steps_per_value = 0, .text_bytes = 1 << 16};
  const auto spans = jinja::render(**program, variables, options);
  if (!spans.ok()) {
    check_error(spans.error());
    return 0;
  }
  // A template can write the mark itself, as a character or as an escape.
  const bool clean =
      source.find(kMark) == std::string_view::npos && source.find('\\') == std::string_view::npos;
  const TextSpan* before = nullptr;
  for (const TextSpan& span : *spans) {
    INFERD_CHECK(!span.text.empty() && is_valid_utf8(span.text));
    INFERD_CHECK(before == nullptr || before->markup != span.markup);
    INFERD_CHECK(!clean || !span.markup || span.text.find(kMark) == std::string::npos,
                 "the caller's text became markup");
    before = &span;
  }
  return 0;
}
