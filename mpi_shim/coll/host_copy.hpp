// SPDX-License-Identifier: BSD-2-Clause
// Parts of typed data, to lines and rooms of a team and from there.
#pragma once

#include <cstdint>
#include <cstring>

#include "mpi_shim/coll/slices.hpp"

namespace vmpi {

[[gnu::always_inline]] inline void copy_bytes(unsigned char* to, const unsigned char* from,
                                              std::uint64_t bytes) noexcept {
  if (bytes == 8)
    __builtin_memcpy(to, from, 8);
  else if (bytes != 0)  // of nothing the program's pointer may be null
    std::memcpy(to, from, bytes);
}

/// Bytes [offset, offset + bytes) of its packed form.
inline void copy_out(const Typed& from, std::uint64_t offset, unsigned char* to,
                     std::uint64_t bytes) noexcept {
  if (from.type->is_contiguous) [[likely]]
    copy_bytes(to, first_byte(*from.type, from.buffer) + offset, bytes);
  else
    (void)pack(*from.type, from.count, from.buffer, offset, to, bytes);
}
/// As many of them as there is room for.
inline void copy_in(const Typed& to, std::uint64_t offset, const unsigned char* from,
                    std::uint64_t bytes) noexcept {
  const auto room = static_cast<std::uint64_t>(to.bytes());
  if (offset >= room) return;
  if (bytes > room - offset) bytes = room - offset;
  if (to.type->is_contiguous) [[likely]]
    copy_bytes(first_byte(*to.type, to.buffer) + offset, from, bytes);
  else
    unpack(*to.type, to.count, to.buffer, offset, from, bytes);
}

}  // namespace vmpi
