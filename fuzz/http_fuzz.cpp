// What libFuzzer calls with every input, and the test that replays tests/corpus/http: bytes of a connection,
// read whole and in pieces, which must come to the same. A broken promise of the parser ends the process.

#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/strings.h"
#include "server/http_parser.h"

namespace inferd {
namespace {

constexpr HttpLimits kLimits{.header_bytes = 2048, .line_bytes = 1024, .header_count = 20, .body_bytes = 512};

struct Outcome {
  std::string seen;   // requests, one after another
  std::string error;  // its code
  bool operator==(const Outcome&) const = default;
};

// `piece`: at most so many bytes are new with each call, as if they came in packets.
Outcome read_all(std::string_view bytes, size_t piece) {
  Outcome outcome;
  std::string input;
  size_t given = 0;
  HttpParser parser(kLimits);
  for (;;) {
    Result<size_t> taken = parser.feed(input);
    if (!taken.ok()) {
      const int status = error_row(taken.error().code).http_status;
      INFERD_CHECK(status >= 400 && status <= 501 && taken.error().message().size() < 500,
                   taken.error().terminal_text());
      outcome.error = error_row(taken.error().code).id;
      return outcome;
    }
    INFERD_CHECK(*taken <= input.size());
    input.erase(0, *taken);
    const HttpRequest& request = parser.request();
    INFERD_CHECK(static_cast<int64_t>(request.body.size()) <= kLimits.body_bytes);
    INFERD_CHECK(static_cast<int>(request.headers.size()) <= kLimits.header_count);
    if (parser.state() == HttpParser::State::done) {
      outcome.seen +=
          cat(request.method, " ", request.path, " ", request.headers.size(), " ", request.body, "\n");
      if (!parser.keep_alive()) return outcome;
      parser = HttpParser(kLimits);
      continue;
    }
    if (*taken > 0 && !input.empty()) continue;
    if (given == bytes.size()) return outcome;
    const size_t more = std::min(piece, bytes.size() - given);
    input += bytes.substr(given, more);
    given += more;
  }
}

}  // namespace
}  // namespace inferd

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace inferd;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Outcome whole = read_all(bytes, SIZE_MAX);
  const Outcome pieces = read_all(bytes, 1 + data[0] % 64);
  // Past that size a limit may be met in pieces that were not there to see when all came at once.
  if (bytes.size() >= kLimits.header_bytes) return 0;
  INFERD_CHECK(whole.seen == pieces.seen, "whole: ", whole.seen, " in pieces: ", pieces.seen);
  INFERD_CHECK(whole.error == pieces.error, "whole: ", whole.error, " in pieces: ", pieces.error);
  return 0;
}
