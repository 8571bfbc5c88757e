#include "support/tiny_server.h"

#include <dirent.h>

#include <thread>

#include "cpu/cpu_backend.h"
#include "formats/gguf.h"
#include "reference/reference_backend.h"
#include "support/golden.h"

namespace inferd::test {
namespace {

template <typename T>
T must(Result<T> result) {
  INFERD_CHECK(result.ok(), result.error().terminal_text());
  return std::move(result).value();
}

std::string model_path() {
  return golden_dir() + "/tiny/llama/gguf/tiny-llama-f32.gguf";
}

// Slow or failing on demand, once armed: record() is called once a step.
class TestDevice final : public Device {
 public:
  TestDevice(std::unique_ptr<Device> device, int fail_at_step, std::chrono::microseconds delay)
      : device_(std::move(device)), fail_at_step_(fail_at_step), delay_(delay) {}
  void arm() { armed_ = true; }

  std::string name() const override { return device_->name(); }
  int lag() const override { return device_->lag(); }
  int kv_page_tokens() const override { return device_->kv_page_tokens(); }
  Result<Buffer> allocate(int64_t bytes, std::string_view what) override {
    return device_->allocate(bytes, what);
  }
  void upload(void* device, const void* host, int64_t bytes) override {
    device_->upload(device, host, bytes);
  }
  void download(void* host, const void* device, int64_t bytes) override {
    device_->download(host, device, bytes);
  }
  uint64_t record() override {
    if (!armed_) return device_->record();
    if (++steps_ == fail_at_step_) throw DeviceError("injected fault in /secret/path at 0xdeadbeef");
    if (delay_.count() > 0) std::this_thread::sleep_for(delay_);
    return device_->record();
  }
  void wait(uint64_t mark) override { device_->wait(mark); }
  std::unique_ptr<Graph> capture(const std::function<void()>& body) override {
    return device_->capture(body);
  }
  void replay(Graph& graph) override { device_->replay(graph); }

 private:
  const std::unique_ptr<Device> device_;
  const int fail_at_step_;
  const std::chrono::microseconds delay_;
  bool armed_ = false;
  int steps_ = 0;
};

}  // namespace

ModelView tiny_model_view(const TinyServerOptions& options) {
  const GgufFile file = must(GgufFile::open(model_path()));
  std::vector<std::string_view> tokens, merges;
  for (const std::string_view token : must(file.strings("tokenizer.ggml.tokens"))) tokens.push_back(token);
  for (const std::string_view merge : must(file.strings("tokenizer.ggml.merges"))) merges.push_back(merge);
  std::vector<int32_t> types;
  const GgufIntegers type_array = must(file.integers("tokenizer.ggml.token_type"));
  for (int64_t i = 0; i < type_array.size(); ++i) types.push_back(static_cast<int32_t>(type_array[i]));
  TokenizerData data;
  data.model = must(file.string("tokenizer.ggml.model"));
  data.pre = must(file.string("tokenizer.ggml.pre"));
  data.tokens = tokens;
  data.types = types;
  data.merges = merges;
  data.bos = static_cast<int32_t>(must(file.integer("tokenizer.ggml.bos_token_id")));
  data.eos = static_cast<int32_t>(must(file.integer("tokenizer.ggml.eos_token_id")));

  ModelView view;
  view.name = "tiny-llama";
  view.aliases = {"tiny", "org/tiny"};
  view.tokenizer = std::make_shared<const Tokenizer>(must(Tokenizer::create(data)));
  const std::string source = options.chat_template.empty()
                                 ? std::string(must(file.string("tokenizer.chat_template")))
                                 : options.chat_template;
  if (options.has_template) {
    view.chat_template = std::make_shared<const ChatTemplate>(must(ChatTemplate::parse(source)));
  }
  view.defaults = options.defaults;
  const int32_t page_tokens = 16;
  const int32_t pages = options.kv_pages > 0
                            ? options.kv_pages
                            : (options.ctx + page_tokens - 1) / page_tokens * options.max_seqs;
  view.limits = {.max_seqs = options.max_seqs,
                 .ctx = options.ctx,
                 .prefill_chunk = options.prefill_chunk,
                 .pool = {.pages = pages, .page_tokens = page_tokens}};
  view.most_choices = options.max_seqs + options.max_queue;
  return view;
}

TinyServer::TinyServer(const TinyServerOptions& options) : view_(tiny_model_view(options)) {
  Backend backend =
      options.cpu ? must(make_cpu_backend({.threads = 2, .pin = false})) : make_reference_backend();
  auto test_device =
      std::make_unique<TestDevice>(std::move(backend.device), options.fail_at_step, options.step_delay);
  TestDevice& device = *test_device;
  backend.device = std::move(test_device);
  INFERD_CHECK(backend.device->kv_page_tokens() == view_.limits.pool.page_tokens, "page size");
  const GgufFile file = must(GgufFile::open(model_path()));
  const DecoderConfig config = must(read_decoder_config(file));
  auto decoder = must(Decoder::load(file, config, options.ctx, *backend.device, *backend.ops));
  auto runner = must(Runner::create(std::move(backend), std::move(decoder),
                                    {.ctx = options.ctx,
                                     .max_seqs = options.max_seqs,
                                     .prefill_chunk = options.prefill_chunk,
                                     .kv_pages = view_.limits.pool.pages,
                                     .kv_dtype = KvDType::f32},
                                    view_.tokenizer->banned_mask(config.vocab)));
  EngineOptions engine_options;
  engine_options.scheduler = view_.limits;
  engine_options.max_queue = options.max_queue;
  engine_ = std::make_unique<Engine>(std::move(runner), engine_options);
  device.arm();
  if (options.start_engine) engine_->start();
  ServerOptions server_options = options.server;
  server_options.port = 0;
  server_ = must(Server::start({.name = view_.name,
                                .aliases = view_.aliases,
                                .tokenizer = view_.tokenizer,
                                .chat_template = view_.chat_template,
                                .engine = engine_.get(),
                                .defaults = options.defaults,
                                .created = 1700000000,
                                .facts = {{"architecture", "llama"}, {"file", "tiny <f32>"}}},
                               server_options, must(ListenSocket::bind(server_options))));
}

TinyServer::~TinyServer() {
  server_.reset();
  engine_->stop();
}

bool TinyServer::settle() const {
  for (int i = 0; i < 20000; ++i) {
    if (engine_->requests_in_flight() == 0 && engine_->metrics().kv_blocks_active.value() == 0 &&
        server_->requests_in_flight() == 0) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

int open_descriptors() {
  DIR* folder = ::opendir("/proc/self/fd");
  int count = 0;
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}

}  // namespace inferd::test
