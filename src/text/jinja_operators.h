// Python's operators on values: arithmetic, comparison, membership, attributes, items, slices.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/result.h"
#include "text/jinja_ast.h"
#include "text/jinja_runtime.h"

namespace inferd::jinja {

Result<Value> arithmetic(Runtime& runtime, ArithmeticOp op, const Value& left, const Value& right);
Result<Value> negate(const Value& value);
Result<Value> unary_plus(const Value& value);

Result<bool> equal(Runtime& runtime, const Value& left, const Value& right);
Result<bool> less(Runtime& runtime, const Value& left, const Value& right);
Result<bool> compare(Runtime& runtime, CompareOp op, const Value& left, const Value& right);
Result<bool> contains(Runtime& runtime, const Value& container, const Value& item);  // item in container
bool identical(const Value& left, const Value& right);                               // left is right

Result<int64_t> length_of(Runtime& runtime, const Value& value);  // len(value)

// Characters of a text, counted as work.
Result<int64_t> count_characters(Runtime& runtime, const Text& text);

// value.name and value[key], by the rules of jinja2's sandbox: each falls back to the other, and what is not
// there is an undefined value. An error only where the value is undefined itself.
Result<Value> get_attribute(Runtime& runtime, const Value& value, const Text& name);
Result<Value> get_item(Runtime& runtime, const Value& value, const Value& key);

// Python's getattr without the fallback to items; nullopt when there is no such attribute.
std::optional<Value> get_own_attribute(Runtime& runtime, const Value& value, const Text& name);

// value[start:stop:step]; None stands for an absent bound.
Result<Value> get_slice(Runtime& runtime, const Value& value, const Value& start, const Value& stop,
                        const Value& step);

// The pair (key, value) put into a dict being built: a key that is there keeps its place. E-TMPL-003 for a
// key that Python cannot hash.
Status put_entry(Runtime& runtime, DictObject& dict, Value key, Value value);
// The value under a key of any kind, or null.
Result<const Value*> find_entry(Runtime& runtime, DictObject& dict, const Value& key);

// Text + text, and Markup's escaping when one of them is safe.
Result<Text> join_texts(Runtime& runtime, const Text& left, const Text& right);
Result<Text> repeat_text(Runtime& runtime, const Text& text, int64_t times);
Result<Text> escape_html(Runtime& runtime, const Text& text);  // & < > " ' ; unless it is safe already

// Stable merge sort with a comparison that may fail.
using Less = std::function<Result<bool>(Runtime&, const Value&, const Value&)>;
Result<std::vector<Value>> sorted(Runtime& runtime, std::vector<Value> items, const Less& is_less);

}  // namespace inferd::jinja
