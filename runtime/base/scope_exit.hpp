// SPDX-License-Identifier: BSD-2-Clause
// Undo on every way out of a scope, unless the scope succeeded:
//   ScopeExit undo([&] { unmap(p); });  ...  undo.dismiss();
#pragma once

#include <type_traits>
#include <utility>

namespace verbatim {

template <class F>
class [[nodiscard]] ScopeExit {
  static_assert(std::is_nothrow_invocable_v<F&> || std::is_invocable_v<F&>);

 public:
  explicit ScopeExit(F action) noexcept : action_(std::move(action)) {}
  ScopeExit(const ScopeExit&) = delete;
  ScopeExit& operator=(const ScopeExit&) = delete;
  ~ScopeExit() {
    if (armed_) action_();
  }
  void dismiss() noexcept { armed_ = false; }

 private:
  F action_;
  bool armed_ = true;
};

}  // namespace verbatim
