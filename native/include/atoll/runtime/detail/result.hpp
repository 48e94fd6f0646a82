// The result of a task: a value, an exception, or nothing yet.
#pragma once

#include <exception>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>

namespace atl::detail {

// `fill` runs the function and keeps its result; `take` returns or throws it, once. References are
// kept as pointers. The storage costs nothing until it is filled.
template <class Value>
class Result {
  static constexpr bool kReference = std::is_reference_v<Value>;
  using Stored = std::conditional_t<kReference, std::remove_reference_t<Value>*,
                                    std::remove_cv_t<std::remove_reference_t<Value>>>;

 public:
  Result() {}  // not `= default`: the union's members stay as they are
  Result(const Result&) = delete;
  Result& operator=(const Result&) = delete;
  ~Result() {
    if (state_ == State::value) value_.~Stored();
    if (state_ == State::exception) exception_.~exception_ptr();
  }

  template <class F>
  void fill(F& function) noexcept {
    try {
      if constexpr (kReference) {
        value_ = std::addressof(function());
      } else {
        ::new (static_cast<void*>(&value_)) Stored(function());
      }
      state_ = State::value;
    } catch (...) {
      fail(std::current_exception());
    }
  }

  void fail(std::exception_ptr exception) noexcept {
    ::new (static_cast<void*>(&exception_)) std::exception_ptr(std::move(exception));
    state_ = State::exception;
  }

  Value take() {
    if (state_ == State::exception) std::rethrow_exception(exception_);
    if constexpr (kReference) {
      return static_cast<Value>(*value_);
    } else {
      return std::move(value_);
    }
  }

  bool failed() const { return state_ == State::exception; }

 private:
  enum class State : unsigned char { empty, value, exception };
  State state_ = State::empty;
  union {
    Stored value_;
    std::exception_ptr exception_;
  };
};

template <>
class Result<void> {
 public:
  template <class F>
  void fill(F& function) noexcept {
    try {
      function();
    } catch (...) {
      exception_ = std::current_exception();
    }
  }

  void fail(std::exception_ptr exception) noexcept { exception_ = std::move(exception); }

  void take() {
    if (exception_) std::rethrow_exception(exception_);
  }

  bool failed() const { return exception_ != nullptr; }

 private:
  std::exception_ptr exception_;
};

}  // namespace atl::detail
