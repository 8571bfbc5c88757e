// The HTTP parser alone: pieces of any size, limits that count what is taken and not what is claimed, and the
// corpus of its fuzzer.
#include "server/http_parser.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/strings.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace inferd {
namespace {

// Feeds bytes one at a time; the number taken, or −1 − the status of the error.
int64_t feed_slowly(HttpParser& parser, std::string_view bytes) {
  std::string input;
  int64_t taken = 0;
  for (const char byte : bytes) {
    input.push_back(byte);
    const Result<size_t> fed = parser.feed(input);
    if (!fed.ok()) return -1 - error_row(fed.error().code).http_status;
    input.erase(0, *fed);
    taken += static_cast<int64_t>(*fed);
    if (parser.state() == HttpParser::State::done) break;
  }
  return taken;
}

TEST(HttpParser, stops_behind_the_header_and_behind_the_body) {
  HttpParser parser({});
  const std::string head = "POST /a%20b?c=d HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n";
  const std::string bytes = head + "abcGET /";
  EXPECT_EQ(parser.feed(bytes).value(), head.size());
  EXPECT_EQ(parser.state(), HttpParser::State::body);
  EXPECT_EQ(parser.request().path, "/a b");
  EXPECT_EQ(*parser.request().find("content-length"), "3");
  EXPECT_EQ(parser.feed(std::string_view(bytes).substr(head.size())).value(), 3u);
  EXPECT_EQ(parser.state(), HttpParser::State::done);
  EXPECT_EQ(parser.request().body, "abc");
}

TEST(HttpParser, a_header_that_drips_meets_the_same_limits) {
  const std::string line = "A: " + std::string(97, 'a') + "\r\n";
  std::string bytes = "GET / HTTP/1.1\r\nHost: x\r\n";
  while (bytes.size() < 3000) bytes += line;
  HttpParser whole({.header_bytes = 2000});
  EXPECT_EQ(whole.feed(bytes).error().code, Code::req_headers);
  HttpParser slow({.header_bytes = 2000});
  EXPECT_EQ(feed_slowly(slow, bytes), -1 - 431);
}

TEST(HttpParser, nothing_is_set_aside_for_a_length_that_is_only_claimed) {
  HttpParser parser({});
  ASSERT_TRUE(parser.feed("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 16777216\r\n\r\n").ok());
  ASSERT_TRUE(parser.feed("abc").ok());
  EXPECT_LT(parser.request().body.capacity(), 1000u);
}

TEST(HttpParser, a_body_may_have_the_most_and_not_one_more) {
  for (const bool chunked : {false, true}) {
    for (const int extra : {0, 1}) {
      HttpParser parser({.body_bytes = 10});
      const std::string body(static_cast<size_t>(10 + extra), 'x');
      const std::string bytes =
          chunked ? cat("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nxxxxx\r\n",
                        5 + extra, "\r\n", body.substr(5), "\r\n0\r\n\r\n")
                  : cat("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ", body.size(), "\r\n\r\n", body);
      const int64_t taken = feed_slowly(parser, bytes);
      EXPECT_EQ(taken, extra == 0 ? static_cast<int64_t>(bytes.size()) : -1 - 413) << bytes;
    }
  }
}

TEST(HttpParser, trailers_are_not_headers) {
  HttpParser parser({});
  const std::string bytes =
      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nAuthorization: Bearer "
      "y\r\n\r\n";
  EXPECT_EQ(feed_slowly(parser, bytes), static_cast<int64_t>(bytes.size()));
  EXPECT_EQ(parser.request().find("authorization"), nullptr);
}

TEST(HttpParser, the_corpus_reads_alike_whole_and_in_pieces) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(INFERD_SOURCE_DIR "/tests/corpus/http")) {
    std::ifstream stream(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    ++files;
  }
  EXPECT_GE(files, 20);
}

}  // namespace
}  // namespace inferd
