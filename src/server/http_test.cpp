// The HTTP side over raw sockets: what is malformed, too large, too slow, or from the wrong place, and what
// must still work.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "base/strings.h"
#include "server/router.h"
#include "support/http_client.h"
#include "support/tiny_server.h"

namespace inferd {
namespace {

using namespace std::chrono_literals;
using test::get;
using test::http;
using test::HttpClient;
using test::HttpResponse;
using test::post;
using test::TinyServer;

std::string error_code(const HttpResponse& response) {
  const Json json = response.json();
  const Json* error = json.find("error");
  return error == nullptr ? "" : error->find("code")->as_string();
}

std::string repeated(std::string_view text, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += text;
  return out;
}

struct RawCase {
  std::string name;
  std::string bytes;
  std::vector<int> statuses;  // any of these; 0: closed without an answer
};

std::vector<RawCase> raw_cases() {
  const std::string host = "Host: 127.0.0.1\r\n";
  const std::string get_live = "GET /health/live HTTP/1.1\r\n";
  const std::string post_tokenize = "POST /tokenize HTTP/1.1\r\nHost: 127.0.0.1\r\n";
  const std::string body = R"({"content":"ab"})";  // 16 bytes
  const std::string chunked = post_tokenize + "Transfer-Encoding: chunked\r\n\r\n";
  return {
      // Request lines.
      {"noise", std::string("\x00\x01\x02\xff\xfe\r\n\r\n", 9), {400}},
      {"only a line feed storm", repeated("\n", 5000) + get_live + host + "\r\n", {200}},
      {"a TLS hello", std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11) + "\r\n\r\n", {400}},
      {"HTTP/0.9", "GET /\r\n", {400}},
      {"HTTP/0.9 by number", "GET / HTTP/0.9\r\n" + host + "\r\n", {400}},
      {"HTTP/1.2", "GET / HTTP/1.2\r\n" + host + "\r\n", {400}},
      {"HTTP/2.0", "GET / HTTP/2.0\r\n" + host + "\r\n", {400}},
      {"the HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {400}},
      {"no version", "GET /health/live\r\n" + host + "\r\n", {400}},
      {"bad version", "GET / HTTX/1.1\r\n" + host + "\r\n", {400}},
      {"version with a tail", "GET / HTTP/1.1x\r\n" + host + "\r\n", {400}},
      {"two spaces", "GET  /health/live HTTP/1.1\r\n" + host + "\r\n", {400}},
      {"a tab for a space", "GET\t/health/live HTTP/1.1\r\n" + host + "\r\n", {400}},
      {"a space in the target", "GET /health /live HTTP/1.1\r\n" + host + "\r\n", {400}},
      {"a leading space", " GET /health/live HTTP/1.1\r\n" + host + "\r\n", {400}},
      {"a control character in the target", "GET /\x01 HTTP/1.1\r\n" + host + "\r\n", {400}},
      {"lower-case method", "get /health/live HTTP/1.1\r\n" + host + "\r\n", {405}},
      {"unknown method", "BREW /health/live HTTP/1.1\r\n" + host + "\r\n", {405}},
      {"TRACE", "TRACE /health/live HTTP/1.1\r\n" + host + "\r\n", {405}},
      {"OPTIONS *", "OPTIONS * HTTP/1.1\r\n" + host + "\r\n", {404}},
      {"CONNECT", "CONNECT example.com:443 HTTP/1.1\r\n" + host + "\r\n", {400}},
      {"a target without a slash", "GET health/live HTTP/1.1\r\n" + host + "\r\n", {400}},
      {"an absolute target", "GET http://127.0.0.1:9/health/live HTTP/1.1\r\n" + host + "\r\n", {200}},
      {"an absolute target elsewhere",
       "GET http://evil.example/health/live HTTP/1.1\r\n" + host + "\r\n",
       {403}},
      {"an absolute target without a path", "GET http://127.0.0.1 HTTP/1.1\r\n" + host + "\r\n", {400}},
      {"a bad percent escape", "GET /%zz HTTP/1.1\r\n" + host + "\r\n", {400}},
      {"an escaped NUL", "GET /%00 HTTP/1.1\r\n" + host + "\r\n", {400}},
      {"a cut percent escape", "GET /% HTTP/1.1\r\n" + host + "\r\n", {400}},
      {"dot segments", "GET /../../etc/passwd HTTP/1.1\r\n" + host + "\r\n", {404}},
      {"an empty segment", "GET // HTTP/1.1\r\n" + host + "\r\n", {404}},
      {"a query", "GET /health/live?x=1&y HTTP/1.1\r\n" + host + "\r\n", {200}},
      {"a method of 20 KB", repeated("A", 20000) + " / HTTP/1.1\r\n" + host + "\r\n", {400, 405, 431}},
      {"a target of 20 KB", "GET /" + repeated("a", 20000) + " HTTP/1.1\r\n" + host + "\r\n", {431}},
      {"a target of 1 MB", "GET /" + repeated("a", 1 << 20) + " HTTP/1.1\r\n" + host + "\r\n", {431}},
      // Header fields.
      {"no Host", get_live + "\r\n", {400}},
      {"two Hosts", get_live + host + host + "\r\n", {400}},
      {"an empty Host", get_live + "Host:\r\n\r\n", {403}},
      {"another Host", get_live + "Host: evil.example\r\n\r\n", {403}},
      {"a Host with a port that is none", get_live + "Host: 127.0.0.1:80a\r\n\r\n", {403}},
      {"a Host that begins well", get_live + "Host: 127.0.0.1.evil.example\r\n\r\n", {403}},
      {"a Host under localhost", get_live + "Host: app.localhost:1\r\n\r\n", {200}},
      {"an IPv6 loopback Host", get_live + "Host: [::1]:8000\r\n\r\n", {200}},
      {"an open bracket", get_live + "Host: [::1\r\n\r\n", {403}},
      {"a field without a colon", get_live + host + "Nonsense\r\n\r\n", {400}},
      {"a field with an empty name", get_live + host + ": x\r\n\r\n", {400}},
      {"a space before the colon", get_live + host + "A : b\r\n\r\n", {400}},
      {"a NUL in a value", get_live + host + std::string("A: b\x00 c\r\n\r\n", 11), {400}},
      {"a bare line feed", "GET /health/live HTTP/1.1\nHost: 127.0.0.1\n\n", {400, 0}},
      {"a bare carriage return", get_live + host + "A: b\rc\r\n\r\n", {400}},
      {"a folded value", get_live + host + "A: b\r\n c\r\n\r\n", {200, 400}},
      {"a header of 1 MB", get_live + host + "A: " + repeated("a", 1 << 20) + "\r\n\r\n", {431}},
      {"a header line of 17 KB", get_live + host + "A: " + repeated("a", 17 << 10) + "\r\n\r\n", {431}},
      {"101 header fields", get_live + host + repeated("A: b\r\n", 100) + "\r\n", {431}},
      {"100 header fields", get_live + host + repeated("A: b\r\n", 99) + "\r\n", {200}},
      {"10,000 header fields", get_live + host + repeated("A: b\r\n", 10000) + "\r\n", {431}},
      {"a bad request id", get_live + host + "X-Request-Id: a b\r\n\r\n", {400}},
      {"an endless request id", get_live + host + "X-Request-Id: " + repeated("a", 129) + "\r\n\r\n", {400}},
      {"a foreign Origin", get_live + host + "Origin: https://evil.example\r\n\r\n", {403}},
      {"a null Origin", get_live + host + "Origin: null\r\n\r\n", {403}},
      {"a local Origin", get_live + host + "Origin: http://localhost:3000\r\n\r\n", {200}},
      // Lengths and codings: what two servers could read in two ways.
      {"a body", post_tokenize + "Content-Length: 16\r\n\r\n" + body, {200}},
      {"a negative length", post_tokenize + "Content-Length: -1\r\n\r\n" + body, {400}},
      {"a signed length", post_tokenize + "Content-Length: +16\r\n\r\n" + body, {400}},
      {"a length in words", post_tokenize + "Content-Length: ten\r\n\r\n" + body, {400}},
      {"a hexadecimal length", post_tokenize + "Content-Length: 0x10\r\n\r\n" + body, {400}},
      {"an empty length", post_tokenize + "Content-Length:\r\n\r\n" + body, {400}},
      {"a length past 2^64", post_tokenize + "Content-Length: 18446744073709551632\r\n\r\n" + body, {400}},
      {"a length of 2^63", post_tokenize + "Content-Length: 9223372036854775808\r\n\r\n" + body, {413}},
      {"two lengths", post_tokenize + "Content-Length: 16\r\nContent-Length: 16\r\n\r\n" + body, {400}},
      {"two other lengths", post_tokenize + "Content-Length: 16\r\nContent-Length: 15\r\n\r\n" + body, {400}},
      {"a list of lengths", post_tokenize + "Content-Length: 16, 15\r\n\r\n" + body, {400}},
      {"a length and chunks",
       post_tokenize + "Content-Length: 16\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       {400}},
      {"chunks and a length",
       post_tokenize + "Transfer-Encoding: chunked\r\nContent-Length: 16\r\n\r\n0\r\n\r\n",
       {400}},
      {"an unknown coding and a length",
       post_tokenize + "Transfer-Encoding: x\r\nContent-Length: 16\r\n\r\n" + body,
       {400}},
      {"gzip", post_tokenize + "Transfer-Encoding: gzip\r\n\r\n", {501}},
      {"gzip and chunks", post_tokenize + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", {501}},
      {"chunks twice",
       post_tokenize + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       {400, 501}},
      {"chunked with a tail", post_tokenize + "Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n", {501}},
      {"identity", post_tokenize + "Transfer-Encoding: identity\r\n\r\n", {501}},
      {"chunks in HTTP/1.0",
       "POST /tokenize HTTP/1.0\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       {400}},
      {"chunks", chunked + "7\r\n{\"conte\r\n9\r\nnt\":\"ab\"}\r\n0\r\n\r\n", {200}},
      {"chunks with extensions", chunked + "10;a=b;c=\"d\"\r\n" + body + "\r\n0;e\r\n\r\n", {200}},
      {"trailers", chunked + "10\r\n" + body + "\r\n0\r\nX-Request-Id: hidden\r\nA: b\r\n\r\n", {200}},
      {"a length among the trailers",
       chunked + "10\r\n" + body + "\r\n0\r\nContent-Length: 3\r\n\r\n",
       {400}},
      {"a bad chunk size", chunked + "zz\r\n", {400}},
      {"an empty chunk size", chunked + "\r\n\r\n", {400}},
      {"a negative chunk size", chunked + "-1\r\n", {400}},
      {"a chunk size past 2^64", chunked + "FFFFFFFFFFFFFFFFFF\r\n", {400, 413}},
      {"a chunk size past the limit", chunked + "FFFFFFFFFFFFFFFF\r\n", {413}},
      {"a chunk without an end", chunked + "2\r\nabcd\r\n0\r\n\r\n", {400}},
      {"an extension of 200 KB", chunked + "1;" + repeated("a", 200000) + "\r\nx\r\n0\r\n\r\n", {400, 431}},
      {"a trailer of 200 KB",
       chunked + "1\r\nx\r\n0\r\nA: " + repeated("a", 200000) + "\r\n\r\n",
       {400, 431}},
      {"an unknown expectation",
       post_tokenize + "Expect: miracles\r\nContent-Length: 16\r\n\r\n" + body,
       {417}},
      {"a GET with a body", get_live + host + "Content-Length: 3\r\n\r\nabc", {200}},
  };
}

TEST(HostileHttp, every_raw_request_gets_its_status_and_the_server_lives) {
  TinyServer server({.server = {.header_timeout_ms = 2000, .body_timeout_ms = 2000}});
  const std::vector<RawCase> cases = raw_cases();
  EXPECT_GE(cases.size(), 60u);
  for (const RawCase& each : cases) {
    HttpClient client(server.port());
    client.send(each.bytes);
    if (each.statuses.back() == 0) client.shut_down_sending();
    const HttpResponse response = client.read_response(10s);
    EXPECT_TRUE(std::ranges::find(each.statuses, response.status) != each.statuses.end())
        << each.name << ": " << response.status << " " << response.body.substr(0, 300);
    if (response.status == 0) continue;
    EXPECT_TRUE(response.complete) << each.name;
    EXPECT_FALSE(response.header("x-request-id").empty()) << each.name;
    if (response.status >= 400) {
      const Json json = response.json();
      EXPECT_EQ(json.find("request_id")->as_string(), response.header("x-request-id")) << each.name;
      EXPECT_FALSE(json.find("error")->find("message")->as_string().empty());
      EXPECT_EQ(response.body.find(INFERD_SOURCE_DIR), std::string::npos) << each.name;
    }
    EXPECT_LT(response.status, 502) << each.name;
  }
  EXPECT_EQ(get(server.port(), "/health/live").status, 200);
}

TEST(HostileHttp, a_request_may_come_in_any_pieces) {
  TinyServer server;
  const std::string text = test::request_text("POST", "/tokenize", R"({"content":"ab"})") +
                           test::request_text("GET", "/health/live");
  for (size_t cut = 1; cut < text.size(); cut += 7) {
    HttpClient client(server.port());
    client.send(std::string_view(text).substr(0, cut));
    std::this_thread::sleep_for(1ms);
    client.send(std::string_view(text).substr(cut));
    EXPECT_EQ(client.read_response().status, 200) << cut;
    EXPECT_EQ(client.read_response().status, 200) << cut;
  }
}

TEST(HostileHttp, a_request_that_stops_anywhere_leaves_nothing_behind) {
  TinyServer server({.server = {.header_timeout_ms = 200, .body_timeout_ms = 200}});
  const int descriptors = test::open_descriptors();
  const std::string text = test::request_text("POST", "/v1/completions", R"({"prompt":"ab","max_tokens":2})");
  for (size_t cut = 0; cut < text.size(); cut += 3) {
    HttpClient client(server.port());
    client.send(std::string_view(text).substr(0, cut));
    if (cut % 2 == 0) {
      client.shut_down_sending();
      EXPECT_TRUE(client.wait_closed()) << cut;
    } else {
      client.reset();
    }
  }
  EXPECT_TRUE(server.settle());
  for (int i = 0; i < 2000 && test::open_descriptors() > descriptors; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(test::open_descriptors(), descriptors);
}

TEST(HostileHttp, many_one_byte_chunks_are_one_body) {
  TinyServer server;
  const std::string body = cat(R"({"content":")", std::string(100000, 'a'), "\"}");
  std::string text = "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const char c : body) text += cat("1\r\n", c, "\r\n");
  text += "0\r\n\r\n";
  HttpClient client(server.port());
  client.send(text);
  EXPECT_EQ(client.read_response(60s).status, 200);
}

TEST(Deadlines, slow_headers_end_in_time_however_they_drip) {
  TinyServer server({.server = {.header_timeout_ms = 300}});
  const auto began = std::chrono::steady_clock::now();
  HttpClient client(server.port());
  bool open = true;
  for (int i = 0; i < 40 && open; ++i) {
    open = client.send(i == 0 ? "GET / HTTP/1.1\r\nA: " : "x");
    std::this_thread::sleep_for(50ms);
    const std::string reply = client.receive(0ms);
    if (!reply.empty()) {
      EXPECT_NE(reply.find("408"), std::string::npos);
      EXPECT_NE(reply.find("E-REQ-015"), std::string::npos);
      break;
    }
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, 1500ms);
}

TEST(Deadlines, slow_bodies_end_in_time_however_they_drip) {
  TinyServer server({.server = {.body_timeout_ms = 300}});
  const auto began = std::chrono::steady_clock::now();
  HttpClient client(server.port());
  client.send("POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n");
  std::string reply;
  for (int i = 0; i < 40 && reply.empty(); ++i) {
    client.send("x");
    reply = client.receive(50ms);
  }
  EXPECT_NE(reply.find(" 408 "), std::string::npos) << reply;
  EXPECT_LT(std::chrono::steady_clock::now() - began, 1500ms);
  // Refused before the body is complete, told so, and closed when the client stops.
  EXPECT_TRUE(client.wait_closed(5s));
}

TEST(Deadlines, silent_connections_are_closed) {
  TinyServer server({.server = {.header_timeout_ms = 200, .idle_timeout_ms = 300}});
  HttpClient silent(server.port()), idle(server.port());
  idle.send(test::request_text("GET", "/health/live"));
  EXPECT_EQ(idle.read_response().status, 200);
  EXPECT_TRUE(silent.wait_closed(5s));
  EXPECT_TRUE(idle.wait_closed(5s));
}

TEST(Bodies, too_large_is_a_413_that_the_client_can_read_while_it_sends) {
  TinyServer server({.server = {.max_body_bytes = 1 << 20}});
  const std::string large(4 << 20, 'x');
  // The length is claimed: refused at the header, and the client still sends all of it before it reads.
  HttpClient claims(server.port());
  claims.send(
      cat("POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: ", large.size(), "\r\n\r\n"));
  EXPECT_TRUE(claims.send(large));
  const HttpResponse claimed = claims.read_response();
  EXPECT_EQ(claimed.status, 413);
  EXPECT_EQ(error_code(claimed), "E-REQ-007");
  EXPECT_NE(claimed.body.find("1048576"), std::string::npos) << claimed.body;
  // Chunks: refused when they have grown too large.
  HttpClient grows(server.port());
  grows.send("POST /tokenize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 64; ++i) grows.send(cat("10000\r\n", std::string(65536, 'x'), "\r\n"));
  grows.send("0\r\n\r\n");
  EXPECT_EQ(grows.read_response().status, 413);
  EXPECT_EQ(get(server.port(), "/health/live").status, 200);
}

TEST(Bodies, all_together_have_a_limit) {
  TinyServer server({.server = {.max_body_bytes = 1 << 20, .max_bodies_bytes = 3 << 19}});
  HttpClient first(server.port()), second(server.port());
  const std::string head =
      cat("POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: ", 1 << 20, "\r\n\r\n");
  const std::string most(1000000, ' ');
  first.send(head + most);
  second.send(head + most);
  // Which of the two comes too late is a matter of luck; one does, and its memory is given back.
  int status = 0;
  for (int i = 0; i < 200 && status == 0; ++i) {
    status = second.read_response(50ms).status;
    if (status == 0) status = first.read_response(50ms).status;
  }
  EXPECT_EQ(status, 429);
  const auto answered =
      post(server.port(), "/tokenize", cat(R"({"content":")", std::string(300000, 'a'), "\"}"));
  EXPECT_EQ(answered.status, 200);
}

TEST(Bodies, a_client_that_asks_first_is_told_to_go_on_or_not) {
  TinyServer server({.server = {.max_body_bytes = 1000}});
  const std::string body = R"({"content":"ab"})";
  HttpClient asks(server.port());
  asks.send(cat("POST /tokenize HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: ",
                body.size(), "\r\n\r\n"));
  EXPECT_EQ(asks.read_response().status, 100);
  asks.send(body);
  EXPECT_EQ(asks.read_response().status, 200);
  HttpClient refused(server.port());
  refused.send(
      "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 2000\r\n\r\n");
  EXPECT_EQ(refused.read_response().status, 413);
  HttpClient lost(server.port());
  lost.send(
      "POST /nowhere HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 20\r\n\r\n");
  EXPECT_EQ(lost.read_response().status, 404);
}

TEST(Connections, requests_in_one_packet_are_answered_in_order) {
  TinyServer server;
  HttpClient client(server.port());
  client.send(
      test::request_text("GET", "/health/live", "", {{"X-Request-Id", "a"}}) +
      test::request_text("POST", "/v1/completions", R"({"prompt":"a","max_tokens":3,"stream":true})",
                         {{"X-Request-Id", "b"}}) +
      test::request_text("GET", "/nowhere", "", {{"X-Request-Id", "c"}}) +
      test::request_text("POST", "/tokenize", R"({"content":"x"})", {{"X-Request-Id", "d"}}) +
      test::request_text("GET", "/health/live", "", {{"X-Request-Id", "e"}, {"Connection", "close"}}));
  client.shut_down_sending();
  const HttpResponse first = client.read_response();
  EXPECT_EQ(first.header("x-request-id"), "a");
  EXPECT_EQ(first.header("connection"), "keep-alive");
  // The client has shut down sending, so the stream counts as abandoned, and the connection ends there.
  EXPECT_TRUE(client.wait_closed());

  HttpClient patient(server.port());
  patient.send(
      test::request_text("POST", "/v1/completions", R"({"prompt":"a","max_tokens":3,"stream":true})",
                         {{"X-Request-Id", "b"}}) +
      test::request_text("GET", "/nowhere", "", {{"X-Request-Id", "c"}}) +
      test::request_text("GET", "/health/live", "", {{"X-Request-Id", "e"}, {"Connection", "close"}}));
  const HttpResponse stream = patient.read_response();
  EXPECT_EQ(stream.header("x-request-id"), "b");
  EXPECT_EQ(stream.events().back(), "[DONE]");
  EXPECT_EQ(patient.read_response().status, 404);
  const HttpResponse last = patient.read_response();
  EXPECT_EQ(last.header("x-request-id"), "e");
  EXPECT_EQ(last.header("connection"), "close");
  EXPECT_TRUE(patient.wait_closed());
}

TEST(Connections, http_1_0_is_answered_and_closed_or_kept) {
  TinyServer server;
  HttpClient plain(server.port());
  plain.send("GET /health/live HTTP/1.0\r\n\r\n");
  EXPECT_EQ(plain.read_response().header("connection"), "close");
  EXPECT_TRUE(plain.wait_closed());
  HttpClient kept(server.port());
  kept.send("GET /health/live HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(kept.read_response().header("connection"), "keep-alive");
  HttpClient streams(server.port());
  const std::string body = R"({"prompt":"a","max_tokens":3,"stream":true})";
  streams.send(cat("POST /v1/completions HTTP/1.0\r\nContent-Length: ", body.size(), "\r\n\r\n", body));
  const HttpResponse stream = streams.read_response();
  EXPECT_EQ(stream.header("transfer-encoding"), "");
  EXPECT_TRUE(stream.complete);
  EXPECT_EQ(stream.events().back(), "[DONE]");
}

TEST(Connections, head_is_get_without_the_body) {
  TinyServer server;
  HttpClient client(server.port());
  client.send(test::request_text("HEAD", "/v1/models"));
  const HttpResponse head = client.read_response(20s, true);
  EXPECT_EQ(head.status, 200);
  client.send(test::request_text("GET", "/v1/models"));
  EXPECT_EQ(std::to_string(client.read_response().body.size()), head.header("content-length"));
}

TEST(Connections, one_too_many_is_told_so) {
  TinyServer server({.server = {.max_connections = 2}});
  HttpClient first(server.port()), second(server.port());
  first.send(test::request_text("GET", "/health/live"));
  second.send(test::request_text("GET", "/health/live"));
  EXPECT_EQ(first.read_response().status, 200);
  EXPECT_EQ(second.read_response().status, 200);
  HttpClient third(server.port());
  const HttpResponse refused = third.read_response();
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(error_code(refused), "E-NET-005");
  first.close();
  for (int i = 0; i < 200; ++i) {
    if (get(server.port(), "/health/live").status == 200) return;
    std::this_thread::sleep_for(10ms);
  }
  FAIL() << "a place was not given back";
}

TEST(Routes, unknown_ones_name_the_nearest_and_wrong_methods_the_right) {
  TinyServer server;
  const HttpResponse unknown = post(server.port(), "/v1/chat/completion", "{}");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(error_code(unknown), "E-REQ-009");
  EXPECT_NE(unknown.body.find("/v1/chat/completions"), std::string::npos) << unknown.body;
  const HttpResponse wrong = get(server.port(), "/v1/chat/completions");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.header("allow"), "POST");
  EXPECT_EQ(post(server.port(), "/metrics", "").header("allow"), "GET, HEAD");
}

TEST(Keys, every_route_but_health_needs_the_key) {
  const std::string key = "a-key-of-many-characters";
  TinyServer server({.server = {.api_key = key}});
  std::vector<RouteInfo> routes = all_routes();
  ASSERT_GE(routes.size(), 13u);
  for (const RouteInfo& route : routes) {
    std::string path(route.path);
    if (path.ends_with('*')) path.back() = 'x';
    const auto status = [&](const test::Headers& headers) {
      return http(server.port(), route.method, path, "", headers).status;
    };
    const bool open = path.starts_with("/health/");
    EXPECT_EQ(route.open, open) << path;
    EXPECT_EQ(status({}) == 401, !open) << path;
    EXPECT_EQ(status({{"Authorization", "Bearer wrong"}}) == 401, !open) << path;
    EXPECT_EQ(status({{"Authorization", key}}) == 401, !open) << path;
    EXPECT_EQ(status({{"Authorization", cat("Bearer ", key.substr(1))}}) == 401, !open) << path;
    EXPECT_EQ(status({{"Authorization", cat("Bearer ", key, "x")}}) == 401, !open) << path;
    EXPECT_EQ(status({{"Authorization", "Bearer "}}) == 401, !open) << path;
    EXPECT_NE(status({{"Authorization", cat("bearer ", key)}}), 401) << path;
    EXPECT_EQ(status({{"Host", "evil.example"}, {"Authorization", cat("Bearer ", key)}}), 403) << path;
    EXPECT_EQ(status({{"Origin", "http://evil.example"}, {"Authorization", cat("Bearer ", key)}}), 403)
        << path;
  }
  const HttpResponse unknown = get(server.port(), "/secret");
  EXPECT_EQ(unknown.status, 401);  // which routes there are is not told
  EXPECT_EQ(unknown.header("www-authenticate"), "Bearer");
}

TEST(Listening, errors_are_named) {
  TinyServer server;
  ServedModel model{.name = "m", .tokenizer = test::tiny_model_view().tokenizer, .engine = &server.engine()};
  const auto bind_error = [](const ServerOptions& options) {
    return ListenSocket::bind(options).error().code;
  };
  EXPECT_EQ(bind_error({.port = server.port()}), Code::net_port);
  EXPECT_EQ(bind_error({.host = "203.0.113.1", .port = 0}), Code::net_open);
  EXPECT_EQ(bind_error({.host = "203.0.113.1", .port = 0, .allow_open = true}), Code::net_host);
  EXPECT_EQ(bind_error({.host = "no such host", .port = 0}), Code::net_host);
  EXPECT_EQ(bind_error({.host = "0.0.0.0", .port = 0}), Code::net_open);
  const auto start = [&](const ServerOptions& options) {
    return Server::start(model, options, ListenSocket::bind(options).value()).value();
  };
  auto open = start({.host = "0.0.0.0", .port = 0, .allow_open = true});
  EXPECT_TRUE(open->base_url().starts_with("http://127.0.0.1:"));
  EXPECT_EQ(get(open->port(), "/health/live", {{"Host", "192.0.2.7:8000"}}).status,
            200);  // digits cannot be rebound
  EXPECT_EQ(get(open->port(), "/health/live", {{"Host", "evil.example"}}).status, 403);
  auto keyed = start({.host = "0.0.0.0", .port = 0, .api_key = "0123456789abcdef"});
  EXPECT_EQ(get(keyed->port(), "/health/live", {{"Host", "box.lan"}}).status, 200);  // the key protects
  const ServerOptions ipv6{.host = "::1", .port = 0};
  auto socket = ListenSocket::bind(ipv6);
  if (socket.ok()) {  // not every machine has IPv6
    auto six = Server::start(model, ipv6, std::move(socket).value()).value();
    EXPECT_TRUE(six->base_url().starts_with("http://[::1]:"));
  }
}

}  // namespace
}  // namespace inferd
