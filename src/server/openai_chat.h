// POST /v1/chat/completions: body to Generation, and OpenAI's chat shapes.
#pragma once

#include "server/generation.h"
#include "server/served_model.h"

namespace inferd {

// Validates every field, renders the chat template, encodes. Pure; any thread.
Result<Generation> chat_generation(const ModelView& model, std::string_view body);

std::unique_ptr<AnswerFormat> chat_format(const ModelView& model, const Generation& generation,
                                          std::string request_id);

}  // namespace inferd
