// tokenizer_bench FILE.json|FILE.gguf TEXT [SECONDS]: how fast a tokenizer encodes a text on one core, as a
// whole and in paragraphs. Built by hand: cmake --build --preset release --target tokenizer_bench
#include <time.h>

#include <cstdio>
#include <cstdlib>

#include "base/strings.h"
#include "support/golden.h"
#include "text/tokenizer_json.h"
#include "text/tokenizer_test_data.h"

namespace inferd {
namespace {

double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double megabytes_a_second(const Tokenizer& tokenizer, const std::vector<std::string_view>& texts,
                          double seconds) {
  const double begin = thread_seconds();
  double best = 0;
  while (thread_seconds() - begin < seconds) {
    const double start = thread_seconds();
    size_t bytes = 0;
    for (const std::string_view text : texts) {
      INFERD_CHECK(!tokenizer.encode(text).empty() || text.empty());
      bytes += text.size();
    }
    best = std::max(best, static_cast<double>(bytes) / (thread_seconds() - start) * 1e-6);
  }
  return best;
}

int run(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: tokenizer_bench FILE.json|FILE.gguf TEXT [SECONDS]\n", stderr);
    return 2;
  }
  const std::string path = argv[1];
  const double start = thread_seconds();
  const Result<Tokenizer> tokenizer = path.ends_with(".gguf")
                                          ? Tokenizer::create(read_gguf_tokens(path)->data)
                                          : read_tokenizer_json(test::read_file(path));
  const double load = (thread_seconds() - start) * 1e3;
  if (!tokenizer.ok()) {
    std::fputs(tokenizer.error().terminal_text().c_str(), stderr);
    return 1;
  }
  const std::string text = test::read_file(argv[2]);
  const double seconds = argc > 3 ? std::atof(argv[3]) : 2;
  const double whole = megabytes_a_second(*tokenizer, {text}, seconds);
  const double paragraphs = megabytes_a_second(*tokenizer, split(text, '\n'), seconds);
  std::printf("%s: loaded in %.0f ms, %zu bytes to %zu ids, %.1f MB/s whole, %.1f MB/s by lines\n",
              path.c_str(), load, text.size(), tokenizer->encode(text).size(), whole, paragraphs);
  return 0;
}

}  // namespace
}  // namespace inferd

int main(int argc, char** argv) {
  return inferd::run(argc, argv);
}
