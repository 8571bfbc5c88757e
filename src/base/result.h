// Result<T>: a value or an Error, for everything that comes from outside (file, JSON, flag, network).
// std::expected needs C++23; this is the part of it that is used here.
#pragma once

#include <optional>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/errors.h"

namespace inferd {

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit by design
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit by design

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    INFERD_CHECK(ok(), "value() of an error: ", std::get<1>(state_).message());
    return std::get<0>(state_);
  }
  const T& value() const& {
    INFERD_CHECK(ok(), "value() of an error: ", std::get<1>(state_).message());
    return std::get<0>(state_);
  }
  // By value: a view into a temporary Result would dangle in a range-for.
  T value() && {
    INFERD_CHECK(ok(), "value() of an error: ", std::get<1>(state_).message());
    return std::move(std::get<0>(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& {
    INFERD_CHECK(!ok(), "error() of a value");
    return std::get<1>(state_);
  }
  Error&& error() && {
    INFERD_CHECK(!ok(), "error() of a value");
    return std::move(std::get<1>(state_));
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit by design

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const& {
    INFERD_CHECK(!ok(), "error() of a success");
    return *error_;
  }
  Error&& error() && {
    INFERD_CHECK(!ok(), "error() of a success");
    return std::move(*error_);
  }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace inferd

// INFERD_TRY(auto header, read_header(file)): the value, or return the error to the caller.
#define INFERD_TRY(declaration, expression) \
  INFERD_TRY_IMPL(INFERD_TRY_CONCAT(result_, __LINE__), declaration, expression)
#define INFERD_TRY_CONCAT_IMPL(a, b) a##b
#define INFERD_TRY_CONCAT(a, b) INFERD_TRY_CONCAT_IMPL(a, b)
#define INFERD_TRY_IMPL(result, declaration, expression) \
  auto result = (expression);                            \
  if (!result.ok()) return std::move(result).error();    \
  declaration = std::move(result).value()

// INFERD_TRY_STATUS(write_all(fd, bytes)): go on, or return the error to the caller.
#define INFERD_TRY_STATUS(expression)                                                  \
  do {                                                                                 \
    if (auto status_ = (expression); !status_.ok()) return std::move(status_).error(); \
  } while (false)
