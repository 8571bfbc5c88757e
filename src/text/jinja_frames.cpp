#include "text/jinja_frames.h"

#include <unordered_set>

namespace inferd::jinja {
namespace {

// The names a frame knows, while it is being looked at and then for the frames inside.
struct Names {
  const Names* outer = nullptr;
  std::unordered_set<Symbol> known;
  std::vector<Symbol> unset;

  bool has(Symbol symbol) const {
    for (const Names* names = this; names != nullptr; names = names->outer) {
      if (names->known.contains(symbol)) return true;
    }
    return false;
  }
  void load(Symbol symbol) {
    if (!has(symbol)) known.insert(symbol);
  }
  void store(Symbol symbol, bool conditional) {
    const bool outside = outer != nullptr && outer->has(symbol);
    if (known.insert(symbol).second && !outside && !conditional) unset.push_back(symbol);
  }
  void declare(Symbol symbol) { known.insert(symbol); }
};

class Resolver {
 public:
  explicit Resolver(Program& program) : program_(program) {}

  void run() {
    Names names;
    resolve(program_.body, names);
  }

 private:
  // First all names of the frame itself, later ones too; then the frames inside.
  void resolve(Frame& frame, Names& names) {
    look_at(frame.body, names, false);
    frame.unset = names.unset;
    resolve_inner(frame.body, names);
  }

  void look_at(const Block& block, Names& names, bool conditional) {
    for (const auto& statement : block) look_at(*statement, names, conditional);
  }

  void look_at(const Statement& statement, Names& names, bool conditional) {
    switch (statement.kind) {
      case StatementKind::print:
        look_at(static_cast<const PrintStatement&>(statement).value, names);
        break;
      case StatementKind::conditional: {
        const auto& branches = static_cast<const IfStatement&>(statement);
        for (const auto& [condition, body] : branches.branches) {
          look_at(condition, names);
          look_at(body, names, true);
        }
        look_at(branches.otherwise, names, true);
        break;
      }
      case StatementKind::loop:
        look_at(static_cast<const ForStatement&>(statement).iterable, names);
        break;
      case StatementKind::assign: {
        const auto& assignment = static_cast<const AssignStatement&>(statement);
        look_at(assignment.value, names);
        store(assignment.target, names, conditional);
        break;
      }
      case StatementKind::assign_block:
        store(static_cast<const AssignBlockStatement&>(statement).target, names, conditional);
        break;
      case StatementKind::scope:
        for (const auto& [target, value] : static_cast<const ScopeStatement&>(statement).assignments)
          look_at(value, names);
        break;
      case StatementKind::macro:
        names.store(static_cast<const MacroStatement&>(statement).symbol, conditional);
        break;
      case StatementKind::call_block:
        look_at(static_cast<const CallBlockStatement&>(statement).call, names);
        break;
      case StatementKind::filter_block:
        look_at(static_cast<const FilterBlockStatement&>(statement).filter, names);
        break;
      case StatementKind::literal:
      case StatementKind::generation:
      case StatementKind::leave_loop:
      case StatementKind::next_item:
        break;
    }
  }

  void store(const Target& target, Names& names, bool conditional) {
    if (target.what == Target::What::name) names.store(target.symbol, conditional);
    if (target.what == Target::What::space_attribute) names.load(target.symbol);
    for (const Target& part : target.parts) store(part, names, conditional);
  }

  void declare(const Target& target, Names& names) {
    if (target.what == Target::What::name) names.declare(target.symbol);
    for (const Target& part : target.parts) declare(part, names);
  }

  void look_at(const CallArguments& arguments, Names& names) {
    for (const ExprPtr& expr : arguments.positional) look_at(expr, names);
    for (const auto& [name, expr] : arguments.named) look_at(expr, names);
    look_at(arguments.spread, names);
    look_at(arguments.spread_named, names);
  }

  void look_at(const ExprPtr& pointer, Names& names) {
    if (!pointer) return;
    const Expr& expr = *pointer;
    switch (expr.kind) {
      case ExprKind::name:
        names.load(static_cast<const NameExpr&>(expr).symbol);
        break;
      case ExprKind::list:
      case ExprKind::tuple:
      case ExprKind::concat:
        for (const ExprPtr& item : static_cast<const SequenceExpr&>(expr).items) look_at(item, names);
        break;
      case ExprKind::dict:
        for (const auto& [key, value] : static_cast<const DictExpr&>(expr).entries) {
          look_at(key, names);
          look_at(value, names);
        }
        break;
      case ExprKind::negate:
      case ExprKind::plus:
      case ExprKind::logical_not:
        look_at(static_cast<const UnaryExpr&>(expr).operand, names);
        break;
      case ExprKind::logical_and:
      case ExprKind::logical_or:
      case ExprKind::arithmetic:
        look_at(static_cast<const BinaryExpr&>(expr).left, names);
        look_at(static_cast<const BinaryExpr&>(expr).right, names);
        break;
      case ExprKind::compare:
        look_at(static_cast<const CompareExpr&>(expr).first, names);
        for (const auto& [op, operand] : static_cast<const CompareExpr&>(expr).rest) look_at(operand, names);
        break;
      case ExprKind::attribute:
        look_at(static_cast<const AttributeExpr&>(expr).object, names);
        break;
      case ExprKind::item:
        look_at(static_cast<const ItemExpr&>(expr).object, names);
        look_at(static_cast<const ItemExpr&>(expr).key, names);
        break;
      case ExprKind::slice: {
        const auto& slice = static_cast<const SliceExpr&>(expr);
        for (const ExprPtr* part : {&slice.object, &slice.start, &slice.stop, &slice.step})
          look_at(*part, names);
        break;
      }
      case ExprKind::call:
        look_at(static_cast<const CallExpr&>(expr).callee, names);
        look_at(static_cast<const CallExpr&>(expr).arguments, names);
        break;
      case ExprKind::filter:
        look_at(static_cast<const FilterExpr&>(expr).input, names);
        look_at(static_cast<const FilterExpr&>(expr).arguments, names);
        break;
      case ExprKind::test:
        look_at(static_cast<const TestExpr&>(expr).input, names);
        look_at(static_cast<const TestExpr&>(expr).arguments, names);
        break;
      case ExprKind::conditional: {
        const auto& conditional = static_cast<const ConditionalExpr&>(expr);
        for (const ExprPtr* part : {&conditional.condition, &conditional.yes, &conditional.no})
          look_at(*part, names);
        break;
      }
      case ExprKind::constant:
      case ExprKind::captured:
        break;
    }
  }

  void resolve_inner(Block& block, const Names& outer) {
    for (auto& statement : block) resolve_inner(*statement, outer);
  }

  void resolve_inner(Statement& statement, const Names& outer) {
    Names names{.outer = &outer};
    switch (statement.kind) {
      case StatementKind::conditional: {
        auto& branches = static_cast<IfStatement&>(statement);
        for (auto& [condition, body] : branches.branches) resolve_inner(body, outer);
        resolve_inner(branches.otherwise, outer);
        break;
      }
      case StatementKind::loop: {
        auto& loop = static_cast<ForStatement&>(statement);
        Names otherwise{.outer = &outer};
        names.declare(program_.loop);
        declare(loop.target, names);
        resolve(loop.body, names);
        resolve(loop.otherwise, otherwise);
        break;
      }
      case StatementKind::assign_block:
        resolve(static_cast<AssignBlockStatement&>(statement).body, names);
        break;
      case StatementKind::scope: {
        auto& scope = static_cast<ScopeStatement&>(statement);
        for (const auto& [target, value] : scope.assignments) declare(target, names);
        resolve(scope.body, names);
        break;
      }
      case StatementKind::macro:
        resolve_macro(static_cast<MacroStatement&>(statement), names);
        break;
      case StatementKind::call_block:
        resolve_macro(*static_cast<CallBlockStatement&>(statement).caller, names);
        break;
      case StatementKind::filter_block:
        resolve(static_cast<FilterBlockStatement&>(statement).body, names);
        break;
      case StatementKind::generation:
        resolve(static_cast<GenerationStatement&>(statement).body, names);
        break;
      default:
        break;
    }
  }

  void resolve_macro(MacroStatement& macro, Names& names) {
    for (const auto& [symbol, name] : macro.parameters) names.declare(symbol);
    if (macro.uses_caller) names.declare(program_.caller);
    if (macro.uses_named) names.declare(program_.named);
    if (macro.uses_spread) names.declare(program_.spread);
    for (const ExprPtr& value : macro.defaults) look_at(value, names);
    resolve(macro.body, names);
  }

  Program& program_;
};

}  // namespace

void resolve_frames(Program& program) {
  Resolver(program).run();
}

}  // namespace inferd::jinja
