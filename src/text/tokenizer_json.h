// Tokenizers as Hugging Face's library writes them: the file tokenizer.json. Called at a model's load, on any
// thread. docs/tokenizers.md lists what of the format is known.
#pragma once

#include <string_view>

#include "base/result.h"
#include "text/tokenizer.h"

namespace inferd {

// `json`: the text of tokenizer.json. `config`: that of tokenizer_config.json beside it, which names the
// begin, end and padding tokens; empty: there is none, and no token is known to end an answer but by its
// name. E-TOK-001 names the part that is not known here, E-TOK-002 what is malformed or contradicts itself
// and where. Takes memory in proportion to the text.
Result<Tokenizer> read_tokenizer_json(std::string_view json, std::string_view config = {});

}  // namespace inferd
