#include "text/jinja_expression_parser.h"

#include <algorithm>
#include <optional>

#include "text/jinja_filters.h"
#include "text/jinja_parser.h"

namespace inferd::jinja {
namespace {

std::optional<CompareOp> compare_op(const Token& token) {
  if (token.kind != TokenKind::op) return std::nullopt;
  if (token.text == "==") return CompareOp::equal;
  if (token.text == "!=") return CompareOp::not_equal;
  if (token.text == "<") return CompareOp::less;
  if (token.text == "<=") return CompareOp::less_equal;
  if (token.text == ">") return CompareOp::greater;
  if (token.text == ">=") return CompareOp::greater_equal;
  return std::nullopt;
}

int32_t height_of(const ExprPtr& node) {
  return node ? node->height : 0;
}

ExprPtr constant(int32_t line, Value value) {
  return std::make_unique<ConstantExpr>(line, std::move(value));
}

ExprPtr text_constant(int32_t line, std::string text) {
  auto node = std::make_unique<ConstantExpr>(line, Value());
  node->storage = std::move(text);
  node->value = Text::borrowed(node->storage, Origin::markup);
  return node;
}

}  // namespace

Status TokenStream::expect(TokenKind kind) {
  if (current().kind == kind) {
    if (at_ + 1 < tokens_.size()) ++at_;
    return {};
  }
  return syntax_error(line(), cat("expected ", describe({.kind = kind}), ", got ", describe(current())));
}

Symbol ExpressionParser::symbol(const std::string& name) {
  const auto [found, is_new] = symbols_.try_emplace(name, static_cast<Symbol>(program_.names.size()));
  if (is_new) program_.names.push_back(name);
  return found->second;
}

Status ExpressionParser::refuse_unknown(size_t from) const {
  if (unknown_.size() <= from) return {};
  return syntax_error(unknown_[from].line, unknown_[from].what);
}

void ExpressionParser::note_load(std::string_view name) {
  for (MacroUses& uses : macros_) {
    if (name == "caller" && !uses.own_caller) uses.caller = true;
    if (name == "kwargs" && !uses.own_named) uses.named = true;
    if (name == "varargs" && !uses.own_spread) uses.spread = true;
  }
}

void ExpressionParser::note_store(std::string_view name) {
  for (MacroUses& uses : macros_) {
    if (name == "caller") uses.own_caller = true;
    if (name == "kwargs") uses.own_named = true;
    if (name == "varargs") uses.own_spread = true;
  }
}

ExpressionParser::MacroUses ExpressionParser::end_macro() {
  const MacroUses uses = macros_.back();
  macros_.pop_back();
  return uses;
}

Result<ExprPtr> ExpressionParser::finish(ExprPtr node, int32_t children_height) const {
  node->height = children_height + 1;
  if (node->height > kMaxExprHeight) {
    return syntax_error(node->line, cat("an expression nested deeper than ", kMaxExprHeight));
  }
  return node;
}

Error ExpressionParser::expected(std::string_view what) const {
  return syntax_error(stream_.line(), cat("expected ", what, ", got ", describe(stream_.current())));
}

Result<ExprPtr> ExpressionParser::parse_tuple(const TupleOptions& options) {
  const int32_t line = stream_.line();
  auto tuple = std::make_unique<SequenceExpr>(ExprKind::tuple, line);
  bool is_tuple = false;
  int32_t height = 0;
  for (;;) {
    if (stream_.kind() == TokenKind::variable_end || stream_.kind() == TokenKind::block_end ||
        stream_.is_op(")")) {
      break;
    }
    INFERD_TRY(ExprPtr item, options.conditional ? parse_conditional() : parse_level(kOr));
    height = std::max(height, item->height);
    tuple->items.push_back(std::move(item));
    if (!stream_.skip_op(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!tuple->items.empty()) return std::move(tuple->items.front());
    if (!options.parentheses) return expected("an expression");
  }
  return finish(std::move(tuple), height);
}

Result<ExprPtr> ExpressionParser::parse_conditional() {
  if (depth_ >= kMaxExprHeight) {
    return syntax_error(stream_.line(), cat("an expression nested deeper than ", kMaxExprHeight));
  }
  ++depth_;
  const size_t unknown = unknown_.size();
  INFERD_TRY(ExprPtr left, parse_level(kOr));
  while (stream_.skip_name("if")) {
    auto node = std::make_unique<ConditionalExpr>(left->line);
    node->yes = std::move(left);
    INFERD_TRY(node->condition, parse_level(kOr));
    if (stream_.skip_name("else")) {
      INFERD_TRY(node->no, parse_conditional());
    }
    const int32_t height = std::max({height_of(node->yes), height_of(node->condition), height_of(node->no)});
    INFERD_TRY(left, finish(std::move(node), height));
    forgive_unknown(unknown);
  }
  --depth_;
  return left;
}

Result<ExprPtr> ExpressionParser::parse_level(int level) {
  switch (level) {
    case kNot:
      return parse_not();
    case kCompare:
      return parse_compare();
    case kConcat:
      return parse_concat();
    case kUnary:
      return parse_unary(true);
    default:
      return parse_binary(level);
  }
}

// Left-associative: a op b op c is (a op b) op c, for `**` too.
Result<ExprPtr> ExpressionParser::parse_binary(int level) {
  INFERD_TRY(ExprPtr left, parse_level(level + 1));
  for (;;) {
    ExprKind kind = ExprKind::arithmetic;
    ArithmeticOp op = ArithmeticOp::add;
    if (level == kOr && stream_.is_name("or")) {
      kind = ExprKind::logical_or;
    } else if (level == kAnd && stream_.is_name("and")) {
      kind = ExprKind::logical_and;
    } else if (level == kSum && stream_.is_op("-")) {
      op = ArithmeticOp::subtract;
    } else if (level == kProduct && stream_.is_op("*")) {
      op = ArithmeticOp::multiply;
    } else if (level == kProduct && stream_.is_op("/")) {
      op = ArithmeticOp::divide;
    } else if (level == kProduct && stream_.is_op("//")) {
      op = ArithmeticOp::floor_divide;
    } else if (level == kProduct && stream_.is_op("%")) {
      op = ArithmeticOp::modulo;
    } else if (level == kPower && stream_.is_op("**")) {
      op = ArithmeticOp::power;
    } else if (!(level == kSum && stream_.is_op("+"))) {
      return left;
    }
    auto node = std::make_unique<BinaryExpr>(kind, stream_.take().line);
    node->op = op;
    node->left = std::move(left);
    INFERD_TRY(node->right, parse_level(level + 1));
    const int32_t height = std::max(node->left->height, node->right->height);
    INFERD_TRY(left, finish(std::move(node), height));
  }
}

Result<ExprPtr> ExpressionParser::parse_not() {
  if (!stream_.is_name("not")) return parse_level(kCompare);
  if (depth_ >= kMaxExprHeight)
    return syntax_error(stream_.line(), cat("more than ", kMaxExprHeight, " nots"));
  ++depth_;
  auto node = std::make_unique<UnaryExpr>(ExprKind::logical_not, stream_.take().line);
  INFERD_TRY(node->operand, parse_not());
  --depth_;
  const int32_t height = node->operand->height;
  return finish(std::move(node), height);
}

Result<ExprPtr> ExpressionParser::parse_compare() {
  INFERD_TRY(ExprPtr first, parse_level(kSum));
  auto node = std::make_unique<CompareExpr>(first->line);
  int32_t height = first->height;
  for (;;) {
    std::optional<CompareOp> op = compare_op(stream_.current());
    if (op) {
      stream_.take();
    } else if (stream_.skip_name("in")) {
      op = CompareOp::in;
    } else if (stream_.is_name("not") && stream_.peek().kind == TokenKind::name &&
               stream_.peek().text == "in") {
      stream_.take();
      stream_.take();
      op = CompareOp::not_in;
    } else {
      break;
    }
    INFERD_TRY(ExprPtr operand, parse_level(kSum));
    height = std::max(height, operand->height);
    node->rest.emplace_back(*op, std::move(operand));
  }
  if (node->rest.empty()) return first;
  node->first = std::move(first);
  return finish(std::move(node), height);
}

Result<ExprPtr> ExpressionParser::parse_concat() {
  INFERD_TRY(ExprPtr first, parse_level(kProduct));
  if (!stream_.is_op("~")) return first;
  auto node = std::make_unique<SequenceExpr>(ExprKind::concat, first->line);
  int32_t height = first->height;
  node->items.push_back(std::move(first));
  while (stream_.skip_op("~")) {
    INFERD_TRY(ExprPtr part, parse_level(kProduct));
    height = std::max(height, part->height);
    node->items.push_back(std::move(part));
  }
  return finish(std::move(node), height);
}

Result<ExprPtr> ExpressionParser::parse_unary(bool with_filter) {
  ExprPtr node;
  if (stream_.is_op("-") || stream_.is_op("+")) {
    if (depth_ >= kMaxExprHeight)
      return syntax_error(stream_.line(), cat("more than ", kMaxExprHeight, " signs"));
    ++depth_;
    auto sign =
        std::make_unique<UnaryExpr>(stream_.is_op("-") ? ExprKind::negate : ExprKind::plus, stream_.line());
    stream_.take();
    INFERD_TRY(sign->operand, parse_unary(false));
    --depth_;
    const int32_t height = sign->operand->height;
    INFERD_TRY(node, finish(std::move(sign), height));
  } else {
    INFERD_TRY(node, parse_primary());
  }
  INFERD_TRY(node, parse_postfix(std::move(node)));
  if (!with_filter) return node;
  return parse_filter_expr(std::move(node));
}

Result<ExprPtr> ExpressionParser::parse_primary() {
  const int32_t line = stream_.line();
  switch (stream_.kind()) {
    case TokenKind::name: {
      const std::string name = stream_.take().text;
      if (name == "true" || name == "True") return constant(line, Value::boolean(true));
      if (name == "false" || name == "False") return constant(line, Value::boolean(false));
      if (name == "none" || name == "None") return constant(line, Value::none());
      note_load(name);
      return ExprPtr(std::make_unique<NameExpr>(line, symbol(name)));
    }
    case TokenKind::string: {
      std::string text = stream_.take().text;
      while (stream_.kind() == TokenKind::string) text += stream_.take().text;
      return text_constant(line, std::move(text));
    }
    case TokenKind::integer:
      return constant(line, Value::integer(stream_.take().integer));
    case TokenKind::real:
      return constant(line, Value::real(stream_.take().real));
    default:
      break;
  }
  if (stream_.skip_op("(")) {
    INFERD_TRY(ExprPtr node, parse_tuple({.parentheses = true}));
    if (!stream_.skip_op(")")) return expected("\")\"");
    return node;
  }
  if (stream_.is_op("[")) return parse_list();
  if (stream_.is_op("{")) return parse_dict();
  return expected("an expression");
}

Result<ExprPtr> ExpressionParser::parse_list() {
  auto node = std::make_unique<SequenceExpr>(ExprKind::list, stream_.take().line);
  int32_t height = 0;
  while (!stream_.is_op("]")) {
    if (!node->items.empty()) {
      if (!stream_.skip_op(",")) return expected("\",\" or \"]\"");
      if (stream_.is_op("]")) break;
    }
    INFERD_TRY(ExprPtr item, parse_expression());
    height = std::max(height, item->height);
    node->items.push_back(std::move(item));
  }
  stream_.take();
  return finish(std::move(node), height);
}

Result<ExprPtr> ExpressionParser::parse_dict() {
  auto node = std::make_unique<DictExpr>(stream_.take().line);
  int32_t height = 0;
  while (!stream_.is_op("}")) {
    if (!node->entries.empty()) {
      if (!stream_.skip_op(",")) return expected("\",\" or \"}\"");
      if (stream_.is_op("}")) break;
    }
    INFERD_TRY(ExprPtr key, parse_expression());
    if (!stream_.skip_op(":")) return expected("\":\"");
    INFERD_TRY(ExprPtr value, parse_expression());
    height = std::max({height, key->height, value->height});
    node->entries.emplace_back(std::move(key), std::move(value));
  }
  stream_.take();
  return finish(std::move(node), height);
}

Result<ExprPtr> ExpressionParser::parse_postfix(ExprPtr node) {
  for (;;) {
    if (stream_.is_op(".")) {
      INFERD_TRY(node, parse_dot(std::move(node)));
    } else if (stream_.is_op("[")) {
      INFERD_TRY(node, parse_subscript(std::move(node)));
    } else if (stream_.is_op("(")) {
      INFERD_TRY(node, parse_call(std::move(node)));
    } else {
      return node;
    }
  }
}

Result<ExprPtr> ExpressionParser::parse_filter_expr(ExprPtr node) {
  for (;;) {
    if (stream_.is_op("|")) {
      INFERD_TRY(node, parse_filter(std::move(node), false));
    } else if (stream_.is_name("is")) {
      INFERD_TRY(node, parse_test(std::move(node)));
    } else if (stream_.is_op("(")) {
      INFERD_TRY(node, parse_call(std::move(node)));
    } else {
      return node;
    }
  }
}

Result<ExprPtr> ExpressionParser::parse_dot(ExprPtr object) {
  const int32_t line = stream_.take().line;
  const int32_t height = object->height;
  if (stream_.kind() == TokenKind::name) {
    auto node = std::make_unique<AttributeExpr>(line);
    node->object = std::move(object);
    node->name = stream_.take().text;
    return finish(std::move(node), height);
  }
  if (stream_.kind() != TokenKind::integer) return expected("a name or a number");
  auto node = std::make_unique<ItemExpr>(line);
  node->object = std::move(object);
  node->key = constant(line, Value::integer(stream_.take().integer));
  return finish(std::move(node), height);
}

Result<ExprPtr> ExpressionParser::parse_subscript(ExprPtr object) {
  const int32_t line = stream_.take().line;
  auto slice = std::make_unique<SliceExpr>(line);
  ExprPtr first;
  const auto at_end = [this] { return stream_.is_op("]") || stream_.is_op(","); };
  if (stream_.is_op("]")) {
    first = std::make_unique<SequenceExpr>(ExprKind::tuple, line);  // x[] is x[()]
  } else if (!stream_.is_op(":")) {
    INFERD_TRY(first, parse_expression());
  }
  if (stream_.skip_op(":")) {
    slice->start = std::move(first);
    if (!stream_.is_op(":") && !at_end()) {
      INFERD_TRY(slice->stop, parse_expression());
    }
    if (stream_.skip_op(":") && !at_end()) {
      INFERD_TRY(slice->step, parse_expression());
    }
    if (!stream_.skip_op("]")) return expected("\"]\" after a slice");
    const int32_t height =
        std::max({object->height, height_of(slice->start), height_of(slice->stop), height_of(slice->step)});
    slice->object = std::move(object);
    return finish(std::move(slice), height);
  }
  if (stream_.is_op(",")) {  // x[a, b] is x[(a, b)]
    auto tuple = std::make_unique<SequenceExpr>(ExprKind::tuple, line);
    int32_t height = first->height;
    tuple->items.push_back(std::move(first));
    while (stream_.skip_op(",")) {
      if (stream_.is_op("]")) break;
      INFERD_TRY(ExprPtr item, parse_expression());
      height = std::max(height, item->height);
      tuple->items.push_back(std::move(item));
    }
    INFERD_TRY(first, finish(std::move(tuple), height));
  }
  if (!stream_.skip_op("]")) return expected("\"]\"");
  auto node = std::make_unique<ItemExpr>(line);
  const int32_t height = std::max(object->height, first->height);
  node->object = std::move(object);
  node->key = std::move(first);
  return finish(std::move(node), height);
}

Status ExpressionParser::parse_arguments(CallArguments& arguments, int32_t& height) {
  const int32_t line = stream_.take().line;
  const auto misplaced = [line] {
    return syntax_error(line, "the arguments of a call are in a wrong order");
  };
  bool first = true;
  while (!stream_.is_op(")")) {
    if (!first) {
      if (!stream_.skip_op(",")) return expected("\",\" or \")\"");
      if (stream_.is_op(")")) break;
    }
    first = false;
    ExprPtr value;
    if (stream_.is_op("*")) {
      if (arguments.spread || arguments.spread_named) return misplaced();
      stream_.take();
      INFERD_TRY(arguments.spread, parse_expression());
      height = std::max(height, arguments.spread->height);
    } else if (stream_.is_op("**")) {
      if (arguments.spread_named) return misplaced();
      stream_.take();
      INFERD_TRY(arguments.spread_named, parse_expression());
      height = std::max(height, arguments.spread_named->height);
    } else if (stream_.kind() == TokenKind::name && stream_.peek().kind == TokenKind::op &&
               stream_.peek().text == "=") {
      if (arguments.spread_named) return misplaced();
      std::string name = stream_.take().text;
      for (const auto& [other, expr] : arguments.named) {
        if (other == name)
          return syntax_error(line, cat("the argument ", printable(name), " is given twice"));
      }
      stream_.take();
      INFERD_TRY(value, parse_expression());
      height = std::max(height, value->height);
      arguments.named.emplace_back(std::move(name), std::move(value));
    } else {
      if (arguments.spread || arguments.spread_named || !arguments.named.empty()) return misplaced();
      INFERD_TRY(value, parse_expression());
      height = std::max(height, value->height);
      arguments.positional.push_back(std::move(value));
    }
  }
  stream_.take();
  return {};
}

Result<ExprPtr> ExpressionParser::parse_call(ExprPtr callee) {
  auto node = std::make_unique<CallExpr>(stream_.line());
  int32_t height = callee->height;
  node->callee = std::move(callee);
  INFERD_TRY_STATUS(parse_arguments(node->arguments, height));
  return finish(std::move(node), height);
}

Result<ExprPtr> ExpressionParser::parse_filter(ExprPtr input, bool inline_first) {
  while (inline_first || stream_.is_op("|")) {
    if (!inline_first) stream_.take();
    inline_first = false;
    if (stream_.kind() != TokenKind::name) return expected("a filter name");
    auto node = std::make_unique<FilterExpr>(stream_.line());
    node->name = stream_.take().text;
    while (stream_.skip_op(".")) {
      if (stream_.kind() != TokenKind::name) return expected("a filter name");
      node->name += "." + stream_.take().text;
    }
    int32_t height = input->height;
    node->input = std::move(input);
    node->filter = find_filter(node->name);
    if (node->filter == nullptr)
      unknown_.push_back({cat("no filter named ", printable(node->name)), node->line});
    if (stream_.is_op("(")) {
      INFERD_TRY_STATUS(parse_arguments(node->arguments, height));
    }
    INFERD_TRY(input, finish(std::move(node), height));
  }
  return input;
}

Result<ExprPtr> ExpressionParser::parse_test(ExprPtr input) {
  const int32_t line = stream_.take().line;
  const bool negated = stream_.skip_name("not");
  if (stream_.kind() != TokenKind::name) return expected("a test name");
  auto node = std::make_unique<TestExpr>(line);
  node->name = stream_.take().text;
  while (stream_.skip_op(".")) {
    if (stream_.kind() != TokenKind::name) return expected("a test name");
    node->name += "." + stream_.take().text;
  }
  int32_t height = input->height;
  node->input = std::move(input);
  node->test = find_test(node->name);
  if (node->test == nullptr) unknown_.push_back({cat("no test named ", printable(node->name)), line});
  const TokenKind next = stream_.kind();
  if (stream_.is_op("(")) {
    INFERD_TRY_STATUS(parse_arguments(node->arguments, height));
  } else if ((next == TokenKind::name || next == TokenKind::string || next == TokenKind::integer ||
              next == TokenKind::real || stream_.is_op("[") || stream_.is_op("{")) &&
             !stream_.is_name("else") && !stream_.is_name("or") && !stream_.is_name("and")) {
    if (stream_.is_name("is")) return syntax_error(line, "two tests in a row: `a is b is c`");
    INFERD_TRY(ExprPtr argument, parse_primary());
    INFERD_TRY(argument, parse_postfix(std::move(argument)));
    height = std::max(height, argument->height);
    node->arguments.positional.push_back(std::move(argument));
  }
  INFERD_TRY(ExprPtr test, finish(std::move(node), height));
  if (!negated) return test;
  auto inverse = std::make_unique<UnaryExpr>(ExprKind::logical_not, line);
  height = test->height;
  inverse->operand = std::move(test);
  return finish(std::move(inverse), height);
}

}  // namespace inferd::jinja
