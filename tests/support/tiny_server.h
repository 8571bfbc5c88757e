// A whole server in this process: the tiny llama model, its tokenizer and chat template, on a free port of
// the loopback.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "server/server.h"

namespace inferd::test {

struct TinyServerOptions {
  int32_t ctx = 256;
  int32_t max_seqs = 8;
  int32_t max_queue = 64;
  int32_t kv_pages = 0;  // 0: max_seqs · ctx
  int32_t prefill_chunk = 64;
  std::string chat_template;  // empty: the file's own
  bool has_template = true;
  SamplingParams defaults;
  bool start_engine = true;
  bool cpu = false;      // the cpu backend with two threads; else the reference
  int fail_at_step = 0;  // throws DeviceError in this step, counted from 1; 0: never
  std::chrono::microseconds step_delay{0};
  ServerOptions server;  // the port is a free one
};

// The tokenizer and chat template of the tiny model, without an engine.
ModelView tiny_model_view(const TinyServerOptions& options = {});

class TinyServer {
 public:
  explicit TinyServer(const TinyServerOptions& options = {});
  ~TinyServer();

  int port() const { return server_->port(); }
  Server& server() { return *server_; }
  Engine& engine() { return *engine_; }
  const EngineMetrics& metrics() const { return engine_->metrics(); }
  // Waits until no request is in the engine and no page is in use; false after 20 s.
  bool settle() const;
  const Tokenizer& tokenizer() const { return *view_.tokenizer; }

 private:
  ModelView view_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Server> server_;
};

// Descriptors that this process has open.
int open_descriptors();

}  // namespace inferd::test
