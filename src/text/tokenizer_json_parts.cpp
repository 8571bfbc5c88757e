#include "text/tokenizer_json_parts.h"

#include <algorithm>

#include "base/strings.h"
#include "text/pretokenizer.h"

namespace inferd {
namespace {

// Regular expressions by their whole text. What "$" may mean is no matter: the steps before leave no newline
// in a piece that has more than one character.
struct KnownRegex {
  std::string_view text;
  PiecePattern pattern;
};
constexpr KnownRegex kRegexes[] = {
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", PiecePattern::gpt2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     PiecePattern::qwen2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     PiecePattern::qwen35},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     PiecePattern::llama3},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     PiecePattern::o200k},
    {"[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
     " ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
     PiecePattern::deepseek_v3},
    {R"(\p{N}{1,3})", PiecePattern::numbers_3},
    {"[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+", PiecePattern::deepseek_v3_cjk},
    {"[\r\n]", PiecePattern::newline},
    {R"(\s?\p{L}+)", PiecePattern::spaced_letters},
    {R"(\s?\p{P}+)", PiecePattern::spaced_punctuation},
    {"[\u4E00-\u9FA5\u0800-\u4E00\uAC00-\uD7FF]+", PiecePattern::deepseek_cjk},
    {R"(\s)", PiecePattern::space},
    {"[0-9][0-9][0-9]", PiecePattern::ascii_digits_3},
};
constexpr size_t kMaxSteps = 64;  // of a sequence, all counted
// How much longer all replacements together may make a text, in bytes, and what may be put before it.
constexpr size_t kMaxGrowth = 16;
constexpr size_t kMaxPrefix = 512;
constexpr size_t kMaxPattern = 512;  // bytes of a text that is looked for

// Patterns that match at every place, so that there is nothing between two matches.
bool matches_everywhere(PiecePattern pattern) {
  return pattern <= PiecePattern::o200k;
}

Result<std::string> type_of(const Json& json, const std::string& where) {
  if (!json.is_object()) return bad_part(where, cat("an object expected, not ", json.kind_name()));
  const Json* type = json.find("type");
  if (type == nullptr || !type->is_string()) return bad_part(where, "has no \"type\"");
  return type->as_string();
}

Result<std::string> text_member(const Json& json, std::string_view name, const std::string& where) {
  const Json* member = json.find(name);
  if (member == nullptr || !member->is_string()) return bad_part(where, cat("has no text \"", name, "\""));
  return member->as_string();
}

Result<bool> flag_member(const Json& json, std::string_view name, bool otherwise, const std::string& where) {
  const Json* member = json.find(name);
  if (member == nullptr) return otherwise;
  if (!member->is_bool()) return bad_part(where, cat("\"", name, "\" is no boolean"));
  return member->as_bool();
}

Result<int64_t> integer_member(const Json& json, std::string_view name, const std::string& where) {
  const Json* member = json.find(name);
  if (member == nullptr || !member->is_integer())
    return bad_part(where, cat("has no integer \"", name, "\""));
  return member->as_integer();
}

// Calls visit(part, its type, where it is) for each part in order: those of sequences, or the one that `json`
// is. `list`: what a sequence calls its parts.
template <typename Visit>
Status for_each_part(const Json& json, std::string_view list, const std::string& where, size_t& left,
                     Visit&& visit) {
  if (left == 0) return bad_part(where, cat("more than ", kMaxSteps, " steps"));
  --left;
  INFERD_TRY(const std::string type, type_of(json, where));
  if (type != "Sequence") return visit(json, type, where);
  const Json* parts = json.find(list);
  if (parts == nullptr || !parts->is_array()) return bad_part(where, cat("has no list \"", list, "\""));
  for (size_t i = 0; i < parts->as_array().size(); ++i) {
    INFERD_TRY_STATUS(
        for_each_part(parts->as_array()[i], list, cat(where, ".", list, "[", i, "]"), left, visit));
  }
  return {};
}

struct Pattern {
  bool regex;
  std::string text;
};

Result<Pattern> pattern_member(const Json& json, const std::string& where) {
  const Json* pattern = json.find("pattern");
  if (pattern != nullptr && pattern->is_object() && pattern->as_object().size() == 1) {
    const auto& [kind, text] = pattern->as_object()[0];
    if ((kind == "String" || kind == "Regex") && text.is_string() && !text.as_string().empty() &&
        text.as_string().size() <= kMaxPattern) {
      return Pattern{kind == "Regex", text.as_string()};
    }
  }
  return bad_part(where, cat("has no \"pattern\" with a text of 1 to ", kMaxPattern,
                             " bytes as \"String\" or \"Regex\""));
}

Result<SplitBehavior> behavior_member(const Json& json, const std::string& where) {
  constexpr std::pair<std::string_view, SplitBehavior> kNames[] = {
      {"Isolated", SplitBehavior::isolated},
      {"Removed", SplitBehavior::removed},
      {"MergedWithPrevious", SplitBehavior::merged_with_previous},
      {"MergedWithNext", SplitBehavior::merged_with_next},
      {"Contiguous", SplitBehavior::contiguous}};
  INFERD_TRY(const std::string name, text_member(json, "behavior", where));
  for (const auto& [known, behavior] : kNames) {
    if (name == known) return behavior;
  }
  return unknown_part(where, cat("behavior ", printable(name)));
}

Status add_replace(const Json& json, const std::string& where, std::vector<NormalizerStep>& steps) {
  INFERD_TRY(const Pattern pattern, pattern_member(json, where));
  INFERD_TRY(std::string content, text_member(json, "content", where));
  if (!pattern.regex) {
    steps.push_back({NormalizerStep::Kind::replace, pattern.text, std::move(content)});
  } else if (pattern.text == " {2,}") {
    steps.push_back({NormalizerStep::Kind::space_runs, {}, std::move(content)});
  } else {
    return unknown_part(where, cat("the regular expression ", printable(pattern.text, 200)));
  }
  return {};
}

// A part of a pre-tokeniser.
class SplitterReader {
 public:
  Status operator()(const Json& json, const std::string& type, const std::string& where) {
    if (type == "ByteLevel") return add_byte_level(json, where);
    if (type == "Split") return add_split(json, where);
    if (type == "Digits") return add_digits(json, where);
    if (rules.byte_level) return unknown_part(where, cat(printable(type), " behind ByteLevel"));
    if (type == "Punctuation") return add_punctuation(json, where);
    if (type == "Metaspace") return add_metaspace(json, where);
    if (type == "WhitespaceSplit") {
      add(PiecePattern::space, SplitBehavior::removed);
      return {};
    }
    return unknown_part(where, cat("pre-tokeniser ", printable(type)));
  }

  SplitterRules rules;

 private:
  SplitStep& add(PiecePattern pattern, SplitBehavior behavior = SplitBehavior::isolated) {
    rules.steps.push_back(
        {.kind = SplitStep::Kind::pattern, .pattern = pattern, .text = {}, .behavior = behavior});
    return rules.steps.back();
  }

  Status add_byte_level(const Json& json, const std::string& where) {
    if (rules.byte_level) return unknown_part(where, "a second ByteLevel");
    INFERD_TRY(const bool prefix, flag_member(json, "add_prefix_space", true, where));
    INFERD_TRY(const bool regex, flag_member(json, "use_regex", true, where));
    if (prefix) rules.steps.push_back({.kind = SplitStep::Kind::prefix_space, .text = {}});
    if (regex) add(PiecePattern::gpt2);
    rules.byte_level = true;
    return {};
  }

  Status add_split(const Json& json, const std::string& where) {
    INFERD_TRY(const Pattern pattern, pattern_member(json, where));
    SplitStep step;
    INFERD_TRY(step.behavior, behavior_member(json, where));
    INFERD_TRY(step.invert, flag_member(json, "invert", false, where));
    if (pattern.regex) {
      const auto* known =
          std::ranges::find_if(kRegexes, [&](const KnownRegex& regex) { return regex.text == pattern.text; });
      if (known == std::end(kRegexes))
        return unknown_part(where, cat("the regular expression ", printable(pattern.text, 200)));
      step.pattern = known->pattern;
    } else {
      step.kind = SplitStep::Kind::literal;
      step.text = pattern.text;
    }
    // Behind ByteLevel text is in the byte alphabet, where only digits are what they were.
    const bool digits = step.kind == SplitStep::Kind::pattern && step.pattern == PiecePattern::ascii_digits_3;
    if (rules.byte_level && !digits) return unknown_part(where, "this Split behind ByteLevel");
    rules.steps.push_back(std::move(step));
    return {};
  }

  Status add_digits(const Json& json, const std::string& where) {
    INFERD_TRY(const bool individual, flag_member(json, "individual_digits", false, where));
    if (rules.byte_level && individual)
      return unknown_part(where, "Digits with individual_digits behind ByteLevel");
    add(rules.byte_level ? PiecePattern::alphabet_digits
        : individual     ? PiecePattern::digit
                         : PiecePattern::digits);
    return {};
  }

  Status add_punctuation(const Json& json, const std::string& where) {
    SplitBehavior behavior = SplitBehavior::isolated;
    if (json.find("behavior") != nullptr) {
      INFERD_TRY(behavior, behavior_member(json, where));
    }
    if (behavior == SplitBehavior::contiguous) {
      add(PiecePattern::punctuation_run);
    } else {
      add(PiecePattern::punctuation, behavior);
    }
    return {};
  }

  Status add_metaspace(const Json& json, const std::string& where) {
    const auto is_metaspace = [](const SplitStep& step) { return step.kind == SplitStep::Kind::metaspace; };
    if (std::ranges::any_of(rules.steps, is_metaspace)) return unknown_part(where, "a second Metaspace");
    SplitStep step;
    step.kind = SplitStep::Kind::metaspace;
    INFERD_TRY(step.text, text_member(json, "replacement", where));
    if (step.text.empty() || step.text.size() > kMaxGrowth)
      return bad_part(where,
                      cat("\"replacement\" of ", step.text.size(), " bytes; 1 to ", kMaxGrowth, " allowed"));
    INFERD_TRY(step.cuts, flag_member(json, "split", true, where));
    INFERD_TRY(const bool prefix, flag_member(json, "add_prefix_space", true, where));
    step.prepend = prefix ? SplitStep::Prepend::always : SplitStep::Prepend::never;
    if (json.find("prepend_scheme") != nullptr) {
      INFERD_TRY(const std::string scheme, text_member(json, "prepend_scheme", where));
      if (scheme != "always" && scheme != "first" && scheme != "never")
        return unknown_part(where, cat("prepend_scheme ", printable(scheme)));
      step.prepend = scheme == "always"  ? SplitStep::Prepend::always
                     : scheme == "first" ? SplitStep::Prepend::first
                                         : SplitStep::Prepend::never;
    }
    rules.steps.push_back(std::move(step));
    return {};
  }
};

// A part of a decoder.
class DecoderReader {
 public:
  Status operator()(const Json& json, const std::string& type, const std::string& where) {
    if (type == "ByteLevel" || type == "Metaspace") {
      if (++whole_ > 1 || parts_ > 0) return unknown_part(where, cat(type, " beside other decoders"));
      if (type == "ByteLevel") {
        rules.byte_level = true;
        return {};
      }
      INFERD_TRY(rules.space, text_member(json, "replacement", where));
      INFERD_TRY(const bool prefix, flag_member(json, "add_prefix_space", true, where));
      bool drops = prefix;
      if (const Json* scheme = json.find("prepend_scheme"); scheme != nullptr)
        drops = *scheme != Json("never");
      if (drops) rules.leading_space = TokenizerSpec::LeadingSpace::drop_in_first_token;
      return {};
    }
    ++parts_;
    if (whole_ > 0) return unknown_part(where, cat(printable(type), " beside other decoders"));
    if (type == "Replace") {
      INFERD_TRY(const Pattern pattern, pattern_member(json, where));
      INFERD_TRY(const std::string content, text_member(json, "content", where));
      if (pattern.regex || content != " " || !rules.space.empty() || fused_)
        return unknown_part(where, "a Replace other than one text by a space, once");
      rules.space = pattern.text;
    } else if (type == "ByteFallback") {
      if (fused_) return unknown_part(where, "ByteFallback behind Fuse");
      rules.byte_fallback = true;
    } else if (type == "Fuse") {
      fused_ = true;
    } else if (type == "Strip") {
      INFERD_TRY(const std::string content, text_member(json, "content", where));
      INFERD_TRY(const int64_t start, integer_member(json, "start", where));
      INFERD_TRY(const int64_t stop, integer_member(json, "stop", where));
      if (content != " " || start < 0 || start > 1 || stop != 0 || !fused_)
        return unknown_part(where, "a Strip other than of one space at the begin, behind Fuse");
      if (start == 1) rules.leading_space = TokenizerSpec::LeadingSpace::drop_one;
    } else {
      return unknown_part(where, cat("decoder ", printable(type)));
    }
    return {};
  }

  DecoderRules rules;

 private:
  int whole_ = 0;  // decoders that say all by themselves
  int parts_ = 0;  // others
  bool fused_ = false;
};

Result<int32_t> id_of(const Json& json, const std::string& where) {
  if (!json.is_integer() || json.as_integer() < 0 || json.as_integer() > INT32_MAX)
    return bad_part(where, "a token id expected");
  return static_cast<int32_t>(json.as_integer());
}

// TemplateProcessing: [{"SpecialToken": {"id": NAME}}, {"Sequence": {"id": "A"}}, …], names in
// "special_tokens".
Status add_template(const Json& json, const std::string& where, Frame& frame) {
  const Json* single = json.find("single");
  const Json* specials = json.find("special_tokens");
  if (single == nullptr || !single->is_array()) return bad_part(where, "has no list \"single\"");
  bool behind = false;
  for (const Json& item : single->as_array()) {
    if (!item.is_object() || item.as_object().size() != 1 || !item.as_object()[0].second.is_object())
      return bad_part(where, "an item of \"single\" is no SpecialToken or Sequence");
    const auto& [kind, value] = item.as_object()[0];
    INFERD_TRY(const std::string name, text_member(value, "id", where));
    if (kind == "Sequence") {
      if (name != "A" || behind) return unknown_part(where, "a template other than of one Sequence A");
      behind = true;
      continue;
    }
    if (kind != "SpecialToken") return unknown_part(where, cat("template item ", printable(kind)));
    const Json* special = specials == nullptr ? nullptr : specials->find(name);
    const Json* ids = special == nullptr ? nullptr : special->find("ids");
    if (ids == nullptr || !ids->is_array())
      return bad_part(where, cat("\"special_tokens\" has no \"ids\" of ", printable(name)));
    for (const Json& id : ids->as_array()) {
      INFERD_TRY(const int32_t number, id_of(id, where));
      (behind ? frame.suffix : frame.prefix).push_back(number);
    }
  }
  if (!behind) return bad_part(where, "\"single\" has no Sequence");
  return {};
}

}  // namespace

Error unknown_part(std::string_view where, std::string what) {
  return {.code = Code::tokenizer_kind, .detail = std::move(what), .where = cat("tokenizer.json: ", where)};
}

Error bad_part(std::string_view where, std::string what) {
  return {.code = Code::tokenizer_data,
          .detail = std::move(what),
          .where = cat("tokenizer.json: ", where),
          .fix = "fetch the file again, or write it anew with a current tokenizers library"};
}

Result<std::vector<NormalizerStep>> read_normalizer(const Json& json) {
  std::vector<NormalizerStep> steps;
  if (json.is_null()) return steps;
  size_t left = kMaxSteps;
  INFERD_TRY_STATUS(
      for_each_part(json, "normalizers", "normalizer", left,
                    [&](const Json& part, const std::string& type, const std::string& where) -> Status {
                      if (type == "NFC") {
                        steps.push_back({NormalizerStep::Kind::nfc, {}, {}});
                        return {};
                      }
                      if (type == "Prepend") {
                        INFERD_TRY(std::string content, text_member(part, "prepend", where));
                        steps.push_back({NormalizerStep::Kind::prepend, {}, std::move(content)});
                        return {};
                      }
                      if (type == "Replace") return add_replace(part, where, steps);
                      return unknown_part(where, cat("normaliser ", printable(type)));
                    }));
  size_t growth = 1;
  size_t prefix = 0;
  for (const NormalizerStep& step : steps) {
    if (step.kind == NormalizerStep::Kind::prepend) prefix += step.content.size();
    if (step.kind == NormalizerStep::Kind::replace || step.kind == NormalizerStep::Kind::space_runs) {
      const size_t before = step.kind == NormalizerStep::Kind::replace ? step.pattern.size() : 2;
      growth *= std::clamp<size_t>((step.content.size() + before - 1) / before, 1, kMaxGrowth + 1);
    }
    if (growth > kMaxGrowth || prefix > kMaxPrefix) {
      return bad_part("normalizer", cat("makes text more than ", kMaxGrowth,
                                        " times longer, or puts more than ", kMaxPrefix, " bytes before it"));
    }
  }
  return steps;
}

Result<SplitterRules> read_splitter(const Json& json) {
  SplitterReader reader;
  if (json.is_null()) return std::move(reader.rules);
  size_t left = kMaxSteps;
  INFERD_TRY_STATUS(for_each_part(json, "pretokenizers", "pre_tokenizer", left, reader));
  return std::move(reader.rules);
}

std::optional<std::vector<PiecePattern>> as_patterns(const std::vector<SplitStep>& steps) {
  std::vector<PiecePattern> patterns;
  bool one_character = false;
  for (const SplitStep& step : steps) {
    const bool kept =
        step.behavior == SplitBehavior::isolated ||
        (step.behavior == SplitBehavior::removed && step.invert && matches_everywhere(step.pattern));
    if (step.kind != SplitStep::Kind::pattern || !kept) return std::nullopt;
    if (step.pattern == PiecePattern::alphabet_digits && one_character) return std::nullopt;
    one_character = one_character || matches_one_character(step.pattern);
    patterns.push_back(step.pattern);
  }
  return patterns;
}

Result<DecoderRules> read_decoder(const Json& json) {
  if (json.is_null()) return unknown_part("decoder", "none, which puts spaces between tokens");
  DecoderReader reader;
  size_t left = kMaxSteps;
  INFERD_TRY_STATUS(for_each_part(json, "decoders", "decoder", left, reader));
  return std::move(reader.rules);
}

Result<Frame> read_frame(const Json& json) {
  Frame frame;
  if (json.is_null()) return frame;
  size_t left = kMaxSteps;
  int frames = 0;
  INFERD_TRY_STATUS(for_each_part(
      json, "processors", "post_processor", left,
      [&](const Json& part, const std::string& type, const std::string& where) -> Status {
        if (type == "ByteLevel") return {};  // only changes offsets
        if (++frames > 1) return unknown_part(where, "a second post-processor that adds tokens");
        if (type == "TemplateProcessing") return add_template(part, where, frame);
        if (type != "BertProcessing" && type != "RobertaProcessing")
          return unknown_part(where, cat("post-processor ", printable(type)));
        for (const auto& [name, ids] : {std::pair("cls", &frame.prefix), std::pair("sep", &frame.suffix)}) {
          const Json* pair = part.find(name);
          if (pair == nullptr || !pair->is_array() || pair->as_array().size() != 2)
            return bad_part(where, cat("has no pair \"", name, "\""));
          INFERD_TRY(const int32_t id, id_of(pair->as_array()[1], where));
          ids->push_back(id);
        }
        return {};
      }));
  return frame;
}

}  // namespace inferd
