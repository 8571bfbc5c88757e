// Requests to the hub: the token goes with them, what a status means becomes an error with its fix, and
// failures that may pass are told from those that stay. Used by pull.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "hub/connection.h"
#include "hub/https_client.h"
#include "hub/hub_settings.h"
#include "hub/repo_name.h"

namespace inferd {

// Why a request gave nothing.
struct Trouble {
  Error error;
  bool may_pass = false;       // another try may help
  int64_t retry_after_ms = 0;  // as the hub asked
};

// A failure of the network may pass; other errors stay.
Trouble trouble_of(Error error);

class HubClient {
 public:
  // E-HUB-015. `repo` is what the requests are about.
  static Result<HubClient> create(const HubSettings& settings, RepoName repo, Patience patience);

  // `target` is below the endpoint. A response that is neither 200, 206 nor 416 is a trouble. 416 is the
  // caller's: it may mean that what it has is whole.
  std::optional<Trouble> get(const std::string& target, int64_t offset, const std::string& if_range,
                             std::unique_ptr<GetResponse>& response);
  // The whole body, at most `limit` bytes.
  std::optional<Trouble> get_text(const std::string& target, size_t limit, std::string& text);

 private:
  HubClient(HttpsClient client, const HubSettings& settings, RepoName repo, Url endpoint)
      : client_(std::move(client)),
        endpoint_(std::move(endpoint)),
        endpoint_text_(settings.endpoint),
        token_(settings.token),
        repo_(std::move(repo)) {}
  Trouble status_trouble(const GetResponse& response) const;

  HttpsClient client_;
  Url endpoint_;
  std::string endpoint_text_;
  std::string token_;
  RepoName repo_;
};

// Counts attempts and waits between them.
class Attempts {
 public:
  Attempts(int most, int64_t backoff_ms, const std::function<void(const std::string&)>& note)
      : most_(most), backoff_ms_(backoff_ms), note_(note) {}

  // After an attempt that failed: waits and says so when another one is due, else gives the error.
  // `progressed`: something new came since the last call, so the count begins again.
  Status next(Trouble trouble, bool progressed, const Patience& patience);

 private:
  const int most_;
  const int64_t backoff_ms_;
  const std::function<void(const std::string&)>& note_;
  int attempt_ = 1;
};

}  // namespace inferd
