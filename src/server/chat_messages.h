// Messages and tools of a chat request, checked and brought into the form that chat templates read.
#pragma once

#include <vector>

#include "server/request_fields.h"
#include "server/served_model.h"

namespace inferd {

// Each message is an object with role (system, developer, user, assistant, tool), content (text, or a list of
// text parts, which are joined by line feeds), and where it fits name, tool_calls, tool_call_id,
// reasoning_content. Null members are dropped, but for content. A tool call's arguments, a string of JSON on
// the wire, become a value, as templates expect.
Result<Json> read_messages(Json messages);

// A list of {"type":"function","function":{"name", …}}.
Status check_tools(const Json& tools);

// Messages, tools and template arguments of `fields` through the chat template to ids. E-TMPL-005 without a
// template; E-REQ-004 for tools that the template does not read.
Result<std::vector<int32_t>> encode_chat(const ModelView& model, RequestFields& fields);

}  // namespace inferd
