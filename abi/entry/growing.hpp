// SPDX-License-Identifier: BSD-2-Clause
// Structures that grow at their ends: what a program of another age hands in and gets back.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace verbatim {

/// All of `ours`, what the caller's shorter structure does not have as 0. False: there is none, or
/// it is shorter than `least`, or says something that this library does not know.
template <class T>
[[nodiscard]] bool take_in(const T* theirs, std::size_t size, std::size_t least, T& ours) noexcept {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(theirs);
  const std::size_t known = std::min(size, sizeof ours);
  if (theirs == nullptr || size < least ||
      !std::all_of(bytes + known, bytes + size, [](unsigned char byte) { return byte == 0; }))
    return false;
  ours = {};
  std::memcpy(static_cast<void*>(&ours), bytes, known);
  return true;
}

/// Gives out as much of `ours` as the caller's structure takes; what it has besides is cleared.
/// Null is allowed.
template <class T>
void give_out(T* theirs, std::size_t size, const T& ours) noexcept {
  if (theirs == nullptr) return;
  std::memset(static_cast<void*>(theirs), 0, size);
  std::memcpy(static_cast<void*>(theirs), &ours, std::min(size, sizeof ours));
}

}  // namespace verbatim
