// SPDX-License-Identifier: BSD-2-Clause
// Who depends on whom: a child pins its parents while it lives, and a pinned parent refuses to be
// destroyed. Counting is atomic, so that threads may create and destroy children of one parent at
// once; destroying an object that another thread still uses is the application's error, as in
// verbs.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/base/result.hpp"
#include "runtime/verbs/handles.hpp"
#include "runtime/verbs/provider.hpp"

namespace verbatim {

/// The provider's table behind a handle.
[[nodiscard]] inline const ProviderTable& table_of(const Context& context) noexcept {
  return *context.table;
}
template <class Handle>
[[nodiscard]] inline Context& context_of(const Handle& object) noexcept {
  return Context::from(object.plain.context);
}
template <class Handle>
[[nodiscard]] inline const ProviderTable& table_of(const Handle& object) noexcept {
  return table_of(context_of(object));
}

/// Pins every parent that exists. Pair: unpin.
template <class... Parents>
inline void pin(Parents*... parents) noexcept {
  const auto one = [](auto* parent) {
    if (parent != nullptr) parent->uses.fetch_add(1, std::memory_order_relaxed);
  };
  (one(parents), ...);
}

template <class... Parents>
inline void unpin(Parents*... parents) noexcept {
  // Publishes the child's last use of the parent; pairs with the load in still_used.
  const auto one = [](auto* parent) {
    if (parent != nullptr) parent->uses.fetch_sub(1, std::memory_order_release);
  };
  (one(parents), ...);
}

template <class Handle>
[[nodiscard]] inline std::uint32_t still_used(const Handle& object) noexcept {
  return object.uses.load(std::memory_order_acquire);
}

/// The refusal of an argument or a state: logged here, so that callers only return it.
/// `verb` is what the application called, `why` the exact cause, both literals.
[[nodiscard, gnu::cold]] Error refuse(int code, const char* verb, const char* why) noexcept;

/// EBUSY: `count` objects (named `children`) still depend on the one that `verb` should destroy.
[[nodiscard, gnu::cold]] Error refuse_busy(const char* verb, std::uint32_t count,
                                           const char* children) noexcept;

}  // namespace verbatim
