// POST /v1/completions: body to Generation, and OpenAI's completion shapes.
#pragma once

#include "server/generation.h"
#include "server/served_model.h"

namespace inferd {

// Validates every field, encodes. Pure; any thread.
Result<Generation> completion_generation(const ModelView& model, std::string_view body);

std::unique_ptr<AnswerFormat> completion_format(const ModelView& model, const Generation& generation,
                                                std::string request_id);

}  // namespace inferd
