#include "hub/hub_client.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"

namespace inferd {
namespace {

constexpr int64_t kLongestWaitMs = 120000;  // that the hub may ask for; beyond it the user decides

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

int64_t retry_after_ms(const GetResponse& response) {
  const auto seconds = parse_int(trim(response.header("retry-after")));  // a date is as good as none
  return seconds && *seconds > 0 ? std::min<int64_t>(*seconds, 86400) * 1000 : 0;
}

}  // namespace

Trouble trouble_of(Error error) {
  const bool may_pass = error.code == Code::hub_network;
  return {.error = std::move(error), .may_pass = may_pass};
}

Result<HubClient> HubClient::create(const HubSettings& settings, RepoName repo, Patience patience) {
  const std::optional<Url> endpoint = parse_url(settings.endpoint);
  if (!endpoint)
    return Error{.code = Code::hub_settings,
                 .detail = cat("HF_ENDPOINT: got ", printable(settings.endpoint))};
  if (!settings.token.empty() && !endpoint->tls && !is_loopback(endpoint->host)) {
    return Error{
        .code = Code::hub_settings,
        .detail = cat("HF_ENDPOINT: ", endpoint->origin(), " is not encrypted, and there is a token"),
        .fix = "use an https address, or unset HF_TOKEN"};
  }
  INFERD_TRY(HttpsClient client, HttpsClient::create(settings.http, std::move(patience)));
  return HubClient(std::move(client), settings, std::move(repo), *endpoint);
}

Trouble HubClient::status_trouble(const GetResponse& response) const {
  const int status = response.status();
  const std::string page = cat(endpoint_text_, "/", repo_.id());
  const std::string_view said = response.first_header("x-error-message");
  Error error{
      .detail = cat(repo_.text(), ": status ", status, said.empty() ? "" : ", ", printable(said, 200)),
      .where = response.url().shown()};
  if (said.empty()) error.detail = cat(repo_.text(), ": status ", status);
  if (status == 401 || status == 403) {
    error.code = Code::hub_access;
    error.fix = cat("accept its licence at ", page, ", then set HF_TOKEN to a token of that account");
    if (token_.empty() && status == 401) error.fix = cat("check the spelling; or ", error.fix);
    return {.error = std::move(error)};
  }
  if (status == 404) {
    error.code = Code::hub_not_found;
    return {.error = std::move(error)};
  }
  const bool may_pass = status == 429 || status == 408 || status / 100 == 5;
  error.code = may_pass ? Code::hub_network : Code::hub_answer;
  Trouble trouble{
      .error = std::move(error), .may_pass = may_pass, .retry_after_ms = retry_after_ms(response)};
  if (trouble.retry_after_ms > kLongestWaitMs) {
    trouble.may_pass = false;
    trouble.error.fix =
        cat("run the same command again in ",
            human_seconds(static_cast<double>(trouble.retry_after_ms) / 1000.0), ", as the hub asks");
  }
  return trouble;
}

std::optional<Trouble> HubClient::get(const std::string& target, int64_t offset, const std::string& if_range,
                                      std::unique_ptr<GetResponse>& response) {
  GetRequest request{.url = endpoint_, .token = token_, .offset = offset, .if_range = if_range};
  request.url.target = endpoint_.target == "/" ? target : endpoint_.target + target;
  Result<std::unique_ptr<GetResponse>> got = client_.get(request);
  if (!got.ok()) return trouble_of(std::move(got).error());
  response = *std::move(got);
  const int status = response->status();
  if (status == 200 || status == 206 || status == 416) return std::nullopt;
  return status_trouble(*response);
}

std::optional<Trouble> HubClient::get_text(const std::string& target, size_t limit, std::string& text) {
  std::unique_ptr<GetResponse> response;
  if (auto trouble = get(target, 0, "", response)) return trouble;
  if (response->status() != 200) return status_trouble(*response);
  text.clear();
  for (;;) {
    Result<std::string> piece = response->read();
    if (!piece.ok()) return trouble_of(std::move(piece).error());
    if (piece->empty()) return std::nullopt;
    text += *piece;
    if (text.size() > limit) {
      return trouble_of({.code = Code::hub_answer,
                         .detail = cat("more than ", human_bytes(static_cast<int64_t>(limit)), " of text"),
                         .where = response->url().shown()});
    }
  }
}

Status Attempts::next(Trouble trouble, bool progressed, const Patience& patience) {
  if (!trouble.may_pass) return std::move(trouble.error);
  if (progressed) attempt_ = 1;
  if (attempt_ == most_) {
    trouble.error.detail += cat(", after ", most_, " attempts");
    return std::move(trouble.error);
  }
  ++attempt_;
  if (note_) note_(cat(trouble.error.detail, ", retrying ", attempt_, "/", most_));
  return pause(std::max(trouble.retry_after_ms, backoff_ms_ << (attempt_ - 2)), patience);
}

}  // namespace inferd
