// What libFuzzer calls with every input, and the test that replays tests/corpus/tokenizer_json: the bytes are
// a tokenizer.json. A file that is taken must encode and decode some texts within its promises; one that is
// not must be refused with a code and a place.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/utf8.h"
#include "text/tokenizer_json.h"

namespace inferd {
namespace {

constexpr std::string_view kTexts[] = {
    "",
    "The quick brown fox, it's 12345 <x></s>\n\n  two  "
    "spaces\t\u00E9e\u0301\u6F22\u5B57\u3000\U0001F600\u2581",
    "   ",
    "a\xFF\xE6\xBC z<0x0A>",
};

void use(const Tokenizer& tokenizer) {
  for (const std::string_view text : kTexts) {
    for (const bool special : {false, true}) {
      const auto ids = tokenizer.encode(text, {.add_special = special, .parse_special = special});
      INFERD_CHECK(tokenizer.check_ids(ids).ok());
      INFERD_CHECK(special || std::ranges::none_of(
                                  ids, [&](int32_t id) { return tokenizer.type(id) == TokenType::unused; }));
      INFERD_CHECK(is_valid_utf8(tokenizer.decode(ids)) && is_valid_utf8(tokenizer.decode(ids, true)));
    }
  }
  INFERD_CHECK(tokenizer.bytes() > 0);
}

}  // namespace
}  // namespace inferd

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace inferd;
  const auto made = read_tokenizer_json({reinterpret_cast<const char*>(data), size});
  if (made.ok()) {
    use(*made);
  } else {
    const Code code = made.error().code;
    INFERD_CHECK(code == Code::tokenizer_kind || code == Code::tokenizer_data);
    INFERD_CHECK(!made.error().detail.empty() && made.error().where.starts_with("tokenizer.json: "),
                 made.error().terminal_text());
    INFERD_CHECK(is_valid_utf8(made.error().terminal_text()) && made.error().terminal_text().size() < 4000,
                 made.error().terminal_text());
  }
  return 0;
}
