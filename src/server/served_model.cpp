#include "server/served_model.h"

#include <algorithm>

namespace inferd {

ModelView ModelView::of(const ServedModel& model) {
  const EngineOptions& options = model.engine->options();
  return {.name = model.name,
          .aliases = model.aliases,
          .tokenizer = model.tokenizer,
          .chat_template = model.chat_template,
          .defaults = model.defaults,
          .limits = options.scheduler,
          .most_choices = int64_t{options.scheduler.max_seqs} + options.max_queue};
}

bool ModelView::has_name(std::string_view wanted) const {
  return wanted == name || std::ranges::find(aliases, wanted) != aliases.end();
}

}  // namespace inferd
