// The evaluator: expressions in jinja_expression.cpp, statements and calls in jinja_eval.cpp. Inside src/text
// only.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "text/jinja_arguments.h"
#include "text/jinja_ast.h"
#include "text/jinja_eval.h"
#include "text/jinja_loop.h"
#include "text/jinja_runtime.h"

namespace inferd::jinja {

class Evaluator {
 public:
  Evaluator(const Program& program, Runtime& runtime, std::vector<Value> globals)
      : program_(program), runtime_(runtime), globals_(std::move(globals)) {}

  Result<std::vector<TextSpan>> run();

 private:
  enum class Flow : uint8_t { normal, leave_loop, next_item };

  // Expressions.
  Result<Value> eval(const Expr& expr);
  Result<Value> eval_kind(const Expr& expr);
  Result<Value> eval_sequence(const SequenceExpr& expr);
  Result<Value> eval_concat(const SequenceExpr& expr);
  Result<Value> eval_dict(const DictExpr& expr);
  Result<Value> eval_unary(const UnaryExpr& expr);
  Result<Value> eval_logical(const BinaryExpr& expr);
  Result<Value> eval_arithmetic(const BinaryExpr& expr);
  Result<Value> eval_compare(const CompareExpr& expr);
  Result<Value> eval_attribute(const AttributeExpr& expr);
  Result<Value> eval_item(const ItemExpr& expr);
  Result<Value> eval_slice(const SliceExpr& expr);
  Result<Value> eval_call(const CallExpr& expr, const Value* caller);
  Result<Value> eval_filter(const FilterExpr& expr);
  Result<Value> eval_test(const TestExpr& expr);
  Result<Value> eval_conditional(const ConditionalExpr& expr);
  Result<Arguments> eval_arguments(const CallArguments& arguments);
  Result<Value> attribute_of(const Value& value, const Text& name);
  Result<Value> item_of(const Value& value, const Value& key);
  Result<Value> lookup(Symbol symbol);

  // Calls.
  Result<Value> call_value(const Value& callee, const Arguments& arguments);
  Result<Value> call_macro(MacroObject& macro, const Arguments& arguments);
  Status bind_macro(MacroObject& macro, const Arguments& arguments);
  Value make_macro(const MacroStatement& macro);

  // Loops.
  Result<bool> advance(LoopObject& loop, Value& item);
  Result<std::optional<Value>> loop_attribute(const Value& value, std::string_view name);
  Result<int64_t> loop_length(LoopObject& loop);
  Result<Flow> run_loop(const ForStatement& statement, Value iterable, int64_t depth0, Scope* outer);

  // Statements.
  Result<Flow> run_block(const Block& block);
  Result<Flow> run_statement(const Statement& statement);
  Result<Flow> run_in_scope(const Frame& frame);
  // Runs a block in the current scope and gives what it printed, as text.
  Result<Value> capture(const Block& block, Flow& flow);
  Result<Flow> run_if(const IfStatement& statement);
  Result<Flow> run_scope(const ScopeStatement& statement);
  Result<Flow> run_assign_block(const AssignBlockStatement& statement);
  Result<Flow> run_filter_block(const FilterBlockStatement& statement);
  Status assign(const Target& target, Value value);
  Status check_spaces(const Target& target);
  Status print(const Value& value);
  Status print_block(const Value& value);
  Status print_text(const Text& text);

  Scope* enter(Scope* parent);
  Status hide(const Frame& frame, Scope* scope);  // the frame's unset names
  void leave(Scope* scope);

  const Program& program_;
  Runtime& runtime_;
  const std::vector<Value> globals_;  // by Symbol; undefined: there is none of that name
  std::vector<std::unique_ptr<Scope>> scopes_;
  std::vector<Scope*> free_scopes_;
  Scope* scope_ = nullptr;
  TextBuilder* out_ = nullptr;
  std::vector<Text> captured_;  // what CapturedExpr means, innermost last
};

}  // namespace inferd::jinja
