// What one render owns: the budget that bounds its time and memory, and the heap of its containers. One
// thread.
#pragma once

#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/jinja_value.h"

namespace inferd::jinja {

// A step is one evaluated node, one item walked over, or 64 bytes of text made or searched: some tens of
// nanoseconds.
struct Limits {
  int64_t steps = 0;
  size_t text_bytes = 0;  // of any one string, the output included
};

// Items of a range(), as in jinja2's sandbox.
inline constexpr int64_t kMaxRange = 100000;
// Nested evaluations, macro calls and containers together; the deepest take 2 MB of stack (4 MB under ASan).
inline constexpr int kMaxDepth = 500;

class Runtime {
 public:
  Runtime(Limits limits, std::function<std::tm()> now)
      : limits_(limits), steps_left_(limits.steps), now_(std::move(now)) {}
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // False when the budget is used up; then the caller returns exhausted().
  bool spend(int64_t steps) {
    steps_left_ -= steps;
    return steps_left_ >= 0;
  }
  bool spend_bytes(size_t bytes) { return spend(static_cast<int64_t>(bytes / 64)); }
  Error exhausted() const;
  int64_t steps_used() const { return limits_.steps - steps_left_; }

  Status fits_text(size_t bytes) const;  // against the limit on one string
  Status admit_text(size_t bytes);       // the same, and counts it: asked before text of that size is made
  Result<Text> finish(TextBuilder&& builder);

  // Asked before a container of that many items is made; counts them.
  Status admit_items(size_t items);

  template <typename T>
  T& make() {
    constexpr int64_t kObjectSteps = 4;  // an object takes about 100 bytes until the render ends
    spend(kObjectSteps);
    auto owned = std::make_unique<T>();
    T& object = *owned;
    heap_.push_back(std::move(owned));
    return object;
  }
  Value list(std::vector<Value> items, bool from_caller = false);
  Value tuple(std::vector<Value> items);

  std::tm now() const { return now_(); }

  // Counts one level of nesting while it lives; check ok() first.
  class Nest {
   public:
    explicit Nest(Runtime& runtime) : runtime_(runtime) { ++runtime_.depth_; }
    ~Nest() { --runtime_.depth_; }
    Nest(const Nest&) = delete;
    Nest& operator=(const Nest&) = delete;
    bool ok() const { return runtime_.depth_ <= kMaxDepth; }
    Error error() const;

   private:
    Runtime& runtime_;
  };

 private:
  const Limits limits_;
  int64_t steps_left_;
  int depth_ = 0;
  const std::function<std::tm()> now_;
  std::vector<std::unique_ptr<Object>> heap_;
};

// Walks over what Python can iterate: text by characters, dicts by keys, lazy sequences once.
class Cursor {
 public:
  Cursor() = default;
  // E-TMPL-003 when the value cannot be iterated.
  static Result<Cursor> over(const Value& value);

  // False at the end.
  Result<bool> next(Runtime& runtime, Value& item);
  // How many items are left, where that is known without walking.
  std::optional<int64_t> left() const;

 private:
  Value source_;
  size_t at_ = 0;
};

// All items of an iterable.
Result<std::vector<Value>> items_of(Runtime& runtime, const Value& value);

}  // namespace inferd::jinja
