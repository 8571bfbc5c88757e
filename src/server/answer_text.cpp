#include "server/answer_text.h"

#include "base/utf8.h"

namespace inferd {
namespace {

class TextStopCheck final : public StopCheck {
 public:
  explicit TextStopCheck(AnswerText text) : text_(std::move(text)) {}
  bool on_token(int32_t id) override {
    text_.push(id);
    return text_.stopped().has_value();
  }

 private:
  AnswerText text_;
};

}  // namespace

std::string AnswerText::push(int32_t id) {
  std::string decoded;
  decoder_.push(id, decoded);
  characters_ += static_cast<int64_t>(count_code_points(decoded));
  if (bypass_ > 0) {
    --bypass_;
    return decoded;
  }
  std::string certain;
  stops_.push(decoded, certain);
  return certain;
}

std::string AnswerText::finish() {
  std::string decoded;
  decoder_.finish(decoded);
  std::string certain;
  stops_.push(decoded, certain);
  stops_.finish(certain);
  return certain;
}

std::unique_ptr<StopCheck> make_stop_check(const Tokenizer& tokenizer, const StopMatcher& stops,
                                           int64_t min_tokens) {
  return std::make_unique<TextStopCheck>(AnswerText(tokenizer, stops, min_tokens));
}

}  // namespace inferd
