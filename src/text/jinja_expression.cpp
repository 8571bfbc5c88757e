// Evaluation of expressions (jinja_evaluator.h).
#include "text/jinja_builtins.h"
#include "text/jinja_evaluator.h"
#include "text/jinja_filters.h"
#include "text/jinja_methods.h"
#include "text/jinja_operators.h"
#include "text/jinja_print.h"

namespace inferd::jinja {

Result<Value> Evaluator::eval(const Expr& expr) {
  const Runtime::Nest nest(runtime_);
  if (!nest.ok()) return nest.error();
  if (!runtime_.spend(1)) return runtime_.exhausted();
  Result<Value> value = eval_kind(expr);
  if (!value.ok() && value.error().where.empty()) {
    Error error = std::move(value).error();
    error.where = cat("chat template line ", expr.line);
    return error;
  }
  return value;
}

Result<Value> Evaluator::eval_kind(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::constant:
      return static_cast<const ConstantExpr&>(expr).value;
    case ExprKind::name:
      return lookup(static_cast<const NameExpr&>(expr).symbol);
    case ExprKind::list:
    case ExprKind::tuple:
      return eval_sequence(static_cast<const SequenceExpr&>(expr));
    case ExprKind::concat:
      return eval_concat(static_cast<const SequenceExpr&>(expr));
    case ExprKind::dict:
      return eval_dict(static_cast<const DictExpr&>(expr));
    case ExprKind::negate:
    case ExprKind::plus:
    case ExprKind::logical_not:
      return eval_unary(static_cast<const UnaryExpr&>(expr));
    case ExprKind::logical_and:
    case ExprKind::logical_or:
      return eval_logical(static_cast<const BinaryExpr&>(expr));
    case ExprKind::arithmetic:
      return eval_arithmetic(static_cast<const BinaryExpr&>(expr));
    case ExprKind::compare:
      return eval_compare(static_cast<const CompareExpr&>(expr));
    case ExprKind::attribute:
      return eval_attribute(static_cast<const AttributeExpr&>(expr));
    case ExprKind::item:
      return eval_item(static_cast<const ItemExpr&>(expr));
    case ExprKind::slice:
      return eval_slice(static_cast<const SliceExpr&>(expr));
    case ExprKind::call:
      return eval_call(static_cast<const CallExpr&>(expr), nullptr);
    case ExprKind::filter:
      return eval_filter(static_cast<const FilterExpr&>(expr));
    case ExprKind::test:
      return eval_test(static_cast<const TestExpr&>(expr));
    case ExprKind::conditional:
      return eval_conditional(static_cast<const ConditionalExpr&>(expr));
    case ExprKind::captured:
      return Value(captured_.back());
  }
  return Value();
}

Result<Value> Evaluator::lookup(Symbol symbol) {
  size_t seen = 0;
  const Value* found = nullptr;
  for (Scope* scope = scope_; scope != nullptr && found == nullptr; scope = scope->parent) {
    found = scope->find(symbol);
    seen += 4 + scope->symbols.size();
  }
  if (!runtime_.spend(static_cast<int64_t>(seen / 64))) return runtime_.exhausted();
  if (found != nullptr) return *found;
  const auto index = static_cast<size_t>(symbol);
  if (!globals_[index].is(Kind::undefined)) return globals_[index];
  return Value::undefined(Missing::variable, Text::borrowed(program_.names[index], Origin::markup));
}

Result<Value> Evaluator::eval_sequence(const SequenceExpr& expr) {
  INFERD_TRY_STATUS(runtime_.admit_items(expr.items.size()));
  std::vector<Value> items;
  items.reserve(expr.items.size());
  for (const ExprPtr& part : expr.items) {
    INFERD_TRY(Value item, eval(*part));
    items.push_back(std::move(item));
  }
  return expr.kind == ExprKind::list ? runtime_.list(std::move(items)) : runtime_.tuple(std::move(items));
}

Result<Value> Evaluator::eval_concat(const SequenceExpr& expr) {
  TextBuilder builder;
  for (const ExprPtr& part : expr.items) {
    INFERD_TRY(const Value value, eval(*part));
    INFERD_TRY(const Text text, to_text(runtime_, value));
    INFERD_TRY_STATUS(runtime_.fits_text(builder.size() + text.size()));
    builder.append(text);
  }
  INFERD_TRY(Text text, runtime_.finish(std::move(builder)));
  return Value(std::move(text));
}

Result<Value> Evaluator::eval_dict(const DictExpr& expr) {
  auto& dict = runtime_.make<DictObject>();
  for (const auto& [key_expr, value_expr] : expr.entries) {
    INFERD_TRY(Value key, eval(*key_expr));
    INFERD_TRY(Value value, eval(*value_expr));
    INFERD_TRY_STATUS(put_entry(runtime_, dict, std::move(key), std::move(value)));
  }
  return Value(Kind::dict, &dict);
}

Result<Value> Evaluator::eval_unary(const UnaryExpr& expr) {
  INFERD_TRY(const Value operand, eval(*expr.operand));
  if (expr.kind == ExprKind::negate) return negate(operand);
  if (expr.kind == ExprKind::plus) return unary_plus(operand);
  return Value::boolean(!is_true(operand));
}

Result<Value> Evaluator::eval_logical(const BinaryExpr& expr) {
  INFERD_TRY(Value left, eval(*expr.left));
  if (is_true(left) == (expr.kind == ExprKind::logical_or)) return left;
  return eval(*expr.right);
}

Result<Value> Evaluator::eval_arithmetic(const BinaryExpr& expr) {
  INFERD_TRY(const Value left, eval(*expr.left));
  INFERD_TRY(const Value right, eval(*expr.right));
  return arithmetic(runtime_, expr.op, left, right);
}

Result<Value> Evaluator::eval_compare(const CompareExpr& expr) {
  INFERD_TRY(Value left, eval(*expr.first));
  for (const auto& [op, operand] : expr.rest) {
    INFERD_TRY(Value right, eval(*operand));
    INFERD_TRY(const bool holds, compare(runtime_, op, left, right));
    if (!holds) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Result<Value> Evaluator::attribute_of(const Value& value, const Text& name) {
  if (value.is(Kind::loop)) {
    INFERD_TRY(auto found, loop_attribute(value, name.view()));
    if (found) return *std::move(found);
  }
  return get_attribute(runtime_, value, name);
}

Result<Value> Evaluator::item_of(const Value& value, const Value& key) {
  if (value.is(Kind::loop) && key.is(Kind::text)) return attribute_of(value, key.text());
  return get_item(runtime_, value, key);
}

Result<Value> Evaluator::eval_attribute(const AttributeExpr& expr) {
  INFERD_TRY(const Value object, eval(*expr.object));
  return attribute_of(object, Text::borrowed(expr.name, Origin::markup));
}

Result<Value> Evaluator::eval_item(const ItemExpr& expr) {
  INFERD_TRY(const Value object, eval(*expr.object));
  INFERD_TRY(const Value key, eval(*expr.key));
  return item_of(object, key);
}

Result<Value> Evaluator::eval_slice(const SliceExpr& expr) {
  INFERD_TRY(const Value object, eval(*expr.object));
  Value bounds[3] = {Value::none(), Value::none(), Value::none()};
  const ExprPtr* const parts[3] = {&expr.start, &expr.stop, &expr.step};
  for (size_t i = 0; i < 3; ++i) {
    if (!*parts[i]) continue;
    INFERD_TRY(bounds[i], eval(**parts[i]));
  }
  return get_slice(runtime_, object, bounds[0], bounds[1], bounds[2]);
}

Result<Arguments> Evaluator::eval_arguments(const CallArguments& source) {
  Arguments arguments;
  arguments.positional.reserve(source.positional.size());
  for (const ExprPtr& expr : source.positional) {
    INFERD_TRY(Value value, eval(*expr));
    arguments.positional.push_back(std::move(value));
  }
  if (source.spread) {
    INFERD_TRY(const Value spread, eval(*source.spread));
    INFERD_TRY(std::vector<Value> items, items_of(runtime_, spread));
    for (Value& item : items) arguments.positional.push_back(std::move(item));
  }
  for (const auto& [name, expr] : source.named) {
    INFERD_TRY(Value value, eval(*expr));
    arguments.named.emplace_back(name, std::move(value));
  }
  if (source.spread_named) {
    INFERD_TRY(const Value spread, eval(*source.spread_named));
    if (!spread.is(Kind::dict)) return wrong_kind("**", "a dict", spread);
    INFERD_TRY_STATUS(runtime_.admit_items(spread.as<DictObject>().entries.size()));
    for (const auto& [key, value] : spread.as<DictObject>().entries) {
      if (!key.is(Kind::text)) return run_error("** needs a dict with text keys");
      for (const auto& [other, given] : source.named) {
        if (other == key.text().view())
          return run_error(cat("the argument ", printable(other), " is given twice"));
      }
      arguments.named.emplace_back(key.text().view(), value);
    }
  }
  return arguments;
}

Result<Value> Evaluator::eval_call(const CallExpr& expr, const Value* caller) {
  Value callee;
  Value self;
  const Method* method = nullptr;  // called right away, without making a bound method first
  if (expr.callee->kind == ExprKind::attribute) {
    const auto& attribute = static_cast<const AttributeExpr&>(*expr.callee);
    INFERD_TRY(self, eval(*attribute.object));
    method = find_method(self.kind(), attribute.name);
    if (method == nullptr) {
      INFERD_TRY(callee, attribute_of(self, Text::borrowed(attribute.name, Origin::markup)));
    }
  } else {
    INFERD_TRY(callee, eval(*expr.callee));
  }
  INFERD_TRY(Arguments arguments, eval_arguments(expr.arguments));
  if (caller != nullptr) arguments.named.emplace_back("caller", *caller);
  if (method != nullptr) return call_method(runtime_, *method, self, arguments);
  return call_value(callee, arguments);
}

Result<Value> Evaluator::eval_filter(const FilterExpr& expr) {
  INFERD_TRY(const Value input, eval(*expr.input));
  INFERD_TRY(const Arguments arguments, eval_arguments(expr.arguments));
  if (expr.filter == nullptr) return run_error(cat("no filter named ", printable(expr.name)));
  return expr.filter->apply(runtime_, input, arguments);
}

Result<Value> Evaluator::eval_test(const TestExpr& expr) {
  INFERD_TRY(const Value input, eval(*expr.input));
  INFERD_TRY(const Arguments arguments, eval_arguments(expr.arguments));
  if (expr.test == nullptr) return run_error(cat("no test named ", printable(expr.name)));
  INFERD_TRY(const bool holds, expr.test->holds(runtime_, input, arguments));
  return Value::boolean(holds);
}

Result<Value> Evaluator::eval_conditional(const ConditionalExpr& expr) {
  INFERD_TRY(const Value condition, eval(*expr.condition));
  if (is_true(condition)) return eval(*expr.yes);
  if (expr.no) return eval(*expr.no);
  return Value::undefined(Missing::inline_if);
}

}  // namespace inferd::jinja
