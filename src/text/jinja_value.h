// The values a template computes with: Python's, as far as the template language can see them.
//
// Numbers, booleans and None know whether they came from the caller, as text does. Containers live in the
// heap of one render (jinja_runtime.h) and are never changed once made, as jinja2's immutable sandbox has it;
// only namespaces, lazy sequences, loops, cyclers and joiners change.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "text/jinja_text.h"

namespace inferd::jinja {

// Owned by a render's heap; never owns another object.
struct Object {
  virtual ~Object() = default;
};

enum class Kind : uint8_t {
  undefined,
  none,
  boolean,
  integer,  // 64 bits; a larger result is refused
  real,
  text,
  list,
  tuple,
  dict,
  range,
  view,      // dict.keys(), values(), items()
  iterator,  // what map, select and their like give: can be walked once
  space,     // namespace()
  builtin,   // range, dict, namespace, raise_exception ...
  method,    // "a".upper, not called yet
  macro,
  loop,
  cycler,
  joiner,
};

// Why a value is undefined; the message of an operation that needs it is made from this.
enum class Missing : uint8_t {
  variable,
  attribute,         // also an element: x.name, x["name"], x[3]
  unsafe_attribute,  // exists in Python, but not for templates
  parameter,
  inline_if,       // `a if b` without else
  empty_sequence,  // first, last, min, max of nothing
  caller,
  neighbour,  // loop.previtem of the first, loop.nextitem of the last
};

class Value {
 public:
  Value() = default;                                               // undefined
  Value(Text text) : kind_(Kind::text), text_(std::move(text)) {}  // NOLINT: implicit by design
  Value(Kind kind, Object* object) : kind_(kind), object_(object) {}

  static Value none(bool data = false) { return whole_value(Kind::none, 0, data); }
  static Value boolean(bool value, bool data = false) {
    return whole_value(Kind::boolean, value ? 1 : 0, data);
  }
  static Value integer(int64_t value, bool data = false) { return whole_value(Kind::integer, value, data); }
  static Value real(double number, bool data = false) {
    Value value;
    value.kind_ = Kind::real;
    value.data_ = data;
    value.real_ = number;
    return value;
  }
  static Value undefined(Missing why, Text name = {}, Kind owner = Kind::undefined) {
    Value value(std::move(name));
    value.kind_ = Kind::undefined;
    value.missing_ = why;
    value.owner_ = owner;
    return value;
  }

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_sequence() const { return kind_ == Kind::list || kind_ == Kind::tuple; }
  bool is_number() const { return kind_ == Kind::boolean || kind_ == Kind::integer || kind_ == Kind::real; }
  bool is_whole() const { return kind_ == Kind::boolean || kind_ == Kind::integer; }
  bool from_caller() const {
    return data_;
  }  // of numbers, booleans and None; containers and text know by themselves
  Origin scalar_origin() const { return data_ ? Origin::data : Origin::markup; }

  int64_t whole() const { return whole_; }  // of a boolean or an integer
  double real() const { return real_; }
  double number() const { return kind_ == Kind::real ? real() : static_cast<double>(whole()); }
  const Text& text() const { return text_; }  // of an undefined value: the name that was asked for
  Object* object() const { return object_; }
  template <typename T>
  T& as() const {
    return static_cast<T&>(*object());
  }

  Missing missing() const { return missing_; }
  Kind owner() const { return owner_; }  // what an undefined attribute was asked of

 private:
  static Value whole_value(Kind kind, int64_t number, bool data) {
    Value value;
    value.kind_ = kind;
    value.data_ = data;
    value.whole_ = number;
    return value;
  }

  Kind kind_ = Kind::undefined;
  bool data_ = false;
  Missing missing_ = Missing::variable;
  Kind owner_ = Kind::undefined;
  union {
    int64_t whole_ = 0;
    double real_;
    Object* object_;
  };
  Text text_;
};

struct ListObject final : Object {  // lists and tuples
  std::vector<Value> items;
  bool from_caller = false;
  bool group = false;  // a tuple that groupby made: has .grouper and .list
};

struct DictObject final : Object {
  using Entry = std::pair<Value, Value>;
  std::vector<Entry> entries;  // in order of insertion; keys are unique
  bool from_caller = false;

  // The value under a text key, or null. Large dicts are indexed on the first question.
  const Value* find_text(std::string_view key);

 private:
  std::vector<uint32_t> by_text_;  // entries with text keys, sorted by key
  size_t indexed_ = 0;             // entries that by_text_ knows
};

struct RangeObject final : Object {  // at most kMaxRange items
  int64_t start = 0;
  int64_t stop = 0;
  int64_t step = 1;
  int64_t size() const;
  int64_t at(int64_t index) const {  // modulo 2^64, since index · step alone may not fit
    return static_cast<int64_t>(static_cast<uint64_t>(start) +
                                static_cast<uint64_t>(index) * static_cast<uint64_t>(step));
  }
};

struct ViewObject final : Object {
  enum class What : uint8_t { keys, values, items };
  DictObject* dict = nullptr;
  What what = What::items;
};

// The items are computed when the sequence is made, but an error among them is raised only by whoever comes
// that far.
struct IteratorObject final : Object {
  std::vector<Value> items;
  size_t next = 0;
  std::optional<Error> failure;  // after the last item
};

struct NamespaceObject final : Object {
  std::vector<std::pair<Text, Value>> members;
  Value* find(std::string_view name);
};

struct CyclerObject final : Object {
  std::vector<Value> items;
  size_t at = 0;
};

struct JoinerObject final : Object {
  Value separator;
  bool used = false;
};

struct Builtin;
struct BuiltinObject final : Object {
  const Builtin* builtin = nullptr;
};

struct Method;
struct MethodObject final : Object {
  Value self;
  const Method* method = nullptr;
};

std::string_view kind_name(Kind kind);  // "a string", "a list", "None": for messages
Error run_error(std::string detail);    // E-TMPL-003; whoever knows the line adds it
Error undefined_error(const Value& value);

// bool(x)
bool is_true(const Value& value);

// Where the printed form of the value as a whole comes from: brackets and commas of the caller's containers
// are the caller's too.
Origin origin_of(const Value& value);

}  // namespace inferd::jinja
