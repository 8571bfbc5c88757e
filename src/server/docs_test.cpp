// docs/api.md and docs/metrics.md say what the tables in the code say. To write the tables anew:
// INFERD_WRITE_DOCS=1.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "base/strings.h"
#include "server/field_tables.h"
#include "server/pages.h"
#include "server/router.h"
#include "support/golden.h"
#include "support/http_client.h"
#include "support/tiny_server.h"

namespace inferd {
namespace {

std::string table_of(const std::vector<MetricRow>& rows) {
  std::string out = "| name | type | meaning |\n| --- | --- | --- |\n";
  for (const MetricRow& row : rows) out += cat("| `", row.name, "` | ", row.type, " | ", row.help, " |\n");
  return out;
}

// What stands between <!-- NAME --> and <!-- end --> must be `expected`.
void check_block(const std::string& file, std::string_view name, const std::string& expected) {
  const std::string path = std::string(INFERD_SOURCE_DIR "/docs/") + file;
  std::string text = test::read_file(path);
  const std::string head = cat("<!-- ", name, " -->\n");
  const size_t begin = text.find(head);
  ASSERT_NE(begin, std::string::npos) << file << " has no block " << name;
  const size_t from = begin + head.size();
  const size_t to = text.find("<!-- end -->", from);
  ASSERT_NE(to, std::string::npos);
  if (std::getenv("INFERD_WRITE_DOCS") != nullptr) {
    text.replace(from, to - from, expected);
    std::ofstream(path) << text;
    return;
  }
  EXPECT_EQ(text.substr(from, to - from), expected) << file << ", block " << name;
}

TEST(ApiPage, has_every_field_with_its_range_and_default) {
  for (const RouteFields* route : all_route_fields()) {
    check_block("api.md", cat("fields ", route->route), field_table_markdown(route->tables));
  }
}

TEST(ApiPage, names_every_route) {
  const std::string text = test::read_file(INFERD_SOURCE_DIR "/docs/api.md");
  for (const RouteInfo& route : all_routes()) {
    std::string path(route.path);
    if (path.ends_with('*')) path = path.substr(0, path.size() - 1) + "NAME";
    EXPECT_NE(text.find(cat(route.method, " ", path)), std::string::npos) << route.method << " " << path;
  }
}

TEST(MetricsPage, has_every_metric_with_its_definition) {
  check_block("metrics.md", "metrics", table_of(metric_rows()));
  check_block("metrics.md", "json", table_of(metric_json_rows()));
}

TEST(MetricsPage, the_ancestors_sixteen_fields_and_ours_are_there) {
  const test::TinyServer server;
  const Json json = test::get(server.port(), "/metrics.json").json();
  for (const std::string_view name : {"waiting_sequences",
                                      "active_sequences",
                                      "completed_sequences",
                                      "failed_sequences",
                                      "admitted_sequences",
                                      "evicted_sequences",
                                      "iterations",
                                      "total_generated_tokens",
                                      "used_blocks",
                                      "free_blocks",
                                      "max_blocks_used",
                                      "tokens_per_second",
                                      "last_ttft_s",
                                      "peak_vram_mb",
                                      "uptime_s",
                                      "model",
                                      "requests_running",
                                      "requests_waiting",
                                      "kv_blocks_total",
                                      "kv_blocks_active",
                                      "kv_blocks_cached",
                                      "kv_blocks_free",
                                      "preemptions_total",
                                      "prompt_tokens_total",
                                      "prefix_hit_tokens_total",
                                      "generation_tokens_total",
                                      "step_sequences_max"}) {
    EXPECT_NE(json.find(name), nullptr) << name;
  }
  EXPECT_TRUE(json.find("last_ttft_s")->is_null());
}

// The text format 0.0.4: every sample belongs to the family above it, families come once, buckets are
// cumulative and end at +Inf with the count.
TEST(MetricsPage, the_text_is_well_formed) {
  const test::TinyServer server;
  for (int i = 0; i < 3; ++i)
    test::post(server.port(), "/v1/completions", R"({"prompt":"a","max_tokens":9})");
  const std::string page = test::get(server.port(), "/metrics").body;
  ASSERT_TRUE(page.ends_with('\n'));
  std::string family, type, series;
  std::vector<std::string> families;
  double last_bucket = 0;
  int samples = 0;
  for (const std::string_view line : split(std::string_view(page).substr(0, page.size() - 1), '\n')) {
    if (line.starts_with("# HELP ")) {
      const std::string_view rest = line.substr(7);
      family = rest.substr(0, rest.find(' '));
      EXPECT_EQ(std::ranges::find(families, family), families.end()) << family << " twice";
      families.push_back(family);
      EXPECT_GT(rest.size(), family.size() + 10) << "no definition: " << line;
      continue;
    }
    if (line.starts_with("# TYPE ")) {
      EXPECT_TRUE(line.substr(7).starts_with(family + " "));
      type = line.substr(7 + family.size() + 1);
      EXPECT_EQ(type == "counter", family.ends_with("_total")) << family;
      continue;
    }
    ++samples;
    const size_t name_end = line.find_first_of("{ ");
    const std::string_view name = line.substr(0, name_end);
    ASSERT_TRUE(name.starts_with(family)) << line;
    const std::string_view suffix = name.substr(family.size());
    if (type == "histogram") {
      EXPECT_TRUE(suffix == "_bucket" || suffix == "_sum" || suffix == "_count") << line;
    } else {
      EXPECT_EQ(suffix, "") << line;
    }
    const std::optional<double> value = parse_double(line.substr(line.rfind(' ') + 1));
    ASSERT_TRUE(value.has_value()) << line;
    if (suffix == "_bucket") {
      const std::string_view of = line.substr(0, line.find("le=\""));
      if (of != series) last_bucket = 0;
      series = of;
      EXPECT_GE(*value, last_bucket) << line;
      last_bucket = *value;
    }
    if (suffix == "_count") {
      EXPECT_EQ(*value, last_bucket) << "the count is the last bucket's: " << line;
    }
  }
  EXPECT_EQ(families.size(), metric_rows().size());
  EXPECT_LE(samples, 500);
  EXPECT_GT(samples, 150);
}

// Prometheus' own checker, which `./dev setup` fetches.
TEST(MetricsPage, promtool_has_nothing_to_say) {
  const std::string promtool = INFERD_SOURCE_DIR "/build/tools/promtool";
  ASSERT_EQ(::access(promtool.c_str(), X_OK), 0) << "no " << promtool << "; ./dev setup --tests fetches it";
  const test::TinyServer server;
  test::post(server.port(), "/v1/completions", R"({"prompt":"a","max_tokens":9})");
  const std::string page = cat(testing::TempDir(), ::getpid(), "-metrics_page.txt");
  std::ofstream(page) << test::get(server.port(), "/metrics").body;
  const std::string words = page + ".out";
  EXPECT_EQ(std::system(cat("'", promtool, "' check metrics < '", page, "' > '", words, "' 2>&1").c_str()), 0)
      << test::read_file(words);
  EXPECT_EQ(test::read_file(words), "");
  ::unlink(page.c_str());
  ::unlink(words.c_str());
}

}  // namespace
}  // namespace inferd
