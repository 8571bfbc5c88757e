#include "hub/hub_settings.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/mmap.h"
#include "base/strings.h"

namespace inferd {
namespace {

constexpr int64_t kLongestToken = 4096;

// The first of the variables that says something.
std::string_view first_of(const EnvironmentLookup& variable, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const std::string_view value = variable(name); !value.empty()) return value;
  }
  return {};
}

// "~/x" with the home folder, as Python's expanduser does it.
std::string with_home(std::string_view path, std::string_view home) {
  if (path == "~" || path.starts_with("~/")) return cat(home, path.substr(1));
  return std::string(path);
}

// $HF_HOME, or where it is by default; nothing when no variable helps.
std::optional<std::string> hub_home(const EnvironmentLookup& variable) {
  const std::string_view home = variable("HOME");
  if (const std::string_view set = variable("HF_HOME"); !set.empty()) return with_home(set, home);
  if (const std::string_view caches = variable("XDG_CACHE_HOME"); !caches.empty())
    return cat(with_home(caches, home), "/huggingface");
  if (!home.starts_with('/')) return std::nullopt;  // a relative home means nothing
  return cat(home, "/.cache/huggingface");
}

Result<std::string> checked_token(std::string_view text, std::string_view origin) {
  const std::string_view token = trim(text);
  const bool plain = std::ranges::all_of(token, [](char c) { return c > 0x20 && c < 0x7f; });
  if (plain) return std::string(token);
  return Error{.code = Code::hub_settings,  // the text is a secret
               .detail = "the token holds blanks or characters that are no ASCII",
               .where = std::string(origin)};
}

Result<std::string> read_token(const EnvironmentLookup& variable, const std::optional<std::string>& home) {
  if (const std::string_view set = variable("HF_TOKEN"); !trim(set).empty())
    return checked_token(set, "HF_TOKEN");
  std::string path = with_home(variable("HF_TOKEN_PATH"), variable("HOME"));
  if (path.empty() && home) path = *home + "/token";
  if (path.empty()) return std::string();
  const Result<MappedFile> file = MappedFile::open(path);
  if (!file.ok()) {
    if (file.error().code == Code::io_not_found) return std::string();
    return file.error();
  }
  if (file->size() > kLongestToken)
    return Error{.code = Code::hub_settings,
                 .detail = cat("a token of ", with_commas(file->size()), " bytes"),
                 .where = path};
  return checked_token({reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()}, path);
}

}  // namespace

bool is_switched_on(std::string_view value) {
  const std::string text = to_lower_ascii(value);
  return text == "1" || text == "true" || text == "yes" || text == "on";
}

Result<HubSettings> read_hub_settings(const EnvironmentLookup& variable) {
  HubSettings settings;
  const std::optional<std::string> home = hub_home(variable);
  const std::string_view cache = first_of(variable, {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"});
  if (!cache.empty()) {
    settings.cache = with_home(cache, variable("HOME"));
  } else if (home) {
    settings.cache = *home + "/hub";
  } else {
    return Error{.code = Code::io_not_found,
                 .detail =
                     "no folder for the Hugging Face cache: none of HF_HUB_CACHE, HF_HOME, XDG_CACHE_HOME "
                     "and HOME says where",
                 .fix = "set HOME or HF_HUB_CACHE"};
  }
  settings.cache = std::filesystem::path(settings.cache).lexically_normal().string();
  if (settings.cache.size() > 1 && settings.cache.ends_with('/')) settings.cache.pop_back();

  if (std::string_view endpoint = variable("HF_ENDPOINT"); !endpoint.empty()) {
    while (endpoint.ends_with('/')) endpoint.remove_suffix(1);
    if (!parse_url(endpoint) || endpoint.find('?') != std::string_view::npos)
      return Error{
          .code = Code::hub_settings,
          .detail = cat("HF_ENDPOINT: got ", printable(endpoint), ", allowed is https://HOST[:PORT][/PATH]")};
    settings.endpoint = endpoint;
  }
  INFERD_TRY(settings.token, read_token(variable, home));
  settings.http.ca_file = variable("SSL_CERT_FILE");
  settings.http.https_proxy = first_of(variable, {"HTTPS_PROXY", "https_proxy"});
  settings.http.no_proxy = first_of(variable, {"NO_PROXY", "no_proxy"});
  settings.offline = is_switched_on(variable("HF_HUB_OFFLINE"));
  return settings;
}

}  // namespace inferd
