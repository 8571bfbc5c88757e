// Pulls from a scripted hub on loopback: what goes well, and every way in which a server or the cache may
// misbehave.
#include "hub/pull.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "base/strings.h"
#include "hub/hub_cache.h"
#include "hub/test_pull.h"

namespace inferd {
namespace {

namespace fs = std::filesystem;
using testing_hub::content_answer;
using testing_hub::FakeFile;
using testing_hub::kBytes;
using testing_hub::names_in;
using testing_hub::noise;
using testing_hub::PullTest;
using testing_hub::read_file;
using testing_hub::web_answer;
using testing_hub::WebReply;
using testing_hub::WebRequest;
using testing_hub::WebServer;
using testing_hub::write_file;

using Begins = std::vector<int64_t>;

// ---- what goes well

TEST_F(PullTest, a_model_lies_where_huggingface_hub_would_put_it) {
  const Result<PulledModel> pulled = pull();
  expect_whole(pulled);
  EXPECT_EQ(pulled->path, cat(folder(), "/snapshots/", repo_.commit, "/tiny-Q4_K_M.gguf"));
  EXPECT_EQ(fs::read_symlink(pulled->path), cat("../../blobs/", model().hash()));
  EXPECT_EQ(read_file(folder() + "/refs/main"), repo_.commit);
  EXPECT_EQ(names_in(folder()), (std::vector<std::string>{"blobs", "refs", "snapshots"}));
  EXPECT_EQ(names_in(folder() + "/blobs"), std::vector<std::string>{model().hash()});
  EXPECT_EQ(names_in(folder() + "/refs"), std::vector<std::string>{"main"});
  EXPECT_EQ(pulled->fetched_bytes, static_cast<int64_t>(kBytes));
  EXPECT_EQ(last_done_, static_cast<int64_t>(kBytes));
  EXPECT_TRUE(notes_.empty());
}

TEST_F(PullTest, nothing_is_fetched_twice) {
  expect_whole(pull());
  const int asked = file_requests_;
  const Result<PulledModel> again = pull();
  expect_whole(again);
  EXPECT_EQ(again->fetched_bytes, 0);
  EXPECT_EQ(file_requests_, asked);
}

TEST_F(PullTest, of_a_new_commit_only_what_changed_is_fetched_and_the_old_one_stays) {
  const std::string old_path = pull()->path;
  repo_.commit = std::string(40, 'd');
  EXPECT_EQ(pull()->fetched_bytes, 0);
  repo_.commit = std::string(40, 'e');
  repo_.files.back().content = noise(kBytes, 2);
  const Result<PulledModel> newest = pull();
  expect_whole(newest);
  EXPECT_EQ(newest->fetched_bytes, static_cast<int64_t>(kBytes));
  EXPECT_TRUE(read_file(old_path) == noise(kBytes));
  EXPECT_EQ(read_file(folder() + "/refs/main"), repo_.commit);
}

TEST_F(PullTest, a_safetensors_model_comes_as_a_folder_without_what_is_not_needed) {
  repo_.files = {{".gitattributes", "x", false},
                 {"README.md", "y", false},
                 {"config.json", "{}", false},
                 {"model-00001-of-00002.safetensors", noise(100000, 3)},
                 {"model-00002-of-00002.safetensors", noise(50000, 4)},
                 {"onnx/model.onnx", noise(1000, 5)},
                 {"tokenizer.json", noise(20000, 6)}};
  const Result<PulledModel> pulled = pull();
  ASSERT_TRUE(pulled.ok()) << pulled.error().terminal_text();
  EXPECT_TRUE(pulled->safetensors);
  EXPECT_EQ(names_in(pulled->path),
            (std::vector<std::string>{"config.json", "model-00001-of-00002.safetensors",
                                      "model-00002-of-00002.safetensors", "tokenizer.json"}));
  EXPECT_EQ(last_done_, 170002);  // one bar for all
  for (const PulledFile& file : pulled->files) {
    const FakeFile* listed =
        repo_.find(cat("/acme/tiny/resolve/", repo_.commit, "/", fs::path(file.path).filename().string()));
    EXPECT_TRUE(read_file(file.path) == listed->content) << file.path;
    EXPECT_EQ(file.hash, listed->hash());
  }
}

TEST_F(PullTest, a_file_in_a_folder_of_the_repository_and_an_empty_one_keep_their_place) {
  repo_.files = {{"a b/c/empty.gguf", "", false}, {"a b/c/more.gguf", "GGUF"}};
  const Result<PulledModel> empty = pull("hf:acme/tiny/a b/c/empty.gguf");
  ASSERT_TRUE(empty.ok()) << empty.error().terminal_text();
  EXPECT_EQ(read_file(empty->path), "");
  EXPECT_EQ(fs::read_symlink(empty->path), cat("../../../../blobs/", repo_.files[0].hash()));
}

TEST_F(PullTest, the_quantisation_is_picked_by_tag_and_q4_k_m_is_the_default) {
  repo_.files = {{"tiny-Q8_0.gguf", "eight"}, {"mmproj-F16.gguf", "eyes"}, {"tiny-Q4_K_M.gguf", "four"}};
  EXPECT_EQ(read_file(pull()->path), "four");
  EXPECT_EQ(read_file(pull("hf:acme/tiny:q8_0")->path), "eight");
  const Error absent = failed_pull("hf:acme/tiny:Q5_K");
  EXPECT_EQ(absent.code, Code::hub_choice);
  EXPECT_EQ(absent.detail, "there is no Q5_K; there is: Q4_K_M, Q8_0");
  repo_.files.pop_back();
  repo_.files.push_back({"tiny-Q6_K.gguf", "six"});
  EXPECT_EQ(failed_pull().detail, "there is no Q4_K_M; there is: Q6_K, Q8_0");
}

TEST_F(PullTest, a_model_split_into_several_gguf_files_is_refused_by_name) {
  repo_.files = {{"tiny-Q4_K_M-00001-of-00002.gguf", "a"}, {"tiny-Q4_K_M-00002-of-00002.gguf", "b"}};
  const Error error = failed_pull();
  EXPECT_EQ(error.code, Code::model_format);
  EXPECT_EQ(error.detail, "a GGUF model in 2 parts");
  EXPECT_EQ(file_requests_, 0);
}

// ---- interruptions

TEST_F(PullTest, a_connection_cut_in_the_body_goes_on_where_it_was_cut) {
  on_file = [](const WebRequest& request, WebReply& reply, const FakeFile& file, int n) {
    if (n > 1) return false;
    const std::string whole = content_answer(request, file.content, file.etag());
    return reply.send(std::string_view(whole).substr(0, whole.size() - 100000)), true;
  };
  const Result<PulledModel> pulled = pull();
  expect_whole(pulled);
  EXPECT_EQ(range_begins(), (Begins{-1, 200000, 200000}));  // the second time nothing more came
  EXPECT_EQ(pulled->fetched_bytes, static_cast<int64_t>(kBytes));
  EXPECT_EQ(server_->requests().back().header("if-range"), cat("\"", model().etag(), "\""));
  ASSERT_EQ(notes_.size(), 2u);
  EXPECT_EQ(notes_[0], "the connection was closed early, retrying 2/5");
}

TEST_F(PullTest, a_stall_is_said_and_tried_again) {
  on_file = [](const WebRequest& request, WebReply& reply, const FakeFile& file, int n) {
    if (n > 0) return false;
    reply.send(std::string_view(content_answer(request, file.content, file.etag())).substr(0, 70000));
    reply.stall();
    return true;
  };
  expect_whole(pull());
  EXPECT_EQ(notes_, std::vector<std::string>{"stalled 200 ms, retrying 2/5"});
}

TEST_F(PullTest, without_any_progress_it_gives_up_after_five_attempts_and_keeps_the_part) {
  on_file = [](const WebRequest& request, WebReply& reply, const FakeFile& file, int) {
    if (request.range_begin() > 0) return true;  // closed without a word
    return reply.send(std::string_view(content_answer(request, file.content, file.etag())).substr(0, 150000)),
           true;
  };
  const Error error = failed_pull();
  EXPECT_EQ(error.code, Code::hub_network);
  EXPECT_NE(error.detail.find(", after 5 attempts"), std::string::npos) << error.detail;
  EXPECT_GT(fs::file_size(part()), 140000u);
  expect_nothing_final();
  const auto kept = static_cast<int64_t>(fs::file_size(part()));
  on_file = [](const WebRequest& request, WebReply& reply, const FakeFile& file, int) {
    return reply.send(content_answer(request, file.content, file.etag())), true;
  };
  const Result<PulledModel> pulled = pull();
  expect_whole(pulled);
  EXPECT_EQ(pulled->fetched_bytes, static_cast<int64_t>(kBytes) - kept);
  EXPECT_EQ(server_->requests().back().header("if-range"),
            cat("\"", model().etag(), "\""));  // from the file beside the part
}

TEST_F(PullTest, a_stop_keeps_the_part_and_says_that_the_same_command_goes_on) {
  std::atomic<bool> cancel{false};
  options_.cancel = &cancel;
  options_.hub.http.stall_timeout_ms = 20000;
  on_file = [&](const WebRequest& request, WebReply& reply, const FakeFile& file, int n) {
    if (n > 0) return false;
    reply.send(std::string_view(content_answer(request, file.content, file.etag())).substr(0, 100000));
    cancel = true;
    reply.stall();
    return true;
  };
  const Error error = failed_pull();
  EXPECT_EQ(error.code, Code::interrupted);
  EXPECT_TRUE(error.detail.starts_with("the pull of hf:acme/tiny was stopped; ")) << error.detail;
  EXPECT_NE(error.fix.find("goes on from there"), std::string::npos);
  expect_nothing_final();
  const auto kept = static_cast<int64_t>(fs::file_size(part()));
  cancel = false;
  const Result<PulledModel> pulled = pull();
  expect_whole(pulled);
  EXPECT_EQ(pulled->fetched_bytes + kept, static_cast<int64_t>(kBytes));
}

TEST_F(PullTest, a_part_of_another_program_is_used) {
  leave_part(model().content.substr(0, 123456));
  const Result<PulledModel> pulled = pull();
  expect_whole(pulled);
  EXPECT_EQ(range_begins(), Begins{123456});
  EXPECT_EQ(pulled->fetched_bytes, static_cast<int64_t>(kBytes) - 123456);
}

TEST_F(PullTest, a_part_that_is_all_there_is_only_checked) {
  leave_part(model().content);
  const Result<PulledModel> pulled = pull();
  expect_whole(pulled);
  EXPECT_EQ(pulled->fetched_bytes, 0);
}

TEST_F(PullTest, a_part_with_other_bytes_is_found_by_its_hash_and_fetched_anew_once) {
  leave_part(noise(100000, 9));
  const Result<PulledModel> pulled = pull();
  expect_whole(pulled);
  EXPECT_EQ(range_begins(), (Begins{100000, -1}));
  ASSERT_EQ(notes_.size(), 1u);
  EXPECT_NE(notes_[0].find("has other bytes"), std::string::npos) << notes_[0];
}

TEST_F(PullTest, a_part_longer_than_the_file_is_dropped) {
  leave_part(noise(kBytes + 1, 9));
  expect_whole(pull());
  EXPECT_EQ(range_begins(), Begins{-1});
}

TEST_F(PullTest, two_at_once_fetch_each_byte_once) {
  on_file = [](const WebRequest& request, WebReply& reply, const FakeFile& file, int) {
    const std::string whole = content_answer(request, file.content, file.etag());
    for (size_t at = 0; at < whole.size(); at += 30000) {
      reply.send(std::string_view(whole).substr(at, 30000));
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return true;
  };
  PullOptions other = options_;
  other.progress = nullptr;
  other.note = nullptr;
  Result<PulledModel> second = Error{};
  std::thread thread([&] { second = pull_model(parse_repo_name("hf:acme/tiny").value(), other); });
  const Result<PulledModel> first = pull();
  thread.join();
  expect_whole(first);
  expect_whole(second);
  EXPECT_EQ(first->fetched_bytes + second->fetched_bytes, static_cast<int64_t>(kBytes));
  EXPECT_EQ(file_requests_, 1);
}

// ---- servers that misbehave

TEST_F(PullTest, an_etag_that_changes_midway_begins_the_file_anew) {
  on_file = [](const WebRequest& request, WebReply& reply, const FakeFile& file, int n) {
    const std::string whole = content_answer(request, file.content, n == 0 ? "old" : "new");
    reply.send(std::string_view(whole).substr(0, n == 0 ? 100000 : whole.size()));
    return true;
  };
  expect_whole(pull());
  EXPECT_EQ(range_begins().size(), 2u);
  EXPECT_GT(range_begins()[1], 0);
  ASSERT_EQ(notes_.size(), 2u);
  EXPECT_TRUE(notes_[1].starts_with("the file changed on the server, or it gives no parts")) << notes_[1];
}

TEST_F(PullTest, a_server_that_knows_no_ranges_sends_the_whole_file_again) {
  leave_part(model().content.substr(0, 100000));
  on_file = [](const WebRequest&, WebReply& reply, const FakeFile& file, int) {
    return reply.send(web_answer("200 OK", "", file.content)), true;
  };
  expect_whole(pull());
}

TEST_F(PullTest, status_416_begins_the_file_anew) {
  leave_part(model().content.substr(0, 100000));
  on_file = [](const WebRequest& request, WebReply& reply, const FakeFile&, int) {
    if (request.range_begin() < 0) return false;
    return reply.send(web_answer("416 Range Not Satisfiable", "", "")), true;
  };
  expect_whole(pull());
  EXPECT_EQ(range_begins(), (Begins{100000, -1}));
}

TEST_F(PullTest, status_416_to_a_request_without_a_range_is_an_error) {
  on_file = [](const WebRequest&, WebReply& reply, const FakeFile&, int) {
    return reply.send(web_answer("416 Range Not Satisfiable", "", "")), true;
  };
  EXPECT_EQ(failed_pull().code, Code::hub_answer);
}

TEST_F(PullTest, another_part_than_the_one_asked_for_is_not_taken) {
  leave_part(model().content.substr(0, 100000));
  on_file = [](const WebRequest& request, WebReply& reply, const FakeFile& file, int) {
    if (request.range_begin() < 0) return false;
    return reply.send(web_answer("206 Partial Content", "Content-Range: bytes 99999-299998/300000\r\n",
                                 std::string_view(file.content).substr(99999, 200000))),
           true;
  };
  expect_whole(pull());
  EXPECT_EQ(range_begins(), (Begins{100000, -1}));
}

TEST_F(PullTest, other_bytes_are_refused_and_nothing_of_them_stays) {
  on_file = [](const WebRequest& request, WebReply& reply, const FakeFile& file, int) {
    std::string content = file.content;
    content[77] ^= 1;
    return reply.send(content_answer(request, content, "cdn")), true;
  };
  const Error error = failed_pull();
  EXPECT_EQ(error.code, Code::hub_hash);
  EXPECT_NE(error.detail.find(model().hash()), std::string::npos) << error.detail;
  EXPECT_TRUE(names_in(folder() + "/blobs").empty());
  expect_nothing_final();
}

TEST_F(PullTest, a_small_file_is_held_against_gits_hash) {
  repo_.files = {{"tiny-Q4_K_M.gguf", "GGUF of a kind", false}};
  on_file = [](const WebRequest& request, WebReply& reply, const FakeFile&, int) {
    return reply.send(content_answer(request, "GGUF of a rind", "cdn")), true;
  };
  EXPECT_EQ(failed_pull().code, Code::hub_hash);
  on_file = nullptr;
  expect_whole(pull());
}

TEST_F(PullTest, a_hash_that_differs_between_listing_and_file_is_refused_before_any_byte) {
  on_request = [this](const WebRequest& request, WebReply& reply) {
    if (request.target.find("/resolve/") == std::string::npos) return false;
    return reply.send(web_answer("302 Found",
                                 cat("Location: /cdn/", model().hash(), "\r\nX-Linked-ETag: \"",
                                     std::string(64, '0'), "\"\r\n"),
                                 "")),
           true;
  };
  const Error error = failed_pull();
  EXPECT_EQ(error.code, Code::hub_hash);
  EXPECT_NE(error.detail.find("on the server, the listing says"), std::string::npos) << error.detail;
  EXPECT_EQ(fs::file_size(part()), 0u);
}

TEST_F(PullTest, an_endless_body_is_cut_at_the_announced_size) {
  on_file = [](const WebRequest&, WebReply& reply, const FakeFile& file, int) {
    reply.send(cat("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", file.content));
    while (reply.send(noise(65536, 8))) {
    }
    return true;
  };
  const Error error = failed_pull();
  EXPECT_EQ(error.code, Code::hub_answer);
  EXPECT_EQ(error.detail, "more bytes than the 300,000 of \"tiny-Q4_K_M.gguf\"");
  expect_nothing_final();
  EXPECT_LE(fs::file_size(part()), kBytes);
}

TEST_F(PullTest, an_endless_chunked_body_is_cut_too) {
  on_file = [](const WebRequest&, WebReply& reply, const FakeFile&, int) {
    reply.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    while (reply.send(cat("10000\r\n", noise(65536, 8), "\r\n"))) {
    }
    return true;
  };
  EXPECT_EQ(failed_pull().code, Code::hub_answer);
  expect_nothing_final();
}

TEST_F(PullTest, a_chunked_body_of_the_right_size_is_fine) {
  on_file = [](const WebRequest&, WebReply& reply, const FakeFile& file, int) {
    return reply.send(cat("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n493E0\r\n", file.content,
                          "\r\n0\r\n\r\n")),
           true;
  };
  expect_whole(pull());
}

TEST_F(PullTest, another_announced_size_is_refused_before_the_body) {
  on_file = [](const WebRequest&, WebReply& reply, const FakeFile&, int) {
    return reply.send(
               web_answer("200 OK", "Content-Type: text/html\r\n", "<h1>Log in to the hotel's network</h1>")),
           true;
  };
  const Error error = failed_pull();
  EXPECT_EQ(error.code, Code::hub_answer);
  EXPECT_EQ(error.detail, "38 bytes for \"tiny-Q4_K_M.gguf\", 300,000 are missing");
}

TEST_F(PullTest, a_compressed_body_that_was_not_asked_for_is_refused) {
  on_file = [](const WebRequest& request, WebReply& reply, const FakeFile&, int) {
    EXPECT_EQ(request.header("accept-encoding"), "identity");
    return reply.send(web_answer("200 OK", "Content-Encoding: gzip\r\n", noise(kBytes))), true;
  };
  EXPECT_NE(failed_pull().detail.find("content coding \"gzip\""), std::string::npos);
}

TEST_F(PullTest, an_answer_that_is_no_http_is_refused) {
  on_file = [](const WebRequest&, WebReply& reply, const FakeFile&, int) {
    return reply.send("220 ftp.example ready\r\n\r\n"), true;
  };
  const Error error = failed_pull();
  EXPECT_EQ(error.code, Code::hub_answer);
  EXPECT_NE(error.detail.find("malformed HTTP response"), std::string::npos) << error.detail;
}

TEST_F(PullTest, a_header_without_an_end_is_refused) {
  on_file = [](const WebRequest&, WebReply& reply, const FakeFile&, int) {
    reply.send("HTTP/1.1 200 OK\r\n");
    while (reply.send(cat("X-Filler: ", std::string(1000, 'x'), "\r\n"))) {
    }
    return true;
  };
  EXPECT_EQ(failed_pull().code, Code::hub_answer);
}

TEST_F(PullTest, a_header_that_does_not_come_is_a_stall) {
  options_.attempts = 2;
  options_.hub.http.header_timeout_ms = 200;
  on_file = [](const WebRequest&, WebReply& reply, const FakeFile&, int) { return reply.stall(), true; };
  EXPECT_EQ(failed_pull().code, Code::hub_network);
}

TEST_F(PullTest, interim_responses_are_skipped) {
  on_file = [](const WebRequest& request, WebReply& reply, const FakeFile& file, int) {
    reply.send("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n");
    return reply.send(content_answer(request, file.content, file.etag())), true;
  };
  expect_whole(pull());
}

// ---- statuses

TEST_F(PullTest, a_licence_that_was_not_accepted_says_where_to_accept_it) {
  on_request = [](const WebRequest&, WebReply& reply) {
    return reply.send(web_answer(
               "403 Forbidden",
               "X-Error-Code: GatedRepo\r\nX-Error-Message: Access to model acme/tiny is restricted\r\n",
               "")),
           true;
  };
  const Error error = failed_pull();
  EXPECT_EQ(error.code, Code::hub_access);
  EXPECT_EQ(error.detail, "hf:acme/tiny: status 403, \"Access to model acme/tiny is restricted\"");
  EXPECT_EQ(error.fix, cat("accept its licence at ", options_.hub.endpoint,
                           "/acme/tiny, then set HF_TOKEN to a token of that account"));
  EXPECT_EQ(server_->requests().size(), 1u);  // no second try
}

TEST_F(PullTest, status_401_without_a_token_may_also_be_a_spelling_mistake) {
  on_request = [](const WebRequest&, WebReply& reply) {
    return reply.send(web_answer("401 Unauthorized", "", "")), true;
  };
  const Error error = failed_pull();
  EXPECT_EQ(error.code, Code::hub_access);
  EXPECT_TRUE(error.fix.starts_with("check the spelling; or accept its licence at ")) << error.fix;
}

TEST_F(PullTest, an_unknown_repository_and_an_unknown_file_are_told_apart) {
  const Error repository = failed_pull("hf:acme/tyni");
  EXPECT_EQ(repository.code, Code::hub_not_found);
  const Error file = failed_pull("hf:acme/tiny/tiny-Q4_K_S.gguf");
  EXPECT_EQ(file.code, Code::hub_choice);
  EXPECT_EQ(file.fix, "did you mean \"tiny-Q4_K_M.gguf\"?");
}

TEST_F(PullTest, status_429_waits_as_long_as_the_hub_asks) {
  on_file = [](const WebRequest&, WebReply& reply, const FakeFile&, int n) {
    if (n > 0) return false;
    return reply.send(web_answer("429 Too Many Requests", "Retry-After: 1\r\n", "")), true;
  };
  const auto begin = std::chrono::steady_clock::now();
  expect_whole(pull());
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(1000));
}

TEST_F(PullTest, status_429_for_an_hour_is_told_to_the_user) {
  on_request = [](const WebRequest&, WebReply& reply) {
    return reply.send(web_answer("429 Too Many Requests", "Retry-After: 3600\r\n", "")), true;
  };
  const Error error = failed_pull();
  EXPECT_EQ(error.code, Code::hub_network);
  EXPECT_NE(error.fix.find("as the hub asks"), std::string::npos) << error.fix;
  EXPECT_EQ(server_->requests().size(), 1u);
}

TEST_F(PullTest, status_503_is_tried_again_and_at_last_reported) {
  on_file = [](const WebRequest&, WebReply& reply, const FakeFile&, int n) {
    if (n > 1) return false;
    return reply.send(web_answer("503 Service Unavailable", "", "")), true;
  };
  expect_whole(pull());
  EXPECT_EQ(notes_.size(), 2u);
  on_request = [](const WebRequest&, WebReply& reply) {
    return reply.send(web_answer("500 Internal Server Error", "", "")), true;
  };
  const Error error = failed_pull();
  EXPECT_EQ(error.code, Code::hub_network);
  EXPECT_EQ(error.detail, "hf:acme/tiny: status 500, after 5 attempts");
}

TEST_F(PullTest, a_hub_that_does_not_listen_is_tried_again_and_reported) {
  options_.hub.endpoint = "http://127.0.0.1:1";
  const Error error = failed_pull();
  EXPECT_EQ(error.code, Code::hub_network);
  EXPECT_NE(error.detail.find("cannot connect to \"127.0.0.1\":1"), std::string::npos) << error.detail;
  EXPECT_EQ(notes_.size(), 4u);
}

// ---- redirects and the token

TEST_F(PullTest, the_token_goes_to_the_hub_and_never_to_another_host) {
  options_.hub.token = "hf_secret";
  WebServer other([this](const WebRequest& request, WebReply& reply) { repo_.serve(request, reply); });
  on_request = [&](const WebRequest& request, WebReply& reply) {
    if (request.target.find("/resolve/") == std::string::npos) return false;
    return reply.send(
               web_answer("302 Found", cat("Location: ", other.url(), "/cdn/", model().hash(), "\r\n"), "")),
           true;
  };
  expect_whole(pull());
  for (const WebRequest& request : server_->requests())
    EXPECT_EQ(request.header("authorization"), "Bearer hf_secret");
  ASSERT_EQ(other.requests().size(), 1u);
  EXPECT_EQ(other.requests()[0].header("authorization"), "");
}

TEST_F(PullTest, the_token_does_not_come_back_with_a_second_redirect) {
  options_.hub.token = "hf_secret";
  WebServer other([this](const WebRequest& request, WebReply& reply) {
    reply.send(web_answer("302 Found", cat("Location: ", server_->url(), request.target, "\r\n"), ""));
  });
  on_request = [&](const WebRequest& request, WebReply& reply) {
    if (request.target.find("/resolve/") == std::string::npos) return false;
    return reply.send(
               web_answer("302 Found", cat("Location: ", other.url(), "/cdn/", model().hash(), "\r\n"), "")),
           true;
  };
  expect_whole(pull());
  EXPECT_EQ(server_->requests().back().target, cat("/cdn/", model().hash()));
  EXPECT_EQ(server_->requests().back().header("authorization"), "");
}

TEST_F(PullTest, a_token_is_not_sent_without_encryption) {
  options_.hub.token = "hf_secret";
  options_.hub.endpoint = "http://hub.example";
  const Error error = failed_pull();
  EXPECT_EQ(error.code, Code::hub_settings);
  EXPECT_EQ(error.detail.find("hf_secret"), std::string::npos);
}

TEST_F(PullTest, redirects_in_a_circle_end) {
  on_request = [](const WebRequest& request, WebReply& reply) {
    return reply.send(web_answer("307 Temporary Redirect", cat("Location: ", request.target, "\r\n"), "")),
           true;
  };
  EXPECT_EQ(failed_pull().detail, "more than 5 redirects");
}

TEST_F(PullTest, a_redirect_to_nowhere_is_refused) {
  for (const std::string_view location :
       {"", "ftp://example.org/x", "https://user@example.org/", "http://[::1/"}) {
    on_request = [&](const WebRequest&, WebReply& reply) {
      return reply.send(web_answer("302 Found", cat("Location: ", location, "\r\n"), "")), true;
    };
    if (location.empty()) continue;  // no Location at all leads to the same address: a circle
    EXPECT_EQ(failed_pull().code, Code::hub_answer) << location;
  }
}

// ---- listings that are not as they should be

struct BadListing {
  const char* name;
  std::string text;
  const char* complaint;
};

TEST_F(PullTest, a_listing_that_is_not_as_it_should_be_is_refused_with_the_field) {
  const std::string sha = std::string(40, 'a');
  const auto with = [&](const std::string& sibling) {
    return cat(R"({"sha":")", sha, R"(","siblings":[)", sibling, "]}");
  };
  const std::string blob = cat(R"("blobId":")", sha, R"(","size":1)");
  const std::vector<BadListing> table = {
      {"empty", "", "listing: syntax error"},
      {"html", "<html></html>", "listing: syntax error"},
      {"cut short", R"({"sha":"aa)", "listing"},
      {"an array", "[]", "sha is no commit"},
      {"deep", std::string(100000, '['), "listing"},
      {"no sha", R"({"siblings":[]})", "sha is no commit"},
      {"a sha that leaves the folder",
       R"({"sha":"../../../../../../../../../../../../../etc","siblings":[]})", "sha is no commit"},
      {"no siblings", cat(R"({"sha":")", sha, R"("})"), "siblings is no array"},
      {"no path", with("{}"), "siblings[0].rfilename is no text"},
      {"path upwards", with(cat(R"({"rfilename":"../x.gguf",)", blob, "}")), "which is no path"},
      {"path upwards inside", with(cat(R"({"rfilename":"a/../../x.gguf",)", blob, "}")), "which is no path"},
      {"path from the root", with(cat(R"({"rfilename":"/etc/x.gguf",)", blob, "}")), "which is no path"},
      {"path with a line feed", with(cat(R"({"rfilename":"a\nb.gguf",)", blob, "}")), "which is no path"},
      {"path with a zero", with(cat(R"({"rfilename":"a\u0000b.gguf",)", blob, "}")), "which is no path"},
      {"long path", with(cat(R"({"rfilename":")", std::string(2000, 'x'), R"(",)", blob, "}")),
       "which is no path"},
      {"no hash", with(R"({"rfilename":"x.gguf","size":1})"), ".blobId is no text"},
      {"hash upwards", with(R"({"rfilename":"x.gguf","blobId":"../../x","size":1})"), "the hash is"},
      {"lfs without hash", with(R"({"rfilename":"x.gguf","size":1,"lfs":{}})"), ".lfs.sha256 is no text"},
      {"short hash", with(R"({"rfilename":"x.gguf","size":1,"lfs":{"sha256":"ab"}})"), "not of 64 digits"},
      {"no size", with(cat(R"({"rfilename":"x.gguf","blobId":")", sha, R"("})")), ".size is no number"},
      {"negative size", with(cat(R"({"rfilename":"x.gguf","blobId":")", sha, R"(","size":-1})")),
       ".size is no number"},
      {"size past the end", with(cat(R"({"rfilename":"x.gguf","blobId":")", sha, R"(","size":1e300})")),
       ".size is no number"},
      {"one path twice",
       with(cat(R"({"rfilename":"x.gguf",)", blob, R"(},{"rfilename":"x.gguf",)", blob, "}")),
       "two files have the path"},
  };
  for (const BadListing& bad : table) {
    on_request = [&](const WebRequest&, WebReply& reply) {
      return reply.send(web_answer("200 OK", "", bad.text)), true;
    };
    const Error error = failed_pull();
    EXPECT_EQ(error.code, Code::hub_answer) << bad.name;
    EXPECT_NE(error.detail.find(bad.complaint), std::string::npos) << bad.name << ": " << error.detail;
  }
  EXPECT_FALSE(fs::exists(options_.hub.cache));
}

TEST_F(PullTest, a_listing_without_an_end_is_cut_at_four_mebibytes) {
  on_request = [](const WebRequest&, WebReply& reply) {
    reply.send("HTTP/1.1 200 OK\r\n\r\n");
    while (reply.send(std::string(65536, ' '))) {
    }
    return true;
  };
  EXPECT_EQ(failed_pull().detail, "more than 4.00 MiB of text");
}

// ---- the cache

TEST_F(PullTest, more_than_the_disk_holds_is_refused_before_the_download) {
  on_request = [this](const WebRequest& request, WebReply& reply) {
    if (request.target.find("/api/") == std::string::npos) return false;
    return reply.send(
               web_answer("200 OK", "",
                          cat(R"({"sha":")", repo_.commit,
                              R"(","siblings":[{"rfilename":"x.gguf","size":1000000000000000,"blobId":")",
                              std::string(40, 'a'), R"("}]})"))),
           true;
  };
  const Error error = failed_pull();
  EXPECT_EQ(error.code, Code::io_disk_full);
  EXPECT_TRUE(error.detail.starts_with("hf:acme/tiny needs 909.5 TiB, ")) << error.detail;
  EXPECT_EQ(server_->requests().size(), 1u);
}

TEST_F(PullTest, a_half_deleted_cache_is_mended) {
  const std::string path = pull()->path;
  fs::remove(blob());  // the link leads nowhere now
  EXPECT_EQ(find_cached_model(options_.hub.cache, parse_repo_name("hf:acme/tiny").value()).error().code,
            Code::hub_absent);
  expect_whole(pull());
  fs::remove_all(folder() + "/snapshots");
  EXPECT_EQ(pull()->fetched_bytes, 0);
  EXPECT_TRUE(read_file(path) == model().content);
  write_file(folder() + "/refs/main", "");
  EXPECT_EQ(pull()->fetched_bytes, 0);
  EXPECT_EQ(read_file(folder() + "/refs/main"), repo_.commit);
  fs::resize_file(blob(), 1000);  // cut short, then completed
  const Result<PulledModel> completed = pull();
  expect_whole(completed);
  EXPECT_EQ(completed->fetched_bytes, static_cast<int64_t>(kBytes) - 1000);
  fs::remove(path);
  fs::create_symlink("../../blobs/elsewhere", path);
  EXPECT_EQ(pull()->fetched_bytes, 0);
  EXPECT_TRUE(read_file(path) == model().content);
}

TEST_F(PullTest, a_model_that_another_process_removes_meanwhile_is_an_error_and_the_next_pull_mends_it) {
  options_.progress = [this](const ProgressEvent& event) {
    if (event.phase == "pull" && event.done == event.total) fs::remove_all(folder());
  };
  const Error error = failed_pull();
  EXPECT_EQ(error.code, Code::io_not_found) << error.terminal_text();
  EXPECT_EQ(names_in(options_.hub.cache), std::vector<std::string>{".locks"});
  options_.progress = nullptr;
  expect_whole(pull());
}

TEST_F(PullTest, a_cache_that_cannot_be_a_folder_is_an_error_of_the_disk) {
  write_file(scratch_.path + "/file", "x");
  options_.hub.cache = scratch_.path + "/file/hub";
  const Error error = failed_pull();
  EXPECT_EQ(error.code, Code::io_write);
  EXPECT_EQ(read_file(scratch_.path + "/file"), "x");
}

TEST_F(PullTest, offline_nothing_is_asked_and_what_is_here_is_found) {
  options_.hub.offline = true;
  EXPECT_EQ(failed_pull().code, Code::hub_offline);
  options_.hub.offline = false;
  const std::string path = pull()->path;
  const size_t asked = server_->requests().size();
  options_.hub.offline = true;
  const Result<PulledModel> found = pull();
  expect_whole(found);
  EXPECT_EQ(found->path, path);
  EXPECT_EQ(found->files.at(0).hash, model().hash());
  EXPECT_EQ(server_->requests().size(), asked);
}

}  // namespace
}  // namespace inferd
