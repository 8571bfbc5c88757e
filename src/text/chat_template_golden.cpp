#include "text/chat_template_golden.h"

#include <zlib.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>

#include "base/check.h"
#include "text/chat_template.h"

namespace inferd::testing {
namespace {

std::tm golden_now() {  // Thursday, 2026-01-15 00:00
  std::tm now{};
  now.tm_year = 126;
  now.tm_mday = 15;
  now.tm_wday = 4;
  now.tm_yday = 14;
  return now;
}

std::optional<std::string> text_of(const Json* json) {
  return json != nullptr && json->is_string() ? std::optional<std::string>(json->as_string()) : std::nullopt;
}

// What is wrong with our result of one recorded case; empty: nothing.
std::string difference(const Json& record, const Result<std::string>& ours) {
  if (record.find("ok")->as_bool()) {
    const std::string& wanted = record.find("text")->as_string();
    if (!ours.ok()) return cat("failed: ", ours.error().message(), " at ", ours.error().where);
    if (*ours == wanted) return "";
    const size_t at = static_cast<size_t>(
        std::mismatch(ours->begin(), ours->end(), wanted.begin(), wanted.end()).first - ours->begin());
    const size_t from = at < 20 ? 0 : at - 20;
    return cat("differs at byte ", at, ": ", printable(std::string_view(*ours).substr(from), 60),
               " instead of ", printable(std::string_view(wanted).substr(from), 60));
  }
  const std::string& type = record.find("error_type")->as_string();
  if (ours.ok())
    return cat("rendered, but the reference has ", type, ": ", record.find("error")->as_string());
  if (type != "TemplateError")
    return ours.error().code == Code::template_run ? "" : cat("failed otherwise: ", ours.error().message());
  const std::string first_line = ours.error().detail.substr(0, ours.error().detail.find('\n'));
  if (ours.error().code == Code::template_raise && first_line == record.find("error")->as_string()) return "";
  return cat("raised ", printable(ours.error().detail), " instead of ",
             printable(record.find("error")->as_string()));
}

}  // namespace

std::string golden_folder() {
  const char* folder = std::getenv("INFERD_GOLDEN");
  return folder != nullptr ? folder : INFERD_SOURCE_DIR "/../shared/golden";
}

std::string whole_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

std::vector<std::string> gzip_lines(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  INFERD_CHECK(file != nullptr, path);
  std::string all;
  char buffer[1 << 16];
  for (int got = 0; (got = gzread(file, buffer, sizeof buffer)) > 0;)
    all.append(buffer, static_cast<size_t>(got));
  gzclose(file);
  std::vector<std::string> lines;
  for (const std::string_view line : split(all, '\n')) {
    if (!line.empty()) lines.emplace_back(line);
  }
  return lines;
}

std::string GoldenRun::summary() const {
  std::vector<double> sorted = microseconds;
  std::sort(sorted.begin(), sorted.end());
  const auto quantile = [&](double q) {
    return sorted.empty() ? 0.0 : sorted[static_cast<size_t>(q * static_cast<double>(sorted.size() - 1))];
  };
  std::string text = cat(equal, " of ", total, " renders equal, ", templates_equal, " of ", templates,
                         " templates wholly; render p50 ", fixed(quantile(0.5), 1), " us, p99 ",
                         fixed(quantile(0.99), 1), " us, max ", fixed(quantile(1), 1), " us\n");
  for (const auto& [name, count] : by_template) text += cat("  ", name, ": ", count, " differ\n");
  for (size_t i = 0; i < differences.size() && i < 20; ++i) text += cat("  ", differences[i], "\n");
  return text;
}

GoldenRun run_golden(const std::function<const std::string*(const std::string& name)>& source) {
  GoldenRun run;
  const std::string folder = golden_folder() + "/templates";
  const Json conversations = parse_json(whole_file(folder + "/conversations.json")).value();
  std::map<std::string, bool> whole;
  for (const std::string& line : gzip_lines(folder + "/renders.jsonl.gz")) {
    const Json record = parse_json(line).value();
    const std::string& name = record.find("template")->as_string();
    const std::string* text = source(name);
    if (text == nullptr) continue;
    const std::string& conversation = record.find("conversation")->as_string();
    const Json& data = *conversations.find(conversation);
    const Json& kwargs = *record.find("kwargs");
    const Result<ChatTemplate> parsed =
        ChatTemplate::parse(*text, {.bos_token = text_of(kwargs.find("bos_token")),
                                    .eos_token = text_of(kwargs.find("eos_token")),
                                    .now = golden_now});
    Result<std::string> ours = Error{};
    if (parsed.ok()) {
      Json::Object extra;
      for (const auto& [key, value] : kwargs.as_object()) {
        if (key != "bos_token" && key != "eos_token" && key != "add_generation_prompt")
          extra.emplace_back(key, value);
      }
      double least = 0;
      for (int repeat = 0; repeat < 3; ++repeat) {
        const auto begin = std::chrono::steady_clock::now();
        const auto spans = parsed->render(*data.find("messages"), data.find("tools"), data.find("documents"),
                                          extra, kwargs.find("add_generation_prompt")->as_bool());
        const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
        least = repeat == 0 ? took.count() : std::min(least, took.count());
        if (spans.ok()) {
          std::string joined;
          for (const TextSpan& span : *spans) joined += span.text;
          ours = std::move(joined);
        } else {
          ours = spans.error();
        }
      }
      if (ours.ok()) run.microseconds.push_back(least);
    } else {
      ours = parsed.error();
    }
    const std::string what = difference(record, ours);
    ++run.total;
    run.equal += what.empty() ? 1 : 0;
    whole.try_emplace(name, true);
    if (what.empty()) continue;
    whole[name] = false;
    ++run.by_template[name];
    run.differences.push_back(cat(name, ", ", conversation, ": ", what));
  }
  run.templates = static_cast<int>(whole.size());
  for (const auto& [name, good] : whole) run.templates_equal += good ? 1 : 0;
  return run;
}

}  // namespace inferd::testing
