#include "text/tokenizer_json.h"

#include <algorithm>
#include <array>

#include "base/json.h"
#include "base/json_pull.h"
#include "base/strings.h"
#include "text/byte_level.h"
#include "text/tokenizer_json_parts.h"

namespace inferd {
namespace {

// Ids that no token has are padding of the vocabulary; more of them than tokens is a mistake.
constexpr size_t kMostHoles = 65536;

struct Added {
  std::string_view content;
  int64_t id = -1;
  bool special = false;
  bool has_content = false;
  AddedRules rules;
};

// Goes through the members of an object: known keys once each, others are refused.
class Members {
 public:
  Members(JsonPull& json, std::string where) : json_(json), where_(std::move(where)) { json_.begin_object(); }

  // The index in `known` of the next key, or −1 at the end and after an error.
  template <size_t kCount>
  int next(const std::array<std::string_view, kCount>& known, Status& status) {
    std::string_view key;
    if (!json_.next_key(key)) return -1;
    const auto found = std::ranges::find(known, key);
    if (found == known.end()) {
      status = unknown_part(where_, cat("the member ", printable(key)));
      return -1;
    }
    const auto index = static_cast<int>(found - known.begin());
    if ((seen_ >> index & 1) != 0) {
      json_.fail(cat("the member ", printable(key), " comes twice"));
      return -1;
    }
    seen_ |= uint64_t{1} << index;
    return index;
  }

 private:
  JsonPull& json_;
  std::string where_;
  uint64_t seen_ = 0;
};

class TokenizerReader {
 public:
  explicit TokenizerReader(std::string_view text) : json_(text) {}

  Result<Tokenizer> read(std::string_view config) {
    INFERD_TRY_STATUS(read_members());
    INFERD_TRY_STATUS(choose_model());
    INFERD_TRY_STATUS(place_tokens());
    INFERD_TRY_STATUS(check_bytes());
    INFERD_TRY_STATUS(read_config(config));
    spec_.tokens = tokens_;
    spec_.types = types_;
    spec_.rules = rules_;
    spec_.merges = merges_;
    spec_.scores = scores_;
    auto built = Tokenizer::build(std::move(spec_));
    if (built.ok()) return built;
    Error error = std::move(built).error();
    return bad_part(error.where, error.detail);
  }

 private:
  Error syntax_error(std::string_view where) const { return bad_part(where, json_.error()); }

  Status read_members();
  Status read_added();
  Status read_model();
  Status read_vocabulary();
  Status read_merges();
  void read_flag(bool& flag);
  void read_name(std::optional<std::string_view>& name);
  Status read_part(Json& part, const std::string& where);
  Status choose_model();
  Status place_tokens();
  Status check_bytes();
  Status read_config(std::string_view config);
  std::optional<int32_t> find(std::string_view token) const;

  JsonPull json_;
  TokenizerSpec spec_;
  Json normalizer_, splitter_, frame_, decoder_;
  std::vector<Added> added_;
  std::vector<std::pair<std::string_view, int64_t>> vocabulary_;
  std::vector<double> vocabulary_scores_;
  std::vector<MergeView> merges_;
  std::optional<std::string_view> model_type_, unknown_token_, prefix_, suffix_;
  std::optional<int64_t> unknown_id_;
  bool has_model_ = false, has_merges_ = false, byte_fallback_ = false, has_scores_ = false;
  bool byte_level_ = false;
  std::vector<std::string_view> tokens_;
  std::vector<int32_t> types_;
  std::vector<AddedRules> rules_;
  std::vector<double> scores_;
};

Status TokenizerReader::read_members() {
  static constexpr std::array<std::string_view, 9> kKeys = {"version",        "truncation", "padding",
                                                            "added_tokens",   "normalizer", "pre_tokenizer",
                                                            "post_processor", "decoder",    "model"};
  Members members(json_, "the file");
  Status status;
  for (int key = 0; (key = members.next(kKeys, status)) >= 0;) {
    switch (key) {
      case 3:
        INFERD_TRY_STATUS(read_added());
        break;
      case 4:
        INFERD_TRY_STATUS(read_part(normalizer_, "normalizer"));
        break;
      case 5:
        INFERD_TRY_STATUS(read_part(splitter_, "pre_tokenizer"));
        break;
      case 6:
        INFERD_TRY_STATUS(read_part(frame_, "post_processor"));
        break;
      case 7:
        INFERD_TRY_STATUS(read_part(decoder_, "decoder"));
        break;
      case 8:
        INFERD_TRY_STATUS(read_model());
        break;
      default:
        json_.skip();  // truncation and padding are wishes about requests, not about ids
    }
  }
  INFERD_TRY_STATUS(status);
  if (!json_.finish()) return syntax_error("the file");
  if (!has_model_) return bad_part("the file", "has no \"model\"");
  return {};
}

// A part that is small in every file: as a tree, at most that deep and large.
Status TokenizerReader::read_part(Json& part, const std::string& where) {
  std::string_view text;
  if (!json_.skip(text)) return syntax_error(where);
  auto parsed = parse_json(text, {.depth = 64, .values = 10000});
  if (!parsed.ok()) return bad_part(where, parsed.error().detail);
  part = std::move(parsed).value();
  return {};
}

void TokenizerReader::read_flag(bool& flag) {
  if (json_.peek() == JsonPull::Kind::null) {
    flag = false;
    json_.null();
  } else {
    json_.boolean(flag);
  }
}

void TokenizerReader::read_name(std::optional<std::string_view>& name) {
  std::string_view text;
  if (json_.peek() == JsonPull::Kind::null) {
    json_.null();
  } else if (json_.string(text)) {
    name = text;
  }
}

Status TokenizerReader::read_added() {
  static constexpr std::array<std::string_view, 7> kKeys = {"id",     "content",    "single_word", "lstrip",
                                                            "rstrip", "normalized", "special"};
  json_.begin_array();
  while (json_.next_element()) {
    Added token;
    const std::string where = cat("added_tokens[", added_.size(), "]");
    Members members(json_, where);
    Status status;
    for (int key = 0; (key = members.next(kKeys, status)) >= 0;) {
      bool* const flags[] = {&token.rules.single_word, &token.rules.lstrip, &token.rules.rstrip,
                             &token.rules.normalized, &token.special};
      if (key == 0) {
        json_.integer(token.id);
      } else if (key == 1) {
        token.has_content = json_.string(token.content);
      } else {
        json_.boolean(*flags[key - 2]);
      }
    }
    INFERD_TRY_STATUS(status);
    if (json_.failed()) return syntax_error(where);
    if (!token.has_content) return bad_part(where, "has no \"content\"");
    if (token.id < 0 || token.id > INT32_MAX)
      return bad_part(where, cat("\"id\" ", token.id, "; 0 to 2147483647 allowed"));
    added_.push_back(token);
  }
  if (json_.failed()) return syntax_error("added_tokens");
  return {};
}

Status TokenizerReader::read_model() {
  static constexpr std::array<std::string_view, 11> kKeys = {"type",
                                                             "dropout",
                                                             "unk_token",
                                                             "continuing_subword_prefix",
                                                             "end_of_word_suffix",
                                                             "fuse_unk",
                                                             "byte_fallback",
                                                             "ignore_merges",
                                                             "vocab",
                                                             "merges",
                                                             "unk_id"};
  has_model_ = true;
  Members members(json_, "model");
  Status status;
  for (int key = 0; (key = members.next(kKeys, status)) >= 0;) {
    switch (key) {
      case 0:
        read_name(model_type_);
        break;
      case 1: {
        double dropout = 0;
        if (json_.peek() == JsonPull::Kind::null) {
          json_.null();
        } else if (json_.number(dropout) && dropout != 0) {
          return unknown_part("model", "dropout, which makes ids random");
        }
        break;
      }
      case 2:
        read_name(unknown_token_);
        break;
      case 3:
        read_name(prefix_);
        break;
      case 4:
        read_name(suffix_);
        break;
      case 5:
        read_flag(spec_.fuse_unknown);
        break;
      case 6:
        read_flag(byte_fallback_);
        break;
      case 7:
        read_flag(spec_.whole_tokens);
        break;
      case 8:
        INFERD_TRY_STATUS(read_vocabulary());
        break;
      case 9:
        INFERD_TRY_STATUS(read_merges());
        break;
      default:
        if (json_.peek() == JsonPull::Kind::null) {
          json_.null();
        } else {
          int64_t id = 0;
          if (json_.integer(id)) unknown_id_ = id;
        }
    }
  }
  INFERD_TRY_STATUS(status);
  if (json_.failed()) return syntax_error("model");
  return {};
}

// {token: id, …} of BPE, or [[token, score], …] of a unigram model, by id.
Status TokenizerReader::read_vocabulary() {
  std::string_view token;
  if (json_.peek() == JsonPull::Kind::array) {
    has_scores_ = true;
    json_.begin_array();
    while (json_.next_element()) {
      double score = 0;
      json_.begin_array();
      if (json_.next_element()) json_.string(token);
      if (json_.next_element()) json_.number(score);
      if (json_.next_element()) json_.fail("a pair of text and score expected");
      vocabulary_scores_.push_back(score);
      vocabulary_.emplace_back(token, static_cast<int64_t>(vocabulary_.size()));
    }
  } else {
    json_.begin_object();
    while (json_.next_key(token)) {
      int64_t id = 0;
      if (!json_.integer(id)) break;
      if (id < 0 || id > INT32_MAX)
        return bad_part("model.vocab", cat("id ", id, " of ", printable(token), "; 0 to 2147483647 allowed"));
      vocabulary_.emplace_back(token, id);
    }
  }
  if (json_.failed()) return syntax_error("model.vocab");
  return {};
}

// ["left right", …] or [["left", "right"], …].
Status TokenizerReader::read_merges() {
  has_merges_ = true;
  json_.begin_array();
  while (json_.next_element()) {
    MergeView merge;
    if (json_.peek() == JsonPull::Kind::array) {
      json_.begin_array();
      if (json_.next_element()) json_.string(merge.left);
      if (json_.next_element()) json_.string(merge.right);
      if (json_.next_element()) json_.fail("a pair of texts expected");
    } else {
      std::string_view text;
      json_.string(text);
      const size_t space = text.find(' ');
      if (!json_.failed() &&
          (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos)) {
        return bad_part(cat("model.merges[", merges_.size(), "]"),
                        cat(printable(text), " is not two parts with one space between them"));
      }
      if (!json_.failed()) merge = {text.substr(0, space), text.substr(space + 1)};
    }
    if (json_.failed()) break;
    if (merge.left.empty() || merge.right.empty())
      return bad_part(cat("model.merges[", merges_.size(), "]"), "a part is empty");
    merges_.push_back(merge);
  }
  if (json_.failed()) return syntax_error("model.merges");
  return {};
}

// What the file's parts make together.
Status TokenizerReader::choose_model() {
  // Files of before 2020 leave the type out.
  const std::string_view type = model_type_.value_or(has_merges_ ? "BPE" : has_scores_ ? "Unigram" : "none");
  if (type != "BPE" && type != "Unigram") return unknown_part("model", cat("type ", printable(type)));
  const bool unigram = type == "Unigram";
  if (unigram != has_scores_ || unigram == has_merges_) {
    return bad_part("model", unigram ? "a Unigram model has a list of pairs as \"vocab\" and no \"merges\""
                                     : "a BPE model has an object as \"vocab\", and \"merges\"");
  }
  for (const auto& [name, text] :
       {std::pair("continuing_subword_prefix", prefix_), std::pair("end_of_word_suffix", suffix_)}) {
    if (text && !text->empty()) return unknown_part("model", cat(name, " ", printable(*text)));
  }
  INFERD_TRY(spec_.normalizer, read_normalizer(normalizer_));
  INFERD_TRY(SplitterRules splitter, read_splitter(splitter_));
  INFERD_TRY(const DecoderRules decoder, read_decoder(decoder_));
  INFERD_TRY(Frame frame, read_frame(frame_));
  byte_level_ = splitter.byte_level;
  if (byte_level_ && (unigram || byte_fallback_))
    return unknown_part("model", "a Unigram model, or byte_fallback, with the pre-tokeniser ByteLevel");
  if (byte_level_ != decoder.byte_level)
    return unknown_part("decoder", "ByteLevel in one of pre_tokenizer and decoder, and not in the other");
  if (byte_fallback_ != decoder.byte_fallback)
    return unknown_part("decoder",
                        "byte_fallback of the model without the decoder ByteFallback, or the reverse");
  if (unigram && spec_.whole_tokens) return unknown_part("model", "ignore_merges in a Unigram model");
  spec_.model = unigram       ? TokenizerSpec::Model::unigram
                : byte_level_ ? TokenizerSpec::Model::byte_bpe
                              : TokenizerSpec::Model::char_bpe;
  if (auto patterns = as_patterns(splitter.steps)) {
    spec_.patterns = std::move(*patterns);
  } else {
    spec_.splits = std::move(splitter.steps);
  }
  spec_.space = decoder.space;
  spec_.leading_space = decoder.leading_space;
  spec_.prefix = std::move(frame.prefix);
  spec_.suffix = std::move(frame.suffix);
  return {};
}

bool spells_byte(std::string_view token) {
  const auto digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F'); };
  return token.size() == 6 && token.starts_with("<0x") && token[5] == '>' && digit(token[3]) &&
         digit(token[4]);
}

// Tokens by id, with what each is.
Status TokenizerReader::place_tokens() {
  const size_t count = vocabulary_.size() + added_.size();
  int64_t last = -1;
  for (const auto& [token, id] : vocabulary_) last = std::max(last, id);
  for (const Added& token : added_) last = std::max(last, token.id);
  const auto size = static_cast<size_t>(last + 1);
  if (size > 2 * count + kMostHoles)
    return bad_part("model.vocab", cat("id ", last, " with ", count, " tokens; at most ",
                                       2 * count + kMostHoles, " allowed"));
  tokens_.resize(size);
  types_.resize(size, static_cast<int32_t>(TokenType::unused));
  rules_.resize(size);
  if (has_scores_) scores_.resize(size);
  for (size_t i = 0; i < vocabulary_.size(); ++i) {
    const auto& [token, number] = vocabulary_[i];
    const auto id = static_cast<size_t>(number);
    if (types_[id] != static_cast<int32_t>(TokenType::unused)) {
      return bad_part("model.vocab",
                      cat("id ", id, " is that of ", printable(tokens_[id]), " and of ", printable(token)));
    }
    tokens_[id] = token;
    types_[id] =
        static_cast<int32_t>(byte_fallback_ && spells_byte(token) ? TokenType::byte : TokenType::normal);
    if (has_scores_) scores_[id] = vocabulary_scores_[i];
  }
  for (size_t i = 0; i < added_.size(); ++i) {
    const Added& token = added_[i];
    const auto id = static_cast<size_t>(token.id);
    const std::string where = cat("added_tokens[", i, "]");
    const auto type = static_cast<TokenType>(types_[id]);
    if (type != TokenType::unused && tokens_[id] != token.content)
      return bad_part(where, cat("id ", id, " is that of ", printable(tokens_[id]), " and of ",
                                 printable(token.content)));
    if (type == TokenType::control || type == TokenType::user_defined)
      return bad_part(where, cat(printable(token.content), " was listed before"));
    tokens_[id] = token.content;
    types_[id] = static_cast<int32_t>(token.special ? TokenType::control : TokenType::user_defined);
    rules_[id] = token.rules;
  }
  if (unknown_token_ && !unknown_token_->empty()) {
    spec_.unk = find(*unknown_token_);
    if (!spec_.unk) return bad_part("model", cat("unk_token ", printable(*unknown_token_), " is no token"));
  }
  if (unknown_id_) {
    if (*unknown_id_ < 0 || static_cast<size_t>(*unknown_id_) >= size)
      return bad_part("model", cat("unk_id ", *unknown_id_, "; 0 to ", last, " allowed"));
    spec_.unk = static_cast<int32_t>(*unknown_id_);
  }
  for (const std::vector<int32_t>* ids : {&spec_.prefix, &spec_.suffix}) {
    for (const int32_t id : *ids) {
      if (static_cast<size_t>(id) >= size)
        return bad_part("post_processor", cat("id ", id, "; 0 to ", last, " allowed"));
    }
  }
  return {};
}

// In byte-level BPE a byte without a token is dropped; with an unknown token it would have to become that.
Status TokenizerReader::check_bytes() {
  if (!byte_level_ || !spec_.unk) return {};
  std::array<bool, 256> there{};
  std::string bytes;
  for (const std::string_view token : tokens_) {
    bytes.clear();
    if (token.size() <= 2 && append_alphabet_bytes(bytes, token) && bytes.size() == 1)
      there[static_cast<unsigned char>(bytes[0])] = true;
  }
  if (std::ranges::count(there, true) != 256)
    return unknown_part("model", "an unk_token in a byte-level vocabulary that lacks bytes");
  return {};
}

std::optional<int32_t> TokenizerReader::find(std::string_view token) const {
  const auto found = std::ranges::find(tokens_, token);
  if (token.empty() || found == tokens_.end()) return std::nullopt;
  return static_cast<int32_t>(found - tokens_.begin());
}

// "bos_token" and its like: the token, or an object with it as "content".
Status TokenizerReader::read_config(std::string_view config) {
  if (config.empty()) return {};
  const auto parsed = parse_json(config);
  if (!parsed.ok() || !parsed->is_object()) {
    Error error = bad_part("", parsed.ok() ? "no object" : parsed.error().detail);
    error.where = "tokenizer_config.json";
    return error;
  }
  const std::pair<std::string_view, std::optional<int32_t>*> named[] = {
      {"bos_token", &spec_.bos}, {"eos_token", &spec_.eos}, {"pad_token", &spec_.pad}};
  for (const auto& [name, id] : named) {
    const Json* token = parsed->find(name);
    if (token != nullptr && token->is_object()) token = token->find("content");
    if (token == nullptr || token->is_null()) continue;
    if (token->is_string()) *id = find(token->as_string());
    if (!*id) {
      Error error = bad_part("", cat(printable(name), " is no token of tokenizer.json"));
      error.where = cat("tokenizer_config.json: ", name);
      return error;
    }
  }
  return {};
}

}  // namespace

Result<Tokenizer> read_tokenizer_json(std::string_view json, std::string_view config) {
  return TokenizerReader(json).read(config);
}

}  // namespace inferd
