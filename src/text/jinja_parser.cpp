#include "text/jinja_parser.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "text/jinja_expression_parser.h"
#include "text/jinja_frames.h"

namespace inferd::jinja {
namespace {

// Statements; expressions are in jinja_expression_parser.cpp.
class StatementParser {
 public:
  StatementParser(std::vector<Token> tokens, Program& program)
      : stream_(std::move(tokens)), expressions_(stream_, program) {}

  Result<Block> parse_template() {
    INFERD_TRY(Block body, parse_block({}));
    INFERD_TRY_STATUS(expressions_.refuse_unknown(0));
    return body;
  }

 private:
  using EndTags = std::initializer_list<std::string_view>;

  static Error nested_too_deeply(int32_t line) {
    return syntax_error(line, cat("blocks nested deeper than ", kMaxStatementDepth));
  }

  // Statements up to one of the end tags, whose name is then the current token; an empty list means the end
  // of file.
  Result<Block> parse_block(EndTags ends) {
    if (depth_ >= kMaxStatementDepth) return nested_too_deeply(stream_.line());
    ++depth_;
    const int32_t begin = stream_.line();
    Block block;
    while (stream_.kind() != TokenKind::end) {
      switch (stream_.kind()) {
        case TokenKind::data: {
          Token token = stream_.take();
          block.push_back(std::make_unique<LiteralStatement>(token.line, std::move(token.text)));
          break;
        }
        case TokenKind::variable_begin: {
          const int32_t line = stream_.take().line;
          INFERD_TRY(ExprPtr value, expressions_.parse_tuple({}));
          INFERD_TRY_STATUS(stream_.expect(TokenKind::variable_end));
          block.push_back(std::make_unique<PrintStatement>(line, std::move(value)));
          break;
        }
        default: {  // block_begin: the lexer gives nothing else here
          stream_.take();
          if (stream_.kind() != TokenKind::name) {
            return syntax_error(stream_.line(),
                                cat("expected a tag name, got ", describe(stream_.current())));
          }
          if (std::find(ends.begin(), ends.end(), stream_.current().text) != ends.end()) {
            --depth_;
            return block;
          }
          INFERD_TRY_STATUS(parse_statement(block));
          INFERD_TRY_STATUS(stream_.expect(TokenKind::block_end));
        }
      }
    }
    --depth_;
    if (ends.size() == 0) return block;
    return syntax_error(stream_.line(), cat("the template ends inside a block that begins in line ", begin,
                                            ": {% ", *std::prev(ends.end()), " %} is missing"));
  }

  // The body of a statement after its head.
  Result<Block> parse_body(EndTags ends) {
    stream_.skip_op(":");
    INFERD_TRY_STATUS(stream_.expect(TokenKind::block_end));
    return parse_block(ends);
  }

  // A body with variables of its own, where unknown filters are refused even inside of `if`.
  Result<Frame> parse_frame(EndTags ends) {
    const size_t unknown = expressions_.unknown_count();
    Frame frame;
    INFERD_TRY(frame.body, parse_body(ends));
    INFERD_TRY_STATUS(expressions_.refuse_unknown(unknown));
    return frame;
  }

  // As above, and a function in the reference, so that a loop around it cannot be left from inside.
  Result<Frame> parse_function_frame(EndTags ends) {
    const int loops = std::exchange(loops_, 0);
    INFERD_TRY(Frame frame, parse_frame(ends));
    loops_ = loops;
    return frame;
  }

  Status parse_statement(Block& block) {
    const int32_t line = stream_.line();
    const std::string tag = stream_.take().text;
    if (tag == "if") return parse_if(block, line);
    if (tag == "for") return parse_for(block, line);
    if (tag == "set") return parse_set(block, line);
    if (tag == "macro") return parse_macro(block, line);
    if (tag == "with") return parse_with(block, line);
    if (tag == "call") return parse_call_block(block, line);
    if (tag == "filter") return parse_filter_block(block, line);
    if (tag == "print") return parse_print(block, line);
    if (tag == "break" || tag == "continue") {
      if (loops_ == 0) return syntax_error(line, cat("{% ", tag, " %} outside of a loop"));
      block.push_back(std::make_unique<LoopControlStatement>(
          tag == "break" ? StatementKind::leave_loop : StatementKind::next_item, line));
      return {};
    }
    if (tag == "generation") {
      auto statement = std::make_unique<GenerationStatement>(line);
      INFERD_TRY(statement->body, parse_function_frame({"endgeneration"}));
      stream_.take();
      block.push_back(std::move(statement));
      return {};
    }
    static constexpr std::string_view kUnsupported[] = {"include", "import", "from",
                                                        "extends", "block",  "autoescape"};
    if (std::find(std::begin(kUnsupported), std::end(kUnsupported), tag) != std::end(kUnsupported)) {
      return syntax_error(line, cat("{% ", tag, " %} is not supported in chat templates"));
    }
    return syntax_error(line, cat("unknown tag ", printable(tag)));
  }

  Status parse_if(Block& block, int32_t line) {
    auto statement = std::make_unique<IfStatement>(line);
    const size_t unknown = expressions_.unknown_count();
    for (std::string tag = "elif"; tag == "elif";) {
      INFERD_TRY(ExprPtr condition, expressions_.parse_tuple({.conditional = false}));
      INFERD_TRY(Block body, parse_body({"elif", "else", "endif"}));
      statement->branches.emplace_back(std::move(condition), std::move(body));
      tag = stream_.take().text;
      if (tag == "else") {
        INFERD_TRY(statement->otherwise, parse_body({"endif"}));
        stream_.take();
      }
    }
    expressions_.forgive_unknown(unknown);
    block.push_back(std::move(statement));
    return {};
  }

  Status parse_for(Block& block, int32_t line) {
    auto statement = std::make_unique<ForStatement>(line);
    ++fors_;
    INFERD_TRY(statement->target, parse_target(false));
    if (!stream_.skip_name("in")) return expected("\"in\"");
    INFERD_TRY(statement->iterable, expressions_.parse_tuple({.conditional = false}));
    const size_t unknown = expressions_.unknown_count();
    if (stream_.skip_name("if")) {
      INFERD_TRY(statement->condition, expressions_.parse_expression());
    }
    statement->recursive = stream_.skip_name("recursive");
    ++loops_;
    INFERD_TRY(statement->body, parse_frame({"endfor", "else"}));
    --loops_;
    if (stream_.take().text == "else") {
      const int loops = loops_;
      if (statement->recursive) loops_ = 0;
      INFERD_TRY(statement->otherwise, parse_frame({"endfor"}));
      loops_ = loops;
      stream_.take();
    }
    INFERD_TRY_STATUS(expressions_.refuse_unknown(unknown));
    --fors_;
    block.push_back(std::move(statement));
    return {};
  }

  Status parse_set(Block& block, int32_t line) {
    INFERD_TRY(Target target, parse_target(true));
    if (stream_.skip_op("=")) {
      auto statement = std::make_unique<AssignStatement>(line);
      statement->target = std::move(target);
      INFERD_TRY(statement->value, expressions_.parse_tuple({}));
      block.push_back(std::move(statement));
      return {};
    }
    auto statement = std::make_unique<AssignBlockStatement>(line);
    statement->target = std::move(target);
    const size_t unknown = expressions_.unknown_count();
    if (stream_.is_op("|")) {
      INFERD_TRY(statement->filter, expressions_.parse_filter(std::make_unique<CapturedExpr>(line), false));
    }
    INFERD_TRY(statement->body, parse_frame({"endset"}));
    INFERD_TRY_STATUS(expressions_.refuse_unknown(unknown));
    stream_.take();
    block.push_back(std::move(statement));
    return {};
  }

  Status parse_with(Block& block, int32_t line) {
    auto statement = std::make_unique<ScopeStatement>(line);
    while (stream_.kind() != TokenKind::block_end) {
      if (!statement->assignments.empty() && !stream_.skip_op(",")) return expected("\",\"");
      INFERD_TRY(Target target, parse_target(false));
      if (!stream_.skip_op("=")) return expected("\"=\"");
      INFERD_TRY(ExprPtr value, expressions_.parse_expression());
      statement->assignments.emplace_back(std::move(target), std::move(value));
    }
    INFERD_TRY(statement->body, parse_frame({"endwith"}));
    stream_.take();
    block.push_back(std::move(statement));
    return {};
  }

  // "(a, b=1)" into parameters and defaults.
  Status parse_signature(MacroStatement& macro) {
    if (!stream_.skip_op("(")) return expected("\"(\"");
    while (!stream_.is_op(")")) {
      if (!macro.parameters.empty() && !stream_.skip_op(",")) return expected("\",\"");
      if (stream_.kind() != TokenKind::name) return expected("a parameter name");
      const Token token = stream_.take();
      if (is_constant_name(token.text)) return syntax_error(token.line, cat("cannot assign to ", token.text));
      for (const auto& [symbol, name] : macro.parameters) {
        if (name == token.text)
          return syntax_error(token.line, cat("two parameters are named ", printable(name)));
      }
      macro.parameters.emplace_back(expressions_.symbol(token.text), token.text);
      if (stream_.skip_op("=")) {
        INFERD_TRY(ExprPtr value, expressions_.parse_expression());
        macro.defaults.push_back(std::move(value));
      } else if (!macro.defaults.empty()) {
        return syntax_error(
            token.line, cat("the parameter ", printable(token.text), " needs a default, as one before it"));
      }
    }
    stream_.take();
    return {};
  }

  // The body of a macro, and which of the special names it uses.
  Status parse_macro_body(MacroStatement& macro, std::string_view end) {
    const auto declared = [&](std::string_view name) {
      return std::find_if(macro.parameters.begin(), macro.parameters.end(),
                          [&](const auto& parameter) { return parameter.second == name; });
    };
    for (const auto& [symbol, name] : macro.parameters) expressions_.note_store(name);
    expressions_.begin_macro();
    INFERD_TRY(macro.body, parse_function_frame({end}));
    stream_.take();
    const ExpressionParser::MacroUses uses = expressions_.end_macro();
    macro.uses_named = uses.named && declared("kwargs") == macro.parameters.end();
    macro.uses_spread = uses.spread && declared("varargs") == macro.parameters.end();
    macro.uses_caller = uses.caller;
    if (const auto caller = declared("caller"); uses.caller && caller != macro.parameters.end()) {
      const auto index = static_cast<size_t>(caller - macro.parameters.begin());
      if (index + macro.defaults.size() < macro.parameters.size()) {
        return syntax_error(macro.line, "the parameter \"caller\" of a macro needs a default");
      }
    }
    return {};
  }

  Status parse_macro(Block& block, int32_t line) {
    auto macro = std::make_unique<MacroStatement>(line);
    if (stream_.kind() != TokenKind::name) return expected("a macro name");
    macro->name = stream_.take().text;
    if (is_constant_name(macro->name)) return syntax_error(line, cat("cannot assign to ", macro->name));
    macro->symbol = expressions_.symbol(macro->name);
    const size_t unknown = expressions_.unknown_count();
    INFERD_TRY_STATUS(parse_signature(*macro));
    INFERD_TRY_STATUS(parse_macro_body(*macro, "endmacro"));
    INFERD_TRY_STATUS(expressions_.refuse_unknown(unknown));
    block.push_back(std::move(macro));
    return {};
  }

  Status parse_call_block(Block& block, int32_t line) {
    auto statement = std::make_unique<CallBlockStatement>(line);
    statement->caller = std::make_unique<MacroStatement>(line);
    statement->caller->name = "caller";
    statement->caller->is_caller = true;
    if (stream_.is_op("(")) {
      INFERD_TRY_STATUS(parse_signature(*statement->caller));
    }
    INFERD_TRY(statement->call, expressions_.parse_expression());
    if (statement->call->kind != ExprKind::call) return syntax_error(line, "{% call %} needs a call");
    INFERD_TRY_STATUS(parse_macro_body(*statement->caller, "endcall"));
    block.push_back(std::move(statement));
    return {};
  }

  Status parse_filter_block(Block& block, int32_t line) {
    auto statement = std::make_unique<FilterBlockStatement>(line);
    const size_t unknown = expressions_.unknown_count();
    INFERD_TRY(statement->filter, expressions_.parse_filter(std::make_unique<CapturedExpr>(line), true));
    INFERD_TRY(statement->body, parse_frame({"endfilter"}));
    INFERD_TRY_STATUS(expressions_.refuse_unknown(unknown));
    stream_.take();
    block.push_back(std::move(statement));
    return {};
  }

  Status parse_print(Block& block, int32_t line) {
    for (bool first = true; stream_.kind() != TokenKind::block_end; first = false) {
      if (!first && !stream_.skip_op(",")) return expected("\",\"");
      INFERD_TRY(ExprPtr value, expressions_.parse_expression());
      block.push_back(std::make_unique<PrintStatement>(line, std::move(value)));
    }
    return {};
  }

  // `a`, `a, b`, `(a, (b, c))`, and with `spaces` also `ns.a`.
  Result<Target> parse_target(bool spaces) {
    Target whole{.what = Target::What::tuple, .line = stream_.line()};
    bool is_tuple = false;
    while (stream_.kind() != TokenKind::block_end && !stream_.is_op(")")) {
      INFERD_TRY(Target part, parse_single_target(spaces));
      whole.parts.push_back(std::move(part));
      if (!stream_.skip_op(",")) break;
      is_tuple = true;
    }
    if (whole.parts.empty()) return expected("a name to assign to");
    if (!is_tuple) return std::move(whole.parts.front());
    return whole;
  }

  Result<Target> parse_single_target(bool spaces) {
    const int32_t line = stream_.line();
    if (stream_.is_op("(")) {
      if (target_depth_ >= kMaxStatementDepth) return nested_too_deeply(line);
      stream_.take();
      ++target_depth_;
      INFERD_TRY(Target inner, parse_target(false));
      --target_depth_;
      if (!stream_.skip_op(")")) return expected("\")\"");
      return inner;
    }
    if (stream_.kind() != TokenKind::name || is_constant_name(stream_.current().text)) {
      return syntax_error(line, cat("cannot assign to ", describe(stream_.current())));
    }
    const std::string name = stream_.take().text;
    Target target{.what = Target::What::name, .line = line, .symbol = expressions_.symbol(name)};
    if (spaces && stream_.skip_op(".")) {
      if (stream_.kind() != TokenKind::name) return expected("an attribute name");
      target.what = Target::What::space_attribute;
      target.attribute = stream_.take().text;
      return target;
    }
    if (name == "loop" && fors_ > 0) return syntax_error(line, "cannot assign to \"loop\" inside of a loop");
    expressions_.note_store(name);
    return target;
  }

  Error expected(std::string_view what) const {
    return syntax_error(stream_.line(), cat("expected ", what, ", got ", describe(stream_.current())));
  }

  TokenStream stream_;
  ExpressionParser expressions_;
  int depth_ = 0;
  int target_depth_ = 0;
  int loops_ = 0;  // around the current statement, up to the next function boundary
  int fors_ = 0;   // around it at all
};

}  // namespace

Result<std::unique_ptr<const Program>> parse_program(std::string_view source) {
  INFERD_TRY(std::vector<Token> tokens, tokenize(source));
  auto program = std::make_unique<Program>();
  StatementParser parser(std::move(tokens), *program);
  INFERD_TRY(program->body.body, parser.parse_template());
  resolve_frames(*program);
  return std::unique_ptr<const Program>(std::move(program));
}

}  // namespace inferd::jinja
