// Renders templates from stdin, one a line: {"template": text, "variables": {...}} gives {"ok": true, "text",
// "spans", "steps", "us"} or {"ok": false, "id", "error", "where", "us"}. For tools/compare_jinja.py and for
// measuring.
#include <chrono>
#include <iostream>
#include <string>

#include "base/json.h"
#include "text/jinja_eval.h"
#include "text/jinja_parser.h"

namespace {

using namespace inferd;

Json render_line(const Json& line) {
  const auto begin = std::chrono::steady_clock::now();
  int64_t steps = 0;
  const auto result = [&]() -> Result<std::vector<TextSpan>> {
    INFERD_TRY(const auto program, jinja::parse_program(line.find("template")->as_string()));
    std::vector<jinja::Variable> variables;
    for (const auto& [name, value] : line.find("variables")->as_object()) {
      variables.push_back({.name = name, .value = &value});
    }
    std::tm now{.tm_mday = 15, .tm_year = 126, .tm_wday = 4, .tm_yday = 14};
    return jinja::render(*program, variables, {.now = [now] { return now; }, .steps_used = &steps});
  }();
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  Json::Object out;
  out.emplace_back("ok", result.ok());
  if (result.ok()) {
    std::string text;
    Json::Array spans;
    for (const TextSpan& span : *result) {
      text += span.text;
      spans.emplace_back(Json::Array{Json(span.markup), Json(span.text)});
    }
    out.emplace_back("text", std::move(text));
    out.emplace_back("spans", std::move(spans));
  } else {
    out.emplace_back("id", std::string(error_row(result.error().code).id));
    out.emplace_back("error", result.error().detail);
    out.emplace_back("where", result.error().where);
  }
  out.emplace_back("steps", steps);
  out.emplace_back("us", took.count());
  return out;
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const auto parsed = parse_json(line);
    std::cout << (parsed.ok() ? to_json(render_line(*parsed)) : "{\"ok\":false,\"error\":\"bad line\"}")
              << '\n'
              << std::flush;
  }
  return 0;
}
