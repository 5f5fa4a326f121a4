// SPDX-License-Identifier: BSD-2-Clause
// From a member back to the object that holds it. The offset is passed (offsetof at the caller),
// because a pointer to member cannot name a member of an anonymous union or of a base.
#pragma once

#include <cstddef>

namespace verbatim {

/// REQUIRES: `member` points at `offset` bytes into a live `Outer`.
template <class Outer, class Member>
[[nodiscard]] inline Outer* container_of(Member* member, std::size_t offset) noexcept {
  return reinterpret_cast<Outer*>(reinterpret_cast<unsigned char*>(member) - offset);
}

}  // namespace verbatim
