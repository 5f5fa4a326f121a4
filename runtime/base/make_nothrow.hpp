// SPDX-License-Identifier: BSD-2-Clause
// Objects on the heap without operator new: a C program links this library with `cc` alone.
#pragma once

#include <cstdlib>
#include <new>
#include <type_traits>
#include <utility>

namespace verbatim {

/// A constructed T in memory of T's alignment, or nullptr when memory is out. Pair:
/// destroy_nothrow.
template <class T, class... Args>
[[nodiscard]] T* make_nothrow(Args&&... args) noexcept {
  constexpr std::size_t kAlignment = alignof(T) > alignof(void*) ? alignof(T) : alignof(void*);
  constexpr std::size_t kSize = (sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
  void* memory = std::aligned_alloc(kAlignment, kSize);
  if (memory == nullptr) return nullptr;
  return ::new (memory) T(std::forward<Args>(args)...);
}

/// Undoes make_nothrow<T>. T is the type that was made, not a base of it. Null is allowed. A T with
/// a member `owned` is asked whether its memory stays behind it (runtime/verbs/handles.hpp).
template <class T>
void destroy_nothrow(T* object) noexcept {
  static_assert(!std::is_void_v<T>);
  if (object == nullptr) return;
  if constexpr (requires { object->owned.begin_to_outlive(); }) {
    if (object->owned.begin_to_outlive()) {
      auto* const place = &object->owned;
      const auto kept = *place;
      object->~T();
      ::new (static_cast<void*>(place)) auto(kept);
      place->outlived();
      return;
    }
  }
  object->~T();
  std::free(object);
}

}  // namespace verbatim
