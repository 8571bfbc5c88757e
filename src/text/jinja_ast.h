// The parsed template: expressions and statements. Built by the parser, read by the evaluator, never changed
// in between, so one template may be rendered by many threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja_value.h"

namespace inferd::jinja {

struct Filter;  // jinja_filters.h
struct Test;    // jinja_filters.h

using Symbol = int32_t;  // index into Program::names

enum class ExprKind : uint8_t {
  constant,
  name,
  list,
  tuple,
  dict,
  negate,
  plus,
  logical_not,
  logical_and,
  logical_or,
  arithmetic,
  concat,
  compare,
  attribute,
  item,
  slice,
  call,
  filter,
  test,
  conditional,
  captured,  // the text of the set or filter block being closed
};

enum class ArithmeticOp : uint8_t { add, subtract, multiply, divide, floor_divide, modulo, power };
enum class CompareOp : uint8_t { equal, not_equal, less, less_equal, greater, greater_equal, in, not_in };

struct Expr {
  Expr(ExprKind expr_kind, int32_t expr_line) : kind(expr_kind), line(expr_line) {}
  virtual ~Expr() = default;

  const ExprKind kind;
  const int32_t line;
  int32_t height = 1;  // of the tree below; bounded by the parser
};
using ExprPtr = std::unique_ptr<Expr>;

struct ConstantExpr final : Expr {
  ConstantExpr(int32_t at, Value constant) : Expr(ExprKind::constant, at), value(std::move(constant)) {}
  Value value;  // its text, if it is text, is borrowed from `storage`
  std::string storage;
};

struct NameExpr final : Expr {
  NameExpr(int32_t at, Symbol name) : Expr(ExprKind::name, at), symbol(name) {}
  Symbol symbol;
};

struct SequenceExpr final : Expr {  // list, tuple, concat
  SequenceExpr(ExprKind expr_kind, int32_t at) : Expr(expr_kind, at) {}
  std::vector<ExprPtr> items;
};

struct DictExpr final : Expr {
  explicit DictExpr(int32_t at) : Expr(ExprKind::dict, at) {}
  std::vector<std::pair<ExprPtr, ExprPtr>> entries;
};

struct UnaryExpr final : Expr {  // negate, plus, logical_not
  UnaryExpr(ExprKind expr_kind, int32_t at) : Expr(expr_kind, at) {}
  ExprPtr operand;
};

struct BinaryExpr final : Expr {  // logical_and, logical_or, arithmetic
  BinaryExpr(ExprKind expr_kind, int32_t at) : Expr(expr_kind, at) {}
  ArithmeticOp op = ArithmeticOp::add;
  ExprPtr left;
  ExprPtr right;
};

struct CompareExpr final : Expr {  // a < b <= c: `first`, then {less, b}, {less_equal, c}
  explicit CompareExpr(int32_t at) : Expr(ExprKind::compare, at) {}
  ExprPtr first;
  std::vector<std::pair<CompareOp, ExprPtr>> rest;
};

struct AttributeExpr final : Expr {
  explicit AttributeExpr(int32_t at) : Expr(ExprKind::attribute, at) {}
  ExprPtr object;
  std::string name;
};

struct ItemExpr final : Expr {
  explicit ItemExpr(int32_t at) : Expr(ExprKind::item, at) {}
  ExprPtr object;
  ExprPtr key;
};

struct SliceExpr final : Expr {
  explicit SliceExpr(int32_t at) : Expr(ExprKind::slice, at) {}
  ExprPtr object;
  ExprPtr start;  // each may be absent
  ExprPtr stop;
  ExprPtr step;
};

struct CallArguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr spread;        // *args, may be absent
  ExprPtr spread_named;  // **kwargs, may be absent
};

struct CallExpr final : Expr {
  explicit CallExpr(int32_t at) : Expr(ExprKind::call, at) {}
  ExprPtr callee;
  CallArguments arguments;
};

struct FilterExpr final : Expr {
  explicit FilterExpr(int32_t at) : Expr(ExprKind::filter, at) {}
  ExprPtr input;
  std::string name;
  const Filter* filter = nullptr;  // null: unknown, which is an error only when it runs
  CallArguments arguments;
};

struct TestExpr final : Expr {
  explicit TestExpr(int32_t at) : Expr(ExprKind::test, at) {}
  ExprPtr input;
  std::string name;
  const Test* test = nullptr;  // as in FilterExpr
  CallArguments arguments;
};

struct ConditionalExpr final : Expr {
  explicit ConditionalExpr(int32_t at) : Expr(ExprKind::conditional, at) {}
  ExprPtr condition;
  ExprPtr yes;
  ExprPtr no;  // may be absent
};

struct CapturedExpr final : Expr {
  explicit CapturedExpr(int32_t at) : Expr(ExprKind::captured, at) {}
};

// What `set`, `for` and `with` assign to: a name, an attribute of a namespace, or a tuple of targets.
struct Target {
  enum class What : uint8_t { name, space_attribute, tuple };
  What what = What::name;
  int32_t line = 0;
  Symbol symbol = 0;
  std::string attribute;
  std::vector<Target> parts;
};

enum class StatementKind : uint8_t {
  literal,
  print,
  conditional,
  loop,
  assign,
  assign_block,
  scope,
  macro,
  call_block,
  filter_block,
  generation,
  leave_loop,
  next_item,
};

struct Statement {
  Statement(StatementKind statement_kind, int32_t statement_line)
      : kind(statement_kind), line(statement_line) {}
  virtual ~Statement() = default;

  const StatementKind kind;
  const int32_t line;
};
using Block = std::vector<std::unique_ptr<Statement>>;

// A block with variables of its own. Names in `unset` hide those outside even before the block assigns them
// (jinja_frames.h).
struct Frame {
  Block body;
  std::vector<Symbol> unset;
};

struct LiteralStatement final : Statement {
  LiteralStatement(int32_t at, std::string literal)
      : Statement(StatementKind::literal, at), text(std::move(literal)) {}
  std::string text;
};

struct PrintStatement final : Statement {
  PrintStatement(int32_t at, ExprPtr expr) : Statement(StatementKind::print, at), value(std::move(expr)) {}
  ExprPtr value;
};

struct IfStatement final : Statement {
  explicit IfStatement(int32_t at) : Statement(StatementKind::conditional, at) {}
  std::vector<std::pair<ExprPtr, Block>> branches;
  Block otherwise;
};

struct ForStatement final : Statement {
  explicit ForStatement(int32_t at) : Statement(StatementKind::loop, at) {}
  Target target;
  ExprPtr iterable;
  ExprPtr condition;  // may be absent
  bool recursive = false;
  Frame body;
  Frame otherwise;
};

struct AssignStatement final : Statement {
  explicit AssignStatement(int32_t at) : Statement(StatementKind::assign, at) {}
  Target target;
  ExprPtr value;
};

struct AssignBlockStatement final : Statement {
  explicit AssignBlockStatement(int32_t at) : Statement(StatementKind::assign_block, at) {}
  Target target;
  ExprPtr filter;  // over a CapturedExpr; may be absent
  Frame body;
};

struct ScopeStatement final : Statement {  // with
  explicit ScopeStatement(int32_t at) : Statement(StatementKind::scope, at) {}
  std::vector<std::pair<Target, ExprPtr>> assignments;
  Frame body;
};

struct MacroStatement final : Statement {  // also the body of a call block, which is a macro named "caller"
  explicit MacroStatement(int32_t at) : Statement(StatementKind::macro, at) {}
  Symbol symbol = 0;
  std::string name;
  std::vector<std::pair<Symbol, std::string>> parameters;
  std::vector<ExprPtr> defaults;  // of the last parameters
  bool is_caller = false;
  bool uses_caller = false;
  bool uses_named = false;   // `kwargs`
  bool uses_spread = false;  // `varargs`
  Frame body;
};

struct CallBlockStatement final : Statement {
  explicit CallBlockStatement(int32_t at) : Statement(StatementKind::call_block, at) {}
  std::unique_ptr<MacroStatement> caller;
  ExprPtr call;  // a CallExpr
};

struct FilterBlockStatement final : Statement {
  explicit FilterBlockStatement(int32_t at) : Statement(StatementKind::filter_block, at) {}
  ExprPtr filter;  // over a CapturedExpr
  Frame body;
};

struct GenerationStatement final : Statement {
  explicit GenerationStatement(int32_t at) : Statement(StatementKind::generation, at) {}
  Frame body;
};

struct LoopControlStatement final : Statement {  // leave_loop (break), next_item (continue)
  using Statement::Statement;
};

struct Program {
  Frame body;
  std::vector<std::string> names;  // by Symbol
  Symbol loop = 0;                 // the names that statements define by themselves
  Symbol caller = 0;
  Symbol named = 0;   // "kwargs"
  Symbol spread = 0;  // "varargs"
};

}  // namespace inferd::jinja
