// From checked fields and encoded prompts to a Generation: what the three generating routes do alike.
#pragma once

#include "server/field_tables.h"
#include "server/generation.h"
#include "server/served_model.h"

namespace inferd {

// The body as fields of the route, beginning with the model's defaults. Checks the model's name.
Result<RequestFields> read_body(const ModelView& model, const RouteFields& route, std::string_view body);

// `default_max_tokens`: what is meant when max_tokens was not given; cut to what fits. `prompt_param` names
// the field that a prompt which does not fit came from. E-REQ-004, E-REQ-006, E-KV-001.
Result<Generation> make_generation(const ModelView& model, RequestFields fields,
                                   std::vector<std::vector<int32_t>> prompts, int64_t default_max_tokens,
                                   std::string_view prompt_param);

}  // namespace inferd
