// Small templates by construct, with what jinja2 makes of them: testdata/jinja_vectors.jsonl, written by
// tools/make_jinja_vectors.py.
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "text/jinja_eval.h"
#include "text/jinja_parser.h"

namespace inferd::jinja {
namespace {

std::tm fixed_now() {  // Thursday, 2026-01-15 00:00
  std::tm now{};
  now.tm_year = 126;
  now.tm_mday = 15;
  now.tm_wday = 4;
  now.tm_yday = 14;
  return now;
}

Result<std::string> render_vector(const Json& vector) {
  INFERD_TRY(const auto program, parse_program(vector.find("template")->as_string()));
  std::vector<Variable> variables;
  if (const Json* given = vector.find("variables")) {
    for (const auto& [name, value] : given->as_object()) variables.push_back({.name = name, .value = &value});
  }
  INFERD_TRY(const auto spans, render(*program, variables, {.now = fixed_now}));
  std::string text;
  for (const TextSpan& span : spans) text += span.text;
  return text;
}

bool is_the_refusal(const Error& error, const Json& vector) {
  const std::string& kind = vector.find("error")->as_string();
  if (kind == "syntax") return error.code == Code::template_syntax && !error.where.empty();
  if (kind == "raise") {
    return error.code == Code::template_raise && error.detail == vector.find("message")->as_string();
  }
  // A range() too long is an error like others in Python, and a matter of the budget here.
  return (error.code == Code::template_run || error.code == Code::template_budget) && !error.where.empty();
}

TEST(JinjaVectors, every_construct_gives_what_jinja2_gives) {
  std::ifstream file(INFERD_SOURCE_DIR "/src/text/testdata/jinja_vectors.jsonl");
  std::map<std::string, int> groups;
  for (std::string line; std::getline(file, line);) {
    const Json vector = parse_json(line).value();
    const std::string about =
        cat(vector.find("group")->as_string(), ": ", vector.find("template")->as_string());
    ++groups[vector.find("group")->as_string()];
    const Result<std::string> ours = render_vector(vector);
    if (const Json* text = vector.find("text")) {
      ASSERT_TRUE(ours.ok()) << about << "\n" << ours.error().terminal_text();
      EXPECT_EQ(*ours, text->as_string()) << about;
    } else {
      ASSERT_FALSE(ours.ok()) << about;
      EXPECT_TRUE(is_the_refusal(ours.error(), vector)) << about << "\n" << ours.error().terminal_text();
    }
  }
  EXPECT_EQ(groups.size(), 17U);
  EXPECT_GE(groups["for"], 30);
}

}  // namespace
}  // namespace inferd::jinja
