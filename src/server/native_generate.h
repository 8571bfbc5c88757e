// POST /generate, the project's own route: a prompt in, frames out: {"type":"token","text"}, then
// {"type":"done", …} or
// {"type":"error", …}.
#pragma once

#include "server/generation.h"
#include "server/served_model.h"

namespace inferd {

Result<Generation> native_generation(const ModelView& model, std::string_view body);

std::unique_ptr<AnswerFormat> native_format(const ModelView& model, const Generation& generation,
                                            std::string request_id);

}  // namespace inferd
