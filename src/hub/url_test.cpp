#include "hub/url.h"

#include <gtest/gtest.h>

namespace inferd {
namespace {

std::string text_of(const std::optional<Url>& url) {
  return url ? url->text() : "none";
}

TEST(Url, is_parsed_into_its_parts) {
  const Url url = parse_url("HTTPS://Hub.Example:8443/a/b?c=d#e").value();
  EXPECT_TRUE(url.tls);
  EXPECT_EQ(url.host, "hub.example");
  EXPECT_EQ(url.port, 8443);
  EXPECT_EQ(url.target, "/a/b?c=d");
  EXPECT_EQ(url.shown(), "\"https://hub.example:8443/a/b\"");
  EXPECT_EQ(text_of(parse_url("http://h")), "http://h/");
  EXPECT_EQ(text_of(parse_url("https://h:443?x=1")), "https://h/?x=1");
  EXPECT_EQ(text_of(parse_url("http://[::1]:8080/x")), "http://[::1]:8080/x");
}

TEST(Url, what_is_none_is_refused) {
  for (const std::string& bad :
       {std::string("h.example"), std::string("ftp://h/"), std::string("http://"), std::string("http:///x"),
        std::string("http://u@h/"), std::string("http://h:0/"), std::string("http://h:65536/"),
        std::string("http://h:/"), std::string("http://h:80x/"), std::string("http://[::1/"),
        std::string("http://a b/"), std::string("http://h/\r\nX: y"), std::string("http://h/\x7f"),
        "http://h/" + std::string(9000, 'x'), "http://" + std::string(300, 'h') + "/"}) {
    EXPECT_EQ(text_of(parse_url(bad)), "none") << bad;
  }
}

TEST(Url, a_location_leads_from_its_base) {
  const Url base = parse_url("https://hub.example/acme/tiny/resolve/main/x.gguf?download=1").value();
  const auto from_base = [&](std::string_view location) {
    return text_of(resolve_reference(base, location));
  };
  EXPECT_EQ(from_base("https://cdn.example/x?sig=1"), "https://cdn.example/x?sig=1");
  EXPECT_EQ(from_base("http://cdn.example/x"), "http://cdn.example/x");
  EXPECT_EQ(from_base("//cdn.example/x"), "https://cdn.example/x");
  EXPECT_EQ(from_base("/api/y"), "https://hub.example/api/y");
  EXPECT_EQ(from_base("y.gguf"), "https://hub.example/acme/tiny/resolve/main/y.gguf");
  EXPECT_EQ(from_base("/y?to=http://z/"), "https://hub.example/y?to=http://z/");
  EXPECT_EQ(from_base("ftp://x/"), "none");
}

TEST(Url, paths_are_encoded) {
  EXPECT_EQ(percent_encoded_path("a b/c%d/\xc3\xa4?#.gguf"), "a%20b/c%25d/%C3%A4%3F%23.gguf");
}

TEST(Url, no_proxy_knows_names_suffixes_ports_and_addresses) {
  const Url url = parse_url("https://cdn.hub.example/").value();
  for (const std::string_view match :
       {"*", "hub.example", ".hub.example", "a, CDN.hub.example ,b", "cdn.hub.example:443"})
    EXPECT_TRUE(bypasses_proxy(match, url)) << match;
  for (const std::string_view other :
       {"", ",", "example.org", "b.example", "dn.hub.example", "hub.example:80", "x.cdn.hub.example"})
    EXPECT_FALSE(bypasses_proxy(other, url)) << other;
  EXPECT_TRUE(bypasses_proxy("127.0.0.1", parse_url("https://127.0.0.1:8443/").value()));
  EXPECT_TRUE(bypasses_proxy("::1", parse_url("https://[::1]/").value()));
  EXPECT_TRUE(bypasses_proxy("[::1]:443", parse_url("https://[::1]/").value()));
}

}  // namespace
}  // namespace inferd
