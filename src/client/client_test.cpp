// The client side against the real server, and against answers that no server of ours would give.
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/strings.h"
#include "client/event_reader.h"
#include "client/http_client.h"
#include "client/server_notes.h"
#include "support/golden.h"
#include "support/tiny_server.h"

namespace inferd {
namespace {

LoopbackUrl url_of(int port) {
  return {.address = "127.0.0.1", .port = port};
}

TEST(HttpCall, streams_a_completion_and_hangs_up_when_it_has_enough) {
  const test::TinyServer server;
  HttpCall call{.method = "POST", .path = "/v1/completions"};
  call.body = R"({"prompt":"hello","stream":true,"max_tokens":20,"temperature":0,"ignore_eos":true})";
  EventReader events;
  std::vector<std::string> all;
  const Result<HttpAnswer> answer = http_call(url_of(server.port()), call, [&](std::string_view piece) {
    events.push(piece);
    while (const auto data = events.next()) all.push_back(*data);
    return true;
  });
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "");
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.back(), "[DONE]");

  call.body = R"({"prompt":"hello","stream":true,"max_tokens":200,"temperature":0,"ignore_eos":true})";
  int pieces = 0;
  ASSERT_TRUE(http_call(url_of(server.port()), call, [&](std::string_view) { return ++pieces < 2; }).ok());
  EXPECT_EQ(pieces, 2);
  EXPECT_TRUE(server.settle());
}

TEST(HttpCall, errors_of_the_server_come_with_their_body) {
  const test::TinyServer server({.server = {.api_key = "a-key-of-many-characters"}});
  HttpCall call{.path = "/v1/models"};
  EXPECT_EQ(http_call(url_of(server.port()), call)->status, 401);
  call.headers = {{"Authorization", "Bearer a-key-of-many-characters"}};
  const Result<HttpAnswer> answer = http_call(url_of(server.port()), call);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->header("content-type"), "application/json");
  EXPECT_NE(answer->body.find("tiny-llama"), std::string::npos);
}

// Says the same to every client, and closes.
class Parrot {
 public:
  explicit Parrot(std::string words) : words_(std::move(words)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    INFERD_CHECK(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                 ::listen(listener_, 4) == 0 &&
                 ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] {
      const int client = ::accept(listener_, nullptr, nullptr);
      char request[4096];
      EXPECT_GE(::recv(client, request, sizeof request, 0), 0);
      ::send(client, words_.data(), words_.size(), MSG_NOSIGNAL);
      if (words_.empty()) {  // silent until the client goes
        EXPECT_EQ(::recv(client, request, sizeof request, 0), 0);
      }
      ::close(client);
    });
  }
  ~Parrot() {
    thread_.join();
    ::close(listener_);
  }
  int port() const { return port_; }

 private:
  const std::string words_;
  int listener_ = -1;
  int port_ = 0;
  std::thread thread_;
};

TEST(HttpCall, whatever_comes_is_an_answer_or_an_error) {
  static const std::string kChunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  static const std::vector<std::pair<std::string, std::string>> kCases = {
      {"HTTP/1.0 200 OK\r\n\r\nto the end", "to the end"},
      {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhiX", "hi"},
      {kChunked + "3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nTrailer: 1\r\n\r\n", "abc0123456789"},
      {kChunked + "3\r\nab", "E-SRV-003 its answer is cut off"},
      {kChunked + "3\r\nabcd\r\n", "E-SRV-003 a chunk of its answer has no end"},
      {kChunked + "x\r\n", "E-SRV-003 a chunk of its answer has no size"},
      {kChunked + std::string(5000, '1'), "E-SRV-003 a chunk of its answer has no size"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab", "E-SRV-003 its answer is cut off"},
      {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nab", "E-SRV-003 its answer has a length of \"-1\""},
      {"HTTP/1.1 200 OK\r\nX: y", "E-SRV-003 its answer is cut off"},
      {"SSH-2.0-OpenSSH_9.2\r\n\r\n", "E-SRV-003 it does not speak HTTP: \"SSH-2.0-OpenSSH_9.2\""},
      {"HTTP/1.1 200 OK\r\nX: " + std::string(70000, 'x'), "E-SRV-003 the head of its answer is too long"},
  };
  for (const auto& [words, expected] : kCases) {
    const Parrot parrot(words);
    const Result<HttpAnswer> answer = http_call(url_of(parrot.port()), {});
    EXPECT_EQ(answer.ok() ? answer->body : cat(error_row(answer.error().code).id, " ", answer.error().detail),
              expected)
        << printable(words);
  }
}

TEST(HttpCall, silence_ends_and_an_interrupt_ends_it_sooner) {
  {
    const Parrot parrot("");
    const Result<HttpAnswer> answer = http_call(url_of(parrot.port()), {.silence_timeout_ms = 50});
    ASSERT_FALSE(answer.ok());
    EXPECT_EQ(answer.error().detail, "it is silent after 50 ms");
  }
  const Parrot parrot("");
  const int wake = ::eventfd(1, EFD_CLOEXEC);
  const Result<HttpAnswer> answer =
      http_call(url_of(parrot.port()), {.wake_fd = wake, .stop = [] { return true; }});
  ::close(wake);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, Code::interrupted);
}

TEST(HttpCall, nobody_listens) {
  int port = 0;
  {
    const test::TinyServer server;
    port = server.port();
  }
  const Result<HttpAnswer> answer = http_call(url_of(port), {});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, Code::server_answer);
  EXPECT_EQ(answer.error().detail, "cannot connect: Connection refused");
}

TEST(LoopbackUrl, is_read_and_nothing_else_is) {
  for (const char* good : {"http://127.0.0.1:8000", "http://127.1.2.3:1", "http://[::1]:65535"})
    EXPECT_EQ(LoopbackUrl::parse(good)->text(), good);
  for (const char* bad : {"", "http://", "https://127.0.0.1:8000", "http://127.0.0.1", "http://127.0.0.1:0",
                          "http://127.0.0.1:70000", "http://192.168.1.5:8000", "http://example.org:80",
                          "http://[::2]:80", "http://127.0.0.1:8000/x"})
    EXPECT_FALSE(LoopbackUrl::parse(bad).ok()) << bad;
}

TEST(EventReader, takes_data_out_of_frames_and_leaves_comments) {
  EventReader reader;
  const std::string stream = ": ping\n\ndata: one\n\nevent: x\ndata:two\ndata: three\n\n: ping\n\ndata: last";
  std::vector<std::string> all;
  for (const char byte : stream) {
    reader.push({&byte, 1});
    while (const auto data = reader.next()) all.push_back(*data);
  }
  EXPECT_EQ(all, (std::vector<std::string>{"one", "two\nthree"}));
}

class ServerNotesTest : public testing::Test {
 protected:
  ServerNotesTest() : folder_(cat(testing::TempDir(), "inferd-notes-", ::getpid())) {}
  ~ServerNotesTest() override { std::filesystem::remove_all(folder_); }
  std::vector<std::string> folders() const { return {folder_ + "/run", folder_ + "/state"}; }
  static ServerNote a_note() {
    return {.url = "http://127.0.0.1:8000",
            .port = 8000,
            .model = "tiny \"x\"",
            .aliases = {"a", "b"},
            .model_path = "/nowhere/tiny.gguf",
            .context = 512,
            .chats = true,
            .drain_timeout_s = 30,
            .api_key_file = "/key"};
  }
  const std::string folder_;
};

TEST_F(ServerNotesTest, a_note_is_seen_while_its_process_runs) {
  {
    const Result<PostedNote> posted = PostedNote::post(folders(), a_note());
    ASSERT_TRUE(posted.ok()) << posted.error().message();
    const std::string path = cat(folder_, "/run/", ::getpid(), ".json");
    struct stat info{};
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
    const std::vector<ServerNote> seen = running_servers(folders());
    ASSERT_EQ(seen.size(), 1u);
    ServerNote expected = a_note();
    expected.pid = ::getpid();
    expected.start_ticks = *process_start_ticks(::getpid());
    expected.machine = seen.front().machine;
    EXPECT_EQ(seen.front(), expected);
    EXPECT_LT(uptime_seconds(seen.front()), 3600);
  }
  EXPECT_TRUE(running_servers(folders()).empty());
  EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/run"));
}

TEST_F(ServerNotesTest, the_next_folder_is_taken_when_the_first_cannot_be_written) {
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ + "/run") << "a file";
  const Result<PostedNote> posted = PostedNote::post(folders(), a_note());
  ASSERT_TRUE(posted.ok());
  EXPECT_EQ(running_servers(folders()).size(), 1u);
  const Result<PostedNote> nowhere = PostedNote::post(std::vector<std::string>{folder_ + "/run"}, a_note());
  ASSERT_FALSE(nowhere.ok());
  EXPECT_FALSE(PostedNote::post({}, a_note()).ok());
}

TEST_F(ServerNotesTest, stale_and_damaged_notes_are_removed_and_others_left_alone) {
  const std::string run = folder_ + "/run";
  std::string good;
  {
    const Result<PostedNote> posted = PostedNote::post(folders(), a_note());
    ASSERT_TRUE(posted.ok());
    good = test::read_file(cat(run, "/", ::getpid(), ".json"));
  }
  const auto put = [&](const std::string& name, const std::string& text) {
    std::ofstream(cat(run, "/", name)) << text;
  };
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  // The process has this id, but another start; the file is cut off; another machine's; no notes.
  put("1.json", changed("\"start_ticks\":", "\"start_ticks\":9"));
  put("2.json", good.substr(0, 40));
  put("3.json", changed("\"machine\":\"", "\"machine\":\"other-"));
  put("notes.json", "{}");
  put("4.txt", "text");
  EXPECT_TRUE(running_servers(folders()).empty());
  EXPECT_FALSE(std::filesystem::exists(run + "/1.json"));
  EXPECT_FALSE(std::filesystem::exists(run + "/2.json"));
  EXPECT_TRUE(std::filesystem::exists(run + "/3.json"));
  EXPECT_TRUE(std::filesystem::exists(run + "/notes.json"));
  EXPECT_TRUE(std::filesystem::exists(run + "/4.txt"));
  // The same as ours, in both folders: one server.
  put("5.json", good);
  std::filesystem::create_directories(folder_ + "/state");
  std::filesystem::copy(run + "/5.json", folder_ + "/state/5.json");
  EXPECT_EQ(running_servers(folders()).size(), 1u);
}

}  // namespace
}  // namespace inferd
