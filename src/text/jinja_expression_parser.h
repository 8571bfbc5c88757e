// The expression half of the parser, used by jinja_parser.cpp only.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/jinja_ast.h"
#include "text/jinja_lexer.h"

namespace inferd::jinja {

inline bool is_constant_name(std::string_view name) {
  return name == "true" || name == "True" || name == "false" || name == "False" || name == "none" ||
         name == "None";
}

class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[at_]; }
  const Token& peek() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  TokenKind kind() const { return current().kind; }
  int32_t line() const { return current().line; }
  // The current token, moved out; the last one stays.
  Token take() { return at_ + 1 < tokens_.size() ? std::move(tokens_[at_++]) : tokens_[at_]; }

  bool is_op(std::string_view op) const { return kind() == TokenKind::op && current().text == op; }
  bool is_name(std::string_view name) const { return kind() == TokenKind::name && current().text == name; }
  bool skip_op(std::string_view op) { return is_op(op) && (++at_, true); }
  bool skip_name(std::string_view name) { return is_name(name) && (++at_, true); }
  Status expect(TokenKind kind);

 private:
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

class ExpressionParser {
 public:
  ExpressionParser(TokenStream& stream, Program& program) : stream_(stream), program_(program) {
    program.loop = symbol("loop");
    program.caller = symbol("caller");
    program.named = symbol("kwargs");
    program.spread = symbol("varargs");
  }

  struct TupleOptions {
    bool conditional = true;   // `a if b else c` allowed at the top
    bool parentheses = false;  // inside of them, so that nothing at all is the empty tuple
  };
  // One expression, or a tuple when commas follow.
  Result<ExprPtr> parse_tuple(const TupleOptions& options);
  Result<ExprPtr> parse_expression() { return parse_conditional(); }
  // "| name(args) | ..." over `input`; `inline_first`: the first name comes without a pipe.
  Result<ExprPtr> parse_filter(ExprPtr input, bool inline_first);

  Symbol symbol(const std::string& name);

  // Unknown filters and tests are errors, except those inside of `if` and inline if (jinja2's "soft" frames),
  // which fail only when they run. Each is remembered until a frame decides.
  size_t unknown_count() const { return unknown_.size(); }
  void forgive_unknown(size_t from) { unknown_.resize(from); }
  Status refuse_unknown(size_t from) const;

  // Which of the names caller, kwargs and varargs a macro's body reads before it assigns them.
  struct MacroUses {
    bool caller = false, named = false, spread = false;
    bool own_caller = false, own_named = false, own_spread = false;
  };
  void begin_macro() { macros_.emplace_back(); }
  MacroUses end_macro();
  void note_store(std::string_view name);

 private:
  // From loosest to tightest.
  enum Level { kOr, kAnd, kNot, kCompare, kSum, kConcat, kProduct, kPower, kUnary };

  Result<ExprPtr> parse_conditional();
  Result<ExprPtr> parse_level(int level);
  Result<ExprPtr> parse_not();
  Result<ExprPtr> parse_compare();
  Result<ExprPtr> parse_concat();
  Result<ExprPtr> parse_binary(int level);
  Result<ExprPtr> parse_unary(bool with_filter);
  Result<ExprPtr> parse_primary();
  Result<ExprPtr> parse_list();
  Result<ExprPtr> parse_dict();
  Result<ExprPtr> parse_postfix(ExprPtr node);
  Result<ExprPtr> parse_filter_expr(ExprPtr node);
  Result<ExprPtr> parse_dot(ExprPtr object);
  Result<ExprPtr> parse_subscript(ExprPtr object);
  Result<ExprPtr> parse_call(ExprPtr callee);
  Result<ExprPtr> parse_test(ExprPtr input);
  Status parse_arguments(CallArguments& arguments, int32_t& height);
  void note_load(std::string_view name);

  // The node with its height, or a refusal when the tree has grown too high.
  Result<ExprPtr> finish(ExprPtr node, int32_t children_height) const;
  Error expected(std::string_view what) const;

  struct Unknown {
    std::string what;
    int32_t line;
  };

  TokenStream& stream_;
  Program& program_;
  int depth_ = 0;
  std::unordered_map<std::string, Symbol> symbols_;
  std::vector<Unknown> unknown_;
  std::vector<MacroUses> macros_;
};

}  // namespace inferd::jinja
