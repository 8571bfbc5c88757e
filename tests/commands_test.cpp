// Commands that look at the machine and at models, as a user runs them.
#include <gtest/gtest.h>

#include <unistd.h>

#include "base/json.h"
#include "ports.h"
#include "support/golden.h"
#include "support/process.h"
#include "support/tiny_server.h"

namespace inferd {
namespace {

using test::Finished;

Finished run(const std::vector<std::string>& arguments) {
  return test::run_process(INFERD_BINARY_DIR "/inferd", arguments);
}

Json json_of(const Finished& finished) {
  EXPECT_EQ(finished.code, 0) << finished.err;
  const Result<Json> json = parse_json(finished.out);
  INFERD_CHECK(json.ok(), finished.out);
  return *json;
}

std::string tiny_model() {
  return test::golden_dir() + "/tiny/llama/gguf/tiny-llama-q8_0.gguf";
}

TEST(Ports, name_the_holder_and_a_free_one) {
  const test::TinyServer server({.start_engine = false});
  const std::optional<PortHolder> holder = port_holder(server.port());
  ASSERT_TRUE(holder.has_value());
  EXPECT_EQ(holder->pid, ::getpid());
  EXPECT_EQ(holder->program, "commands_test");
  const std::optional<int32_t> other = free_port_above(server.port());
  ASSERT_TRUE(other.has_value());
  EXPECT_GT(*other, server.port());
  EXPECT_FALSE(port_holder(*other).has_value());
  const Error error = with_port_holder({.code = Code::net_port, .detail = "in use"}, server.port());
  EXPECT_EQ(error.detail, cat("in use; held by commands_test (pid ", ::getpid(), ")"));
  EXPECT_NE(error.fix.find("--port"), std::string::npos);
  EXPECT_EQ(with_port_holder({.code = Code::net_host, .detail = "x"}, server.port()).detail, "x");

  const Finished taken = run({"serve", tiny_model(), "--port", cat(server.port())});
  EXPECT_EQ(taken.code, 69);
  EXPECT_NE(taken.err.find(cat("held by commands_test (pid ", ::getpid(), ")")), std::string::npos)
      << taken.err;
  EXPECT_NE(taken.err.find(", which is free"), std::string::npos) << taken.err;
}

TEST(Doctor, checks_the_machine_and_runs_a_model_once) {
  const Json findings = json_of(run({"doctor", tiny_model(), "--port", "0", "--json"}));
  std::vector<std::string> checks;
  for (const Json& finding : findings.as_array()) {
    checks.push_back(finding.find("check")->as_string());
    if (finding.find("level")->as_string() != "ok") {
      EXPECT_NE(finding.find("fix")->as_string(), "") << checks.back();
    }
  }
  EXPECT_EQ(checks, (std::vector<std::string>{"processor", "memory", "huge pages", "models", "port", "gpu",
                                              "model"}));
  const Json& model = findings.as_array().back();
  EXPECT_EQ(model.find("level")->as_string(), "ok");
  EXPECT_NE(model.find("text")->as_string().find("peak memory"), std::string::npos);

  const Finished broken = run({"doctor", "/nowhere/model.gguf"});
  EXPECT_EQ(broken.code, 65);
  EXPECT_NE(broken.out.find("FAIL  model       E-IO-001: no such file"), std::string::npos) << broken.out;
}

TEST(Doctor, explains_every_code_and_refuses_others) {
  for (const ErrorRow& row : error_table()) {
    if (row.id.ends_with("1")) {  // one of each family
      const Json json = json_of(run({"doctor", "--explain", std::string(row.id), "--json"}));
      EXPECT_EQ(json.find("fix")->as_string(), row.fix);
      EXPECT_EQ(json.find("exit_code")->as_integer(), row.exit_code);
    }
  }
  EXPECT_EQ(run({"doctor", "--explain", "e-kv-001"}).out.substr(0, 8), "E-KV-001");
  const Finished unknown = run({"doctor", "--explain", "E-KV-999"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("E-ARG-003"), std::string::npos);
}

TEST(Plan, tables_contexts_and_numbers_of_sequences) {
  const Json plan = json_of(run({"plan", tiny_model(), "--json"}));
  const Json::Array& rows = plan.find("table")->find("whole_contexts")->as_array();
  ASSERT_EQ(rows.size() % 3, 0u);
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t seqs = rows[i].find("max_seqs")->as_integer();
    EXPECT_EQ(seqs, (std::vector<int64_t>{1, 8, 32})[i % 3]);
    EXPECT_TRUE(rows[i].find("fits")->as_bool());
    const Json::Array& first = rows;
    EXPECT_EQ(rows[i].find("kv_bytes")->as_integer(), first[i - i % 3].find("kv_bytes")->as_integer() * seqs);
  }
  const Json::Array& largest = plan.find("table")->find("largest_context")->as_array();
  ASSERT_EQ(largest.size(), 3u);
  for (const Json& l : largest) EXPECT_EQ(l.find("ctx")->as_integer(), rows.back().find("ctx")->as_integer());

  // Exactly what was asked for: no table.
  const Finished exact = run({"plan", tiny_model(), "--ctx", "64", "--max-seqs", "2"});
  EXPECT_EQ(exact.code, 0);
  EXPECT_EQ(exact.out.find("largest"), std::string::npos);
}

}  // namespace
}  // namespace inferd
