// What the tests of pull share: a hub with one model, a cache to pull into, and checks of what lies there.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "hub/pull.h"
#include "hub/test_web.h"
#include "hub/test_wheel.h"

namespace inferd::testing_hub {

inline constexpr size_t kBytes = 300000;

// A function that a test may change while the server's threads still run the one before.
template <typename Signature>
class Hook {
 public:
  Hook& operator=(std::function<Signature> function) {
    const std::lock_guard lock(mutex_);
    function_ = std::move(function);
    return *this;
  }
  std::function<Signature> get() const {
    const std::lock_guard lock(mutex_);
    return function_;
  }

 private:
  mutable std::mutex mutex_;
  std::function<Signature> function_;
};

// A hub with one model, and a cache to pull into. A test may answer requests itself: `on_file` gets those for
// a file's bytes, with their number from 0, and gives true when it has answered.
class PullTest : public ::testing::Test {
 protected:
  PullTest() {
    repo_.files = {{"README.md", "# A model\n", false}, {"tiny-Q4_K_M.gguf", noise(kBytes)}};
    options_.hub.cache = scratch_.path + "/hub";
    options_.backoff_ms = 1;
    options_.hub.http.stall_timeout_ms = 200;
    options_.hub.http.header_timeout_ms = 5000;
    options_.note = [this](const std::string& text) { notes_.push_back(text); };
    options_.progress = [this](const ProgressEvent& event) {
      if (event.phase != "pull") return;
      EXPECT_GE(event.done, last_done_);
      EXPECT_LE(event.done, event.total);
      last_done_ = event.done;
    };
    start_server();
  }

  void start_server(const std::shared_ptr<ssl_ctx_st>& tls = nullptr, std::string_view host = "127.0.0.1") {
    server_.reset();
    server_ = std::make_unique<WebServer>(
        [this](const WebRequest& request, WebReply& reply) { answer(request, reply); }, tls);
    options_.hub.endpoint = server_->url(host);
  }

  void answer(const WebRequest& request, WebReply& reply) {
    const auto by_request = on_request.get();
    if (by_request && by_request(request, reply)) return;
    const FakeFile* file = repo_.find(request.target);
    const bool bytes = file != nullptr && (!file->lfs || request.target.starts_with("/cdn/"));
    const auto by_file = on_file.get();
    if (bytes && by_file && by_file(request, reply, *file, file_requests_++)) return;
    repo_.serve(request, reply);
  }

  Result<PulledModel> pull(const std::string& name = "hf:acme/tiny") {
    last_done_ = 0;
    return pull_model(parse_repo_name(name).value(), options_);
  }
  Error failed_pull(const std::string& name = "hf:acme/tiny") {
    const Result<PulledModel> pulled = pull(name);
    EXPECT_FALSE(pulled.ok());
    return pulled.ok() ? Error{} : pulled.error();
  }

  const FakeFile& model() const { return repo_.files.back(); }
  std::string folder() const { return options_.hub.cache + "/models--acme--tiny"; }
  std::string blob() const { return cat(folder(), "/blobs/", model().hash()); }
  std::string part() const { return blob() + ".incomplete"; }
  // Puts the beginning of the model's file there, as an earlier pull would have left it.
  void leave_part(const std::string& bytes) const {
    std::filesystem::create_directories(folder() + "/blobs");
    write_file(part(), bytes);
  }
  void expect_whole(const Result<PulledModel>& pulled) const {
    ASSERT_TRUE(pulled.ok()) << pulled.error().terminal_text();
    EXPECT_TRUE(read_file(pulled->path) == model().content);
    EXPECT_FALSE(std::filesystem::exists(part()));
    EXPECT_FALSE(std::filesystem::exists(part() + ".etag"));
  }
  void expect_nothing_final() const {
    EXPECT_FALSE(std::filesystem::exists(blob()));
    EXPECT_FALSE(std::filesystem::exists(folder() + "/snapshots"));
  }
  std::vector<int64_t> range_begins() const {
    std::vector<int64_t> begins;
    for (const WebRequest& request : server_->requests()) {
      if (request.target.starts_with("/cdn/")) begins.push_back(request.range_begin());
    }
    return begins;
  }

  ScratchFolder scratch_;
  FakeRepo repo_;
  PullOptions options_;
  std::vector<std::string> notes_;
  Hook<bool(const WebRequest&, WebReply&)> on_request;
  Hook<bool(const WebRequest&, WebReply&, const FakeFile&, int)> on_file;
  std::atomic<int> file_requests_{0};
  int64_t last_done_ = 0;
  std::unique_ptr<WebServer> server_;
};

}  // namespace inferd::testing_hub
