#include "hub/hub_settings.h"

#include <gtest/gtest.h>

#include <map>

#include "hub/test_wheel.h"

namespace inferd {
namespace {

using Variables = std::map<std::string, std::string>;

Result<HubSettings> read(const Variables& variables) {
  return read_hub_settings([&](const char* name) -> std::string_view {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string_view() : std::string_view(found->second);
  });
}

TEST(HubSettings, the_cache_is_where_huggingface_hub_has_it) {
  EXPECT_EQ(read({{"HOME", "/h"}})->cache, "/h/.cache/huggingface/hub");
  EXPECT_EQ(read({{"HOME", "/h"}, {"XDG_CACHE_HOME", "/x"}})->cache, "/x/huggingface/hub");
  EXPECT_EQ(read({{"HOME", "/h"}, {"XDG_CACHE_HOME", "/x"}, {"HF_HOME", "/f"}})->cache, "/f/hub");
  EXPECT_EQ(read({{"HOME", "/h"}, {"HF_HOME", "~/f/"}})->cache, "/h/f/hub");
  EXPECT_EQ(read({{"HF_HOME", "/f"}, {"HF_HUB_CACHE", "/c/"}})->cache, "/c");
  EXPECT_EQ(read({{"HUGGINGFACE_HUB_CACHE", "/old"}})->cache, "/old");
}

TEST(HubSettings, without_a_home_it_says_which_variables_would_help) {
  const Error error = read({}).error();
  EXPECT_EQ(error.code, Code::io_not_found);
  EXPECT_NE(error.detail.find("HF_HUB_CACHE, HF_HOME, XDG_CACHE_HOME and HOME"), std::string::npos);
}

TEST(HubSettings, the_token_comes_from_the_variable_or_its_file) {
  const testing_hub::ScratchFolder scratch;
  testing_hub::write_file(scratch.path + "/token", "hf_file\n");
  testing_hub::write_file(scratch.path + "/other", "  hf_other  ");
  EXPECT_EQ(read({{"HF_HOME", scratch.path}})->token, "hf_file");
  EXPECT_EQ(read({{"HF_HOME", scratch.path}, {"HF_TOKEN_PATH", scratch.path + "/other"}})->token, "hf_other");
  EXPECT_EQ(read({{"HF_HOME", scratch.path}, {"HF_TOKEN", "hf_variable"}})->token, "hf_variable");
  EXPECT_EQ(read({{"HF_HOME", scratch.path + "/absent"}})->token, "");
}

TEST(HubSettings, a_token_that_would_break_a_header_is_refused_and_not_shown) {
  const Error error = read({{"HF_HOME", "/f"}, {"HF_TOKEN", "hf_a\r\nX-Evil: 1"}}).error();
  EXPECT_EQ(error.code, Code::hub_settings);
  EXPECT_EQ(error.where, "HF_TOKEN");
  EXPECT_EQ(error.terminal_text().find("Evil"), std::string::npos);
}

TEST(HubSettings, the_endpoint_may_be_another_and_must_be_an_address) {
  EXPECT_EQ(read({{"HOME", "/h"}})->endpoint, "https://huggingface.co");
  EXPECT_EQ(read({{"HOME", "/h"}, {"HF_ENDPOINT", "http://127.0.0.1:80/x//"}})->endpoint,
            "http://127.0.0.1:80/x");
  for (const char* bad : {"hub.example", "ftp://hub.example", "https://hub.example/?a", "https://a b/"})
    EXPECT_EQ(read({{"HOME", "/h"}, {"HF_ENDPOINT", bad}}).error().code, Code::hub_settings) << bad;
}

TEST(HubSettings, offline_has_the_usual_values) {
  for (const char* on : {"1", "true", "YES", "On"})
    EXPECT_TRUE(read({{"HOME", "/h"}, {"HF_HUB_OFFLINE", on}})->offline);
  for (const char* off : {"", "0", "false", "no"})
    EXPECT_FALSE(read({{"HOME", "/h"}, {"HF_HUB_OFFLINE", off}})->offline);
}

TEST(HubSettings, proxy_and_roots_are_taken_over) {
  const HubSettings settings =
      read({{"HOME", "/h"}, {"https_proxy", "http://p:1"}, {"NO_PROXY", "x"}, {"SSL_CERT_FILE", "/r.pem"}})
          .value();
  EXPECT_EQ(settings.http.https_proxy, "http://p:1");
  EXPECT_EQ(settings.http.no_proxy, "x");
  EXPECT_EQ(settings.http.ca_file, "/r.pem");
}

}  // namespace
}  // namespace inferd
