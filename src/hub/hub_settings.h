// Where the Hugging Face hub and its cache are, as the environment says to all programs that use them.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "hub/https_client.h"

namespace inferd {

struct HubSettings {
  std::string cache;                                // the folder of models--OWNER--REPO
  std::string endpoint = "https://huggingface.co";  // without a '/' at the end
  std::string token;                                // empty: none
  bool offline = false;                             // open no connection and look no name up
  HttpSettings http;
};

// The value of an environment variable; empty when it is not set.
using EnvironmentLookup = std::function<std::string_view(const char* name)>;

// HF_HUB_CACHE, HF_HOME (default $XDG_CACHE_HOME/huggingface, else ~/.cache/huggingface), HF_ENDPOINT,
// HF_TOKEN or the file HF_TOKEN_PATH (default HF_HOME/token), SSL_CERT_FILE, HTTPS_PROXY and NO_PROXY in
// either case, and HF_HUB_OFFLINE. Reads the token's file. E-IO-001 when nothing says where
// the cache is, E-HUB-015 for a value that cannot be used, E-IO-002 for a token file that may not be read.
Result<HubSettings> read_hub_settings(const EnvironmentLookup& variable);

// "1", "true", "yes", "on" in any case.
bool is_switched_on(std::string_view value);

}  // namespace inferd
