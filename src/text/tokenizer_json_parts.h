// The parts of a tokenizer.json that say how text is prepared, cut, framed and put together again. For
// tokenizer_json.cpp only.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "text/tokenizer_spec.h"

namespace inferd {

// Of the member "normalizer". Each of these takes null too, where the format does.
Result<std::vector<NormalizerStep>> read_normalizer(const Json& json);

struct SplitterRules {
  std::vector<SplitStep> steps;
  bool byte_level = false;  // pieces become characters of the byte alphabet
};
// Of "pre_tokenizer".
Result<SplitterRules> read_splitter(const Json& json);
// The same as patterns alone; none where that cannot be said by them.
std::optional<std::vector<PiecePattern>> as_patterns(const std::vector<SplitStep>& steps);

struct DecoderRules {
  bool byte_level = false;
  bool byte_fallback = false;
  std::string space;
  TokenizerSpec::LeadingSpace leading_space = TokenizerSpec::LeadingSpace::keep;
};
// Of "decoder".
Result<DecoderRules> read_decoder(const Json& json);

struct Frame {
  std::vector<int32_t> prefix, suffix;
};
// Of "post_processor", for one text.
Result<Frame> read_frame(const Json& json);

// For messages: E-TOK-001 with what is not known, E-TOK-002 with what is malformed.
Error unknown_part(std::string_view where, std::string what);
Error bad_part(std::string_view where, std::string what);

}  // namespace inferd
