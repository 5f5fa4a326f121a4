// SPDX-License-Identifier: BSD-2-Clause
// Words of memory that others change meanwhile: read once and written whole. They order nothing;
// what orders them is the atomic that is stored after them, or loaded before.
#pragma once

#include <type_traits>

namespace verbatim {

template <class T>
inline T load_relaxed(const T& shared) noexcept {
  return __atomic_load_n(&shared, __ATOMIC_RELAXED);
}
template <class T>
inline void store_relaxed(T& shared, std::type_identity_t<T> value) noexcept {
  __atomic_store_n(&shared, value, __ATOMIC_RELAXED);
}

}  // namespace verbatim
