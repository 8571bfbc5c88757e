// Commands that look at the machine and at models, as a user runs them.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "hub/file_lock.h"
#include "hub/sha256.h"
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

// A model folder of its own with one model in it.
struct ModelFolder {
  ModelFolder() {
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path + "/inferd/models");
    std::filesystem::copy_file(tiny_model(), file);
  }
  ~ModelFolder() { std::filesystem::remove_all(path); }
  Finished run(const std::vector<std::string>& arguments, const std::string& input = "") const {
    return test::run_process(
        INFERD_BINARY_DIR "/inferd", arguments,
        {.environment = {cat("XDG_DATA_HOME=", path), cat("HF_HOME=", path, "/hf")}, .stdin_text = input});
  }
  const std::string path = cat(testing::TempDir(), "inferd_commands_", ::getpid());
  const std::string file = path + "/inferd/models/mine.gguf";
};

TEST(Template, renders_a_conversation_from_a_file_or_stdin) {
  const ModelFolder folder;
  const std::string jinja = folder.path + "/chat.jinja";
  std::ofstream(jinja) << "{% if not messages %}{{ raise_exception('say something') }}{% endif %}"
                          "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
                          "{% if tools %}({{ tools | length }} tools){% endif %}"
                          "{% if documents %}({{ documents[0].title }}){% endif %}"
                          "{% if enable_thinking %}<think>{% endif %}"
                          "{% if add_generation_prompt %}[assistant]{% endif %}";
  const auto render = [&](const std::string& input, const std::vector<std::string>& more = {}) {
    std::vector<std::string> all = {"template", "render", "--template", jinja, "--input", "-"};
    all.insert(all.end(), more.begin(), more.end());
    return folder.run(all, input);
  };
  const std::string messages = R"("messages": [{"role": "user", "content": "Hi"}])";
  EXPECT_EQ(render(cat("{", messages, "}")).out, "[user]Hi[assistant]");
  EXPECT_EQ(render(cat("{", messages, R"(, "tools": [1, 2], "documents": [{"title": "D"}],
                       "kwargs": {"enable_thinking": true, "add_generation_prompt": false}})"))
                .out,
            "[user]Hi(2 tools)(D)<think>");
  const Json json = json_of(render(cat("{", messages, "}"), {"--json"}));
  EXPECT_EQ(json.find("text")->as_string(), "[user]Hi[assistant]");
  const Json::Array& spans = json.find("spans")->as_array();
  ASSERT_EQ(spans.size(), 5u);  // [ user ]… : only what the caller wrote is no markup
  EXPECT_FALSE(spans[1].find("markup")->as_bool());
  EXPECT_TRUE(spans[4].find("markup")->as_bool());

  const Finished refused = render(R"({"messages": []})");
  EXPECT_EQ(refused.code, error_row(Code::template_raise).exit_code);
  EXPECT_NE(refused.err.find("E-TMPL-002"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("say something"), std::string::npos) << refused.err;
  EXPECT_EQ(refused.out, "");
  for (const auto& [input, what] :
       {std::pair(std::string("[1]"), "got array"), std::pair(std::string("{}"), "messages is missing"),
        std::pair(cat("{", messages, R"(, "tool": 1})"), "unknown member \"tool\""),
        std::pair(cat("{", messages, R"(, "kwargs": 1})"), "kwargs: got integer"),
        std::pair(cat("{", messages, R"(, "kwargs": {"add_generation_prompt": 1}})"), "is no boolean"),
        std::pair(std::string("{"), "E-REQ-001")}) {
    const Finished bad = render(input);
    EXPECT_EQ(bad.code, 2) << input << bad.err;
    EXPECT_NE(bad.err.find(what), std::string::npos) << bad.err;
  }
  EXPECT_EQ(folder.run({"template", "render", "--template", jinja}).code, 2);
  EXPECT_EQ(folder.run({"template", "parse", "--template", jinja, "--input", "-"}).code, 2);
  EXPECT_EQ(folder.run({"template", "render", "--template", "smolm2", "--input", "/absent.json"}).code, 65);
  EXPECT_EQ(folder.run({"template", "render", "--template", "smolm2", "--input", "-"}, "{}").code, 2);
}

TEST(Score, perplexity_is_the_score_of_all_tokens_after_the_first) {
  const ModelFolder folder;
  const std::string text = "Once upon a time there was a text of some length.";
  const auto scored = [&](const std::string& prompt, const std::string& continuation) {
    return json_of(folder.run({"score", "mine", prompt, continuation, "--kv-dtype", "f32", "--json"}))
        .find("scores")
        ->as_array()
        .front();
  };
  const auto ppl = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = {"ppl", "mine", "-", "--kv-dtype", "f32", "--json"};
    all.insert(all.end(), more.begin(), more.end());
    return json_of(folder.run(all, text));
  };
  const Json rest = scored(text.substr(0, 1), text.substr(1));
  const Json whole = ppl({});
  const double sum =
      whole.find("nats_per_token")->as_number() * static_cast<double>(whole.find("tokens")->as_integer());
  EXPECT_EQ(whole.find("tokens")->as_integer(), static_cast<int64_t>(rest.find("tokens")->as_array().size()));
  EXPECT_NEAR(sum, -rest.find("log_probability")->as_number(), 1e-9 * sum);
  EXPECT_NEAR(whole.find("perplexity")->as_number(), std::exp(whole.find("nats_per_token")->as_number()),
              1e-9);
  EXPECT_GT(whole.find("standard_error")->as_number(), 0);
  // How the text is cut into steps changes no bit; windows share nothing.
  EXPECT_EQ(ppl({"--prefill-chunk", "5"}).find("perplexity")->as_number(),
            whole.find("perplexity")->as_number());
  const Json windows = ppl({"--ctx", "16"});
  EXPECT_GT(windows.find("windows")->as_integer(), 1);
  EXPECT_EQ(windows.find("tokens")->as_integer() + windows.find("windows")->as_integer(),
            whole.find("tokens")->as_integer() + 1);
  // The next token's probabilities are those of one distribution: no two continuations that begin differently
  // have more than 1 together.
  EXPECT_LT(std::exp(scored("On", "c").find("log_probability")->as_number()) +
                std::exp(scored("On", "x").find("log_probability")->as_number()),
            1.0);

  EXPECT_EQ(folder.run({"ppl", "mine", "-"}, "x").code, 2);
  EXPECT_EQ(folder.run({"ppl", "mine", "-"}, "h\xe9llo").code, 2);
  EXPECT_EQ(folder.run({"ppl", "mine", "/absent"}).code, 65);
  EXPECT_EQ(folder.run({"ppl", "mine", "-", "--ctx", "100k"}, text).code, 2);
  EXPECT_EQ(folder.run({"score", "mine", "", "x"}).code, 2);
  EXPECT_EQ(folder.run({"score", "mine", "Once", ""}).code, 2);
}

// As huggingface_hub leaves it: two snapshots that share one blob.
std::string cache_with_two_snapshots(const ModelFolder& folder, const std::string& hash) {
  const std::string repo = folder.path + "/hf/hub/models--acme--tiny";
  std::filesystem::create_directories(repo + "/blobs");
  std::filesystem::copy_file(tiny_model(), cat(repo, "/blobs/", hash));
  for (const char commit : {'a', 'b'}) {
    const std::string snapshot = cat(repo, "/snapshots/", std::string(40, commit));
    std::filesystem::create_directories(snapshot);
    std::filesystem::create_symlink(cat("../../blobs/", hash), snapshot + "/tiny-Q8_0.gguf");
  }
  std::filesystem::create_directories(repo + "/refs");
  std::ofstream(repo + "/refs/main") << std::string(40, 'a');
  return repo;
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
  EXPECT_EQ(checks, (std::vector<std::string>{"processor", "memory", "huge pages", "models", "cache", "port",
                                              "gpu", "model"}));
  const Json& model = findings.as_array().back();
  EXPECT_EQ(model.find("level")->as_string(), "ok");
  EXPECT_NE(model.find("text")->as_string().find("peak memory"), std::string::npos);

  const Finished broken = run({"doctor", "/nowhere/model.gguf"});
  EXPECT_EQ(broken.code, 65);
  EXPECT_NE(broken.out.find("FAIL  model       E-IO-001: no such file"), std::string::npos) << broken.out;
}

TEST(Doctor, names_what_is_wrong_with_folders_and_cache) {
  const ModelFolder folder;
  const auto finding = [&](const std::string& check) {
    const Finished doctor = folder.run({"doctor", "--port", "0", "--json"});
    const Result<Json> json = parse_json(doctor.out);
    INFERD_CHECK(json.ok(), doctor.out, doctor.err);
    for (const Json& one : json->as_array()) {
      if (one.find("check")->as_string() == check)
        return cat(one.find("level")->as_string(), " ", one.find("text")->as_string(), " | ",
                   one.find("fix")->as_string());
    }
    return std::string("no such check");
  };
  EXPECT_TRUE(finding("models").starts_with(cat("ok 1 model in ", folder.path, "/inferd/models, ")))
      << finding("models");
  EXPECT_TRUE(finding("cache").starts_with(cat("ok 0 models in ", folder.path, "/hf/hub, ")));
  const std::string repo = cache_with_two_snapshots(folder, std::string(64, 'd'));
  std::ofstream(repo + "/blobs/" + std::string(64, 'e') + ".incomplete") << std::string(2048, 'x');
  std::string cache = finding("cache");
  EXPECT_TRUE(cache.starts_with(cat("ok 1 model in ", folder.path, "/hf/hub, "))) << cache;
  EXPECT_NE(cache.find("; 2.00 KiB of unfinished downloads"), std::string::npos) << cache;
  std::filesystem::remove(repo + "/blobs/" + std::string(64, 'd'));
  cache = finding("cache");
  EXPECT_TRUE(cache.starts_with("warn 0 models")) << cache;
  EXPECT_TRUE(cache.ends_with("; parts are gone of hf:acme/tiny | `inferd pull hf:acme/tiny` completes it"))
      << cache;
  std::filesystem::remove_all(folder.path + "/inferd/models");
  std::ofstream(folder.path + "/inferd/models") << "a file";
  EXPECT_TRUE(finding("models").starts_with("fail ")) << finding("models");
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

TEST(List, shows_size_type_context_and_whether_it_fits) {
  const ModelFolder folder;
  std::ofstream(folder.path + "/inferd/models/broken.gguf") << "GGUX";
  const Json::Array models = json_of(folder.run({"list", "--json"})).find("models")->as_array();
  ASSERT_EQ(models.size(), 3u);
  EXPECT_EQ(models[0].find("fits")->as_string(), "E-GGUF-001");
  EXPECT_EQ(models[1].find("name")->as_string(), "mine");
  EXPECT_EQ(models[1].find("type")->as_string(), "Q8_0");
  EXPECT_EQ(models[1].find("fits")->as_string(), "yes");
  EXPECT_GT(models[1].find("ctx")->as_integer(), 0);
  EXPECT_FALSE(models[2].find("present")->as_bool());
  const Finished text = folder.run({"list"});
  EXPECT_NE(text.out.find("mine  "), std::string::npos);
  EXPECT_NE(text.out.find("not here: `inferd pull smollm2`"), std::string::npos) << text.out;
}

TEST(Show, verify_reads_hash_and_structure) {
  const ModelFolder folder;
  const Finished good = folder.run({"show", "mine", "--verify"});
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_NE(good.out.find(sha256_of_file(folder.file).value()), std::string::npos) << good.out;

  const std::string right = sha256_of_file(folder.file).value();
  cache_with_two_snapshots(folder, right);
  EXPECT_EQ(json_of(folder.run({"show", "hf:acme/tiny", "--verify", "--json"})).find("wanted")->as_string(),
            right);
  const ModelFolder other;  // the same path, made anew
  cache_with_two_snapshots(other, std::string(64, 'c'));
  const Finished bad = other.run({"show", "hf:acme/tiny", "--verify"});
  EXPECT_EQ(bad.code, 65);
  EXPECT_NE(bad.err.find("E-MODEL-007"), std::string::npos) << bad.err;

  std::filesystem::resize_file(other.file, std::filesystem::file_size(other.file) - 1);
  EXPECT_NE(other.run({"show", "mine", "--verify"}).err.find("E-GGUF-003"), std::string::npos);
}

TEST(Remove, asks_frees_bytes_and_keeps_what_another_snapshot_needs) {
  const ModelFolder folder;
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(folder.file));
  const Finished unasked = folder.run({"rm", "mine"}, "y\n");  // a pipe is nobody
  EXPECT_EQ(unasked.code, 2);
  EXPECT_NE(unasked.err.find("inferd rm -y mine"), std::string::npos) << unasked.err;
  EXPECT_TRUE(std::filesystem::exists(folder.file));
  // One wrong name, and nothing goes.
  EXPECT_EQ(folder.run({"rm", "-y", "mine", "hf:acme/none"}).code, 65);
  EXPECT_EQ(folder.run({"rm", "-y", tiny_model()}).code, 2);
  EXPECT_TRUE(std::filesystem::exists(folder.file));
  EXPECT_EQ(json_of(folder.run({"rm", "-y", "mine", "--json"})).find("freed_bytes")->as_integer(), bytes);
  EXPECT_FALSE(std::filesystem::exists(folder.file));
  EXPECT_EQ(folder.run({"rm", "-y", "mine"}).code, 65);

  const std::string hash(64, 'd');
  const std::string repo = cache_with_two_snapshots(folder, hash);
  EXPECT_EQ(json_of(folder.run({"rm", "-y", "hf:acme/tiny", "--json"})).find("freed_bytes")->as_integer(), 0);
  EXPECT_TRUE(std::filesystem::exists(cat(repo, "/blobs/", hash)));
  std::ofstream(repo + "/refs/main") << std::string(40, 'b');
  EXPECT_EQ(
      json_of(folder.run({"rm", "-y", "hf:acme/tiny:Q8_0", "--json"})).find("freed_bytes")->as_integer(),
      bytes);
  EXPECT_FALSE(std::filesystem::exists(cat(repo, "/blobs/", hash)));
}

TEST(Remove, leaves_a_model_that_another_process_fetches) {
  const ModelFolder folder;
  const auto lock = FileLock::acquire(folder.path + "/inferd/models/.mine.lock", FileLock::After::remove,
                                      [] { return Status(); });
  ASSERT_TRUE(lock.ok());
  const Finished busy = folder.run({"rm", "-y", "mine"});
  EXPECT_EQ(busy.code, 65);
  EXPECT_NE(busy.err.find("E-HUB-016"), std::string::npos) << busy.err;
  EXPECT_TRUE(std::filesystem::exists(folder.file));
}

}  // namespace
}  // namespace inferd
