// POST /tokenize and POST /detokenize.
#pragma once

#include "server/http_message.h"
#include "server/served_model.h"

namespace inferd {

// {"tokens":[…],"count":…,"max_model_len":…}
Result<HttpReply> tokenize_reply(const ModelView& model, std::string_view body);
// {"prompt":"…","content":"…"}: the same text under both names that clients know.
Result<HttpReply> detokenize_reply(const ModelView& model, std::string_view body);

}  // namespace inferd
