// The object behind `loop`: where a for statement stands.
#pragma once

#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "text/jinja_ast.h"
#include "text/jinja_runtime.h"

namespace inferd::jinja {

// Variables of one frame: the template, a loop, a macro call, a block.
struct Scope {
  Scope* parent = nullptr;
  bool captured = false;  // a macro was defined in here, so it lives until the render ends
  std::vector<Symbol> symbols;
  std::vector<Value> values;

  Value* find(Symbol symbol) {
    for (size_t i = 0; i < symbols.size(); ++i) {
      if (symbols[i] == symbol) return &values[i];
    }
    return nullptr;
  }
  void set(Symbol symbol, Value value) {
    if (Value* slot = find(symbol)) {
      *slot = std::move(value);
      return;
    }
    add(symbol, std::move(value));
  }
  void add(Symbol symbol, Value value) {  // one that is not there yet
    symbols.push_back(symbol);
    values.push_back(std::move(value));
  }
  void clear() {
    symbols.clear();
    values.clear();
  }
};

struct LoopObject final : Object {
  const ForStatement* statement = nullptr;
  Scope* outer = nullptr;  // where the statement stands; good while the loop is active
  bool active = true;
  Value iterable;
  Cursor cursor;
  std::deque<Value> ahead;  // items already taken from the cursor: loop.last, nextitem and length look ahead
  std::optional<int64_t> length;
  int64_t index0 = -1;
  int64_t depth0 = 0;
  Value current;
  Value before;
  std::optional<std::vector<Value>> last_changed;
};

struct MacroObject final : Object {
  const MacroStatement* macro = nullptr;
  Scope* closure = nullptr;
};

}  // namespace inferd::jinja
