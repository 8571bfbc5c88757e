// Pulls over TLS and through a proxy.
#include <openssl/ssl.h>

#include "hub/test_pull.h"

namespace inferd {
namespace {

using testing_hub::content_answer;
using testing_hub::FakeFile;
using testing_hub::PullTest;
using testing_hub::TestAuthority;
using testing_hub::web_answer;
using testing_hub::WebReply;
using testing_hub::WebRequest;
using testing_hub::WebServer;
using testing_hub::write_file;

class PullTlsTest : public PullTest {
 protected:
  PullTlsTest() {
    write_file(scratch_.path + "/roots.pem", authority_.pem());
    options_.hub.http.ca_file = scratch_.path + "/roots.pem";
  }
  const TestAuthority authority_;
};

TEST_F(PullTlsTest, a_server_that_the_roots_vouch_for_is_trusted) {
  start_server(authority_.issue("IP:127.0.0.1"));
  expect_whole(pull());
}

TEST_F(PullTlsTest, a_name_is_checked_and_sent) {
  start_server(authority_.issue("DNS:localhost"), "localhost");
  expect_whole(pull());
}

TEST_F(PullTlsTest, a_resume_works_over_tls_too) {
  start_server(authority_.issue("IP:127.0.0.1"));
  on_file = [](const WebRequest& request, WebReply& reply, const FakeFile& file, int n) {
    if (n > 0) return false;
    return reply.send(std::string_view(content_answer(request, file.content, file.etag())).substr(0, 99999)),
           true;
  };
  expect_whole(pull());
  EXPECT_EQ(range_begins().size(), 2u);
}

TEST_F(PullTlsTest, a_server_that_nobody_vouches_for_is_refused_at_once) {
  const TestAuthority stranger;
  start_server(stranger.issue("IP:127.0.0.1"));
  const Error error = failed_pull();
  EXPECT_EQ(error.code, Code::hub_tls);
  EXPECT_TRUE(notes_.empty());
}

TEST_F(PullTlsTest, a_certificate_for_another_name_is_refused) {
  start_server(authority_.issue("DNS:hub.example,IP:127.0.0.2"));
  EXPECT_EQ(failed_pull().detail, "\"127.0.0.1\": IP address mismatch");
  start_server(authority_.issue("DNS:hub.example"), "localhost");
  EXPECT_EQ(failed_pull().detail, "\"localhost\": hostname mismatch");
}

TEST_F(PullTlsTest, a_certificate_that_has_expired_is_refused) {
  start_server(authority_.issue("IP:127.0.0.1", -60));
  EXPECT_EQ(failed_pull().detail, "\"127.0.0.1\": certificate has expired");
}

TEST_F(PullTlsTest, a_server_with_nothing_newer_than_tls_1_1_is_refused) {
  start_server(authority_.issue("IP:127.0.0.1", 3600, TLS1_1_VERSION));
  EXPECT_EQ(failed_pull().code, Code::hub_tls);
}

TEST_F(PullTlsTest, a_server_that_speaks_no_tls_is_refused) {
  options_.hub.endpoint = cat("https://127.0.0.1:", server_->port());
  EXPECT_EQ(failed_pull().code, Code::hub_tls);
}

TEST_F(PullTlsTest, roots_that_are_not_there_or_are_none_are_named) {
  start_server(authority_.issue("IP:127.0.0.1"));
  options_.hub.http.ca_file = scratch_.path + "/absent.pem";
  EXPECT_EQ(failed_pull().where, scratch_.path + "/absent.pem");
  write_file(scratch_.path + "/empty.pem", "");
  options_.hub.http.ca_file = scratch_.path + "/empty.pem";
  EXPECT_EQ(failed_pull().code, Code::hub_tls);
}

TEST_F(PullTlsTest, a_redirect_from_https_to_http_is_refused) {
  start_server(authority_.issue("IP:127.0.0.1"));
  on_request = [](const WebRequest& request, WebReply& reply) {
    if (request.target.find("/resolve/") == std::string::npos) return false;
    return reply.send(web_answer("302 Found", "Location: http://127.0.0.1:9/x\r\n", "")), true;
  };
  EXPECT_EQ(failed_pull().detail, "a redirect from https to \"http://127.0.0.1:9/x\"");
}

TEST_F(PullTlsTest, https_goes_through_the_proxy_by_connect) {
  start_server(authority_.issue("IP:127.0.0.1"));
  WebServer proxy([this](const WebRequest&, WebReply& reply) { reply.relay(server_->port()); });
  options_.hub.http.https_proxy = cat("http://some:p%40ss@127.0.0.1:", proxy.port());
  options_.hub.token = "hf_secret";
  expect_whole(pull());
  ASSERT_EQ(proxy.requests().size(), 3u);  // the listing, the file, the place it was redirected to
  for (const WebRequest& request : proxy.requests()) {
    EXPECT_EQ(request.method, "CONNECT");
    EXPECT_EQ(request.target, cat("127.0.0.1:", server_->port()));
    EXPECT_EQ(request.header("proxy-authorization"), "Basic c29tZTpwQHNz");  // some:p@ss
    EXPECT_EQ(request.header("authorization"), "");
  }
}

TEST_F(PullTlsTest, no_proxy_goes_past_the_proxy) {
  start_server(authority_.issue("IP:127.0.0.1"));
  WebServer proxy([](const WebRequest&, WebReply&) {});
  options_.hub.http.https_proxy = proxy.url();
  options_.hub.http.no_proxy = "example.org, 127.0.0.1";
  expect_whole(pull());
  EXPECT_TRUE(proxy.requests().empty());
}

TEST_F(PullTlsTest, a_proxy_that_wants_a_password_is_reported_at_once) {
  start_server(authority_.issue("IP:127.0.0.1"));
  WebServer proxy([](const WebRequest&, WebReply& reply) {
    reply.send(web_answer("407 Proxy Authentication Required", "", ""));
  });
  options_.hub.http.https_proxy = proxy.url();
  const Error error = failed_pull();
  EXPECT_EQ(error.code, Code::hub_settings);
  EXPECT_NE(error.detail.find("refused with status 407"), std::string::npos) << error.detail;
  EXPECT_TRUE(server_->requests().empty());
}

TEST_F(PullTlsTest, a_proxy_address_that_is_none_is_refused) {
  options_.hub.http.https_proxy = "socks5://user:hidden@127.0.0.1:1080";
  const Error error = failed_pull();
  EXPECT_EQ(error.code, Code::hub_settings);
  EXPECT_EQ(error.detail.find("hidden"), std::string::npos) << error.detail;
}

}  // namespace
}  // namespace inferd
