// SPDX-License-Identifier: BSD-2-Clause
// The one way a function inside the library says "it did not work": a positive errno and a literal
// that says what was refused. Any thread; no allocation. The C border (abi/entry) turns it into the
// convention of each verb.
#pragma once

#include <type_traits>

namespace verbatim {

/// `code` is a positive errno, `what` a string literal (never freed, never null).
struct Error {
  int code;
  const char* what;
};

/// Success without a value, or an Error.
class [[nodiscard]] Status {
 public:
  constexpr Status() noexcept : error_{0, ""} {}
  constexpr Status(Error error) noexcept : error_(error) {}  // implicit: `return Error{...};`

  [[nodiscard]] constexpr bool ok() const noexcept { return error_.code == 0; }
  [[nodiscard]] constexpr Error error() const noexcept { return error_; }

  /// What a provider slot answered (0 or a positive errno), with the name of the slot.
  [[nodiscard]] static constexpr Status from_errno(int code, const char* what) noexcept {
    return code == 0 ? Status() : Status(Error{code, what});
  }

 private:
  Error error_;
};

/// A pointer or a small trivial value, or an Error. Larger results travel through out parameters.
template <class T>
class [[nodiscard]] Result {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>,
                "Result carries pointers and small values; it is passed in registers");

 public:
  constexpr Result(T value) noexcept : value_(value), error_{0, ""} {}
  constexpr Result(Error error) noexcept : value_{}, error_(error) {}

  [[nodiscard]] constexpr bool ok() const noexcept { return error_.code == 0; }
  /// REQUIRES: ok().
  [[nodiscard]] constexpr T value() const noexcept { return value_; }
  [[nodiscard]] constexpr Error error() const noexcept { return error_; }
  [[nodiscard]] constexpr Status status() const noexcept {
    return ok() ? Status() : Status(error_);
  }

 private:
  T value_;
  Error error_;
};

}  // namespace verbatim
