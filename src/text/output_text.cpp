#include "text/output_text.h"

namespace inferd {

std::string OutputText::push(int32_t id) {
  std::string text;
  std::string delta;
  decoder_.push(id, text);
  stops_.push(text, delta);
  return delta;
}

std::string OutputText::finish() {
  std::string text;
  std::string delta;
  decoder_.finish(text);
  stops_.push(text, delta);
  stops_.finish(delta);
  return delta;
}

}  // namespace inferd
