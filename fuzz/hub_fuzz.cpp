// What libFuzzer calls with every input, and the test that replays tests/corpus/hub: what a hub may answer.
// The first byte says how it comes: odd, as a connection's bytes, read whole and in pieces; even, as a
// listing.

#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/strings.h"
#include "hub/http_response.h"
#include "hub/repo_listing.h"
#include "hub/repo_name.h"

namespace inferd {
namespace {

struct Outcome {
  int status = 0;
  bool done = false;
  std::string body;
  bool operator==(const Outcome&) const = default;
};

Outcome read_all(std::string_view bytes, size_t piece) {
  HttpResponseParser parser;
  Outcome outcome;
  for (size_t at = 0; at < bytes.size(); at += std::min(piece, bytes.size() - at)) {
    if (!parser.feed(bytes.substr(at, piece)).ok()) return {};  // what came before an error is not compared
    outcome.body += parser.take_body();
  }
  if (!parser.feed_end().ok()) return {};
  outcome.status = parser.status();
  outcome.done = parser.done();
  INFERD_CHECK(outcome.done && outcome.body.size() <= bytes.size());
  return outcome;
}

void read_response(std::string_view bytes, size_t piece) {
  const Outcome whole = read_all(bytes, SIZE_MAX);
  const Outcome pieces = read_all(bytes, piece);
  INFERD_CHECK(whole == pieces, "whole: ", whole.status, " ", whole.body, " in pieces: ", pieces.status, " ",
               pieces.body);
}

// What a listing lets through is safe to make paths of, and every choice among its files is one of them.
void read_listing(std::string_view text) {
  const Result<RepoListing> listing = parse_repo_listing(text);
  if (!listing.ok()) {
    INFERD_CHECK(listing.error().code == Code::hub_answer && listing.error().message().size() < 1000,
                 listing.error().message());
    return;
  }
  std::vector<RepoFile> files;
  for (const ListedFile& file : listing->files) {
    INFERD_CHECK(is_safe_repo_path(file.path) && file.bytes >= 0, file.path);
    INFERD_CHECK(file.hash.size() == (file.is_sha256 ? 64 : 40), file.hash);
    files.push_back({file.path, file.bytes});
  }
  for (const std::string_view quant : {"", "Q8_0"}) {
    const Result<ModelFiles> model = choose_model_files(quant, "", files);
    if (!model.ok()) continue;
    INFERD_CHECK(!model->paths.empty());
    for (const std::string& path : model->paths) {
      bool listed = false;
      for (const RepoFile& file : files) listed = listed || file.path == path;
      INFERD_CHECK(listed, path);
    }
  }
}

}  // namespace
}  // namespace inferd

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace inferd;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 1) {
    read_response(bytes, 1 + data[0] / 2);
  } else {
    read_listing(bytes);
  }
  return 0;
}
