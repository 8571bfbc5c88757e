#include "hub/http_response.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/strings.h"
#include "hub/test_wheel.h"

namespace inferd {
namespace {

struct Parsed {
  Status status;
  int code = 0;
  bool done = false;
  std::string body;
};

// Feeds `text` in pieces of `size` bytes, then the end of the connection when asked to.
Parsed parse(std::string_view text, size_t size, bool end = false) {
  HttpResponseParser parser;
  Parsed parsed;
  while (!text.empty() && parsed.status.ok()) {
    parsed.status = parser.feed(text.substr(0, size));
    text.remove_prefix(std::min(size, text.size()));
    parsed.body += parser.take_body();
  }
  if (end && parsed.status.ok()) parsed.status = parser.feed_end();
  parsed.code = parser.status();
  parsed.done = parser.done();
  return parsed;
}

TEST(HttpResponse, is_the_same_in_pieces_of_any_size) {
  const std::string plain =
      "HTTP/1.1 206 Partial Content\r\nContent-Length: 11\r\nETag: \"x\"\r\n\r\nhello world";
  const std::string chunked =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6;a=b\r\nhello \r\n5\r\nworld\r\n0\r\nX: "
      "y\r\n\r\n";
  const std::string interim =
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + plain;
  for (const std::string& text : {plain, chunked, interim}) {
    for (size_t size = 1; size <= text.size(); ++size) {
      const Parsed parsed = parse(text, size);
      ASSERT_TRUE(parsed.status.ok()) << size;
      EXPECT_TRUE(parsed.done) << size;
      EXPECT_EQ(parsed.body, "hello world") << size;
    }
  }
}

TEST(HttpResponse, gives_its_fields_by_name) {
  HttpResponseParser parser;
  ASSERT_TRUE(
      parser.feed("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nX-Error-Code:  Gone \r\n\r\n").ok());
  EXPECT_TRUE(parser.header_done());
  EXPECT_EQ(parser.status(), 404);
  EXPECT_EQ(parser.header("x-error-code"), "Gone");
  EXPECT_EQ(parser.header("etag"), "");
  EXPECT_EQ(parser.content_length(), 0);
}

TEST(HttpResponse, without_a_length_the_end_of_the_connection_is_the_end_of_the_body) {
  const Parsed parsed = parse("HTTP/1.1 200 OK\r\n\r\nhello", 3, true);
  EXPECT_TRUE(parsed.status.ok());
  EXPECT_TRUE(parsed.done);
  EXPECT_EQ(parsed.body, "hello");
}

TEST(HttpResponse, one_that_ends_early_is_a_failure_of_the_network) {
  for (const std::string_view text :
       {"", "HTTP/1.1 20", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"}) {
    const Parsed parsed = parse(text, 100, true);
    ASSERT_FALSE(parsed.status.ok()) << text;
    EXPECT_EQ(parsed.status.error().code, Code::hub_network) << text;
  }
}

TEST(HttpResponse, what_is_none_is_refused) {
  for (const std::string& text :
       {std::string("SSH-2.0-OpenSSH_9.2\r\n"), std::string("GET / HTTP/1.1\r\n\r\n"),
        std::string("HTTP/1.1 2000 OK\r\n\r\n"), std::string("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"),
        std::string("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"),
        std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"),
        std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n"),
        cat("HTTP/1.1 200 OK\r\nX: ", std::string(70000, 'x'), "\r\n\r\n"),
        cat("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;", std::string(70000, 'x'))}) {
    const Parsed parsed = parse(text, 4096);
    ASSERT_FALSE(parsed.status.ok()) << text.substr(0, 80);
    EXPECT_EQ(parsed.status.error().code, Code::hub_answer) << text.substr(0, 80);
  }
}

}  // namespace
}  // namespace inferd

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace inferd {
namespace {

TEST(HubAnswers, the_corpus_of_the_fuzzer_keeps_every_promise) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(INFERD_SOURCE_DIR "/tests/corpus/hub")) {
    const std::string bytes = testing_hub::read_file(entry.path().string());
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    ++files;
  }
  EXPECT_GE(files, 9);
}

}  // namespace
}  // namespace inferd
