// What the tests of `inferd pull` as a process share: a hub with a model that loads, a home of its own, and
// places where the disk or the user's rights are other than here.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/strings.h"
#include "hub/test_web.h"
#include "hub/test_wheel.h"
#include "support/golden.h"
#include "support/process.h"

namespace inferd {

const std::string kProgram = INFERD_BINARY_DIR "/inferd";

// A hub with a model that loads, and a home of its own.
class PullHome : public ::testing::Test {
 protected:
  PullHome() {
    const std::string tiny = test::golden_dir() + "/tiny/llama/gguf/tiny-llama-q8_0.gguf";
    repo_.files = {{"README.md", "# tiny\n", false}, {"tiny-Q8_0.gguf", test::read_file(tiny)}};
  }

  void start_server(const std::shared_ptr<ssl_ctx_st>& tls = nullptr) {
    server_ = std::make_unique<testing_hub::WebServer>(
        [this](const testing_hub::WebRequest& request, testing_hub::WebReply& reply) {
          const testing_hub::FakeFile* file = repo_.find(request.target);
          const bool bytes = file != nullptr && (!file->lfs || request.target.starts_with("/cdn/"));
          if (!(bytes && on_file && on_file(request, reply, *file))) repo_.serve(request, reply);
        },
        tls);
  }

  std::vector<std::string> environment(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all = {cat("HOME=", scratch_.path),
                                    "XDG_CACHE_HOME=",
                                    "XDG_DATA_HOME=",
                                    "HF_HOME=",
                                    "HF_HUB_CACHE=",
                                    "HF_TOKEN=",
                                    "HF_TOKEN_PATH=",
                                    "HF_HUB_OFFLINE=",
                                    "INFERD_OFFLINE=",
                                    "HTTPS_PROXY=",
                                    "https_proxy=",
                                    "SSL_CERT_FILE=",
                                    cat("HF_ENDPOINT=", server_ ? server_->url() : "http://127.0.0.1:1")};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  test::Finished run(const std::vector<std::string>& arguments,
                     const std::vector<std::string>& more = {}) const {
    return test::run_process(kProgram, arguments, {.environment = environment(more)});
  }

  std::string cache() const { return scratch_.path + "/.cache/huggingface/hub"; }
  std::string folder() const { return cache() + "/models--acme--tiny"; }
  std::string blob(const testing_hub::FakeFile& file) const { return cat(folder(), "/blobs/", file.hash()); }
  int64_t part_bytes(const testing_hub::FakeFile& file) const {
    std::error_code absent;
    const auto bytes = std::filesystem::file_size(blob(file) + ".incomplete", absent);
    return absent ? -1 : static_cast<int64_t>(bytes);
  }
  std::string snapshot_path() const {
    return cat(folder(), "/snapshots/", repo_.commit, "/", repo_.files.back().path);
  }

  // Whatever stands under a final name is whole and right; gives how many do.
  int check_final_files() const {
    int whole = 0;
    for (const testing_hub::FakeFile& file : repo_.files) {
      if (std::filesystem::exists(blob(file))) {
        ++whole;
        EXPECT_TRUE(test::read_file(blob(file)) == file.content) << file.path;
      }
      const std::string link = cat(folder(), "/snapshots/", repo_.commit, "/", file.path);
      if (std::filesystem::is_symlink(link)) {
        EXPECT_TRUE(test::read_file(link) == file.content) << file.path;
      }
    }
    return whole;
  }

  testing_hub::ScratchFolder scratch_;
  testing_hub::FakeRepo repo_;
  std::function<bool(const testing_hub::WebRequest&, testing_hub::WebReply&, const testing_hub::FakeFile&)>
      on_file;
  std::unique_ptr<testing_hub::WebServer> server_;
};

// A shell command in namespaces of its own for users and mounts, where it is root; "$@" is the program.
inline test::Finished in_mount_namespace(const std::string& script, const std::vector<std::string>& arguments,
                                         const std::vector<std::string>& environment) {
  std::vector<std::string> all = {"-rm", "sh", "-c", script, "sh", kProgram};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return test::run_process("/usr/bin/unshare", all, {.environment = environment});
}

// The program without root's right to pass over permissions; in the environment of `environment`.
inline test::Finished run_without_privilege(const std::vector<std::string>& arguments,
                                            const std::vector<std::string>& environment,
                                            const std::string& program = kProgram) {
  if (::geteuid() != 0) return test::run_process(program, arguments, {.environment = environment});
  std::vector<std::string> all = {"--bounding-set", "-dac_override,-dac_read_search", "--inh-caps",
                                  "-dac_override,-dac_read_search", program};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return test::run_process("/usr/bin/setpriv", all, {.environment = environment});
}

inline bool can_run_without_privilege() {
  return run_without_privilege({}, {}, "/bin/true").code == 0;
}

}  // namespace inferd
