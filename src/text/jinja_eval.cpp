// Statements, macros and loops (jinja_evaluator.h), and render().
#include "text/jinja_eval.h"

#include <algorithm>

#include "text/jinja_builtins.h"
#include "text/jinja_evaluator.h"
#include "text/jinja_methods.h"
#include "text/jinja_operators.h"
#include "text/jinja_print.h"

namespace inferd::jinja {

Result<std::vector<TextSpan>> Evaluator::run() {
  TextBuilder out;
  out_ = &out;
  scope_ = enter(nullptr);
  INFERD_TRY_STATUS(hide(program_.body, scope_));
  INFERD_TRY_STATUS(run_block(program_.body.body));
  return std::move(out).finish_spans();
}

Scope* Evaluator::enter(Scope* parent) {
  runtime_.spend(4);
  if (free_scopes_.empty()) {
    scopes_.push_back(std::make_unique<Scope>());
    free_scopes_.push_back(scopes_.back().get());
  }
  Scope* scope = free_scopes_.back();
  free_scopes_.pop_back();
  scope->parent = parent;
  return scope;
}

Status Evaluator::hide(const Frame& frame, Scope* scope) {
  if (!runtime_.spend(static_cast<int64_t>(frame.unset.size() / 4))) return runtime_.exhausted();
  for (const Symbol symbol : frame.unset) {
    const std::string& name = program_.names[static_cast<size_t>(symbol)];
    scope->add(symbol, Value::undefined(Missing::variable, Text::borrowed(name, Origin::markup)));
  }
  return {};
}

void Evaluator::leave(Scope* scope) {
  if (scope->captured) return;
  scope->clear();
  free_scopes_.push_back(scope);
}

// ---- statements

Result<Evaluator::Flow> Evaluator::run_block(const Block& block) {
  const Runtime::Nest nest(runtime_);
  if (!nest.ok()) return nest.error();
  for (const auto& statement : block) {
    if (!runtime_.spend(1)) return runtime_.exhausted();
    Result<Flow> flow = run_statement(*statement);
    if (!flow.ok()) {
      Error error = std::move(flow).error();
      if (error.where.empty()) error.where = cat("chat template line ", statement->line);
      return error;
    }
    if (*flow != Flow::normal) return flow;
  }
  return Flow::normal;
}

Result<Evaluator::Flow> Evaluator::run_statement(const Statement& statement) {
  switch (statement.kind) {
    case StatementKind::literal:
      INFERD_TRY_STATUS(
          print_text(Text::borrowed(static_cast<const LiteralStatement&>(statement).text, Origin::markup)));
      return Flow::normal;
    case StatementKind::print: {
      INFERD_TRY(const Value value, eval(*static_cast<const PrintStatement&>(statement).value));
      INFERD_TRY_STATUS(print(value));
      return Flow::normal;
    }
    case StatementKind::conditional:
      return run_if(static_cast<const IfStatement&>(statement));
    case StatementKind::loop: {
      const auto& loop = static_cast<const ForStatement&>(statement);
      INFERD_TRY(Value iterable, eval(*loop.iterable));
      return run_loop(loop, std::move(iterable), 0, scope_);
    }
    case StatementKind::assign: {
      const auto& assignment = static_cast<const AssignStatement&>(statement);
      INFERD_TRY_STATUS(check_spaces(assignment.target));
      INFERD_TRY(Value value, eval(*assignment.value));
      INFERD_TRY_STATUS(assign(assignment.target, std::move(value)));
      return Flow::normal;
    }
    case StatementKind::assign_block:
      return run_assign_block(static_cast<const AssignBlockStatement&>(statement));
    case StatementKind::scope:
      return run_scope(static_cast<const ScopeStatement&>(statement));
    case StatementKind::macro: {
      const auto& macro = static_cast<const MacroStatement&>(statement);
      scope_->set(macro.symbol, make_macro(macro));
      return Flow::normal;
    }
    case StatementKind::call_block: {
      const auto& call = static_cast<const CallBlockStatement&>(statement);
      const Value caller = make_macro(*call.caller);
      INFERD_TRY(const Value value, eval_call(static_cast<const CallExpr&>(*call.call), &caller));
      INFERD_TRY_STATUS(print_block(value));
      return Flow::normal;
    }
    case StatementKind::filter_block:
      return run_filter_block(static_cast<const FilterBlockStatement&>(statement));
    case StatementKind::generation:
      return run_in_scope(static_cast<const GenerationStatement&>(statement).body);
    case StatementKind::leave_loop:
      return Flow::leave_loop;
    case StatementKind::next_item:
      return Flow::next_item;
  }
  return Flow::normal;
}

Result<Evaluator::Flow> Evaluator::run_if(const IfStatement& statement) {
  for (const auto& [condition, body] : statement.branches) {
    INFERD_TRY(const Value value, eval(*condition));
    if (is_true(value)) return run_block(body);
  }
  return run_block(statement.otherwise);
}

Result<Evaluator::Flow> Evaluator::run_in_scope(const Frame& frame) {
  Scope* const outer = scope_;
  Scope* const inner = scope_ = enter(outer);
  INFERD_TRY_STATUS(hide(frame, inner));
  INFERD_TRY(const Flow flow, run_block(frame.body));
  scope_ = outer;
  leave(inner);
  return flow;
}

Result<Value> Evaluator::capture(const Block& block, Flow& flow) {
  TextBuilder captured;
  TextBuilder* const out = std::exchange(out_, &captured);
  INFERD_TRY(flow, run_block(block));
  out_ = out;
  INFERD_TRY(Text text, runtime_.finish(std::move(captured)));
  return Value(std::move(text));
}

Result<Evaluator::Flow> Evaluator::run_scope(const ScopeStatement& statement) {
  Scope* const outer = scope_;
  Scope* const inner = enter(outer);
  INFERD_TRY_STATUS(hide(statement.body, inner));
  for (const auto& [target, expr] : statement.assignments) {
    INFERD_TRY(Value value, eval(*expr));
    scope_ = inner;
    INFERD_TRY_STATUS(assign(target, std::move(value)));
    scope_ = outer;
  }
  scope_ = inner;
  INFERD_TRY(const Flow flow, run_block(statement.body.body));
  scope_ = outer;
  inner->clear();  // also what a macro defined in here had seen: jinja2 unsets the variables of a block that
                   // ends
  leave(inner);
  return flow;
}

Result<Evaluator::Flow> Evaluator::run_assign_block(const AssignBlockStatement& statement) {
  INFERD_TRY_STATUS(check_spaces(statement.target));
  Scope* const outer = scope_;
  Scope* const inner = scope_ = enter(outer);
  Flow flow = Flow::normal;
  INFERD_TRY_STATUS(hide(statement.body, inner));
  INFERD_TRY(Value value, capture(statement.body.body, flow));
  if (flow == Flow::normal && statement.filter) {
    captured_.push_back(value.text());
    INFERD_TRY(value, eval(*statement.filter));
    captured_.pop_back();
  }
  scope_ = outer;
  inner->clear();
  leave(inner);
  if (flow == Flow::normal) INFERD_TRY_STATUS(assign(statement.target, std::move(value)));
  return flow;
}

Result<Evaluator::Flow> Evaluator::run_filter_block(const FilterBlockStatement& statement) {
  Scope* const outer = scope_;
  Scope* const inner = scope_ = enter(outer);
  Flow flow = Flow::normal;
  INFERD_TRY_STATUS(hide(statement.body, inner));
  INFERD_TRY(Value value, capture(statement.body.body, flow));
  if (flow == Flow::normal) {
    captured_.push_back(value.text());
    INFERD_TRY(value, eval(*statement.filter));
    captured_.pop_back();
  }
  scope_ = outer;
  inner->clear();
  leave(inner);
  if (flow == Flow::normal) INFERD_TRY_STATUS(print_block(value));
  return flow;
}

// A namespace must be there before the value is computed.
Status Evaluator::check_spaces(const Target& target) {
  if (target.what == Target::What::space_attribute) {
    INFERD_TRY(const Value space, lookup(target.symbol));
    if (!space.is(Kind::space)) {
      return run_error(
          cat("cannot assign to an attribute of ", kind_name(space.kind()), ", only of a namespace"));
    }
  }
  for (const Target& part : target.parts) INFERD_TRY_STATUS(check_spaces(part));
  return {};
}

Status Evaluator::assign(const Target& target, Value value) {
  switch (target.what) {
    case Target::What::name:
      if (!runtime_.spend(static_cast<int64_t>(scope_->symbols.size() / 64))) return runtime_.exhausted();
      scope_->set(target.symbol, std::move(value));
      return {};
    case Target::What::space_attribute: {
      INFERD_TRY(const Value space, lookup(target.symbol));
      if (!space.is(Kind::space)) return run_error("cannot assign to an attribute of what is no namespace");
      auto& object = space.as<NamespaceObject>();
      if (!runtime_.spend(static_cast<int64_t>(object.members.size() / 16))) return runtime_.exhausted();
      if (Value* slot = object.find(target.attribute)) {
        *slot = std::move(value);
      } else {
        object.members.emplace_back(Text::borrowed(target.attribute, Origin::markup), std::move(value));
      }
      return {};
    }
    case Target::What::tuple:
      break;
  }
  INFERD_TRY(Cursor cursor, Cursor::over(value));
  Value item;
  for (const Target& part : target.parts) {
    INFERD_TRY(const bool more, cursor.next(runtime_, item));
    if (!more) return run_error(cat("too few values to unpack, ", target.parts.size(), " expected"));
    INFERD_TRY_STATUS(assign(part, item));
  }
  INFERD_TRY(const bool more, cursor.next(runtime_, item));
  if (more) return run_error(cat("too many values to unpack, ", target.parts.size(), " expected"));
  return {};
}

Status Evaluator::print(const Value& value) {
  if (value.is(Kind::text)) return print_text(value.text());
  INFERD_TRY(const Text text, to_text(runtime_, value));
  return print_text(text);
}

// What a filter or call block gave, which jinja2 does not convert.
Status Evaluator::print_block(const Value& value) {
  if (!value.is(Kind::text))
    return run_error(cat("the block gave ", kind_name(value.kind()), ", not a string"));
  return print_text(value.text());
}

Status Evaluator::print_text(const Text& text) {
  INFERD_TRY_STATUS(runtime_.fits_text(out_->size() + text.size()));
  if (!runtime_.spend_bytes(text.size()) || !runtime_.spend(static_cast<int64_t>(text.run_count()))) {
    return runtime_.exhausted();
  }
  out_->append(text);
  return {};
}

// ---- calls

Result<Value> Evaluator::call_value(const Value& callee, const Arguments& arguments) {
  switch (callee.kind()) {
    case Kind::undefined:
      return undefined_error(callee);
    case Kind::builtin:
      return callee.as<BuiltinObject>().builtin->call(runtime_, arguments);
    case Kind::method: {
      const auto& method = callee.as<MethodObject>();
      return call_method(runtime_, *method.method, method.self, arguments);
    }
    case Kind::macro:
      return call_macro(callee.as<MacroObject>(), arguments);
    case Kind::joiner:
      INFERD_TRY_STATUS(expect_no_arguments("a joiner", arguments));
      return call_joiner(callee.as<JoinerObject>());
    case Kind::loop: {
      const auto& loop = callee.as<LoopObject>();
      INFERD_TRY(const Bound bound, Bound::bind(arguments, {"loop()", 1, {"iterable"}}));
      if (!loop.statement->recursive) return run_error("loop() needs a loop marked as recursive");
      if (!loop.active) return run_error("loop() of a loop that has ended");
      TextBuilder captured;
      TextBuilder* const out = std::exchange(out_, &captured);
      Scope* const scope = scope_;
      INFERD_TRY(const Flow flow, run_loop(*loop.statement, bound[0], loop.depth0 + 1, loop.outer));
      INFERD_CHECK(flow == Flow::normal, "the parser lets no break out of a recursive loop");
      scope_ = scope;
      out_ = out;
      INFERD_TRY(Text text, runtime_.finish(std::move(captured)));
      return Value(std::move(text));
    }
    default:
      return run_error(cat(kind_name(callee.kind()), " cannot be called"));
  }
}

Value Evaluator::make_macro(const MacroStatement& macro) {
  auto& object = runtime_.make<MacroObject>();
  object.macro = &macro;
  object.closure = scope_;
  for (Scope* scope = scope_; scope != nullptr && !scope->captured; scope = scope->parent)
    scope->captured = true;
  return {Kind::macro, &object};
}

Result<Value> Evaluator::call_macro(MacroObject& object, const Arguments& arguments) {
  Scope* const outer = scope_;
  Scope* const inner = enter(object.closure);
  TextBuilder printed;
  TextBuilder* const out = std::exchange(out_, &printed);
  scope_ = inner;
  INFERD_TRY_STATUS(hide(object.macro->body, inner));
  INFERD_TRY_STATUS(bind_macro(object, arguments));
  INFERD_TRY_STATUS(run_block(object.macro->body.body));
  scope_ = outer;
  out_ = out;
  leave(inner);
  INFERD_TRY(Text text, runtime_.finish(std::move(printed)));
  return Value(std::move(text));
}

// Parameters into the current scope, by the rules of jinja2's macros: `caller`, `kwargs` and `varargs` exist
// only where the body uses them, and defaults see the parameters before them.
Status Evaluator::bind_macro(MacroObject& object, const Arguments& arguments) {
  const MacroStatement& macro = *object.macro;
  const size_t count = macro.parameters.size();
  const size_t placed = std::min(count, arguments.positional.size());
  std::vector<std::pair<std::string_view, Value>> named = arguments.named;
  const auto take = [&named](std::string_view name) -> std::optional<Value> {
    const auto found =
        std::find_if(named.begin(), named.end(), [&](const auto& entry) { return entry.first == name; });
    if (found == named.end()) return std::nullopt;
    Value value = std::move(found->second);
    named.erase(found);
    return value;
  };
  bool declares_caller = false;
  std::vector<size_t> absent;
  for (size_t i = 0; i < count; ++i) {
    const auto& [symbol, name] = macro.parameters[i];
    declares_caller = declares_caller || name == "caller";
    if (i < placed) {
      scope_->set(symbol, arguments.positional[i]);
    } else if (auto value = take(name)) {
      scope_->set(symbol, *std::move(value));
    } else {
      scope_->set(symbol, Value::undefined(Missing::parameter, Text::borrowed(name, Origin::markup)));
      absent.push_back(i);
    }
  }
  if (macro.uses_caller && !declares_caller) {
    auto caller = take("caller");
    scope_->set(program_.caller, caller ? *std::move(caller) : Value::undefined(Missing::caller));
  }
  if (macro.uses_named) {
    auto& dict = runtime_.make<DictObject>();
    for (auto& [name, value] : named)
      dict.entries.emplace_back(Text::borrowed(name, Origin::markup), std::move(value));
    scope_->set(program_.named, {Kind::dict, &dict});
  } else if (!named.empty()) {
    return run_error(
        cat("the macro ", printable(macro.name), " has no parameter ", printable(named.front().first)));
  }
  if (macro.uses_spread) {
    const auto rest = arguments.positional.begin() + static_cast<std::ptrdiff_t>(placed);
    scope_->set(program_.spread, runtime_.tuple(std::vector<Value>(rest, arguments.positional.end())));
  } else if (arguments.positional.size() > count) {
    return run_error(cat("the macro ", printable(macro.name), " takes at most ", count, " arguments, got ",
                         arguments.positional.size()));
  }
  for (const size_t i : absent) {
    const size_t first_default = count - macro.defaults.size();
    if (i < first_default) continue;
    INFERD_TRY(Value value, eval(*macro.defaults[i - first_default]));
    scope_->set(macro.parameters[i].first, std::move(value));
  }
  return {};
}

// ---- loops

// The next item that the loop's condition lets through.
Result<bool> Evaluator::advance(LoopObject& loop, Value& item) {
  if (!loop.active) return run_error("looking ahead in a loop that has ended");
  const ForStatement& statement = *loop.statement;
  for (;;) {
    INFERD_TRY(const bool more, loop.cursor.next(runtime_, item));
    if (!more || !statement.condition) return more;
    Scope* const current = scope_;
    Scope* const inner = scope_ = enter(loop.outer);
    INFERD_TRY_STATUS(assign(statement.target, item));
    INFERD_TRY(const Value holds, eval(*statement.condition));
    scope_ = current;
    leave(inner);
    if (is_true(holds)) return true;
  }
}

Result<Evaluator::Flow> Evaluator::run_loop(const ForStatement& statement, Value iterable, int64_t depth0,
                                            Scope* outer) {
  auto& loop = runtime_.make<LoopObject>();
  loop.statement = &statement;
  loop.outer = outer;
  loop.depth0 = depth0;
  INFERD_TRY(loop.cursor, Cursor::over(iterable));
  loop.iterable = std::move(iterable);
  Scope* const current = scope_;
  Scope* const inner = enter(outer);
  bool completed = false;  // jinja2 runs the else part unless some iteration came to the end of the body
  for (Value item;;) {
    if (!loop.ahead.empty()) {
      item = std::move(loop.ahead.front());
      loop.ahead.pop_front();
    } else {
      INFERD_TRY(const bool more, advance(loop, item));
      if (!more) break;
    }
    ++loop.index0;
    loop.before = std::move(loop.current);
    loop.current = item;
    inner->clear();
    scope_ = inner;
    INFERD_TRY_STATUS(hide(statement.body, inner));
    inner->add(program_.loop, {Kind::loop, &loop});
    INFERD_TRY_STATUS(assign(statement.target, std::move(item)));
    INFERD_TRY(const Flow flow, run_block(statement.body.body));
    scope_ = current;
    if (flow == Flow::leave_loop) break;
    completed = completed || flow == Flow::normal;
  }
  loop.active = false;
  inner->clear();
  leave(inner);
  if (completed || statement.otherwise.body.empty()) return Flow::normal;
  scope_ = outer;
  INFERD_TRY(const Flow flow, run_in_scope(statement.otherwise));
  scope_ = current;
  return flow;
}

Result<int64_t> Evaluator::loop_length(LoopObject& loop) {
  if (!loop.length) {
    if (!loop.statement->condition && !loop.iterable.is(Kind::iterator)) {
      INFERD_TRY(loop.length, length_of(runtime_, loop.iterable));
    } else {
      for (Value item;;) {
        INFERD_TRY(const bool more, advance(loop, item));
        if (!more) break;
        loop.ahead.push_back(std::move(item));
      }
      loop.length = loop.index0 + 1 + static_cast<int64_t>(loop.ahead.size());
    }
  }
  return *loop.length;
}

Result<std::optional<Value>> Evaluator::loop_attribute(const Value& value, std::string_view name) {
  auto& loop = value.as<LoopObject>();
  const auto found = [](Value attribute) { return std::optional<Value>(std::move(attribute)); };
  if (name == "index") return found(Value::integer(loop.index0 + 1));
  if (name == "index0") return found(Value::integer(loop.index0));
  if (name == "first") return found(Value::boolean(loop.index0 == 0));
  if (name == "depth") return found(Value::integer(loop.depth0 + 1));
  if (name == "depth0") return found(Value::integer(loop.depth0));
  if (name == "last" || name == "nextitem") {
    if (loop.ahead.empty()) {
      Value item;
      INFERD_TRY(const bool more, advance(loop, item));
      if (more) loop.ahead.push_back(std::move(item));
    }
    if (name == "last") return found(Value::boolean(loop.ahead.empty()));
    return found(loop.ahead.empty() ? Value::undefined(Missing::neighbour) : loop.ahead.front());
  }
  if (name == "previtem") return found(loop.index0 == 0 ? Value::undefined(Missing::neighbour) : loop.before);
  if (name == "length" || name == "revindex" || name == "revindex0") {
    INFERD_TRY(const int64_t length, loop_length(loop));
    if (name == "length") return found(Value::integer(length));
    return found(Value::integer(length - loop.index0 - (name == "revindex0" ? 1 : 0)));
  }
  return std::optional<Value>();
}

// ---- render

namespace {

struct Size {
  int64_t values = 0;
  size_t bytes = 0;
};

void add_size(const Json& json, int depth, Size& size) {
  ++size.values;
  if (depth > kMaxDepth) return;  // from_json refuses it
  if (json.is_string()) size.bytes += json.as_string().size();
  if (json.is_array()) {
    for (const Json& item : json.as_array()) add_size(item, depth + 1, size);
  }
  if (json.is_object()) {
    for (const auto& [key, item] : json.as_object()) {
      size.bytes += key.size();
      add_size(item, depth + 1, size);
    }
  }
}

}  // namespace

Result<std::vector<TextSpan>> render(const Program& program, std::span<const Variable> variables,
                                     const RenderOptions& options) {
  Size size;
  for (const Variable& variable : variables) {
    if (variable.value != nullptr) add_size(*variable.value, 0, size);
  }
  const Budget& budget = options.budget;
  const int64_t shares =
      budget.steps_per_byte * static_cast<int64_t>(size.bytes) + budget.steps_per_value * size.values;
  const Limits limits{.steps = std::min(budget.base_steps + shares, budget.max_steps),
                      .text_bytes = budget.text_bytes + size.bytes};
  Runtime runtime(limits, options.now);
  std::vector<Value> globals(program.names.size());
  for (size_t i = 0; i < globals.size(); ++i) {
    const std::string_view name = program.names[i];
    if (const Builtin* builtin = find_builtin(name)) {
      auto& object = runtime.make<BuiltinObject>();
      object.builtin = builtin;
      globals[i] = {Kind::builtin, &object};
    }
    for (const Variable& variable : variables) {
      if (variable.name != name) continue;
      if (variable.value == nullptr) {
        globals[i] = Value::none(true);
      } else {
        INFERD_TRY(globals[i],
                   from_json(runtime, *variable.value, variable.markup ? Origin::markup : Origin::data));
      }
    }
  }
  Evaluator evaluator(program, runtime, std::move(globals));
  Result<std::vector<TextSpan>> spans = evaluator.run();
  if (options.steps_used != nullptr) *options.steps_used = runtime.steps_used();
  return spans;
}

}  // namespace inferd::jinja
