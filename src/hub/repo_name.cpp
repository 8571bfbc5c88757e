#include "hub/repo_name.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "base/strings.h"
#include "base/utf8.h"

namespace inferd {
namespace {

constexpr std::string_view kPrefix = "hf:";
constexpr std::string_view kDefaultQuant = "Q4_K_M";
constexpr size_t kLongestName = 96;  // of an owner or repository, as the hub has it
constexpr size_t kLongestPath = 1000;
constexpr size_t kMostChoices = 40;  // in a message

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c);
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return out;
}

// What is wrong with an owner's or a repository's name; empty: nothing.
std::string fault_of_part(std::string_view what, std::string_view part) {
  if (part.empty()) return cat("the ", what, " is empty");
  if (part.size() > kLongestName)
    return cat("the ", what, " has ", with_commas(static_cast<int64_t>(part.size())), " characters, at most ",
               kLongestName, " allowed");
  const bool plain = std::ranges::all_of(
      part, [](char c) { return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.'; });
  if (!plain)
    return cat("the ", what, " is ", printable(part), ", allowed are letters, digits, '-', '_' and '.'");
  if (part.find("..") != std::string_view::npos || part.find("--") != std::string_view::npos ||
      part.front() == '.' || part.front() == '-' || part.back() == '.' || part.back() == '-') {
    return cat("the ", what, " is ", printable(part),
               ", which must not hold \"..\" or \"--\" nor begin or end with '.' or '-'");
  }
  return {};
}

// "-00001-of-00003.gguf": one of several parts.
bool is_split(std::string_view path) {
  constexpr std::string_view kPattern = "-ddddd-of-ddddd.gguf";
  if (path.size() < kPattern.size()) return false;
  path.remove_prefix(path.size() - kPattern.size());
  return std::ranges::equal(path, kPattern, [](char c, char p) { return p == 'd' ? is_digit(c) : c == p; });
}

std::string_view file_name_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

bool ends_with_any(std::string_view name, std::initializer_list<std::string_view> suffixes) {
  return std::ranges::any_of(suffixes, [&](std::string_view suffix) { return name.ends_with(suffix); });
}

// GGUF files that are models, by tag; those without a tag stand under their path.
std::map<std::string, std::vector<std::string>> gguf_by_tag(std::span<const RepoFile> files) {
  std::map<std::string, std::vector<std::string>> found;
  for (const RepoFile& file : files) {
    const std::string_view name = file_name_of(file.path);
    if (!name.ends_with(".gguf") || name.starts_with("mmproj") ||
        name.find("imatrix") != std::string_view::npos)
      continue;
    const std::string tag = quant_tag(name);
    found[tag.empty() ? file.path : tag].push_back(file.path);
  }
  return found;
}

std::string choices_text(const std::map<std::string, std::vector<std::string>>& by_tag) {
  std::vector<std::string> names;
  for (const auto& [tag, paths] : by_tag) {
    if (names.size() == kMostChoices) {
      names.push_back(cat("and ", by_tag.size() - kMostChoices, " more"));
      break;
    }
    names.push_back(is_split(paths.front()) ? cat(tag, " (split)") : tag);
  }
  return join(names, ", ");
}

Result<ModelFiles> one_gguf(const std::vector<std::string>& paths) {
  if (is_split(paths.front())) {
    return Error{
        .code = Code::model_format,
        .detail = cat("a GGUF model in ", paths.size() > 1 ? cat(paths.size()) : "several", " parts"),
        .where = printable(paths.front(), 200)};
  }
  if (paths.size() > 1) {
    std::vector<std::string> shown;
    for (const std::string& path : paths) shown.push_back(printable(path, 200));
    return Error{.code = Code::hub_choice,
                 .detail = cat(paths.size(), " files fit: ", join(shown, ", ")),
                 .fix = "name one of them as /FILE"};
  }
  return ModelFiles{.paths = paths};
}

std::optional<ModelFiles> safetensors_model(std::span<const RepoFile> files) {
  ModelFiles model{.safetensors = true};
  bool has_weights = false;
  for (const RepoFile& file : files) {
    if (file.path.find('/') != std::string::npos) continue;  // other formats, or copies for other programs
    const bool weights = file.path.ends_with(".safetensors");
    if (weights || ends_with_any(file.path, {".json", ".jinja", ".model", ".txt", ".tiktoken"}))
      model.paths.push_back(file.path);
    has_weights |= weights;
  }
  if (!has_weights) return std::nullopt;
  return model;
}

}  // namespace

std::string RepoName::id() const {
  return cat(owner, "/", repo);
}

std::string RepoName::text() const {
  return cat(kPrefix, id(), quant.empty() ? "" : ":", quant, file.empty() ? "" : "/", file);
}

bool is_hub_name(std::string_view text) {
  return text.starts_with(kPrefix);
}

bool is_safe_repo_path(std::string_view path) {
  if (path.empty() || path.size() > kLongestPath || !is_valid_utf8(path)) return false;
  for (const std::string_view part : split(path, '/')) {
    if (part.empty() || part == "." || part == ".." || part.size() > 255) return false;
  }
  return std::ranges::all_of(path, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 && byte != 0x7f && c != '\\';
  });
}

Result<RepoName> parse_repo_name(std::string_view text) {
  const auto bad = [&](std::string detail) {
    return Error{.code = Code::hub_name, .detail = std::move(detail), .where = printable(text)};
  };
  if (!is_hub_name(text)) return bad("it does not begin with hf:");
  const std::string_view rest = text.substr(kPrefix.size());
  RepoName name;
  const size_t slash = rest.find('/');
  if (slash == std::string_view::npos) return bad("there is no '/' between owner and repository");
  name.owner = rest.substr(0, slash);
  const std::string_view after = rest.substr(slash + 1);
  const size_t end = std::min(after.find_first_of(":/"), after.size());
  name.repo = after.substr(0, end);
  if (std::string fault = fault_of_part("owner", name.owner); !fault.empty()) return bad(std::move(fault));
  if (std::string fault = fault_of_part("repository", name.repo); !fault.empty())
    return bad(std::move(fault));
  if (end == after.size()) return name;
  const std::string_view choice = after.substr(end + 1);
  if (after[end] == '/') {
    if (!is_safe_repo_path(choice))
      return bad(cat("the file is ", printable(choice), ", which is no path inside a repository"));
    name.file = choice;
    return name;
  }
  const bool plain = std::ranges::all_of(
      choice, [](char c) { return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.'; });
  if (choice.empty() || choice.size() > kLongestName || !plain)
    return bad(cat("the quantisation is ", printable(choice), ", it should be like Q4_K_M"));
  name.quant = choice;
  return name;
}

std::string quant_tag(std::string_view file_name) {
  std::string name = upper(file_name_of(file_name));
  if (name.ends_with(".GGUF")) name.resize(name.size() - 5);
  if (is_split(file_name)) name.resize(name.rfind('-', name.rfind("-OF-") - 1));
  // The last part that looks like a type: parts are divided by '-' and '.', and a '_' may stand before one
  // too.
  std::string found;
  for (size_t at = 0; at < name.size(); ++at) {
    if (at > 0 && is_letter_or_digit(name[at - 1])) continue;
    const std::string_view rest = std::string_view(name).substr(at);
    const std::string_view part = rest.substr(0, rest.find_first_of("-."));
    const bool known = part == "BF16" || part == "F16" || part == "F32" || part.starts_with("MXFP4");
    const size_t letters = part.starts_with("IQ") || part.starts_with("TQ") ? 2
                           : part.starts_with('Q')                          ? 1
                                                                            : 0;
    const bool quantised =
        letters > 0 && part.size() > letters && is_digit(part[letters]) &&
        (part.size() == letters + 1 || (part[letters + 1] == '_' && part.size() > letters + 2));
    if (!known && !quantised) continue;
    found = part;
    if (at >= 3 && name.substr(at - 3, 3) == "UD-") found.insert(0, "UD-");
  }
  return found;
}

Result<ModelFiles> choose_model_files(std::string_view quant, std::string_view file,
                                      std::span<const RepoFile> files) {
  const auto by_tag = gguf_by_tag(files);
  if (!file.empty()) {
    const bool there =
        std::ranges::any_of(files, [&](const RepoFile& candidate) { return candidate.path == file; });
    if (there) return one_gguf({std::string(file)});
    std::vector<std::string> paths;
    for (const RepoFile& candidate : files) paths.push_back(candidate.path);
    Error error{.code = Code::hub_choice,
                .detail = cat("there is no ", printable(file, 200),
                              by_tag.empty() ? "" : cat("; there is: ", choices_text(by_tag)))};
    if (const auto near = nearest_name(file, paths))
      error.fix = cat("did you mean ", printable(*near, 200), "?");
    return error;
  }
  if (by_tag.empty()) {
    if (quant.empty()) {
      if (auto model = safetensors_model(files)) return *std::move(model);
    }
    return Error{.code = Code::model_format,
                 .detail = quant.empty() ? "there is no GGUF or safetensors model"
                                         : "there is no GGUF file, so no quantisation to choose"};
  }
  if (quant.empty() && by_tag.size() == 1) return one_gguf(by_tag.begin()->second);
  const std::string wanted = upper(quant.empty() ? kDefaultQuant : quant);
  if (const auto found = by_tag.find(wanted); found != by_tag.end()) return one_gguf(found->second);
  return Error{.code = Code::hub_choice,
               .detail = cat("there is no ", wanted, "; there is: ", choices_text(by_tag))};
}

}  // namespace inferd
